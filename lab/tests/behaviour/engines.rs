//! `lab engines`: every engine on one model.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run;

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

/// What a successful command prints.
fn fine(folder: &Path, arguments: &[&str]) -> String {
    let (status, out, error) = run(folder, arguments);
    assert_eq!(status, 0, "{arguments:?}: {error}");
    out
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

#[test]
fn engines_are_measured_side_by_side() {
    let folder = folder();
    let arguments = ["engines", "g.toml", "--rows", "4", "--repetitions", "1"];
    let text = fine(folder.path(), &arguments);
    assert!(text.contains("Errors are against `junction`, exact."), "{text}");
    for engine in ["junction", "brute", "lbp", "lbp, pairs", "lbp, the paper's", "gibbs", "trw"] {
        assert!(text.contains(&format!("\n| {engine} | ")), "{engine}: {text}");
    }
    assert!(text.contains("\n- star: "), "{text}");
    let json = fine(folder.path(), &[&arguments[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["rows"], 4);
    let engines = report["engines"].as_array().unwrap();
    let of = |name: &str| engines.iter().find(|engine| engine["engine"] == name).unwrap();
    assert!(of("brute")["largest_error"].as_f64() < Some(1e-9));
    assert!(of("lbp")["largest_error"].as_f64() > Some(1e-9));
    assert!(of("lbp")["bounds_width"].as_f64() > Some(0.0));
    // Rows of a table, and one engine only.
    let rows = ["--scores", "scores.csv", "--keep", "id", "--method", "lbp"];
    let text = fine(folder.path(), &[&arguments[..], &rows].concat());
    assert!(text.contains("3 rows, scores from scores.csv") && !text.contains("| gibbs"), "{text}");
    // Without an exact engine.
    let wide = ["engines", "wide.csv", "--scores", "wide-scores.csv", "--budget", "1e7"];
    let text = fine(folder.path(), &[&wide[..], &["--method", "mean-field"]].concat());
    assert!(text.contains("long sampling with tempering"), "{text}");
}
