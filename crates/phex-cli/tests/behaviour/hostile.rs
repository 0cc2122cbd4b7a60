//! Files that claim too large sizes, are damaged or never end: an error with a reason, soon and in little memory.

#![cfg(unix)]
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
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
    let place = |field: &str, value: &str| {
        fs::write(&file, with_field(&good, field, value)).unwrap();
        refused(path, &train, "--restart");
        refused(path, &train, "this is the checkpoint of another run: it");
    };
    place("stage", "9");
    for field in ["epoch", "step", "optimiser_steps", "strength_steps", "stale"] {
        place(field, "1000003");
        place(field, &usize::MAX.to_string());
    }
    place("row_sum", "-1");
    place("strength_rows", "-1e308");
    place("best", "[0.5, 0]");
    for (tensor, value) in [
        ("weights", f32::NAN),
        ("optimiser.first", f32::INFINITY),
        ("optimiser.second", -1.0),
        ("optimiser.average", f32::NEG_INFINITY),
    ] {
        let Some(bytes) = with_value(&good, tensor, value) else { continue };
        fs::write(&file, bytes).unwrap();
        refused(path, &train, &format!("its tensor `{tensor}` has the value"));
    }
    // As it was, it is resumed, so that the errors above are those of the edits.
    fs::write(&file, &good).unwrap();
    let mut resumed = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(path)
        .args(&train)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(resumed.stderr.take().unwrap()).read_line(&mut line).unwrap();
    resumed.kill().unwrap();
    resumed.wait().unwrap();
    assert!(line.contains("resuming after"), "{line}");
}

/// The header of a safetensors file and the values after it.
fn parts(file: &[u8]) -> (serde_json::Value, &[u8]) {
    let (length, rest) = file.split_first_chunk::<8>().unwrap();
    let (header, values) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (serde_json::from_slice(header).unwrap(), values)
}

/// A checkpoint with another value of a field that says where it stands.
fn with_field(file: &[u8], field: &str, value: &str) -> Vec<u8> {
    let (mut header, values) = parts(file);
    let place = &mut header["__metadata__"]["phex-checkpoint"];
    let mut fields: serde_json::Value = serde_json::from_str(place.as_str().unwrap()).unwrap();
    assert!(fields.get(field).is_some(), "{fields}");
    fields[field] = serde_json::from_str(value).unwrap();
    *place = fields.to_string().into();
    let mut header = header.to_string();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), values].concat()
}

/// A checkpoint with another first value of a tensor; `None` if the tensor is empty.
fn with_value(file: &[u8], tensor: &str, value: f32) -> Option<Vec<u8>> {
    let (header, values) = parts(file);
    let offsets = header[tensor]["data_offsets"].as_array().unwrap();
    let [start, end] = [0, 1].map(|at| offsets[at].as_u64().unwrap() as usize);
    let mut bytes = file.to_vec();
    let at = file.len() - values.len() + start;
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    (start < end).then_some(bytes)
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
        (
            "z.bqm.json",
            "{\"type\": \"BinaryQuadraticModel\", \"version\": {\"bqm_schema\": \"3.0.0\"}, \
              \"variable_labels\": [], \"variable_type\": \"SPIN\", \"linear_biases\": [], \
              \"quadratic_biases\": [], \"quadratic_head\": [], \"quadratic_tail\": []}",
        ),
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
    let infer = ["infer", "g.toml", "--scores", "zero.parquet", "--out", "o.csv"];
    refused(path, &infer, "zero.parquet");
    refused(path, &[&infer[..4], &["--evidence", "zero.parquet"], &infer[4..]].concat(), "zero");
}

/// Relations and variables that would take more memory than they are worth.
#[test]
fn what_follows_from_little_is_counted_first() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    let chain: String =
        (0..9_998).map(|at| format!("hierarchy,l{at},l{},hard\n", at + 1)).collect();
    fs::write(path.join("chain.csv"), format!("relation,a,b,strength\n{chain}")).unwrap();
    refused(path, &["graph", "densify", "chain.csv", "--out", "d.csv"], "densify would write");
    fs::write(path.join("k.sparse"), "4000000 0\n").unwrap();
    refused(path, &["graph", "plan", "k.sparse"], "the file claims 4000000 variables");
    assert!(!path.join("d.csv").exists());
}

/// Similar names are looked for in time that grows with the product of lengths.
#[test]
fn a_label_of_a_megabyte_is_unknown_soon() {
    let animals = Animals::new(9, 5);
    let path = animals.path();
    let long = "x".repeat(1 << 20);
    fs::write(path.join("long.csv"), format!("x,is\n1,dog\n2,{long}\n")).unwrap();
    let train = ["train", "g.toml", "--data", "long.csv", "--label-column", "is", "--out", "m"];
    refused(path, &train, "long.csv:3");
    fs::write(path.join("s.csv"), format!("animal,{long}\n1,2\n")).unwrap();
    let infer = ["infer", "g.toml", "--scores", "s.csv", "--out", "o.csv"];
    let (status, _, error) = run(path, &infer, "");
    assert!(status == 2 && error.len() < 2000, "{}", error.len());
    let graph = format!(
        "{{\"labels\": [\"a\", \"b\"], \"hierarchy\": [{{\"parent\": \"a\", \"children\": [\"{long}\"]}}]}}"
    );
    fs::write(path.join("long.json"), graph).unwrap();
    let (status, out, error) = run(path, &["graph", "check", "long.json"], "");
    assert!(status != 0 && out.len() + error.len() < 4000, "{status} {}", out.len() + error.len());
}

/// In half a gigabyte of address space the demo ends well, or names memory as the reason.
#[test]
fn a_demo_in_little_memory_gives_no_false_reason() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", "ulimit -v 524288; exec \"$0\" demo --out d"])
        .arg(assert_cmd::cargo::cargo_bin!("phex"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let fine = output.status.success();
    assert!(
        fine || error.contains("memory") || error.contains("room"),
        "{:?} {error}",
        output.status
    );
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
    // The limit does not hold for root.
    assert_eq!(infer("ulimit -u 1;", "8"), one);
}

/// Without a thread to be had, every command works in the one that it has.
#[test]
fn a_user_without_threads_has_the_same_answer() {
    let animals = Animals::new(60, 5);
    let path = animals.path();
    fs::write(path.join("s.csv"), "animal,dog,cat,husky,poodle\n1,2,-1,0.5,0\n").unwrap();
    let program = assert_cmd::cargo::cargo_bin!("phex");
    // The command must be where the other user finds it.
    let copy = path.join("phex");
    fs::copy(program, &copy).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(path);
    let limited = |limit: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.current_dir(path).args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["sh", "-c", &format!("{limit} exec ./phex \"$@\""), "sh"]).args(arguments);
        command.stdin(Stdio::null()).output()
    };
    let works = limited("", &["--version"]).is_ok_and(|output| output.status.success());
    if !works {
        return phex::testkit::skip("only root can run a command as another user (setpriv)");
    }
    let train =
        [&TRAIN[..], &["--epochs", "1", "--threads", "2", "--quiet", "--out", "m"]].concat();
    for arguments in [
        &["infer", "g.toml", "--scores", "s.csv", "--out", "-", "--threads", "2"][..],
        &["map", "g.toml", "--scores", "s.csv", "--out", "-", "--threads", "2"],
        &["graph", "plan", "g.toml"],
        &train,
        &[
            "predict",
            "m",
            "--data",
            "test.csv",
            "--drop",
            "id",
            "is",
            "--out",
            "-",
            "--threads",
            "2",
        ],
        &["eval", "m", "--data", "test.csv", "--drop", "id", "--threads", "2"],
    ] {
        let answers = ["", "ulimit -u 1;"].map(|limit| {
            if arguments[0] == "train" {
                let _ = fs::remove_dir_all(path.join("m"));
            }
            limited(limit, arguments).unwrap()
        });
        for output in &answers {
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
            assert!(!error.contains("panicked"), "{error}");
        }
        assert_eq!(answers[0].stdout, answers[1].stdout, "{arguments:?}");
    }
}
