//! Approximate engines as a user runs them: answers, diagnosis, best label sets, measurements.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{run, table};

const APPROXIMATE: [&str; 5] = ["blocks", "lbp", "mean-field", "trw", "gibbs"];

/// Loops of soft and hard exclusions under a hierarchy.
const GRAPH: &str = r#"
[[hierarchy]]
parent = "a"
children = ["b", "c"]
[[hierarchy]]
parent = "d"
children = ["c", "e"]
strength = { u = 0.5 }
[[exclusion]]
labels = ["b", "c"]
strength = { u = 0.7 }
[[exclusion]]
labels = ["b", "e"]
[[exclusion]]
labels = ["a", "d"]
strength = { u = 0.3 }
"#;

/// Without ties among the best label sets; the last row has no answer.
const SCORES: &str =
    "id,a,b,c,d,e\nr,0.53,1.07,-0.41,0.23,0.31\ns,-1.03,0.61,1.19,0.13,0.97\nt,0,nan,0,0,0\n";

/// What a command prints that ends well, and what it says.
fn fine(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (status, out, error) = run(folder, arguments, "");
    assert_eq!(status, 0, "{arguments:?}: {error}");
    (out, error)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("g.toml"), GRAPH).unwrap();
    fs::write(folder.path().join("scores.csv"), SCORES).unwrap();
    // A torus of soft exclusions: wide.
    let mut wide = String::from("relation,a,b,u\n");
    for (row, column) in (0..12).flat_map(|row| (0..12).map(move |column| (row, column))) {
        let (below, right) = ((row + 1) % 12, (column + 1) % 12);
        wide.push_str(&format!("exclusion,x{row}.{column},x{below}.{column},0.5\n"));
        wide.push_str(&format!("exclusion,x{row}.{column},x{row}.{right},0.5\n"));
    }
    fs::write(folder.path().join("wide.csv"), wide).unwrap();
    let labels: Vec<String> = (0..144).map(|at| format!("x{}.{}", at / 12, at % 12)).collect();
    let scores: Vec<String> =
        (0..144).map(|at| format!("{}", f64::from(at * 7 % 10) / 5.0 - 1.0)).collect();
    let table = format!("{}\n{}\n", labels.join(","), scores.join(","));
    fs::write(folder.path().join("wide-scores.csv"), table).unwrap();
    folder
}

fn number(row: &HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: `{}`", row[column]))
}

const ROWS: [&str; 5] = ["g.toml", "--scores", "scores.csv", "--keep", "id"];

#[test]
fn approximate_engines_answer_with_a_diagnosis() {
    let folder = folder();
    let read = |name: &str| table(&fs::read_to_string(folder.path().join(name)).unwrap());
    let mut exact = vec!["infer"];
    exact.extend(ROWS);
    exact.extend(["--out", "exact.csv", "--diagnosis", "exact-d.csv"]);
    fine(folder.path(), &exact);
    let (expected, known) = (read("exact.csv"), read("exact-d.csv"));
    assert_eq!((known[0]["trust"].as_str(), known[0]["error"].as_str()), ("exact", "0"));
    assert!(known[2]["doubt"].contains("it has no answer"), "{known:?}");
    for method in APPROXIMATE {
        let mut arguments = vec!["infer"];
        arguments.extend(ROWS);
        arguments.extend(["--method", method, "--out", "p.csv", "--diagnosis", "d.csv"]);
        arguments.extend(["--bounds", "--json"]);
        let (out, error) = fine(folder.path(), &arguments);
        let summary: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&summary["approximate"], &summary["exact"]), (&true.into(), &false.into()));
        assert!(summary.get("certified_error").is_none(), "{summary}");
        let diagnosis = &summary["diagnosis"];
        assert_eq!(diagnosis["rows"], 2, "the third has no answer: {summary}");
        assert!(diagnosis["widest_bounds"].as_f64() >= Some(0.0), "{summary}");
        let doubtful = diagnosis["doubtful_rows"].as_u64().unwrap();
        assert_eq!(doubtful > 0, error.contains("should not be trusted"), "{error}");
        let (marginals, rows) = (read("p.csv"), read("d.csv"));
        assert_eq!(rows.len(), 3);
        assert!(rows[2]["doubt"].contains("it has no answer"), "{rows:?}");
        for at in 0..2 {
            assert_eq!(rows[at]["trust"], "approximate");
            assert!(number(&rows[at], "iterations") > 0.0);
            let log_partition = number(&known[at], "log_partition");
            let (lower, upper) = (number(&rows[at], "lower"), number(&rows[at], "upper"));
            let bracket = lower <= log_partition + 1e-9 && log_partition <= upper + 1e-9;
            assert!(bracket, "{method}: {lower} {log_partition} {upper}");
            for label in ["a", "b", "c", "d", "e"] {
                let off = number(&marginals[at], label) - number(&expected[at], label);
                assert!(off.abs() < 0.3, "{method} {label}: off by {off}");
            }
        }
    }
}

#[test]
fn standard_errors_come_from_sampling_only() {
    let folder = folder();
    let mut arguments = vec!["infer"];
    arguments.extend(ROWS);
    arguments.extend(["--out", "p.csv", "--standard-errors", "e.csv", "--method"]);
    let gibbs = [&arguments[..], &["gibbs", "--diagnosis", "d.jsonl", "--sweeps", "400"]].concat();
    fine(folder.path(), &gibbs);
    let errors = table(&fs::read_to_string(folder.path().join("e.csv")).unwrap());
    assert_eq!(errors[1]["id"], "s");
    assert!(number(&errors[0], "a") > 0.0 && number(&errors[0], "a") < 0.1);
    let lines = fs::read_to_string(folder.path().join("d.jsonl")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["row"], &first["iterations"]), (&0.into(), &450.into()));
    assert!(first["standard_error"].as_f64() > Some(0.0), "{first}");
    fs::remove_file(folder.path().join("p.csv")).unwrap();
    let (status, _, error) = run(folder.path(), &[&arguments[..], &["lbp"]].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("`lbp` does not sample"), "{error}");
    assert!(!folder.path().join("p.csv").exists(), "nothing is written");
}

#[test]
fn tables_do_not_overwrite_each_other() {
    let folder = folder();
    let mut arguments = vec!["infer"];
    arguments.extend(ROWS);
    arguments.extend(["--out", "p.csv", "--diagnosis", "p.csv"]);
    let (status, _, error) = run(folder.path(), &arguments, "");
    assert_eq!(status, 2);
    assert!(error.contains("p.csv would be written twice"), "{error}");
}

#[test]
fn the_best_found_are_the_best_on_small_graphs() {
    let folder = folder();
    let mut arguments = vec!["map"];
    arguments.extend(ROWS);
    arguments.extend(["--top", "3"]);
    let (exact, _) = fine(folder.path(), &arguments);
    let mut infer = vec!["infer"];
    infer.extend(ROWS);
    infer.extend(["--out", "p.csv", "--diagnosis", "-"]);
    let log_partition = number(&table(&fine(folder.path(), &infer).0)[0], "log_partition");
    for annealer in ["simulated-tabu", "simulated", "quantum", "tabu"] {
        let flags = ["--method", "anneal", "--annealer", annealer];
        let (found, error) = fine(folder.path(), &[&arguments[..], &flags].concat());
        assert!(found.starts_with("row,id,rank,log_weight,labels\n"), "{found}");
        assert!(error.contains("not proven to be the best"), "{error}");
        assert!(error.contains("row 2: the score of `b` is NaN"), "{error}");
        let (exact, found) = (table(&exact), table(&found));
        assert_eq!(exact.len(), found.len());
        for (exact, found) in exact.iter().zip(&found) {
            // The first is searched for; the others are the best that were met on the way.
            if found["rank"] == "1" || annealer == "simulated-tabu" {
                assert_eq!(exact["labels"], found["labels"], "{annealer}");
            }
        }
        // Log-weights and log-probabilities differ by log Z.
        let difference = number(&found[0], "log_weight") - number(&exact[0], "log_probability");
        assert!((difference - log_partition).abs() < 1e-9, "{difference} {log_partition}");
    }
    fs::write(folder.path().join("known.csv"), "b,e\n1,1\n,\n,\n").unwrap();
    let flags = ["--method", "anneal", "--evidence", "known.csv", "--out", "m.jsonl"];
    let (_, error) = fine(folder.path(), &[&arguments[..], &flags].concat());
    assert!(error.contains("row 0: no legal label set"), "{error}");
    let lines = fs::read_to_string(folder.path().join("m.jsonl")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["row"], 1);
    assert!(first["log_weight"].is_number() && first.get("log_probability").is_none(), "{first}");
}

#[test]
fn ising_files_are_annealed() {
    let folder = folder();
    let qubo = "p qubo 0 3 3 2\n0 0 -2\n1 1 -3\n2 2 1\n0 1 4\n1 2 -2\n";
    fs::write(folder.path().join("m.qubo"), qubo).unwrap();
    let (found, _) = fine(folder.path(), &["map", "m.qubo", "--method", "anneal"]);
    let (exact, _) = fine(folder.path(), &["map", "m.qubo"]);
    assert_eq!(table(&found)[0]["labels"], table(&exact)[0]["labels"]);
    assert_eq!(number(&table(&found)[0], "log_weight"), 4.0);
}

#[test]
fn a_known_optimum_is_found() {
    let Some(path) = phex::testkit::data("ising/beasley/bqp50-1.sparse") else { return };
    let file = path.display().to_string();
    let (found, _) = fine(folder().path(), &["map", &file, "--method", "anneal"]);
    assert_eq!(number(&table(&found)[0], "log_weight"), 2098.0);
}

#[test]
fn best_sets_are_searched_for_where_no_exact_engine_answers() {
    let folder = folder();
    let mut arguments = vec!["map"];
    arguments.extend(ROWS);
    let (exact, error) = fine(folder.path(), &arguments);
    assert!(!error.contains("not proven"), "{error}");
    arguments.extend(["--budget", "10", "--json"]);
    let (found, error) = fine(folder.path(), &arguments);
    assert!(error.contains("no exact engine can handle the model within the budget"), "{error}");
    let summary: Value = serde_json::from_str(&error[error.find('{').unwrap()..]).unwrap();
    assert_eq!(summary["method"], "anneal");
    assert!(summary["notes"][0].as_str().unwrap().contains("not proven"), "{summary}");
    assert!(summary["plan"]["refused"].as_array().unwrap().len() >= 6);
    for (exact, found) in table(&exact).iter().zip(table(&found)) {
        assert_eq!(exact["labels"], found["labels"]);
    }
    let (status, _, error) =
        run(folder.path(), &[&arguments[..], &["--method", "exact"]].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("over budget"), "{error}");
}

#[test]
fn auto_falls_back_to_messages_and_says_so() {
    let folder = folder();
    let rows = ["infer", "wide.csv", "--scores", "wide-scores.csv", "--out", "p.csv"];
    let budget = ["--budget", "1e7", "--check", "0", "--json"];
    let (out, error) = fine(folder.path(), &[&rows[..], &budget].concat());
    assert!(error.contains("`forest-bp` answers approximately"), "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&summary["method"], &summary["approximate"]), (&"forest-bp".into(), &true.into()));
    let beside = fs::read_to_string(folder.path().join("p.csv.run.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&beside).unwrap(), summary);
    let exact = ["--budget", "1e7", "--method", "exact"];
    let (status, _, error) = run(folder.path(), &[&rows[..], &exact].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("junction: over budget"), "{error}");

    let (text, _) = fine(folder.path(), &["graph", "plan", "wide.csv", "--budget", "1e7"]);
    assert!(text.contains("approximate, with a diagnosis of each row"), "{text}");
    assert!(text.contains("not junction: over budget"), "{text}");
    let (text, _) = fine(folder.path(), &["graph", "plan", "g.toml", "--method", "lbp"]);
    assert!(text.contains("would help: --method junction"), "{text}");
}

#[test]
fn rows_that_did_not_converge_are_named() {
    let folder = folder();
    let rows = ["infer", "wide.csv", "--scores", "wide-scores.csv", "--out", "p.csv"];
    let flags =
        ["--method", "lbp", "--iterations", "2", "--schedule", "flooding", "--damping", "0"];
    let (_, error) = fine(folder.path(), &[&rows[..], &flags, &["--groups", "pairs"]].concat());
    let expected = "1 of 1 rows should not be trusted: 1 that did not converge (rows 0)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn wrong_values_are_explained() {
    let folder = folder();
    let cases = [
        (["--damping", "1"], "0 or more and below 1"),
        (["--tolerance", "-1"], "0 or more"),
        (["--iterations", "0"], "--iterations is 0, but must be 1 to 1,000,000"),
        (["--schedule", "sideways"], "in-place, flooding"),
        (["--groups", "triples"], "cardinality, pairs"),
        (["--chains", "0"], "--chains is 0, but must be"),
        (["--hottest", "1.5"], "between 0 and 1"),
        (["--temperatures", "0"], "--temperatures is 0, but must be"),
        (["--annealer", "steel"], "simulated-tabu, simulated, quantum, tabu"),
        (["--slices", "1"], "--slices is 1, but must be 2 to 1024"),
        (["--beta", "3"], "two numbers above 0"),
        (["--beta", "3,1"], "must be given with the hottest first"),
        (["--method", "guess"], "mean-field"),
    ];
    for (flag, expected) in cases {
        let mut arguments = vec!["map".to_owned(), "g.toml".to_owned()];
        // As one word, for a value may look like a flag.
        arguments.push(flag.join("="));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (status, _, error) = run(folder.path(), &arguments, "");
        assert_eq!(status, 2, "{flag:?}");
        assert!(error.contains(expected), "{flag:?}: {error}");
    }
    let mut arguments = vec!["infer"];
    arguments.extend(ROWS);
    arguments.extend(["--out", "p.csv", "--method", "anneal"]);
    let (status, _, error) = run(folder.path(), &arguments, "");
    assert_eq!(status, 2);
    assert!(error.contains("`phex map`"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_search() {
    let folder = folder();
    let mut arguments = vec!["map"];
    arguments.extend(["wide.csv", "--scores", "wide-scores.csv", "--out", "m.csv"]);
    arguments.extend(["--method", "anneal", "--restarts", "100000000"]);
    let mut search = std::process::Command::new(assert_cmd::cargo::cargo_bin!("phex"))
        .current_dir(folder.path())
        .args(arguments)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The file in the making shows that it listens.
    let is_started = || {
        fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .any(|file| file.file_name().to_string_lossy().starts_with(".phex-"))
    };
    while !is_started() {
        assert_eq!(search.try_wait().unwrap(), None, "it searches on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &search.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(search.wait().unwrap().code(), Some(2));
    assert!(!folder.path().join("m.csv").exists(), "nothing is written");
}
