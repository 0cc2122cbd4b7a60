//! A taxonomy with several roots, most rows labelled coarsely: the right relations give a good model,
//! and no number praises the wrong ones.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::animals::Dice;
use crate::common::{run, table};

const FAMILIES: usize = 4;
const KINDS: usize = 3;

/// One root per family, without a line that says how labels exclude each other.
fn hierarchy() -> String {
    let family = |family: usize| {
        let kinds: Vec<String> = (0..KINDS).map(|kind| format!("\"f{family}k{kind}\"")).collect();
        format!("[[hierarchy]]\nparent = \"f{family}\"\nchildren = [{}]\n", kinds.join(", "))
    };
    (0..FAMILIES).map(family).collect()
}

/// Rows around one centre per kind. All but one row in `fine` are labelled with the family alone.
fn rows(count: usize, fine: usize, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::from("a,b,c,d,e,is\n");
    for at in 0..count {
        let kind = at % (FAMILIES * KINDS);
        // Families are far apart, and the kinds of a family near each other.
        let (mut family, mut own) =
            (Dice(17 + (kind / KINDS) as u64 * 99), Dice(5 + 31 * kind as u64));
        for _ in 0..5 {
            let centre = 6.0 * family.roll() + 2.0 * own.roll();
            let noise = dice.roll() + dice.roll() + dice.roll() - 1.5;
            text.push_str(&format!("{:.3},", centre + 1.6 * noise));
        }
        let (family, kind) = (kind / KINDS, kind % KINDS);
        match at / (FAMILIES * KINDS) % fine {
            0 => text.push_str(&format!("f{family}k{kind}\n")),
            _ => text.push_str(&format!("f{family}\n")),
        }
    }
    text
}

/// A folder with three graphs and data.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("plain.toml", hierarchy());
    write("siblings.toml", format!("exclude = \"siblings\"\n{}", hierarchy()));
    write("single.toml", format!("single_label = true\n{}", hierarchy()));
    write("train.csv", rows(1200, 10, 1));
    write("test.csv", rows(600, 1, 2));
    folder
}

fn train(path: &Path, graph: &str, more: &[&str]) -> (i32, Value, String) {
    let base = ["train", graph, "--data", "train.csv", "--label-column", "is", "--json"];
    let rest = ["--no-report", "--out", "m", "--restart"];
    let (status, out, error) = run(path, &[&base[..], &rest[..], more].concat(), "");
    (status, serde_json::from_str(&out).unwrap_or_default(), error)
}

/// The accuracy on the test rows.
fn accuracy(path: &Path) -> f64 {
    let (status, out, error) =
        run(path, &["eval", "m", "--data", "test.csv", "--json", "--top", "1"], "");
    assert_eq!(status, 0, "{error}");
    let evaluation: Value = serde_json::from_str(&out).unwrap();
    evaluation["classes"]["top"][0]["accuracy"].as_f64().unwrap()
}

#[test]
fn one_word_gives_the_better_model_and_no_number_praises_the_other() {
    let folder = folder();
    let path = folder.path();
    let (status, out, _) = run(path, &["graph", "check", "siblings.toml"], "");
    assert_eq!(status, 0);
    assert!(out.contains("warning[unrelated-roots]: 4 roots are unrelated: `f0`"), "{out}");
    let (_, out, _) = run(path, &["graph", "check", "single.toml"], "");
    assert!(out.contains("nothing found"), "{out}");

    let (status, record, error) = train(path, "siblings.toml", &[]);
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("4 roots are unrelated") && error.contains("--single-label"), "{error}");
    let validation = &record["validation"];
    for metric in
        ["average_precision", "interpolated_area", "roc_area", "precision", "recall", "f1"]
    {
        let value = validation[metric]["micro"].as_f64().unwrap_or(0.0);
        assert!(value < 0.9, "{metric} {value}");
    }
    let classes = &validation["classes"]["top"][0]["accuracy"];
    assert!(classes.as_f64().is_some_and(|accuracy| accuracy < 0.9), "{classes}");
    let last = error.lines().last().unwrap_or_default();
    assert!(last.contains("clearly worse than sums of leaves (accuracy"), "{error}");
    assert_eq!(
        record["verdict"].as_str().map(|verdict| format!("phex: {verdict}")),
        Some(last.into())
    );
    let names = [0, 1].map(|at| record["comparison"]["baselines"][at]["name"].clone());
    assert_eq!(names, ["sums of leaves", "label frequencies"]);
    let of_siblings = accuracy(path);
    // On other data, the model is judged by what was kept of its training.
    let (status, _, error) = run(path, &["eval", "m", "--data", "test.csv"], "");
    assert_eq!(status, 0, "{error}");
    let last = error.lines().last().unwrap_or_default();
    assert!(last.contains("clearly worse than sums of leaves (accuracy"), "{error}");

    let (status, record, error) = train(path, "single.toml", &[]);
    assert_eq!(status, 0, "{error}");
    assert!(!error.contains("unrelated"), "{error}");
    assert!(record["validation"]["average_precision"]["micro"].is_f64());
    assert!(record["verdict"].is_null() && error.contains("\nlabel frequencies "), "{error}");
    let of_single = accuracy(path);
    assert!(of_single > of_siblings + 0.05, "{of_single} {of_siblings}");
    // What the recipe derived: a tenth of 1200 rows chooses the epoch.
    assert_eq!(record["validation_rows"], 120);
    // The word survives in the model, and the flag means the same.
    let graph = fs::read_to_string(path.join("m/graph.json")).unwrap();
    assert!(graph.contains("\"single_label\": true"), "{graph}");
    let (status, record, _) = train(path, "siblings.toml", &["--single-label", "--no-baselines"]);
    assert!(status == 0 && record["comparison"].is_null());
    assert_eq!(accuracy(path), of_single);
    // Nothing was kept beside this model, so it is compared with the rows at hand.
    let (_, out, error) = run(path, &["eval", "m", "--data", "test.csv"], "");
    assert!(out.contains("label frequencies") && !out.contains("sums of leaves"), "{out}");
    assert!(!error.contains("worse"), "{error}");

    // Exactly one leaf is on, in all rows.
    let arguments = ["predict", "m", "--data", "test.csv", "--out", "-"];
    let (status, out, error) = run(path, &arguments, "");
    assert_eq!(status, 0, "{error}");
    for row in table(&out) {
        let leaves = row.iter().filter(|(name, _)| name.contains('k'));
        let sum: f64 = leaves.map(|(_, p)| p.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
}

#[test]
fn one_of_leaves_alone_leaves_parents_open() {
    let folder = tempfile::tempdir().unwrap();
    let tree = "parent,child\nanimal,dog\nanimal,cat\nvehicle,car\nvehicle,bus\n";
    fs::write(folder.path().join("s.csv"), tree).unwrap();
    let check = |flags: &[&str]| {
        let (status, out, error) =
            run(folder.path(), &[&["graph", "check", "s.csv"], flags].concat(), "");
        assert_eq!(status, 0, "{error}");
        out
    };
    let open = check(&["--one-of-leaves", "leaf"]);
    assert!(
        open.contains("warning[open-parents]") && open.contains("animal and vehicle"),
        "{open}"
    );
    let closed = check(&["--single-label"]);
    assert!(!closed.contains("open-parents"), "{closed}");
}

#[test]
fn training_stops_where_nothing_excludes_anything() {
    let folder = folder();
    let path = folder.path();
    let (status, _, error) = train(path, "plain.toml", &[]);
    assert_eq!(status, 2);
    assert!(error.contains("--single-label") && error.contains("--multi-label"), "{error}");
    let (status, record, error) = train(path, "plain.toml", &["--multi-label", "--epochs", "2"]);
    assert_eq!(status, 0, "{error}");
    // Nothing is known to be off, so there is nothing to praise.
    let validation = &record["validation"];
    for metric in ["average_precision", "interpolated_area", "precision", "f1"] {
        assert!(validation[metric]["micro"].is_null(), "{metric}: {validation}");
    }
    assert!(validation["calibration_error"].is_null() && validation["log_loss"].is_null());
    assert!(
        error.contains("this model                      –")
            && error.contains("–  (no label is known to be off)"),
        "{error}"
    );
    assert!(!error.contains("unlisted"), "the rows are not labelled down to the leaf: {error}");
    let card = fs::read_to_string(path.join("m/README.md")).unwrap();
    assert!(card.contains("| AU(PRC) | – (no label is known to be off) |"), "{card}");
    let (_, out, _) = run(path, &["eval", "m", "--data", "train.csv"], "");
    assert!(out.contains("–  (no label is known to be off)") && !out.contains("1.0000"), "{out}");
    assert_eq!(train(path, "plain.toml", &["--single-label", "--epochs", "2"]).0, 0);
}

#[test]
fn training_stops_where_several_labels_are_listed_and_none_can_be_off() {
    let folder = folder();
    let path = folder.path();
    let text: String = (0..40).map(|at| format!("{at},f{}k0;f3k1\n", at % 4)).collect();
    fs::write(path.join("list.csv"), format!("x,is\n{text}")).unwrap();
    let base = ["train", "plain.toml", "--data", "list.csv", "--label-column", "is", "--out", "l"];
    let list = ["--label-format", "list", "--epochs", "1"];
    let with = |more: &[&str]| run(path, &[&base[..], &list, more].concat(), "");
    let (status, _, error) = with(&[]);
    assert_eq!(status, 2);
    assert!(error.contains("no row says that a label is off"), "{error}");
    assert!(error.contains("--unlisted off") && error.contains("--multi-label"), "{error}");
    let (status, _, error) = with(&["--unlisted", "off"]);
    assert_eq!(status, 0, "{error}");
    assert_eq!(with(&["--multi-label", "--restart"]).0, 0);
}
