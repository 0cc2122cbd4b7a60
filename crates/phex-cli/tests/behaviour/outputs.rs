//! Outputs never replace an input, another output or a file that phex did not write; what cannot be written is found before
//! any work.

use std::fs;
use std::path::Path;

use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

const GRAPH: &str = "r\n a\n b\n";

/// A folder with a graph, scores and animals to train on.
fn folder() -> Animals {
    let folder = Animals::new(60, 9);
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("g.outline", GRAPH);
    write("s.csv", "r,a,b\n1,2,-1\n");
    folder
}

/// Runs a command that must be refused, and checks that every file is as it was.
fn refused(folder: &Path, arguments: &[&str], expected: &str) {
    let before = everything(folder);
    let (status, _, error) = run(folder, arguments, "");
    assert_eq!(status, 2, "{arguments:?}: {error}");
    assert!(error.contains(expected), "{arguments:?}: {error}");
    assert_eq!(everything(folder), before, "{arguments:?} changed a file");
}

/// All files below a folder with their bytes.
fn everything(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all.push((path.display().to_string(), Vec::new()));
                open.push(path);
            } else {
                all.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn no_output_replaces_an_input() {
    let animals = folder();
    let path = animals.path();
    let infer = ["infer", "g.outline", "--scores", "s.csv", "--out"];
    for out in ["g.outline", "s.csv", "./s.csv", "../NAME/s.csv"] {
        let name = path.file_name().unwrap().to_str().unwrap();
        let out = out.replace("NAME", name);
        refused(path, &[&infer[..], &[&out]].concat(), "would be replaced");
    }
    for command in [
        &["infer", "g.outline", "--scores", "s.csv", "--out", "o.csv", "--diagnosis", "g.outline"]
            [..],
        &["map", "g.outline", "--scores", "s.csv", "--out", "s.csv"],
        &["reconcile", "g.outline", "--scores", "s.csv", "--out", "s.csv"],
        &["graph", "show", "g.toml", "--svg", "g.toml"],
        &["graph", "show", "g.toml", "--dot", "g.toml"],
        &["graph", "convert", "g.toml", "g.toml"],
        &["graph", "sparsify", "g.toml", "--out", "g.toml"],
        &["graph", "densify", "g.toml", "--out", "g.toml"],
        &["graph", "check", "g.toml"],
    ] {
        if command[1] == "check" {
            assert_eq!(run(path, command, "").0, 0);
            continue;
        }
        refused(path, command, "would be replaced");
    }
    refused(
        path,
        &[&TRAIN[..], &["--out", "m", "--report", "train.csv"]].concat(),
        "would be replaced",
    );
    refused(
        path,
        &[&TRAIN[..], &["--out", "m", "--report", "g.toml"]].concat(),
        "would be replaced",
    );
    let tune = [&["tune"], &TRAIN[1..], &["--out", "t", "--report", "train.csv"]].concat();
    refused(path, &tune, "would be replaced");
    // A trained model is an input too.
    let (status, _, error) =
        run(path, &[&TRAIN[..], &["--out", "m", "--epochs", "1"]].concat(), "");
    assert_eq!(status, 0, "{error}");
    let predict = ["predict", "m", "--data", "test.csv", "--drop", "id", "is", "--out"];
    refused(path, &[&predict[..], &["m/config.json"]].concat(), "would be replaced");
    refused(path, &[&predict[..], &["test.csv"]].concat(), "would be replaced");
    let eval = ["eval", "m", "--data", "test.csv", "--drop", "id", "--report"];
    refused(path, &[&eval[..], &["test.csv"]].concat(), "would be replaced");
    refused(path, &[&eval[..], &["m/graph.json"]].concat(), "would be replaced");
    let again = [&["train", "m/graph.json"], &TRAIN[2..], &["--out", "m", "--restart"]].concat();
    refused(path, &again, "would be replaced");
}

#[cfg(unix)]
#[test]
fn links_do_not_hide_an_input() {
    use std::os::unix::fs::symlink;
    let animals = folder();
    let path = animals.path();
    symlink(path.join("s.csv"), path.join("link.csv")).unwrap();
    fs::hard_link(path.join("s.csv"), path.join("hard.csv")).unwrap();
    symlink(path, path.join("here")).unwrap();
    for out in ["link.csv", "hard.csv", "here/s.csv", "here/link.csv"] {
        let before = fs::read(path.join("s.csv")).unwrap();
        let (status, _, error) =
            run(path, &["infer", "g.outline", "--scores", "s.csv", "--out", out], "");
        assert_eq!(status, 2, "{out}: {error}");
        assert!(error.contains("the input s.csv would be replaced as"), "{out}: {error}");
        assert_eq!(fs::read(path.join("s.csv")).unwrap(), before);
    }
    let twice = ["--out", "o.csv", "--diagnosis", "here/o.csv"];
    let (status, _, error) =
        run(path, &[&["infer", "g.outline", "--scores", "s.csv"], &twice[..]].concat(), "");
    assert_eq!(
        (status, error.contains("o.csv would be written twice, also as")),
        (2, true),
        "{error}"
    );
    assert!(!path.join("o.csv").exists());
}

#[test]
fn two_outputs_are_two_files() {
    let animals = folder();
    let path = animals.path();
    let infer = ["infer", "g.outline", "--scores", "s.csv", "--out"];
    for [out, diagnosis] in
        [["o.csv", "o.csv"], ["o.csv", "./o.csv"], ["o.csv", "o.csv.run.json"], ["-", "-"]]
    {
        refused(
            path,
            &[&infer[..], &[out, "--diagnosis", diagnosis]].concat(),
            "would be written twice",
        );
    }
    refused(
        path,
        &["graph", "show", "g.toml", "--svg", "x", "--dot", "x"],
        "would be written twice",
    );
    // Devices may be written to any number of times.
    #[cfg(unix)]
    {
        let null = [&infer[..], &["/dev/null", "--diagnosis", "/dev/null"]].concat();
        assert_eq!(run(path, &null, "").0, 0);
    }
}

#[test]
fn files_that_nobody_named_are_replaced_only_if_phex_wrote_them() {
    let animals = folder();
    let path = animals.path();
    let infer = ["infer", "g.outline", "--scores", "s.csv", "--out", "o.csv"];
    fs::write(path.join("o.csv.run.json"), "{\"mine\": 1}").unwrap();
    refused(path, &infer, "phex did not write what is there");
    fs::remove_file(path.join("o.csv.run.json")).unwrap();
    for _ in 0..2 {
        let (status, _, error) = run(path, &infer, "");
        assert_eq!(status, 0, "{error}");
    }
    let train = [&TRAIN[..], &["--epochs", "1", "--out", "m"]].concat();
    fs::create_dir(path.join("m")).unwrap();
    for (name, text) in [
        ("run.json", "{}"),
        ("report.html", "<p>mine"),
        ("sklearn.json", "[]"),
        ("README.md", "mine"),
    ] {
        fs::write(path.join("m").join(name), text).unwrap();
        for more in [&[][..], &["--restart"]] {
            refused(path, &[&train[..], more].concat(), "choose another folder");
        }
        fs::remove_file(path.join("m").join(name)).unwrap();
    }
    // Nor are files deleted with a folder of checkpoints, or in the folder of a demo or a tuning.
    fs::create_dir(path.join("m.checkpoint")).unwrap();
    fs::write(path.join("m.checkpoint/notes.txt"), "mine").unwrap();
    refused(path, &train, "`notes.txt`, which is not a checkpoint");
    fs::create_dir(path.join("d")).unwrap();
    for name in ["train.csv", "animals.toml", "report.html", "photos.svg"] {
        fs::write(path.join("d").join(name), "mine").unwrap();
        refused(path, &["demo", "--out", "d"], "but `phex demo` did not write it");
        fs::remove_file(path.join("d").join(name)).unwrap();
    }
    let tune = [&["tune"], &TRAIN[1..], &["--epochs", "1", "--seeds", "1", "--out", "d"]].concat();
    for name in ["report.html", "strength.svg", "tune.json"] {
        fs::write(path.join("d").join(name), "mine").unwrap();
        for more in [&[][..], &["--restart"]] {
            refused(path, &[&tune[..], more].concat(), "choose another --out");
        }
        fs::remove_file(path.join("d").join(name)).unwrap();
    }
}

#[test]
fn outputs_that_cannot_be_written_are_found_first() {
    let animals = folder();
    let path = animals.path();
    let (long, longer) = ("x".repeat(250), "x".repeat(300));
    let endless = [&TRAIN[..], &["--epochs", "1000000000", "--out"]].concat();
    for out in ["no/such/m", &long, &longer, "g.toml/m", "train.csv"] {
        let (status, _, error) = run(path, &[&endless[..], &[out]].concat(), "");
        assert_eq!(status, 2, "{out}: {error}");
        let (status, ..) =
            run(path, &["infer", "g.outline", "--scores", "none.csv", "--out", out], "");
        assert_eq!(status, 2);
    }
    let report = [&endless[..], &["m", "--report", "no/such/report.html"]].concat();
    assert_eq!(run(path, &report, "").0, 2);
    let report = [&endless[..], &["m", "--report", &longer, "--quiet"]].concat();
    assert_eq!(run(path, &report, "").0, 2);
    assert!(!path.join("m.checkpoint").exists());
}
