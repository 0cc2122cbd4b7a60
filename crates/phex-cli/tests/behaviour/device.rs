//! `--device`: the errors without such a GPU, and that the answers are those of the CPU where
//! there is one. Without a GPU the second kind says that it was skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::animals::{Animals, TRAIN};
use crate::common::{run, table};

/// Whether there is a GPU to run on.
fn has_gpu() -> bool {
    match phex_cuda::Device::open(0) {
        Ok(_) => true,
        Err(error) => {
            phex::testkit::skip(&format!("there is no CUDA device: {error}"));
            false
        }
    }
}

/// Every file below a folder, with what it holds.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            all.extend(files(&path));
            all.insert(name, Vec::new());
        } else {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A training run on the animals.
fn train<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = [&TRAIN[..], more].concat();
    all[0] = command;
    all
}

#[test]
fn a_gpu_that_is_not_there_is_named_and_nothing_is_touched() {
    let folder = Animals::new(60, 10);
    let path = folder.path();
    fs::write(path.join("s.csv"), "animal,dog,cat,husky,poodle\n0,1,2,3,4\n").unwrap();
    let (status, _, error) = run(path, &train("train", &["--out", "m", "--epochs", "2"]), "");
    assert_eq!(status, 0, "{error}");
    let before = files(path);
    let base: [&[&str]; 6] = [
        &["infer", "g.toml", "--scores", "s.csv", "--out", "p.csv"],
        &["predict", "m", "--data", "test.csv", "--out", "p.csv"],
        &["eval", "m", "--data", "test.csv", "--report", "e.html"],
        &train("train", &["--out", "new"]),
        &train("train", &["--out", "m", "--epochs", "3", "--restart"]),
        &train("tune", &["--out", "t"]),
    ];
    for base in base {
        for (device, expected) in [
            ("cuda:99", "--device cuda:99: "),
            ("gpu", "a device is `cpu`, `cuda`, or `cuda:N`"),
            ("cuda:-1", "a device is `cpu`, `cuda`, or `cuda:N`"),
        ] {
            let (status, out, error) = run(path, &[base, &["--device", device]].concat(), "");
            assert_eq!((status, out.as_str()), (2, ""), "{base:?}: {error}");
            assert!(error.contains(expected), "{base:?}: {error}");
            assert!(files(path) == before, "{base:?} left something");
        }
    }
}

#[test]
fn what_a_gpu_cannot_do_is_said_before_anything_is_done() {
    if !has_gpu() {
        return;
    }
    let folder = Animals::new(60, 10);
    let path = folder.path();
    let before = files(path);
    for (flags, expected) in [
        (
            &["--method", "junction"][..],
            "has no CUDA kernel; family, forest-bp, star, lbp and states",
        ),
        (&["--method", "lbp"], "use the schedule `flooding`"),
        (&["--learn-strengths", "kind", "--curriculum", "hard-to-soft=1"], "use the CPU"),
        (&["--objective", "softmax"], "a baseline without relations; use the CPU"),
    ] {
        for (command, out) in [("train", "m"), ("tune", "t")] {
            let more = ["--out", out, "--device", "cuda", "--metric", "accuracy"];
            let (status, _, error) = run(path, &train(command, &[&more, flags].concat()), "");
            assert_eq!(status, 2, "{command} {flags:?}: {error}");
            assert!(error.contains("--device cuda:0: "), "{command} {flags:?}: {error}");
            assert!(error.contains(expected), "{command} {flags:?}: {error}");
            assert!(files(path) == before, "{command} {flags:?} left something");
        }
    }
}

/// The largest difference between two tables of probabilities.
fn distance(a: &Path, b: &Path) -> f64 {
    let [a, b] = [a, b].map(|path| table(&fs::read_to_string(path).unwrap()));
    assert_eq!(a.len(), b.len());
    let number = |cell: &String| cell.parse::<f64>().unwrap();
    let rows = a.iter().zip(&b);
    let cells =
        rows.flat_map(|(a, b)| a.iter().map(|(name, cell)| number(cell) - number(&b[name])));
    cells.fold(0.0, |most, difference| most.max(difference.abs()))
}

#[test]
fn a_gpu_trains_and_predicts_as_the_cpu_does() {
    if !has_gpu() {
        return;
    }
    let folder = Animals::new(150, 40);
    let path = folder.path();
    // `auto` takes `states` for hard relations and `family` for soft ones.
    for (engine, settings) in [
        (&["--method", "family"][..], &["--strength", "u=0.5"][..]),
        (&["--method", "family"], &["--strength", "u=0.5", "--loss", "marginal"]),
        (&[], &["--curriculum", "hard-to-soft=0.5", "--prior", "--class-weights", "balanced"]),
        (&["--method", "lbp", "--schedule", "flooding"], &["--strength", "u=0.5"]),
    ] {
        let flags = [engine, settings].concat();
        let is_exact = !flags.contains(&"lbp");
        for device in ["cpu", "cuda"] {
            let more = ["--out", device, "--device", device, "--restart", "--hidden", "6"];
            let more = [&more[..], &["--epochs", "4", "--learning-rate", "0.03"], &flags].concat();
            let (status, _, error) = run(path, &train("train", &more), "");
            assert_eq!(status, 0, "{flags:?}: {error}");
        }
        let [one, other] = ["cpu", "cuda"].map(|name| json(&path.join(name).join("run.json")));
        assert_eq!((&one["device"], &other["device"]), (&"cpu".into(), &"cuda:0".into()));
        assert_eq!(one["fingerprint"], other["fingerprint"]);
        let loss = |run: &Value| run["validation"]["log_loss"].as_f64().unwrap();
        assert!((loss(&one) - loss(&other)).abs() < 1e-4, "{flags:?}: {one} and {other}");
        // The model of either predicts the same on both, and both models nearly the same.
        for (model, device, out) in
            [("cpu", "cpu", "a.csv"), ("cpu", "cuda", "b.csv"), ("cuda", "cuda", "c.csv")]
        {
            let base = ["predict", model, "--data", "test.csv", "--out", out, "--device", device];
            let (status, _, error) = run(path, &[&base[..], engine].concat(), "");
            assert_eq!(status, 0, "{flags:?}: {error}");
        }
        let [a, b, c] = ["a.csv", "b.csv", "c.csv"].map(|name| path.join(name));
        let most = if is_exact { 2e-5 } else { 1e-3 };
        assert!(distance(&a, &b) < most, "{flags:?}: {}", distance(&a, &b));
        assert!(distance(&a, &c) < 1e-3, "{flags:?}: {}", distance(&a, &c));
    }
}

#[cfg(unix)]
#[test]
fn a_run_goes_on_on_another_device() {
    if !has_gpu() {
        return;
    }
    let folder = Animals::new(150, 5);
    let path = folder.path();
    let flags = ["--method", "family", "--epochs", "60", "--checkpoint-every", "0"];
    let on = |out: &'static str, device: &'static str| {
        train("train", &[&flags[..], &["--out", out, "--device", device]].concat())
    };
    let (status, _, error) = run(path, &on("whole", "cpu"), "");
    assert_eq!(status, 0, "{error}");
    // On the GPU first, until there is a checkpoint.
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(path)
        .args(on("parts", "cuda"))
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let checkpoint = path.join("parts.checkpoint/checkpoint.safetensors");
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(checkpoint.exists(), "the run was over before it could be stopped");
    let (status, _, error) = run(path, &on("parts", "cpu"), "");
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("resuming after"), "{error}");
    let loss = |name: &str| {
        let run = json(&path.join(name).join("run.json"));
        run["validation"]["log_loss"].as_f64().unwrap()
    };
    assert!((loss("whole") - loss("parts")).abs() < 1e-4);
    // A finished run is finished on every device.
    let (status, _, error) = run(path, &on("parts", "cuda"), "");
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("is already finished"), "{error}");
}
