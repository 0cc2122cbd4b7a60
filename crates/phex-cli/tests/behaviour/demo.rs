//! `phex demo` as a newcomer runs it. CI runs it before the tests and names its folder in `PHEX_DEMO`, so that it trains
//! once; without that, the test runs it.

use std::fs;
use std::path::Path;

use crate::common::run;
use assert_cmd::Command;

/// The numbers of the lines of the tables that begin with this name, in their order.
fn rows(text: &str, method: &str) -> Vec<Vec<f64>> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(method));
    let numbers = |line: &str| {
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>()
    };
    lines.map(numbers).filter(|numbers| numbers.len() == 3).collect()
}

/// The folder of the demo. The commands that it prints name it.
const DEMO: &str = "target/demo";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() { copy(&from, &to) } else { assert!(fs::copy(&from, &to).is_ok()) }
    }
}

/// What the demo printed; its files are copied to `path`.
fn finished_demo(done: &Path, path: &Path) -> String {
    copy(done, &path.join(DEMO));
    fs::read_to_string(done.join("screen.txt")).unwrap()
}

/// Runs the demo, which replaces what an earlier one left.
fn run_demo(path: &Path) -> String {
    let demo = path.join(DEMO);
    fs::create_dir_all(&demo).unwrap();
    fs::write(demo.join("photos.svg"), "old").unwrap();
    let title = "# The labels of the demo: each animal is of one kind.\n";
    fs::write(demo.join("animals.toml"), title).unwrap();
    let (status, text, error) = run(path, &["demo", "--out", DEMO], "");
    assert_eq!(status, 0, "{error}");
    assert_ne!(fs::read(demo.join("photos.svg")).unwrap(), b"old");
    text
}

#[test]
fn the_demo_fits_one_screen_and_its_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // A folder that is not of a demo is left alone.
    fs::create_dir(path.join("phex-demo")).unwrap();
    fs::write(path.join("phex-demo/photos.svg"), "old").unwrap();
    let (status, _, error) = run(path, &["demo"], "");
    assert!(status == 2 && error.contains("but `phex demo` did not write it"), "{error}");

    let text = match std::env::var_os("PHEX_DEMO") {
        Some(done) => finished_demo(Path::new(&done), path),
        None => run_demo(path),
    };
    assert!(text.lines().count() <= 30, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for name in ["photos.svg", "broken.toml", "report.html", "model/report.html"] {
        assert!(path.join(DEMO).join(name).is_file(), "{name}");
    }

    // What the tables are to show: rows that contradict themselves, log-loss, accuracy of animals.
    let sigmoids = rows(&text, "a sigmoid for each label");
    let trained = rows(&text, "trained with relations (phex train)");
    let corrected = rows(&text, "the same, corrected by relations (phex infer)");
    let named = rows(&text, "softmax, only rows that name the animal");
    assert_eq!(
        (sigmoids.len(), trained.len(), corrected.len(), named.len()),
        (2, 2, 1, 1),
        "{text}"
    );
    for (sigmoids, trained) in sigmoids.iter().zip(&trained) {
        assert!(sigmoids[0] > 50.0 && trained[0] == 0.0, "{text}");
        assert!(trained[1] < sigmoids[1] && trained[2] > sigmoids[2], "{text}");
    }
    assert!(corrected[0][0] == 0.0 && corrected[0][1] < sigmoids[0][1], "{text}");
    assert!(corrected[0][2] > sigmoids[0][2], "{text}");
    assert!(trained[1][2] > named[0][2] + 5.0, "coarse rows help: {text}");
    assert!(text.contains("bird excludes outdoors (broken.toml:"), "{text}");

    // The commands that it prints, one after another. The first trains the model again: with one thread it
    // has the same bits.
    let commands: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("phex ") && line.contains(DEMO))
        .map(|line| line.split_whitespace().skip(1).collect())
        .collect();
    assert_eq!(commands.len(), 2, "{text}");
    for command in &commands {
        Command::new(assert_cmd::cargo::cargo_bin!("phex"))
            .current_dir(path)
            .args(command)
            // The demo keeps no baselines with its model.
            .args(if command[0] == "train" { &["--no-baselines"][..] } else { &[] })
            .env("RAYON_NUM_THREADS", "1")
            .assert()
            .success();
    }
    let model = |name: &str| fs::read(path.join(DEMO).join(name)).unwrap();
    assert_eq!(model("model/model.safetensors"), model("again/model.safetensors"));
}
