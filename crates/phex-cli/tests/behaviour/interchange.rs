//! Ising models, UAI files and samples as a user meets them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::run;

const GRAPH: &str = "[[hierarchy]]\nparent = \"animal\"\nchildren = [\"dog\", \"cat\"]\n\
    [[exclusion]]\nlabels = [\"dog\", \"cat\"]\n";
const SOFT: &str = "[defaults]\nstrength = { w = 2 }\n";
const SCORES: &str = "id,animal,dog,cat\na,0,0,0\nb,-1,3,0.5\n";

/// Standard output of a run that must be fine.
fn fine(folder: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = run(folder, arguments, "");
    assert_eq!(status, 0, "{arguments:?}: {error}");
    out
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    fs::write(folder.path().join("soft.toml"), format!("{SOFT}{GRAPH}")).unwrap();
    fs::write(folder.path().join("scores.csv"), SCORES).unwrap();
    folder
}

const ROW: [&str; 6] = ["--scores", "scores.csv", "--keep", "id", "--row", "1"];

/// The probabilities of a CSV of one row, by label.
fn probabilities(text: &str) -> Vec<(String, f64)> {
    let mut lines = text.lines();
    let (header, row) = (lines.next().unwrap(), lines.next().unwrap());
    let numbers = row.split(',').map(|cell| cell.parse().unwrap());
    header.split(',').map(str::to_owned).zip(numbers).collect()
}

#[test]
fn every_form_is_the_same_distribution() {
    let folder = folder();
    let path = folder.path();
    let mut arguments = vec!["infer", "soft.toml", "--scores", "row.csv", "--out", "-"];
    fs::write(path.join("row.csv"), "animal,dog,cat\n-1,3,0.5\n").unwrap();
    let expected = probabilities(&fine(path, &arguments));
    for out in ["m.coo", "m.bqm.json", "m.qubo", "m.uai"] {
        arguments = vec!["graph", "convert", "soft.toml", out];
        arguments.extend(ROW);
        fine(path, &arguments);
        // And from this form to the next.
        fine(path, &["graph", "convert", out, "again.coo"]);
        for file in [out, "again.coo"] {
            let found = probabilities(&fine(path, &["infer", file, "--out", "-"]));
            for ((name, p), (label, q)) in expected.iter().zip(&found) {
                assert_eq!(name, label, "{file}");
                assert!((p - q).abs() < 1e-9, "{file}: {name} {p} {q}");
            }
        }
        assert!(fine(path, &["graph", "plan", out]).contains("exact"));
        assert!(fine(path, &["map", out]).contains("animal;dog"));
    }
}

#[test]
fn hard_constraints_need_a_cost() {
    let folder = folder();
    let path = folder.path();
    let mut arguments = vec!["graph", "convert", "g.toml", "m.coo"];
    arguments.extend(ROW);
    let (status, _, error) = run(path, &arguments, "");
    assert_eq!(status, 2);
    assert!(error.contains("such as --hard 6,"), "1 + 1 + 3 + 0.5: {error}");
    assert!(!path.join("m.coo").exists());
    arguments.extend(["--hard", "6", "--json"]);
    let summary: Value = serde_json::from_str(&fine(path, &arguments)).unwrap();
    assert_eq!((&summary["labels"], &summary["couplings"]), (&3.into(), &3.into()));
    assert!(fine(path, &["map", "m.coo"]).contains("animal;dog"));
    // UAI files hold hard constraints.
    fine(path, &["graph", "convert", "g.toml", "m.txt", "--to", "uai"]);
    assert_eq!(fine(path, &["infer", "m.txt", "--format", "uai", "--out", "-"]).lines().count(), 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("m.coo"), "# vartype=SPIN\n0 1 1\n").unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let (status, _, error) = run(path, arguments, "");
        assert_eq!(status, 2, "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    };
    refused(&["graph", "convert", "m.coo", "g2.toml"], "m.coo is a model and cannot be converted");
    refused(&["graph", "convert", "g.toml", "g2.json", "--hard", "3"], "--to");
    refused(&["graph", "convert", "m.coo", "m.sparse"], "can only be read");
    let mut beyond = vec!["graph", "convert", "g.toml", "m.uai"];
    beyond.extend(&ROW[..5]);
    beyond.push("7");
    refused(&beyond, "there is no row 7: rows are counted from 0, and there are 2");
    refused(&["samples", "-", "-"], "cannot both be standard input");
    refused(&["samples", "g.toml", "scores.csv"], "a variable `id`, which is not a label");
}

#[test]
fn samples_become_label_sets() {
    let folder = folder();
    let path = folder.path();
    let samples = ",cat,dog,animal,energy,num_occurrences\n0,0,1,1,-2,3\n1,0,1,0,-3,1\n\
                   2,0,0,0,0,2\n3,0,1,1,-2,1\n";
    fs::write(path.join("s.csv"), samples).unwrap();
    let mut arguments = vec!["samples", "g.toml", "s.csv"];
    arguments.extend(ROW);
    let expected = "rank,energy,log_weight,legal,occurrences,labels\n1,-2,2,true,4,animal;dog\n\
                    2,0,0,true,2,\n3,inf,-inf,false,1,dog\n";
    assert_eq!(fine(path, &arguments), expected);
    arguments.extend(["--hard", "6", "--out", "sets.jsonl", "--json"]);
    let summary: Value = serde_json::from_str(&fine(path, &arguments)).unwrap();
    assert_eq!(summary, serde_json::json!({"samples": 7, "label_sets": 3, "legal_sets": 2}));
    let lines = fs::read_to_string(path.join("sets.jsonl")).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["legal"], &last["log_weight"]), (&false.into(), &Value::Null));
    let energy = last["energy"].as_f64().unwrap();
    assert!((energy - 3.0).abs() < 1e-12, "the parent is missing: 6 − 3, not {energy}");
    // Samples of an Ising file, from standard input.
    fs::write(path.join("m.coo"), "# vartype=SPIN\n# phex name 1 \"b\"\n0 0 1\n0 1 0.5\n").unwrap();
    let (status, out, error) = run(path, &["samples", "m.coo", "-"], "0,b\n1,-1\n-1,-1\n");
    assert_eq!(status, 0, "{error}");
    assert!(out.ends_with("1,-0.5,0.5,true,1,\n2,0.5,-0.5,true,1,0\n"), "{out}");
}
