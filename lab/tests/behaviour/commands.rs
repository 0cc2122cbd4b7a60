//! Experiments from the command line: files, resuming, errors; benchmarks that need no data.

use std::fs;

use serde_json::Value;

use crate::run;

#[test]
fn a_miniature_writes_tables_and_figures_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["experiment", "cifar100", "--quick", "--data", "nowhere", "--out", "found", "--json"];
    let (status, out, err) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["name"], "cifar100");
    assert_eq!(found["quick"], true);
    let file = |name: &str| fs::read_to_string(folder.path().join("found").join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file("result.json")).unwrap(), found);
    let page = file("result.md");
    assert!(page.contains("Generated data") && page.contains("| random start | HEX |"), "{page}");
    for figure in found["figures"].as_array().unwrap() {
        let name = figure["file"].as_str().unwrap();
        assert!(file(&format!("{name}.svg")).starts_with("<svg"));
        assert!(page.contains(&format!("{name}.svg")));
    }

    let (status, _, err) = run(folder.path(), &arguments);
    assert_eq!(status, 2);
    assert!(err.contains("runs.jsonl") && err.contains("--resume"), "{err}");
    let again = [&arguments[..], &["--resume"]].concat();
    let (status, out, err) = run(folder.path(), &again);
    assert_eq!(status, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), found);
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (status, _, err) = run(folder.path(), &["experiment", "cifar100", "--data", "here"]);
    assert_eq!(status, 2);
    assert!(err.contains("here/cifar100") && err.contains("--quick"), "{err}");
    let (status, _, err) = run(folder.path(), &["experiment", "awe"]);
    assert_eq!(status, 2);
    assert!(err.contains("awe") && err.contains("imagenet"), "{err}");
}

#[test]
fn a_benchmark_writes_its_summary_and_raw_results() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "graph", "--labels", "30", "--out", "found"];
    let (status, out, err) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{err}");
    let file = |name: &str| fs::read_to_string(folder.path().join("found").join(name)).unwrap();
    assert_eq!(out.trim_end(), file("result.md").trim_end());
    assert!(
        out.contains("make bench ARGS=graph") && out.contains("| wide | 30 | convert |"),
        "{out}"
    );
    let raw: Value = serde_json::from_str(&file("result.json")).unwrap();
    assert_eq!(raw["rows"].as_array().unwrap().len(), 3 * 3);
    assert!(raw["machine"]["cores"].as_u64() > Some(0));
}

#[test]
fn reconciling_a_chain_needs_no_data() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "reconcile", "--only", "chain", "--rows", "4", "--out", "found"];
    let (status, out, err) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("| chain | diffuse | f32 | pool | 1860 |"), "{out}");
    let raw = fs::read_to_string(folder.path().join("found/result.json")).unwrap();
    let raw: Value = serde_json::from_str(&raw).unwrap();
    let rows = raw["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    // On a chain every row of random scores has something to gain.
    assert!(rows.iter().all(|row| row["gain"].as_f64() > Some(1.0) && row["given_up"] == 0));
}
