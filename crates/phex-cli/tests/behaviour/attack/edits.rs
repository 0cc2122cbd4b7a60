//! Valid files with edits: flipped bytes, cuts, repeats, foreign bytes, and numbers that claim too large sizes.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Dice, MEMORY, Score, below, limited};
use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

/// A file to edit, and a command that reads it.
struct Target {
    kind: String,
    file: PathBuf,
    arguments: Vec<String>,
    /// The file as it should be.
    good: Vec<u8>,
    /// What a run makes and the next must not find.
    made: Option<PathBuf>,
}

/// A limit of file size that a small checkpoint keeps, and a report does not.
const REPORT_TOO_LARGE: &str = "ulimit -f 32;";

/// A folder with one file of every kind.
fn targets(folder: &Path) -> Vec<Target> {
    let ok = |arguments: &[&str]| {
        let (status, _, error) = run(folder, arguments, "");
        assert_eq!(status, 0, "{arguments:?}: {error}");
    };
    let mut targets = Vec::new();
    let mut add = |kind: &str, file: &str, arguments: &[&str]| {
        targets.push(Target {
            kind: String::from(kind),
            file: folder.join(file),
            arguments: arguments.iter().map(|text| String::from(*text)).collect(),
            good: fs::read(folder.join(file)).unwrap(),
            made: None,
        });
    };
    let graphs = [
        "toml",
        "json",
        "csv",
        "outline",
        "hxg",
        "dot",
        "tree",
        "graphml",
        "node-link",
        "parents",
        "levels",
        "paths",
    ];
    for format in graphs {
        let file = format!("graph.{format}");
        let (status, ..) = run(folder, &["graph", "convert", "g.toml", &file, "--to", format], "");
        if status == 0 {
            add("graphs", &file, &["graph", "check", &file, "--format", format]);
            add("graphs", &file, &["graph", "plan", &file, "--format", format]);
        }
    }
    fs::write(folder.join("s.csv"), "animal,dog,cat,husky,poodle\n1,2,-1,0.5,0\n0,0,1e3,-2,0.25\n")
        .unwrap();
    for format in ["csv", "npy", "parquet"] {
        // Probabilities are scores as well, as far as readers go.
        let file = format!("table.{format}");
        ok(&["infer", "g.toml", "--scores", "s.csv", "--out", &file]);
        add("scores", &file, &["infer", "g.toml", "--scores", &file, "--out", "o.csv"]);
        add(
            "evidence",
            &file,
            &["infer", "g.toml", "--scores", "s.csv", "--evidence", &file, "--out", "o.csv"],
        );
    }
    let features = ["--label-column", "is", "--drop", "id", "--validation-fraction", "0"];
    let train = [&["train", "g.toml", "--data", "train.csv"], &features[..]].concat();
    let brief =
        ["--epochs", "1", "--quiet", "--no-report", "--threads", "1", "--restart", "--out", "x"];
    add("training data", "train.csv", &[&train[..], &brief].concat());
    for model in ["m.uai", "m.coo", "m.qubo", "m.bqm.json"] {
        ok(&["graph", "convert", "g.toml", model, "--hard", "9"]);
        add(
            "models",
            model,
            &["map", model, "--restarts", "2", "--anneal-sweeps", "5", "--out", "o.csv"],
        );
    }
    fs::write(folder.join("m.sparse"), "3 2\n1 1 2\n1 2 -1\n").unwrap();
    fs::write(folder.join("m.mc"), "3 2\n1 2 1\n2 3 -1\n").unwrap();
    for model in ["m.sparse", "m.mc"] {
        add(
            "models",
            model,
            &["map", model, "--restarts", "2", "--anneal-sweeps", "5", "--out", "o.csv"],
        );
    }
    ok(&[&TRAIN[..], &["--epochs", "2", "--hidden", "3", "--threads", "1", "--out", "m"]].concat());
    for part in ["config.json", "graph.json", "model.safetensors"] {
        let predict = [
            "predict",
            "m",
            "--data",
            "test.csv",
            "--drop",
            "id",
            "is",
            "--threads",
            "1",
            "--out",
            "o.csv",
        ];
        add("bundles", &format!("m/{part}"), &predict);
    }
    fs::write(folder.join("c.toml"), "seed = 3\n[head]\nhidden = [4]\n[[stages]]\nepochs = 1\n")
        .unwrap();
    let set = [
        "--config",
        "c.toml",
        "--quiet",
        "--no-report",
        "--threads",
        "1",
        "--restart",
        "--out",
        "x",
    ];
    add("settings", "c.toml", &[&train[..], &set].concat());
    // A run that cannot write its report keeps its checkpoint.
    let brief = ["--hidden", "3", "--quiet", "--threads", "1", "--checkpoint-every", "0"];
    let resumed = [&TRAIN[..], &["--epochs", "2"], &brief, &["--out", "r"]].concat();
    let ended = limited(folder, REPORT_TOO_LARGE, &resumed);
    assert_eq!(ended.status, Some(2), "{}", ended.error);
    add("checkpoints", "r.checkpoint/checkpoint.safetensors", &resumed);
    targets.last_mut().unwrap().made = Some(folder.join("r"));
    targets
}

/// Numbers that are edges somewhere.
const EDGES: [&str; 12] = [
    "0",
    "-1",
    "1",
    "4294967296",
    "18446744073709551615",
    "-9223372036854775808",
    "1e308",
    "1e-320",
    "nan",
    "inf",
    "9999999999999999999999",
    "2147483647",
];

/// A file with a few edits.
fn edited(dice: &mut Dice, file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=below(dice, 3) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = below(dice, bytes.len());
        let length = 1 + below(dice, (bytes.len() - at).min(32));
        match below(dice, 8) {
            0 => bytes[at] ^= 1 << below(dice, 8),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'\n', 0x1b, b'"', b','][below(dice, 8)],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let part = bytes[at..at + length].to_vec();
                let times = 1 + below(dice, 40);
                let more: Vec<u8> = part.iter().copied().cycle().take(part.len() * times).collect();
                bytes.splice(at..at, more);
            }
            5 => bytes[at..at + length.min(8)].fill([0xff, 0x7f, 0][below(dice, 3)]),
            _ => {
                // A number that is written out, if there is one after this place.
                let digit = |byte: &u8| byte.is_ascii_digit();
                let Some(start) = bytes[at..].iter().position(digit).map(|start| at + start) else {
                    continue;
                };
                let end = bytes[start..]
                    .iter()
                    .position(|byte| !digit(byte))
                    .map_or(bytes.len(), |end| start + end);
                bytes.splice(start..end, EDGES[below(dice, EDGES.len())].bytes());
            }
        }
    }
    bytes
}

/// Runs so many attacks, spread over all kinds of files.
pub(super) fn attack(score: &mut Score, count: usize) {
    let animals = Animals::new(24, 5);
    let folder = animals.path();
    let targets = targets(folder);
    let limits = format!("ulimit -v {MEMORY};");
    for number in 0..count {
        let target = &targets[number % targets.len()];
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number as u64) << 17);
        (0..4).for_each(|_| {
            dice.roll();
        });
        let bad = edited(&mut dice, &target.good);
        if let Some(made) = &target.made {
            let _ = fs::remove_dir_all(made);
            fs::create_dir_all(target.file.parent().unwrap()).unwrap();
        }
        fs::write(&target.file, &bad).unwrap();
        let arguments: Vec<&str> = target.arguments.iter().map(String::as_str).collect();
        let ended = limited(folder, &limits, &arguments);
        let _ = fs::write(&target.file, &target.good);
        let kind = format!("edited {}", target.kind);
        score.count(&kind);
        if let Some(fault) = ended.fault() {
            if let Ok(kept) = std::env::var("PHEX_ATTACK_KEEP") {
                let name = target.file.file_name().unwrap().to_string_lossy().into_owned();
                fs::write(Path::new(&kept).join(format!("{number}-{name}")), &bad).unwrap();
            }
            score.find(&kind, format!("number {number}, {}: {fault}", arguments.join(" ")));
        }
    }
}
