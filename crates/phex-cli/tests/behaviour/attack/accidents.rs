//! Accidents: kills, full disks, closed pipes, two writers and limits.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Ended, Score, limited};
use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

const INFER: [&str; 6] = ["infer", "g.toml", "--scores", "s.csv", "--threads", "1"];

pub(super) fn attack(score: &mut Score, long: bool, kills_at_calls: usize) {
    let animals = Animals::new(60, 5);
    let folder = animals.path();
    let rows = if long { 20_000 } else { 2_000 };
    let scores = "animal,dog,cat,husky,poodle\n".to_owned() + &"1,2,-1,0.5,0\n".repeat(rows);
    fs::write(folder.join("s.csv"), scores).unwrap();
    full_disk(score, folder);
    closed_pipes(score, folder);
    limits(score, folder, long);
    two_writers(score, folder, if long { 40 } else { 4 });
    kills(score, folder, if long { 200 } else { 8 });
    at_calls(score, kills_at_calls);
}

fn judge(score: &mut Score, kind: &str, what: &str, ended: &Ended) {
    score.count(kind);
    if let Some(fault) = ended.fault() {
        score.find(kind, format!("{what}: {fault}"));
    }
}

fn full_disk(score: &mut Score, folder: &Path) {
    if !Path::new("/dev/full").exists() {
        phex::testkit::skip("there is no /dev/full");
        return;
    }
    for arguments in [&["--out", "/dev/full"][..], &["--out", "o.csv", "--diagnosis", "/dev/full"]]
    {
        let ended = limited(folder, "", &[&INFER[..], arguments].concat());
        judge(score, "full disk", &arguments.join(" "), &ended);
        if ended.status != Some(2) {
            score.find("full disk", format!("status {:?}", ended.status));
        }
    }
}

/// The reader of standard output ends after some bytes, or never reads; nobody reads standard error.
fn closed_pipes(score: &mut Score, folder: &Path) {
    for bytes in [0, 1, 100, 5000] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
            .current_dir(folder)
            .args(INFER)
            .args(["--out", "-", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let mut start = vec![0; bytes];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let status = child.wait().unwrap();
        score.count("closed pipes");
        if status.code() != Some(0) {
            score.find("closed pipes", format!("after {bytes} bytes: {status}"));
        }
    }
}

fn limits(score: &mut Score, folder: &Path, long: bool) {
    let train =
        [&TRAIN[..], &["--epochs", "1", "--quiet", "--threads", "2", "--restart", "--out", "l"]]
            .concat();
    let infer = [&INFER[..4], &["--out", "o.csv"]].concat();
    let step = if long { 1 } else { 6 };
    let files = (0..10).step_by(step).map(|blocks| format!("ulimit -f {};", blocks * blocks));
    let open = (4..16).step_by(step).map(|files| format!("ulimit -n {files};"));
    for (kind, limits) in [
        ("limits of file size", files.collect::<Vec<_>>()),
        ("limits of open files", open.collect()),
        ("limits of threads", vec![String::from("ulimit -u 1;")]),
    ] {
        for limit in limits {
            for arguments in [&train, &infer] {
                let ended = limited(folder, &limit, arguments);
                // The loader itself may fail for lack of open files.
                if ended.status == Some(127) {
                    continue;
                }
                judge(score, kind, &format!("{limit} {}", arguments[0]), &ended);
            }
        }
    }
}

/// Two processes write one file: it is complete, whoever was last.
fn two_writers(score: &mut Score, folder: &Path, times: usize) {
    let arguments = [&INFER[..], &["--out", "two.csv"]].concat();
    let (status, ..) = run(folder, &arguments, "");
    assert_eq!(status, 0);
    let expected = fs::read(folder.join("two.csv")).unwrap();
    for _ in 0..times {
        fs::remove_file(folder.join("two.csv")).unwrap();
        let start = || {
            let mut command = Command::new(assert_cmd::cargo::cargo_bin!("phex"));
            command.current_dir(folder).args(&arguments).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut both = [start(), start()];
        let good = both
            .iter_mut()
            .map(|child| child.wait().unwrap().success())
            .filter(|good| *good)
            .count();
        score.count("two writers");
        if good < 1 || fs::read(folder.join("two.csv")).unwrap() != expected {
            score.find("two writers", format!("{good} were well"));
        }
    }
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

/// The calls that put something on the disk. Not every machine has each.
const CALLS: [(&str, &str); 3] = [
    ("fsync", "?fsync,?fdatasync"),
    ("rename", "?rename,?renameat,?renameat2"),
    ("write", "?write,?writev,?pwrite64"),
];

/// Kills at the first, second, … call of each kind, then a rerun. When every call has had its kill, longer runs follow.
fn at_calls(score: &mut Score, mut times: usize) {
    let works = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return phex::testkit::skip("strace is needed to kill a process at a system call");
    }
    let animals = Animals::new(60, 5);
    let folder = animals.path();
    let scores = "animal,dog,cat,husky,poodle\n".to_owned() + &"1,2,-1,0.5,0\n".repeat(2000);
    fs::write(folder.join("s.csv"), scores).unwrap();
    for epochs in 1.. {
        let epochs = epochs.to_string();
        let infer = [&INFER[..], &["--out", "killed.csv"]].concat();
        let train = ["--epochs", &epochs, "--quiet", "--threads", "1", "--checkpoint-every", "0"];
        let train = [&TRAIN[..], &train, &["--out", "k"]].concat();
        for (arguments, made, part) in
            [(&infer, "killed.csv", ""), (&train, "k", "model.safetensors")]
        {
            let (made, content) = (folder.join(made), folder.join(made).join(part));
            let content = if part.is_empty() { made.clone() } else { content };
            let remove = || {
                let _ = fs::remove_dir_all(&made).or_else(|_| fs::remove_file(&made));
            };
            // A shorter run may have left its model.
            remove();
            let (status, _, error) = run(folder, arguments, "");
            assert_eq!(status, 0, "{error}");
            let (expected, left) = (fs::read(&content).unwrap(), names(folder));
            for (call, calls) in CALLS {
                let kind = format!("kills of {} at every {call}", arguments[0]);
                for number in 1.. {
                    if times == 0 {
                        return;
                    }
                    remove();
                    let status = Command::new("strace")
                        .current_dir(folder)
                        .args([
                            "-f",
                            "-qq",
                            "-o",
                            "/dev/null",
                            "-e",
                            &format!("trace={calls}"),
                            "-e",
                        ])
                        .arg(format!("inject={calls}:signal=KILL:when={number}"))
                        .arg(assert_cmd::cargo::cargo_bin!("phex"))
                        .args(arguments)
                        .stdin(Stdio::null())
                        .stderr(Stdio::null())
                        .status()
                        .unwrap();
                    if status.success() {
                        break;
                    }
                    times -= 1;
                    score.count(&kind);
                    if fs::read(&content).is_ok_and(|found| found != expected) {
                        score.find(&kind, format!("{call} {number}: the output is torn"));
                    }
                    let (status, _, error) = run(folder, arguments, "");
                    if status != 0 {
                        score
                            .find(&kind, format!("{call} {number}: the rerun is blocked: {error}"));
                        let _ = fs::remove_dir_all(folder.join("k.checkpoint"));
                        let _ = run(folder, arguments, "");
                    }
                    if fs::read(&content).ok().as_ref() != Some(&expected) {
                        score.find(&kind, format!("{call} {number}: the answer is another one"));
                    }
                    if names(folder) != left {
                        let found = names(folder);
                        score.find(&kind, format!("{call} {number}: left behind: {found:?}"));
                    }
                }
            }
        }
    }
}

/// Kills at times that are spread over a run, then a rerun.
fn kills(score: &mut Score, folder: &Path, times: usize) {
    let arguments = [&INFER[..], &["--out", "killed.csv"]].concat();
    let train = [
        &TRAIN[..],
        &["--epochs", "3", "--quiet", "--threads", "1", "--checkpoint-every", "0", "--out", "k"],
    ]
    .concat();
    let whole = limited(folder, "", &train).took;
    let _ = limited(folder, "", &arguments);
    let expected = fs::read(folder.join("killed.csv")).unwrap();
    let weights = fs::read(folder.join("k/model.safetensors")).unwrap();
    let before = names(folder);
    for at in 0..times {
        fs::remove_file(folder.join("killed.csv")).unwrap();
        fs::remove_dir_all(folder.join("k")).unwrap();
        for (kind, arguments) in [("kills of infer", &arguments), ("kills of train", &train)] {
            let mut child = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
                .current_dir(folder)
                .args(arguments)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(whole.mul_f64(1.2 * (at + 1) as f64 / times as f64));
            let _ = child.kill();
            child.wait().unwrap();
            score.count(kind);
            if let Ok(found) = fs::read(folder.join("killed.csv"))
                && found != expected
            {
                score.find(kind, "the output is torn");
            }
            let (status, _, error) = run(folder, arguments, "");
            if status != 0 {
                score.find(kind, format!("the rerun is blocked: {error}"));
            }
        }
        if fs::read(folder.join("k/model.safetensors")).unwrap() != weights {
            score.find("kills of train", "the model is another one");
        }
        if names(folder) != before {
            score.find("kills of train", format!("left behind: {:?}", names(folder)));
        }
    }
}
