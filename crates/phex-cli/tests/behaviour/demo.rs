//! `phex demo` as a newcomer runs it.

use std::fs;

use crate::common::run;
use assert_cmd::Command;

/// The numbers of a line of the table: means without deviations.
fn means(text: &str, method: &str) -> Vec<f64> {
    let line = text.lines().find(|line| line.starts_with(method)).unwrap();
    let cells = line[method.len()..].split('±');
    // "52.5 ", " 3.0    78.5 ", … : the last word before each sign is a mean.
    let last = |cell: &str| cell.split_whitespace().last().and_then(|word| word.parse().ok());
    let mut means: Vec<f64> = cells.map(|cell| last(cell).unwrap()).collect();
    means.pop();
    means
}

#[test]
fn the_demo_shows_learning_and_its_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The demo replaces what an earlier one left.
    fs::create_dir(path.join("phex-demo")).unwrap();
    let old = "<svg class=\"phex-graph\"></svg>";
    fs::write(path.join("phex-demo/animals.svg"), old).unwrap();
    let (status, text, error) = run(path, &["demo"], "");
    assert_eq!(status, 0, "{error}");
    assert!(text.contains("136 of 131072 label sets are legal"), "{text}");
    assert!(text.lines().count() <= 100, "{text}");
    for name in ["animals.svg", "animals-broken.svg", "report.html", "model/report.html"] {
        assert!(path.join("phex-demo").join(name).is_file(), "{name}");
    }
    assert_ne!(fs::read(path.join("phex-demo/animals.svg")).unwrap(), old.as_bytes());

    // What the text says of the table is so.
    let named = means(&text, "softmax, rows that name an animal");
    let coarse = means(&text, "softmax, all rows");
    let sigmoids = means(&text, "independent sigmoids");
    let hard = means(&text, "HEX: hard relations");
    let random = means(&text, "HEX  ");
    let warm = means(&text, "HEX, half of the steps on named rows first");
    let soft = means(&text, "pHEX, u = 0.3");
    assert!(hard[0] > named[0] + 5.0 && hard[0] > sigmoids[0] + 5.0, "{text}");
    assert!((hard[0] - coarse[0]).abs() < 2.0, "as good as a softmax of sums: {text}");
    assert!(hard[2] == 0.0 && sigmoids[2] > 50.0, "{text}");
    assert!(random[0] + 5.0 < warm[0] && random[0] + 5.0 < soft[0], "{text}");
    assert!(warm[0] < hard[0] && soft[0] < hard[0], "{text}");

    // The commands that it prints, one after another. One of them trains the best model again: with
    // one thread it has the same bits.
    let script = text.split("== 5. Go on").nth(1).unwrap().replace("\\\n", " ");
    let commands: Vec<Vec<&str>> = script
        .lines()
        .filter(|line| line.starts_with("phex ") && !line.starts_with("phex tune"))
        .map(|line| line.split('#').next().unwrap().split_whitespace().skip(1).collect())
        .collect();
    assert_eq!(commands.len(), 3, "{script}");
    for command in &commands {
        Command::new(assert_cmd::cargo::cargo_bin!("phex"))
            .current_dir(path)
            .args(command)
            .env("RAYON_NUM_THREADS", "1")
            .assert()
            .success();
    }
    let model = |name: &str| fs::read(path.join("phex-demo").join(name)).unwrap();
    assert_eq!(model("model/model.safetensors"), model("again/model.safetensors"));
}
