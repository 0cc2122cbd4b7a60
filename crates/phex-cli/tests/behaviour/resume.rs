//! Runs that are stopped on the way and go on: killed, terminated, in training and in tuning.

#![cfg(unix)]
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::animals::{Animals, Dice, TRAIN};
use crate::common::run;

/// Everything that a checkpoint has to remember: two stages, dropout, norms, averages, momentum of
/// strengths, the best epoch.
const SETTINGS: [&str; 30] = [
    "--epochs",
    "5",
    "--warm-up",
    "2",
    "--batch",
    "8",
    "--hidden",
    "6,5",
    "--dropout",
    "0.2",
    "--input-dropout",
    "0.1",
    "--norm",
    "batch",
    "--average",
    "0.9",
    "--strength",
    "u=1",
    "--learn-strengths",
    "kind",
    "--strength-every",
    "3",
    "--class-weights",
    "balanced",
    "--rate-schedule",
    "cosine=0.1",
    "--metric",
    "au-prc",
    "--checkpoint-every",
    "0",
];

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_run_that_is_killed_ends_with_the_same_bits() {
    let folder = Animals::new(240, 5);
    let path = folder.path();
    let command = |out: &'static str| [&TRAIN[..], &SETTINGS, &["--out", out]].concat();
    let started = Instant::now();
    let (status, _, error) = run(path, &command("whole"), "");
    assert_eq!(status, 0, "{error}");
    let whole = started.elapsed();

    // How long a run takes depends on what else the machine does: where it was done before the
    // tenth kill, or no kill came after a checkpoint, once more with other times.
    let mut dice = Dice(3);
    let mut part = 1.0 / 12.0;
    let error = loop {
        assert!((1e-4..10.0).contains(&part), "no times were found at which to kill");
        let (mut kills, mut seen) = (0, 0);
        while kills < 12 {
            let mut child = start(path, &command("parts"));
            std::thread::sleep(whole.mul_f64(dice.roll() * part));
            if child.try_wait().unwrap().is_some() {
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            seen += usize::from(path.join("parts.checkpoint/checkpoint.safetensors").exists());
        }
        let (status, _, error) = run(path, &command("parts"), "");
        assert_eq!(status, 0, "{error}");
        let early = kills < 10 || error.contains("already finished");
        if !early && seen > 2 {
            break error;
        }
        part *= if early { 0.5 } else { 1.6 };
        fs::remove_dir_all(path.join("parts")).unwrap();
    };
    assert!(error.contains("resuming after"), "{error}");
    for file in ["model.safetensors", "graph.json"] {
        let read = |folder: &str| fs::read(path.join(folder).join(file)).unwrap();
        assert!(read("whole") == read("parts"), "{file} differs");
    }
    assert!(!path.join("parts.checkpoint").exists());
    let history = |folder: &str| {
        let config = json(&path.join(folder).join("config.json"));
        let mut history = config["history"].as_array().unwrap().clone();
        for record in &mut history {
            (record["seconds"], record["profile"]) = (0.into(), 0.into());
        }
        history
    };
    assert_eq!(history("whole"), history("parts"));
}

#[test]
fn a_signal_keeps_a_checkpoint_of_the_same_run() {
    let folder = Animals::new(240, 5);
    let path = folder.path();
    // Without end, so that a signal is what ends it.
    let command = [&TRAIN[..], &["--epochs", "1000000", "--checkpoint-every", "0.1", "--out", "m"]];
    let command = command.concat();
    let checkpoint = path.join("m.checkpoint/checkpoint.safetensors");
    let mut child = start(path, &command);
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("interrupted; the same command continues"), "{error}");
    assert!(checkpoint.exists());
    assert!(!path.join("m").exists());
    let (status, _, error) =
        run(path, &[&TRAIN[..], &["--epochs", "3", "--out", "m"]].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("checkpoint of another run") && error.contains("--restart"), "{error}");
    // A damaged checkpoint is reported.
    fs::write(path.join("m.checkpoint/checkpoint.safetensors"), "rubbish").unwrap();
    let (status, _, error) = run(path, &command, "");
    assert_eq!(status, 2);
    assert!(error.contains("checkpoint cannot be read; --restart"), "{error}");
    let more = ["--epochs", "3", "--out", "m", "--restart"];
    let (status, _, error) = run(path, &[&TRAIN[..], &more].concat(), "");
    assert_eq!(status, 0, "{error}");
    assert!(!path.join("m.checkpoint").exists());
}

#[test]
fn tuning_goes_on_where_it_stopped() {
    let folder = Animals::new(150, 5);
    let path = folder.path();
    let tune = |out: &'static str, more: &[&'static str]| {
        let flags = ["--grid", "hard,u=0.2,u=1", "--seeds", "2", "--epochs", "3", "--out", out];
        let mut command = [&TRAIN[..], &flags, &["--checkpoint-every", "0"], more].concat();
        command[0] = "tune";
        command
    };
    let (status, out, error) = run(path, &tune("whole", &["--json"]), "");
    assert_eq!(status, 0, "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["settings"].as_array().unwrap().len(), 3);
    for file in ["tune.json", "strength.svg", "report.html", "model/run.json"] {
        assert!(path.join("whole").join(file).exists(), "{file}");
    }

    // Stopped after the second trial or a little later; what is done is not done again.
    let mut child = start(path, &tune("parts", &[]));
    let trials = |file: &Path| json(file)["trials"].as_array().unwrap().clone();
    let results = path.join("parts/tune.json");
    while !(results.exists() && trials(&results).len() >= 2) && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = trials(&results);
    let (status, _, error) = run(path, &tune("parts", &[]), "");
    assert_eq!(status, 0, "{error}");
    let after = trials(&results);
    assert_eq!(after.len(), 6);
    assert_eq!(after[..before.len()], before[..], "the same seconds: they were not run again");
    let values = |trials: Vec<Value>| trials.iter().map(|t| t["value"].clone()).collect::<Vec<_>>();
    assert_eq!(values(after), values(trials(&path.join("whole/tune.json"))));
    let model = |folder: &str| fs::read(path.join(folder).join("model/model.safetensors")).unwrap();
    assert!(model("whole") == model("parts"));

    // Once more: nothing is left to do. A larger grid adds to it.
    let (status, out, error) = run(path, &tune("parts", &[]), "");
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("best: "), "{out}");
    let mut larger = tune("parts", &[]);
    let at = larger.iter().position(|flag| *flag == "--grid").unwrap();
    larger[at + 1] = "hard,u=0.2,u=1,u=3";
    let (status, out, error) = run(path, &larger, "");
    assert_eq!(status, 0, "{error}");
    assert!(out.contains("u=3"), "{out}");
    assert!(error.contains("u=3, seed 0 (7 of 8)") && !error.contains("u=1, seed"), "{error}");
}

#[test]
fn tuning_needs_a_metric_that_can_choose() {
    let folder = Animals::new(60, 5);
    let path = folder.path();
    let base = ["tune", "g.toml", "--data", "train.csv", "--label-column", "is", "--out", "t"];
    let with = |more: &[&str]| run(path, &[&base[..], more].concat(), "");
    for (more, expected) in [
        (&[][..], "give --valid or --validation-fraction"),
        (&["--validation-fraction", "0.3", "--metric", "loss"], "use --metric au-prc or accuracy"),
        (&["--validation-fraction", "0.3", "--strength", "u=1"], "leave out --strength"),
        (&["--grid", "u=1,soft"], "`soft` is not a strength"),
    ] {
        let (status, _, error) = with(more);
        assert_eq!(status, 2, "{more:?}: {error}");
        assert!(error.contains(expected), "{more:?}: {error}");
    }
    // Without exclusions nothing is known to be off.
    let graph = crate::common::animals::GRAPH.replace("exclude = \"siblings\"", "");
    std::fs::write(path.join("g.toml"), graph).unwrap();
    let more = ["--validation-fraction", "0.3", "--drop", "id", "--multi-label"];
    let (status, _, error) = with(&more);
    assert_eq!(status, 2, "{error}");
    assert!(error.contains("a label that is on and one that is off"), "{error}");
}
