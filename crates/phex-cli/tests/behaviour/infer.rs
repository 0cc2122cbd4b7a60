//! `phex infer`, `phex map` and `phex graph plan` as a user runs them.

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

use crate::common::{run, table};

const GRAPH: &str = r#"exclude = "siblings"
[[hierarchy]]
parent = "animal"
children = ["dog", "cat"]
[[hierarchy]]
parent = "dog"
children = ["husky"]
strength = { u = 0.5 }
"#;

const SCORES: &str = "id,cat,animal,dog,husky\na,2,0.5,1,0\nb,-1,0,3,2\nc,nan,0,0,0\n";

/// A folder with a graph and scores.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    fs::write(folder.path().join("scores.csv"), SCORES).unwrap();
    folder
}

#[test]
fn probabilities_are_consistent_and_keep_their_rows() {
    let folder = folder();
    let (status, out, error) = run(
        folder.path(),
        &["infer", "g.toml", "--scores", "scores.csv", "--out", "p.csv", "--keep", "id", "--json"],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&summary["rows"], &summary["exact"]), (&3.into(), &true.into()));
    assert_eq!(summary["method"], "family");
    assert_eq!(summary["bad_rows"], 1);
    assert!(error.contains("row 2: the score of `cat` is NaN, infinite or beyond"), "{error}");
    let rows = table(&fs::read_to_string(folder.path().join("p.csv")).unwrap());
    assert_eq!(rows[0]["id"], "a");
    let p = |row: usize, label: &str| rows[row][label].parse::<f64>().unwrap();
    for row in 0..2 {
        // Hard relations hold exactly; p(dog or cat) is at most p(animal).
        assert!(p(row, "dog") + p(row, "cat") <= p(row, "animal") + 1e-12);
    }
    assert!(p(2, "dog").is_nan());
    let run: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("p.csv.run.json")).unwrap())
            .unwrap();
    assert_eq!(run["method"], "family");
}

#[test]
fn every_method_gives_the_same_answers() {
    let folder = folder();
    let of = |method: &str| {
        let arguments = [
            "infer",
            "g.toml",
            "--scores",
            "scores.csv",
            "--keep",
            "id",
            "--out",
            "-",
            "--method",
            method,
        ];
        let (status, out, error) = run(folder.path(), &arguments, "");
        assert_eq!(status, 0, "{error}");
        table(&out)
    };
    let expected = of("brute");
    for method in ["family", "junction", "auto"] {
        for (row, expected) in of(method).iter().zip(&expected).take(2) {
            for label in ["animal", "dog", "cat", "husky"] {
                let (p, e) =
                    (row[label].parse::<f64>().unwrap(), expected[label].parse::<f64>().unwrap());
                assert!((p - e).abs() < 1e-12, "{method} {label}: {p} {e}");
            }
        }
    }
    let (status, _, error) = run(
        folder.path(),
        &[
            "infer",
            "g.toml",
            "--scores",
            "scores.csv",
            "--keep",
            "id",
            "--out",
            "x.csv",
            "--method",
            "states",
        ],
        "",
    );
    assert_eq!(status, 2);
    assert!(error.contains("some relations are soft"), "{error}");
    assert!(!folder.path().join("x.csv").exists(), "nothing half-written");
}

#[test]
fn evidence_changes_the_answer_and_impossible_evidence_is_said() {
    let folder = folder();
    fs::write(folder.path().join("known.csv"), "dog,cat\n1,\n1,1\n,\n").unwrap();
    let (status, out, error) = run(
        folder.path(),
        &[
            "infer",
            "g.toml",
            "--scores",
            "scores.csv",
            "--keep",
            "id",
            "--evidence",
            "known.csv",
            "--out",
            "-",
        ],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let rows = table(&out);
    let p = |label: &str| rows[0][label].parse::<f64>().unwrap();
    assert_eq!((p("dog"), p("animal"), p("cat")), (1.0, 1.0, 0.0));
    assert!(error.contains("row 1: no legal label set agrees with the evidence"), "{error}");
}

#[test]
fn npy_streams_through_standard_input_and_output() {
    let folder = folder();
    // Two rows of four float32 zeros, as numpy writes them.
    let mut npy = b"\x93NUMPY\x01\x00v\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }";
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend([0u8; 2 * 4 * 4]);
    let output = Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(folder.path())
        .args(["infer", "g.toml", "--scores", "-", "--table-format", "npy", "--out", "-"])
        .write_stdin(npy.clone())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout.len(), npy.len());
    let value = f32::from_le_bytes(output.stdout[128..132].try_into().unwrap());
    assert!(value > 0.0 && value < 1.0);
}

#[test]
fn map_lists_the_best_sets() {
    let folder = folder();
    let (status, out, error) = run(
        folder.path(),
        &["map", "g.toml", "--scores", "scores.csv", "--keep", "id", "--top", "3"],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let rows = table(&out);
    assert_eq!(rows.len(), 6, "three for each of the two good rows: {out}");
    assert_eq!(rows[0]["labels"], "animal;cat");
    assert_eq!(rows[3]["labels"], "animal;dog;husky");
    let p = |row: usize| rows[row]["log_probability"].parse::<f64>().unwrap();
    assert!(p(0) >= p(1) && p(1) >= p(2) && p(0) < 0.0);
    let (_, _, error) =
        run(folder.path(), &["map", "g.toml", "--scores", "scores.csv", "--top", "0"], "");
    assert!(error.contains("1 or more"), "{error}");
}

#[test]
fn wrong_tables_are_explained() {
    let folder = folder();
    fs::write(folder.path().join("more.csv"), SCORES.replace("id", "name")).unwrap();
    let (status, _, error) =
        run(folder.path(), &["infer", "g.toml", "--scores", "more.csv", "--out", "p.csv"], "");
    assert_eq!(status, 2);
    assert!(error.contains("name") && error.contains("--keep"), "{error}");
    fs::write(folder.path().join("short.csv"), "dog,cat,animal\n0,0,0\n").unwrap();
    let (status, _, error) =
        run(folder.path(), &["infer", "g.toml", "--scores", "short.csv", "--out", "p.csv"], "");
    assert_eq!(status, 2);
    assert!(error.contains("husky"), "{error}");
    let (status, _, error) = run(folder.path(), &["infer", "g.toml", "--out", "p.csv"], "");
    assert_eq!(status, 2);
    assert!(error.contains("--scores"), "{error}");
}

#[test]
fn plans_say_which_engine_and_why() {
    let folder = folder();
    let (status, out, _) = run(folder.path(), &["graph", "plan", "g.toml", "--json"], "");
    let plan: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, plan["method"].as_str()), (0, Some("family")));
    assert_eq!(plan["exact"], true);
    assert!(plan["operations"].as_f64() > Some(0.0) && plan["bytes"].as_u64() > Some(0));
    // A grid of soft exclusions, too wide for the budget given.
    let mut wide = String::from("relation,a,b,u\n");
    for row in 0..12 {
        for column in 0..12 {
            wide.push_str(&format!("exclusion,x{row}.{column},x{}.{column},0.5\n", (row + 1) % 12));
            wide.push_str(&format!("exclusion,x{row}.{column},x{row}.{},0.5\n", (column + 1) % 12));
        }
    }
    fs::write(folder.path().join("wide.csv"), wide).unwrap();
    let arguments = ["graph", "plan", "wide.csv", "--budget", "1e5", "--json"];
    let (status, out, error) = run(folder.path(), &arguments, "");
    let plan: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
    assert_eq!((status, &plan["method"]), (1, &Value::Null));
    assert!(plan["refused"].as_array().unwrap().len() >= 5);
}

#[test]
fn uai_models_need_no_scores() {
    let folder = folder();
    fs::write(folder.path().join("m.uai"), "MARKOV\n2\n2 2\n1\n2 0 1\n4 1 2 3 4\n").unwrap();
    let (status, out, error) = run(folder.path(), &["infer", "m.uai", "--out", "-"], "");
    assert_eq!(status, 0, "{error}");
    assert_eq!(out, "x0,x1\n0.7,0.6\n");
}
