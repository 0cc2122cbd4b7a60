//! Files that claim too large sizes, are damaged or never end: an error with a reason, soon and in little memory.

#![cfg(unix)]
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

/// Runs a command in 3 GB of address space, which must end with status 2 and this text.
fn refused(folder: &Path, arguments: &[&str], expected: &str) {
    let output = Command::new("sh")
        .current_dir(folder)
        .args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\""])
        .arg(assert_cmd::cargo::cargo_bin!("phex"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(error.contains(expected), "{arguments:?}: {error}");
}

#[test]
fn a_trained_model_claims_no_more_than_it_has() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    let train =
        [&TRAIN[..], &["--epochs", "1", "--threads", "1", "--quiet", "--out", "m"]].concat();
    for hidden in ["4294967296", "1099511627776,1099511627776", "18446744073709551615"] {
        let wide = [&train[..], &["--hidden", hidden]].concat();
        refused(path, &wide, "weights");
    }
    assert!(!path.join("m").exists() && !path.join("m.checkpoint").exists());
    let (status, _, error) = run(path, &train, "");
    assert_eq!(status, 0, "{error}");
    let predict = ["predict", "m", "--data", "test.csv", "--drop", "id", "is", "--out", "p.csv"];
    let config = path.join("m/config.json");
    let good = fs::read_to_string(&config).unwrap();
    let start = good.find("\"inputs\": ").unwrap() + "\"inputs\": ".len();
    let end = start + good[start..].find(',').unwrap();
    for inputs in ["1000000000", "18446744073709551615", "1099511627776"] {
        fs::write(&config, format!("{}{inputs}{}", &good[..start], &good[end..])).unwrap();
        refused(path, &predict, "weights");
    }
    fs::write(&config, good.replace("\"hidden\": []", "\"hidden\": [1099511627776]")).unwrap();
    refused(path, &predict, "weights");
    fs::write(&config, &good).unwrap();
    // Weights that are not finite would make every probability NaN.
    let tensors = path.join("m/model.safetensors");
    let mut bytes = fs::read(&tensors).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&tensors, bytes).unwrap();
    refused(path, &predict, "has the value NaN");
    assert!(!path.join("p.csv").exists());
}

#[test]
fn a_checkpoint_stands_at_an_epoch_of_its_run() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    let train = [
        &TRAIN[..],
        &["--epochs", "1000000", "--checkpoint-every", "0", "--threads", "1", "--out", "m"],
    ];
    let train = train.concat();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(path)
        .args(&train)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = path.join("m.checkpoint/checkpoint.safetensors");
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let good = fs::read(&file).unwrap();
    let edit = |from: &[u8], to: &[u8]| {
        let at = good.windows(from.len()).position(|part| part == from).unwrap();
        fs::write(&file, [&good[..at], to, &good[at + from.len()..]].concat()).unwrap();
    };
    edit(b"\\\"stage\\\":0", b"\\\"stage\\\":9");
    refused(path, &train, "it stands at an epoch that the run does not have");
}

#[test]
fn models_without_variables_are_refused() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    for (name, text) in [
        ("z.coo", "# vartype=SPIN\n"),
        ("z.qubo", "p qubo 0 0 0 0\n"),
        ("z.sparse", "0 0\n"),
        ("z.mc", "0 0\n"),
    ] {
        fs::write(path.join(name), text).unwrap();
        refused(path, &["map", name], name);
    }
}

#[test]
fn files_that_never_end_are_refused() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    let zero = path.join("zero.parquet");
    symlink("/dev/zero", &zero).unwrap();
    symlink("/dev/zero", path.join("zero.toml")).unwrap();
    let sparse = fs::File::create(path.join("sparse.json")).unwrap();
    sparse.set_len(4 << 30).unwrap();
    let train = [&TRAIN[..], &["--out", "m", "--config"]].concat();
    refused(path, &[&train[..], &["/dev/zero"]].concat(), "bytes allowed");
    refused(path, &[&train[..], &["sparse.json"]].concat(), "bytes allowed");
    refused(path, &["graph", "check", "zero.toml"], "bytes allowed");
    refused(path, &["graph", "check", "sparse.json"], "bytes allowed");
    fs::create_dir(path.join("b")).unwrap();
    symlink("/dev/zero", path.join("b/config.json")).unwrap();
    refused(path, &["predict", "b", "--data", "test.csv", "--out", "p.csv"], "bytes allowed");
}

#[test]
fn any_number_of_threads_gives_the_same_answer() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    fs::write(path.join("s.csv"), "animal,dog,cat,husky,poodle\n1,2,-1,0.5,0\n").unwrap();
    let infer = |limit: &str, threads: &str| {
        let output = Command::new("sh")
            .current_dir(path)
            .args(["-c", &format!("{limit} exec \"$0\" \"$@\"")])
            .arg(assert_cmd::cargo::cargo_bin!("phex"))
            .args(["infer", "g.toml", "--scores", "s.csv", "--out", "-", "--threads", threads])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let one = infer("", "1");
    assert_eq!(infer("", "2000"), one);
    assert_eq!(infer("", "0"), one);
    assert_eq!(infer("ulimit -u 1;", "8"), one);
}
