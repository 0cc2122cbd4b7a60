//! Kills, closed pipes, limits and two processes at once: no torn output, no blocked rerun, nothing left after it.

#![cfg(unix)]
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

fn phex(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("phex"));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_run_killed_while_it_writes_is_finished_by_the_next() {
    let works = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return phex::testkit::skip("strace is needed to kill a process at a system call");
    }
    let animals = Animals::new(60, 5);
    let path = animals.path();
    let before = entries(path);
    let train =
        [&TRAIN[..], &["--epochs", "2", "--quiet", "--threads", "1", "--out", "k"]].concat();
    let mut kills = 0;
    for call in ["fsync", "rename"] {
        for number in 1..40 {
            let inject = format!("inject={call},{call}at,{call}at2:signal=KILL:when={number}");
            let calls = format!("trace={call},{call}at,{call}at2");
            let (inject, calls) = match call {
                "fsync" => {
                    (format!("inject=fsync:signal=KILL:when={number}"), String::from("trace=fsync"))
                }
                _ => (inject, calls),
            };
            let status = Command::new("strace")
                .current_dir(path)
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &calls, "-e", &inject])
                .arg(assert_cmd::cargo::cargo_bin!("phex"))
                .args(&train)
                .status()
                .unwrap();
            let killed = !status.success();
            kills += usize::from(killed);
            let (status, _, error) = run(path, &train, "");
            assert_eq!(status, 0, "after {call} {number}: {error}");
            let mut expected = before.clone();
            expected.push(String::from("k"));
            expected.sort();
            assert_eq!(entries(path), expected, "after {call} {number}");
            let parts = [
                "README.md",
                "config.json",
                "graph.json",
                "model.safetensors",
                "report.html",
                "run.json",
            ];
            assert_eq!(entries(&path.join("k")), parts);
            fs::remove_dir_all(path.join("k")).unwrap();
            if !killed {
                break;
            }
        }
    }
    assert!(kills > 12, "{kills}");
}

#[test]
fn what_a_killed_process_left_is_deleted() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    fs::write(path.join("g.outline"), "r\n a\n").unwrap();
    fs::write(path.join("s.csv"), "r,a\n1,2\n").unwrap();
    let left = path.join(".phex-a1B2c3");
    fs::write(&left, "half").unwrap();
    // Files that only look alike, and one that is still being written.
    let kept = [".phex-mine", ".phex-a1B2c3.txt"].map(|name| path.join(name));
    kept.iter().for_each(|path| fs::write(path, "mine").unwrap());
    let busy = path.join(".phex-Busy12");
    fs::write(&busy, "half").unwrap();
    let lock = fs::File::open(&busy).unwrap();
    lock.lock().unwrap();
    let (status, _, error) =
        run(path, &["infer", "g.outline", "--scores", "s.csv", "--out", "o.csv"], "");
    assert_eq!(status, 0, "{error}");
    assert!(!left.exists() && busy.exists() && kept.iter().all(|path| path.exists()));
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    let mut first = phex(path);
    first.args(TRAIN).args(["--epochs", "1000000", "--checkpoint-every", "0.05", "--out", "m"]);
    let mut first = first.spawn().unwrap();
    while !path.join("m.checkpoint/checkpoint.safetensors").exists() {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = [&TRAIN[..], &["--epochs", "2", "--out", "m"]].concat();
    for more in [&[][..], &["--restart"]] {
        let (status, _, error) = run(path, &[&second[..], more].concat(), "");
        assert_eq!(status, 2);
        assert!(error.contains("another process trains a model in this folder"), "{error}");
    }
    assert!(path.join("m.checkpoint/checkpoint.safetensors").exists());
    // The lock of a killed process is free.
    first.kill().unwrap();
    first.wait().unwrap();
    let (status, _, error) = run(path, &[&second[..], &["--restart"]].concat(), "");
    assert_eq!(status, 0, "{error}");
    assert!(path.join("m/run.json").exists() && !path.join("m.checkpoint").exists());
}

#[test]
fn data_may_have_any_name() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    let name = std::ffi::OsStr::from_bytes(b"tr\xe4in.csv");
    fs::rename(path.join("train.csv"), path.join(name)).unwrap();
    let mut train = phex(path);
    train.args(&TRAIN[..3]).arg(name).args(&TRAIN[4..]).args(["--epochs", "1", "--out", "m"]);
    let output = train.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = fs::read_to_string(path.join("m/run.json")).unwrap();
    assert!(record.contains("tr\u{fffd}in.csv"), "{record}");
    let bundle = std::ffi::OsStr::from_bytes(b"m\xf6del");
    fs::rename(path.join("m"), path.join(bundle)).unwrap();
    let mut predict = phex(path);
    predict
        .arg("predict")
        .arg(bundle)
        .args(["--data", "test.csv", "--drop", "id", "is", "--out", "p.csv"]);
    let output = predict.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_closed_standard_error_ends_no_work() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    fs::write(path.join("s.csv"), "animal,dog,cat,husky,poodle\n1,2,3,nan,1\n").unwrap();
    let train = [&TRAIN[..], &["--epochs", "2", "-v", "--out", "m"]].concat();
    let tune = [
        &["tune"],
        &TRAIN[1..],
        &["--epochs", "1", "--seeds", "1", "--grid", "hard", "--out", "t"],
    ]
    .concat();
    let commands: [(&[&str], i32); 8] = [
        (&train, 0),
        (&tune, 0),
        (&["eval", "m", "--data", "test.csv", "--drop", "id"], 0),
        (&["infer", "g.toml", "--scores", "s.csv", "--out", "o.csv"], 0),
        (&["map", "g.toml", "--scores", "s.csv", "--out", "o2.csv"], 0),
        (&["graph", "sparsify", "g.toml", "--strength", "u=1", "--out", "g2.toml"], 0),
        (&["graph", "check", "nothing.toml"], 2),
        (&["infer", "g.toml"], 2),
    ];
    for (arguments, expected) in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = phex(path).args(arguments).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
    for file in ["m/run.json", "t/tune.json", "o.csv", "o2.csv", "g2.toml"] {
        assert!(path.join(file).exists(), "{file}");
    }
}

#[test]
fn a_limit_of_file_size_is_an_error() {
    let animals = Animals::new(600, 5);
    let path = animals.path();
    let before = entries(path);
    let command = format!(
        "ulimit -f 1; exec '{}' {} --epochs 1 --quiet --threads 1 --out m",
        assert_cmd::cargo::cargo_bin!("phex").display(),
        TRAIN.join(" ")
    );
    let output = Command::new("sh").current_dir(path).args(["-c", &command]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{:?} {error}", output.status);
    assert!(error.contains("cannot be written"), "{error}");
    assert_eq!(entries(path), before);
}

#[test]
fn texts_of_strangers_do_not_control_the_terminal() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    fs::write(path.join("s.csv"), "animal,dog,\u{1b}[31mcat\u{9b}\n1,2,3\n").unwrap();
    fs::write(path.join("m.uai"), "MARKOV\n1\n\u{1b}]0;x\u{7}\n").unwrap();
    let train =
        [&TRAIN[..], &["--epochs", "1", "--threads", "1", "--quiet", "--out", "m"]].concat();
    let (status, _, error) = run(path, &train, "");
    assert_eq!(status, 0, "{error}");
    // A column of the training data, and a label.
    let edit = |part: &str, from: &str, to: &str| {
        let (from, to) = (format!("\"{from}\""), format!("\"{to}\""));
        let text = fs::read_to_string(path.join("m").join(part)).unwrap();
        assert!(text.contains(&from), "{part}: {text}");
        let folder = path.join(part.trim_end_matches(".json"));
        fs::create_dir(&folder).unwrap();
        for file in ["config.json", "graph.json", "model.safetensors"] {
            fs::copy(path.join("m").join(file), folder.join(file)).unwrap();
        }
        fs::write(folder.join(part), text.replace(&from, &to)).unwrap();
    };
    edit("config.json", "fur", "\\u001b[31mfur\\r\\u0000");
    edit("graph.json", "husky", "\\u001b[31mhusky");
    for arguments in [
        &["infer", "g.toml", "--scores", "s.csv", "--out", "o.csv"][..],
        &["graph", "plan", "m.uai"],
        &["train", "g.toml", "--data", "s.csv", "--label-column", "\u{1b}x\r", "--out", "n"],
        &["predict", "config", "--data", "test.csv", "--drop", "id", "is", "--out", "o.csv"],
        &["infer", "graph/graph.json", "--scores", "s.csv", "--out", "o.csv"],
    ] {
        let (status, _, error) = run(path, arguments, "");
        assert_eq!(status, 2);
        assert!(!error.contains(|c: char| c.is_control() && c != '\n'), "{error:?}");
        assert!(error.contains("\\u{1b}"), "{error:?}");
    }
}
