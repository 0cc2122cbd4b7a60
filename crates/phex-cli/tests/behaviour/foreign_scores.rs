//! Scores as people have them: leaves only, probabilities, columns without names of labels.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::common::{run, table};

const TREE: &str = "parent,child\nanimal,dog\nanimal,cat\nvehicle,car\nvehicle,bus\n";
const LEAVES: &str = "dog,cat,car,bus\n3,0,0,0\n";
const INFER: [&str; 4] = ["infer", "s.csv", "--scores", "-"];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.csv"), TREE).unwrap();
    folder
}

/// The rows of standard output, and standard error.
fn infer(folder: &Path, more: &[&str], input: &str) -> (Vec<HashMap<String, f64>>, String) {
    let arguments: Vec<&str> = INFER.iter().chain(more).copied().collect();
    let (status, out, error) = run(folder, &arguments, input);
    assert_eq!(status, 0, "{error}");
    let numbers = |row: HashMap<String, String>| {
        row.into_iter().map(|(name, cell)| (name, cell.parse().unwrap())).collect()
    };
    (table(&out).into_iter().map(numbers).collect(), error)
}

/// The error of a run that fails.
fn refused(folder: &Path, more: &[&str], input: &str) -> String {
    let arguments: Vec<&str> = INFER.iter().chain(more).copied().collect();
    let (status, _, error) = run(folder, &arguments, input);
    assert_eq!(status, 2, "{error}");
    error
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn leaves_are_enough_if_exactly_one_is_on() {
    let folder = folder();
    let (rows, error) = infer(folder.path(), &["--single-label"], LEAVES);
    let row = &rows[0];
    let e3 = 3f64.exp();
    near(row["dog"], e3 / (e3 + 3.0));
    assert_eq!(format!("{:.3} {:.3}", row["dog"], row["vehicle"]), "0.870 0.087");
    near(row["vehicle"], row["car"] + row["bus"]);
    near(row["animal"], row["dog"] + row["cat"]);
    assert!(error.contains("2 labels, such as `animal`, have no column and get the score 0"));
    assert!(error.contains("phex: 1 row by `"), "{error}");
    let (_, error) = infer(folder.path(), &["--single-label", "-q"], LEAVES);
    assert_eq!(error, "");
}

#[test]
fn other_labels_without_a_column_need_a_score() {
    let folder = folder();
    let error = refused(folder.path(), &[], LEAVES);
    assert!(error.contains("`animal`, nor another one"), "{error}");
    assert!(error.contains("--missing 0") && error.contains("--single-label"), "{error}");
    // A leaf is not above leaves.
    let error = refused(folder.path(), &["--single-label"], "dog,cat,car\n3,0,0\n");
    assert!(error.contains("no column is named `bus`") && error.contains("--missing"), "{error}");
    let (rows, error) = infer(folder.path(), &["--missing", "-1"], LEAVES);
    let all = "dog,cat,car,bus,animal,vehicle\n3,0,0,0,-1,-1\n";
    assert_eq!(rows, infer(folder.path(), &[], all).0);
    assert!(error.contains("such as `animal`, have no column and get the score -1"), "{error}");
    let error = refused(folder.path(), &["--missing", "nan"], LEAVES);
    assert!(error.contains("a number between -1e30 and 1e30 is needed"), "{error}");
    let error = refused(folder.path(), &["--missing", "0"], "id\n1\n");
    assert!(error.contains("no column is named `animal`"), "{error}");
}

#[test]
fn labels_are_listed_in_order() {
    let folder = folder();
    let (status, out, _) = run(folder.path(), &["graph", "labels", "s.csv"], "");
    assert_eq!((status, out.as_str()), (0, "animal\ndog\ncat\nvehicle\ncar\nbus\n"));
    let (_, out, _) = run(folder.path(), &["graph", "labels", "s.csv", "--json"], "");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((json["labels"][5].as_str(), json["version"].is_string()), (Some("bus"), true));
}

#[test]
fn a_softmax_comes_back_and_its_parents_are_sums() {
    let folder = folder();
    let p = "dog,cat,car,bus\n0.7,0.1,0.2,0\n0.25,0.25,0.25,0.25\n";
    let form = ["--single-label", "--scores-are", "probabilities"];
    let (rows, error) = infer(folder.path(), &form, p);
    near(rows[0]["dog"], 0.7);
    near(rows[0]["vehicle"], 0.2);
    near(rows[1]["animal"], 0.5);
    assert!(error.contains("one softmax over the leaves"), "{error}");
    let logs =
        "dog,cat,car,bus\n-0.35667494393873245,-2.302585092994046,-1.6094379124341003,-inf\n";
    let form = ["--single-label", "--scores-are", "log-probabilities"];
    near(infer(folder.path(), &form, logs).0[0]["dog"], 0.7);
    let error = refused(folder.path(), &form, "dog,cat,car,bus\n0.5,0,0,0\n");
    assert!(error.contains("0.5 is not the logarithm of a probability of `dog`"), "{error}");
}

#[test]
fn sigmoids_become_logits() {
    let folder = folder();
    let p = "animal,dog,cat,vehicle,car,bus\n0.9,0.8,0.5,0.01,0.99,0\n";
    let logit = |p: f64| {
        let p = p.clamp(1e-13, 1.0 - 1e-13);
        (p / (1.0 - p)).ln().to_string()
    };
    let cells = [0.9, 0.8, 0.5, 0.01, 0.99, 0.0].map(logit).join(",");
    let logits = format!("animal,dog,cat,vehicle,car,bus\n{cells}\n");
    let (expected, _) = infer(folder.path(), &[], &logits);
    let (found, error) = infer(folder.path(), &["--scores-are", "probabilities"], p);
    for (label, expected) in &expected[0] {
        near(found[0][label], *expected);
    }
    assert!(!error.contains("softmax"), "{error}");
    let error = refused(folder.path(), &["--scores-are", "probabilities"], &p.replace("0.9", "9"));
    assert!(error.contains("<stdin>:2: column `animal`"), "{error}");
}

#[test]
fn probabilities_without_a_word_are_noticed() {
    let folder = folder();
    let p = "dog,cat,car,bus\n0.7,0.1,0.2,0\n";
    let error = refused(folder.path(), &["--single-label"], p);
    assert!(error.contains("each row sums to 1, as a softmax over the leaves does"), "{error}");
    assert!(error.contains("--scores-are probabilities"), "{error}");
    assert!(error.contains("--scores-are logits"), "{error}");
    let (_, error) = infer(folder.path(), &["--single-label", "--scores-are", "logits"], p);
    assert!(!error.contains("softmax"), "{error}");
    let (_, error) = infer(folder.path(), &["--single-label"], "dog,cat,car,bus\n0.7,0.7,0.2,0\n");
    assert!(error.contains("as finished probabilities are"), "{error}");
    assert!(error.contains("`phex reconcile`"), "{error}");
    let map = ["map", "s.csv", "--scores", "-", "--single-label"];
    let (status, _, error) = run(folder.path(), &map, p);
    assert!(status == 2 && error.contains("--scores-are probabilities"), "{error}");
}

#[test]
fn a_list_says_which_labels_the_columns_are() {
    let folder = folder();
    fs::write(folder.path().join("names.txt"), "bus\ndog\ncat\ncar\n").unwrap();
    let (expected, _) = infer(folder.path(), &["--single-label"], LEAVES);
    let named = ["--single-label", "--label-names", "names.txt"];
    // pandas numbers the columns of an array, and writes its index.
    for text in ["0,1,2,3\n0,3,0,0\n", ",1,0,3,2\n0,3,0,0,0\n", "w,x,y,z\n0,3,0,0\n"] {
        assert_eq!(infer(folder.path(), &named, text).0, expected, "{text}");
    }
    assert_eq!(infer(folder.path(), &named, LEAVES).0, expected, "names of labels win");
    let error = refused(folder.path(), &named, "w,x,y\n0,3,0\n");
    assert!(error.contains("3 columns of scores and the list has 4 names"), "{error}");
    let error = refused(folder.path(), &["--single-label"], "0,1,2,3\n0,3,0,0\n");
    assert!(error.contains("--label-names FILE"), "{error}");
    fs::write(folder.path().join("p.csv"), "3,2,1,0,5,4\n0.1,0.1,0.7,0.1,0.8,0.2\n").unwrap();
    fs::write(folder.path().join("all.txt"), "bus\ndog\ncat\ncar\nvehicle\nanimal\n").unwrap();
    let reconcile = ["reconcile", "s.csv", "--probabilities", "p.csv", "--label-names", "all.txt"];
    let (status, out, error) = run(folder.path(), &reconcile, "");
    assert_eq!(status, 0, "{error}");
    near(table(&out)[0]["dog"].parse().unwrap(), 0.7);
}

#[test]
fn arrays_without_names_are_read_by_position_with_a_note() {
    let folder = folder();
    let npy = |columns: usize, values: &[f32]| {
        let header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {columns}), }}");
        let mut npy = b"\x93NUMPY\x01\x00v\x00".to_vec();
        npy.extend(format!("{header:<117}\n").bytes());
        npy.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        npy
    };
    fs::write(folder.path().join("all.npy"), npy(6, &[0.0, 3.0, 0.0, 0.0, 0.0, 0.0])).unwrap();
    fs::write(folder.path().join("leaves.npy"), npy(4, &[0.0, 3.0, 0.0, 0.0])).unwrap();
    fs::write(folder.path().join("names.txt"), "bus\ndog\ncat\ncar\n").unwrap();
    let of = |more: &[&str]| {
        let mut arguments = vec!["infer", "s.csv", "--single-label", "--out", "p.csv"];
        arguments.extend(more);
        let (status, _, error) = run(folder.path(), &arguments, "");
        (status, fs::read_to_string(folder.path().join("p.csv")).unwrap_or_default(), error)
    };
    let (status, by_position, error) = of(&["--scores", "all.npy"]);
    assert!(status == 0 && error.contains("--label-names FILE gives another order"), "{error}");
    let (status, _, error) = of(&["--scores", "leaves.npy"]);
    assert!(status == 2 && error.contains("4 columns and the model has 6 labels"), "{error}");
    assert!(error.contains("--label-names"), "{error}");
    let (status, named, error) = of(&["--scores", "leaves.npy", "--label-names", "names.txt"]);
    assert!(status == 0 && !error.contains("another order"), "{error}");
    assert_eq!(named, by_position);
    let all = ["--scores", "all.npy", "--label-names", "names.txt"];
    let (status, _, error) = of(&all);
    assert!(status == 2 && error.contains("the list has 4 names"), "{error}");
}

#[test]
fn an_index_is_left_out_and_said() {
    let folder = folder();
    let (expected, _) = infer(folder.path(), &["--single-label"], LEAVES);
    let (rows, error) =
        infer(folder.path(), &["--single-label"], "id,dog,cat,car,bus\n17,3,0,0,0\n");
    assert_eq!(rows, expected);
    assert!(error.contains("the column `id` was left out") && error.contains("--keep"), "{error}");
    let (rows, error) = infer(folder.path(), &["--single-label"], ",dog,cat,car,bus\n0,3,0,0,0\n");
    assert_eq!(rows, expected);
    assert!(error.contains("the first column has no name, so it was left out"), "{error}");
}

#[test]
fn endings_that_cannot_be_written_are_refused_before_any_work() {
    let folder = folder();
    fs::write(folder.path().join("d.csv"), LEAVES).unwrap();
    // Nothing is read: the graph does not even exist.
    let scores = ["none.toml", "--scores", "d.csv"];
    for (command, flag, name, known) in [
        ("infer", "--out", "y.json", "csv, tsv, npy, parquet"),
        ("infer", "--out", "y.xlsx", "csv, tsv, npy, parquet"),
        ("infer", "--diagnosis", "y.json", "csv, jsonl"),
        ("map", "--out", "y.json", "csv, jsonl"),
    ] {
        let mut arguments = vec![command];
        arguments.extend(scores);
        arguments.extend([flag, name]);
        let (status, _, error) = run(folder.path(), &arguments, "");
        assert_eq!(status, 2);
        assert!(error.contains(name) && error.contains(known), "{error}");
        assert!(!folder.path().join(name).exists());
    }
    let reconcile = ["reconcile", "none.toml", "--probabilities", "d.csv", "--out", "y.xlsx"];
    let (status, _, error) = run(folder.path(), &reconcile, "");
    assert!(status == 2 && error.contains("csv, tsv, npy, parquet"), "{error}");
}
