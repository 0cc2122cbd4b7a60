//! The front of the command line: names that people type, suggestions, completions.

use std::fs;

use crate::common::animals::{Animals, TRAIN};
use crate::common::run;

#[test]
fn names_that_people_type_are_understood() {
    let animals = Animals::new(90, 0);
    let mut arguments = TRAIN.to_vec();
    let at = arguments.iter().position(|text| *text == "--label-column").unwrap();
    arguments[at] = "--label";
    let at = arguments.iter().position(|text| *text == "--validation-fraction").unwrap();
    arguments[at] = "--val-fraction";
    arguments.extend(["--lr", "0.01", "--optimizer", "sgd", "--batch-size", "32", "--epochs", "2"]);
    arguments.extend(["--out", "m", "--no-report"]);
    let (status, _, error) = run(animals.path(), &arguments, "");
    assert_eq!(status, 0, "{error}");
    let record = fs::read_to_string(animals.path().join("m").join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let text = record["config"].to_string();
    for part in ["0.01", "sgd", "32"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_index_is_no_silent_feature() {
    let animals = Animals::new(90, 0);
    let mut arguments: Vec<&str> = TRAIN.to_vec();
    let at = arguments.iter().position(|text| *text == "--drop").unwrap();
    arguments.drain(at..at + 2);
    arguments.extend(["--epochs", "1", "--out", "m", "--no-report"]);
    let (status, out, error) = run(animals.path(), &arguments, "");
    assert_eq!(status, 0, "{error}");
    let all = format!("{out}{error}");
    assert!(
        all.contains("the column `id` looks like an index") && all.contains("--features"),
        "{all}"
    );
}

#[test]
fn suggestions_are_near_or_missing() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, tip) in [
        (&["trian"][..], Some("'train'")),
        (&["graph", "chek", "g"], Some("'check'")),
        (&["infer", "g", "--score", "s"], Some("'--scores'")),
        (&["complete"], None),
        (&["export"], None),
        (&["infer", "g", "--lr", "1"], None),
    ] {
        let (status, _, error) = run(folder.path(), arguments, "");
        assert_eq!(status, 2);
        match tip {
            Some(tip) => assert!(error.contains("tip:") && error.contains(tip), "{error}"),
            None => assert!(!error.contains("similar") && !error.contains("tolerance"), "{error}"),
        }
    }
}

#[test]
fn completions_are_printed_for_each_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (status, out, error) = run(folder.path(), &["completions", shell], "");
        assert_eq!(status, 0, "{error}");
        assert!(out.contains("reconcile") && out.contains("scores-are"), "{shell}");
    }
    let (status, _, error) = run(folder.path(), &["completions", "dos"], "");
    assert!(status == 2 && error.contains("zsh"), "{error}");
}
