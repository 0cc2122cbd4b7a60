//! `phex reconcile` as a user runs it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::animals::Dice;
use crate::common::{run, table};

const GRAPH: &str = r#"exclude = "siblings"
[[hierarchy]]
parent = "animal"
children = ["dog", "cat"]
[[hierarchy]]
parent = "dog"
children = ["husky"]
"#;

/// The first row is consistent, the second has a dog with more certainty than an animal, and the
/// third is a dog as well as a cat.
const PROBABILITIES: &str = "id,cat,animal,dog,husky\n\
    a,0.1,0.9,0.5,0.25\n\
    b,0.1,0.2,0.7,0.1\n\
    c,0.8,0.9,0.6,0.5\n";

/// Every legal label set: cat, animal, dog, husky.
const TRUTHS: [[bool; 4]; 5] = [
    [false, false, false, false],
    [false, true, false, false],
    [true, true, false, false],
    [false, true, true, false],
    [false, true, true, true],
];

fn folder(graph: &str, probabilities: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("g.toml"), graph).unwrap();
    fs::write(folder.path().join("p.csv"), probabilities).unwrap();
    folder
}

/// Runs `phex reconcile g.toml --probabilities p.csv` with more arguments.
fn reconcile(folder: &Path, more: &[&str]) -> (i32, String, String) {
    let start = ["reconcile", "g.toml", "--probabilities", "p.csv"];
    run(folder, &[&start[..], more].concat(), "")
}

/// The error of a run that must fail without writing anything.
fn refused(graph: &str, probabilities: &str, more: &[&str]) -> String {
    let folder = folder(graph, probabilities);
    let before = fs::read_dir(folder.path()).unwrap().count();
    let (status, out, error) = reconcile(folder.path(), more);
    assert_eq!((status, out.as_str()), (2, ""), "{error}");
    let files = [&["--out", "q.csv", "--diagnosis", "d.csv"], more].concat();
    let (status, _, _) = reconcile(folder.path(), &files);
    assert_eq!(status, 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "something was written");
    error
}

fn numbers(text: &str) -> Vec<[f64; 4]> {
    let row = |row: &std::collections::HashMap<String, String>| {
        ["cat", "animal", "dog", "husky"].map(|label| row[label].parse().unwrap())
    };
    table(text).iter().map(row).collect()
}

fn log_loss(truth: &[bool; 4], p: &[f64; 4]) -> f64 {
    let of = |(on, p): (&bool, &f64)| if *on { -p.ln() } else { -(-p).ln_1p() };
    truth.iter().zip(p).map(of).sum()
}

#[test]
fn no_row_is_worse_for_any_legal_truth() {
    let folder = folder(GRAPH, PROBABILITIES);
    let more = ["--keep", "id", "--diagnosis", "d.csv"];
    let (status, out, error) = reconcile(folder.path(), &more);
    assert_eq!(status, 0, "{error}");
    assert_eq!(table(&out)[2]["id"], "c");
    let (before, after) = (numbers(PROBABILITIES), numbers(&out));
    let guarantees = table(&fs::read_to_string(folder.path().join("d.csv")).unwrap());
    assert_eq!(before[0], after[0], "a consistent row comes back bit for bit");
    for (row, ((p, q), line)) in before.iter().zip(&after).zip(&guarantees).enumerate() {
        let [cat, animal, dog, husky] = *q;
        assert!(cat + dog <= animal && husky <= dog, "{q:?}");
        let number = |name: &str| line[name].parse::<f64>().unwrap();
        let gain = number("gain");
        assert_eq!(
            (number("passes") == 0.0, number("input_violation") == 0.0),
            (row == 0, row == 0)
        );
        assert!(gain > 0.1 || row == 0, "{line:?}");
        assert!(number("violation") == 0.0 && number("gap") < 1e-6 && number("error") < 1e-3);
        for truth in &TRUTHS {
            let (before, after) = (log_loss(truth, p), log_loss(truth, q));
            assert!(after <= before - gain + 1e-9 * (1.0 + before), "{row} {truth:?}");
        }
    }
    let last = error.lines().last().unwrap();
    for part in ["3 rows by `family`", "1 were consistent", "nats on average", "exactly"] {
        assert!(last.contains(part), "{last}");
    }
}

#[test]
fn logits_and_probabilities_give_the_same_answers() {
    let folder = folder(GRAPH, PROBABILITIES);
    let logits: Vec<String> = numbers(PROBABILITIES)
        .iter()
        .map(|row| row.map(|p| (p / (1.0 - p)).ln().to_string()).join(","))
        .collect();
    let text = format!("cat,animal,dog,husky\n{}\n", logits.join("\n"));
    fs::write(folder.path().join("s.csv"), &text).unwrap();
    let (_, expected, _) = reconcile(folder.path(), &["--keep", "id"]);
    let from_file = ["reconcile", "g.toml", "--scores", "s.csv"];
    let (status, out, error) = run(folder.path(), &from_file, "");
    assert_eq!(status, 0, "{error}");
    for (a, b) in numbers(&expected).iter().flatten().zip(numbers(&out).iter().flatten()) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    // The same through standard input, and with a number of threads.
    let arguments = ["reconcile", "g.toml", "--scores", "-", "--threads", "2", "--out", "-"];
    assert_eq!(run(folder.path(), &arguments, &text).1, out);
}

#[test]
fn files_are_written_with_a_summary_beside_them() {
    let folder = folder(GRAPH, PROBABILITIES);
    let more =
        ["--keep", "id", "--out", "q.parquet", "--diagnosis", "d.jsonl", "--json", "--loss", "log"];
    let (status, out, error) = reconcile(folder.path(), &more);
    assert_eq!(status, 0, "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&summary["rows"], &summary["unchanged_rows"]), (&3.into(), &1.into()));
    assert_eq!((&summary["engines"][0], &summary["hull"]), (&"family".into(), &true.into()));
    assert!(summary["mean_gain"].as_f64().unwrap() > 0.1);
    let beside = fs::read_to_string(folder.path().join("q.parquet.run.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&beside).unwrap(), summary);
    let lines = fs::read_to_string(folder.path().join("d.jsonl")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((lines.lines().count(), &first["passes"]), (3, &0.into()));
    let (_, _, error) = reconcile(folder.path(), &["--keep", "id", "--diagnosis", "-"]);
    assert!(error.contains("- would be written twice"), "{error}");
}

#[test]
fn weights_and_losses_are_choices() {
    let hierarchy = "[[hierarchy]]\nparent = \"animal\"\nchildren = [\"dog\"]\n";
    let folder = folder(hierarchy, "animal,dog\n0.2,0.7\n");
    let q = |more: &[&str]| {
        let (status, out, error) = reconcile(folder.path(), more);
        assert_eq!(status, 0, "{error}");
        let row = &table(&out)[0];
        assert_eq!(row["animal"], row["dog"]);
        row["dog"].parse::<f64>().unwrap()
    };
    let logit = |p: f64| (p / (1.0 - p)).ln();
    let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
    // The mean of the logits, that of the probabilities, and a weighted mean of the logits.
    assert!((q(&[]) - sigmoid((logit(0.2) + logit(0.7)) / 2.0)).abs() < 1e-12);
    assert!((q(&["--loss", "brier"]) - 0.45).abs() < 1e-12);
    fs::write(folder.path().join("w.csv"), "label,weight\ndog,3\n").unwrap();
    let weighted = sigmoid((logit(0.2) + 3.0 * logit(0.7)) / 4.0);
    assert!((q(&["--weights", "w.csv"]) - weighted).abs() < 1e-9);
    let (_, _, error) = reconcile(folder.path(), &["--weights", "w.csv"]);
    assert!(error.contains("; the weighted log loss of a row falls by at least"), "{error}");
    for (text, part) in [
        ("label,weight\ndgo,3\n", "w.csv:2: column `label`: `dgo` is not a label"),
        ("label,weight\ndog,0\n", "w.csv:2: column `weight`: the cell is `0`; a weight is"),
        ("label,weight\ndog,1\ndog,2\n", "w.csv:3: column `label`: `dog` has a weight already"),
        ("name,w\ndog,1\n", "the columns `label` and `weight`, but this table has `name`, `w`"),
    ] {
        fs::write(folder.path().join("w.csv"), text).unwrap();
        let (status, _, error) = reconcile(folder.path(), &["--weights", "w.csv"]);
        assert!(status == 2 && error.contains(part), "{error}");
    }
}

#[test]
fn values_that_are_not_probabilities_are_located() {
    let wrong = |cell: &str| {
        let text = PROBABILITIES.replace("0.7", cell);
        refused(GRAPH, &text, &["--keep", "id"])
    };
    let start = "p.csv:3: column `dog`: the cell is";
    for cell in ["1.2", "-0.5", "nan", "inf", "", "NA"] {
        let error = wrong(cell);
        let what = if cell.is_empty() { "empty" } else { cell };
        assert!(error.contains(start) && error.contains(what), "{cell}: {error}");
        assert!(error.contains("a probability is a number from 0 to 1"), "{error}");
        assert!(error.contains("--scores"), "{error}");
    }
}

#[test]
fn logits_that_are_missing_are_located() {
    let folder = folder(GRAPH, "cat,animal,dog,husky\n1,2,3,4\n1,nan,-inf,0\n");
    let arguments = ["reconcile", "g.toml", "--scores", "p.csv"];
    let (status, out, error) = run(folder.path(), &arguments, "");
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(error.contains("p.csv: row 1: the score of `animal` is NaN"), "{error}");
}

#[test]
fn columns_must_be_those_of_the_labels() {
    let error = refused(GRAPH, &PROBABILITIES.replace("id", "name"), &[]);
    assert!(error.contains("`name` is not a label"), "{error}");
    assert!(error.contains("--keep \"name\""), "{error}");
    let error = refused(GRAPH, "cat,animal,dog\n0.1,0.5,0.2\n", &[]);
    assert!(error.contains("no column is named `husky`"), "{error}");
    assert!(!error.contains("leaves"), "{error}");
    // A classifier that decides between the leaves has no columns for other labels.
    let error = refused(GRAPH, "cat,husky\n0.1,0.9\n", &[]);
    assert!(
        error.contains("nor another one") && error.contains("phex infer --single-label"),
        "{error}"
    );
}

#[test]
fn one_softmax_over_a_hierarchy_is_recognised() {
    let text = "cat,animal,dog,husky\n0.1,0.2,0.3,0.4\n0.25,0.25,0.25,0.25\n0.7,0.1,0.1,0.1\n";
    let error = refused(GRAPH, text, &[]);
    assert!(error.contains("every row sums to 1 over all 4 labels"), "{error}");
    assert!(error.contains("phex infer --single-label"), "{error}");
    // One such row proves nothing, and a one-of group may sum to 1.
    let one: String = text.lines().take(2).flat_map(|line| [line, "\n"]).collect();
    let folder = folder(GRAPH, &one);
    assert_eq!(reconcile(folder.path(), &[]).0, 0);
    let group = "[[one_of]]\nname = \"all\"\nlabels = [\"cat\", \"animal\", \"dog\", \"husky\"]\n";
    fs::write(folder.path().join("g.toml"), group).unwrap();
    fs::write(folder.path().join("p.csv"), text).unwrap();
    let (status, _, error) = reconcile(folder.path(), &[]);
    assert!(status == 0 && error.contains("3 were consistent"), "{error}");
}

#[test]
fn zero_and_one_are_allowed_and_the_guarantee_says_so() {
    let folder = folder(GRAPH, "cat,animal,dog,husky\n0,1,1,0\n1,0,0.5,0.5\n");
    let (status, out, error) = reconcile(folder.path(), &["--diagnosis", "d.csv"]);
    assert_eq!(status, 0, "{error}");
    assert!(error.contains("1 of the rows that changed have probabilities of 0 or 1"), "{error}");
    assert!(error.contains("clipped to logits of ±30"), "{error}");
    let rows = numbers(&out);
    assert_eq!(rows[0], [0.0, 1.0, 1.0, 0.0]);
    assert!(rows[1].iter().all(|q| q.is_finite()), "{rows:?}");
    let [cat, animal, dog, husky] = rows[1];
    assert!(cat + dog <= animal && husky <= dog, "{rows:?}");
    assert!(!fs::read_to_string(folder.path().join("d.csv")).unwrap().contains("nan"));
}

#[test]
fn graphs_without_relations_and_tables_without_rows_are_explained() {
    let error = refused("labels = [\"dog\"]\n", "dog\n0.5\n", &[]);
    assert!(error.contains("g.toml: the graph has no relations"), "{error}");
    let error = refused(GRAPH, "", &[]);
    assert!(error.contains("p.csv") && error.contains("no header"), "{error}");
    let folder = folder(GRAPH, "cat,animal,dog,husky\n");
    let (status, out, error) = reconcile(folder.path(), &[]);
    assert_eq!((status, out.as_str()), (0, "animal,dog,cat,husky\n"), "{error}");
    assert!(error.contains("0 rows"), "{error}");
    let (status, _, error) = run(folder.path(), &["reconcile", "g.toml"], "");
    assert!(status == 2 && error.contains("--probabilities"), "{error}");
    let (status, _, error) =
        run(folder.path(), &["reconcile", "g.toml", "--probabilities", "none.csv"], "");
    assert!(status == 2 && error.contains("none.csv: cannot be read"), "{error}");
    let error = refused(GRAPH, PROBABILITIES, &["--keep", "id", "--loss", "brier"]);
    assert!(error.contains("`dog` and `cat` exclude each other"), "{error}");
    let soft =
        GRAPH.replace("children = [\"husky\"]", "children = [\"husky\"]\nstrength = { w = 1 }");
    let soft = soft.replace("exclude = \"siblings\"\n", "");
    let error = refused(&soft, PROBABILITIES, &["--keep", "id", "--loss", "brier"]);
    assert!(error.contains("the Brier score needs hard relations"), "{error}");
    assert!(error.contains("`dog` and `husky` is soft"), "{error}");
    let error = refused(GRAPH, PROBABILITIES, &["--keep", "id", "--tolerance", "2"]);
    assert!(error.contains("tolerance is 2"), "{error}");
}

#[test]
fn infer_points_finished_probabilities_to_reconcile() {
    let folder = folder(GRAPH, PROBABILITIES);
    let infer = ["infer", "g.toml", "--scores", "p.csv", "--keep", "id", "--out", "-"];
    let (status, _, error) = run(folder.path(), &infer, "");
    assert_eq!(status, 0);
    assert!(error.contains("`phex reconcile` makes finished probabilities consistent"), "{error}");
    fs::write(folder.path().join("p.csv"), PROBABILITIES.replace("0.7", "1.7")).unwrap();
    let (_, _, error) = run(folder.path(), &infer, "");
    assert!(!error.contains("reconcile"), "{error}");
    // The same for reconciling, where they are the other kind of table.
    fs::write(folder.path().join("p.csv"), PROBABILITIES).unwrap();
    let scores = ["reconcile", "g.toml", "--scores", "p.csv", "--keep", "id"];
    let (status, _, error) = run(folder.path(), &scores, "");
    assert!(status == 0 && error.contains("--probabilities takes finished"), "{error}");
}

/// Rows of overconfident probabilities with their labels; every tenth truth is a dog and a cat.
fn held_out(rows: usize) -> String {
    let mut dice = Dice(3);
    let mut text = String::from("is,cat,animal,dog,husky\n");
    for row in 0..rows {
        let kind = ["animal;cat", "animal;dog", "animal;dog;husky", "animal", ""][row % 5];
        let listed = if row % 10 == 9 { "animal;dog;cat" } else { kind };
        let mut p = |label: &str| {
            let centre = if kind.split(';').any(|name| name == label) { 2.5 } else { -2.5 };
            1.0 / (1.0 + f64::exp(-centre - 12.0 * (dice.roll() - 0.5)))
        };
        let cells = ["cat", "animal", "dog", "husky"].map(|label| p(label).to_string());
        text.push_str(&format!("{listed},{}\n", cells.join(",")));
    }
    text
}

#[test]
fn labelled_rows_calibrate_the_levels() {
    let folder = folder(GRAPH, PROBABILITIES);
    fs::write(folder.path().join("held.csv"), held_out(400)).unwrap();
    let fit = ["--keep", "id", "--fit", "held.csv", "--label-column", "is"];
    let list = ["--label-format", "list", "--unlisted", "off"];
    let more = [&fit[..], &list, &["--out", "q.csv", "--json"]].concat();
    let (status, out, error) = reconcile(folder.path(), &more);
    assert_eq!(status, 0, "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    let report = &summary["fit"];
    assert_eq!(report["rows"], 400);
    assert_eq!(report["illegal"]["rows"], 40, "{report}");
    assert!(error.contains("40 rows left out: their truth breaks hard relations"), "{error}");
    assert!(
        error.contains("cat excludes dog: 40 rows") || error.contains("dog excludes cat: 40 rows"),
        "{error}"
    );
    assert!(error.contains("chosen") && error.contains("calibrated probabilities"), "{error}");
    assert!(summary["parameters"]["levels"].is_array(), "{summary}");
    for [cat, animal, dog, husky] in
        numbers(&fs::read_to_string(folder.path().join("q.csv")).unwrap())
    {
        assert!(cat + dog <= animal && husky <= dog);
    }
    let error = |arguments: &[&str]| {
        let (status, out, error) = reconcile(folder.path(), arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{error}");
        error
    };
    let missing = error(&["--keep", "id", "--fit", "held.csv"]);
    assert!(missing.contains("--label-column COLUMN or --label-file FILE"), "{missing}");
    let alone = error(&["--keep", "id", "--label-column", "is"]);
    assert!(alone.contains("--fit FILE"), "{alone}");
    // Too few legal rows, and why; and rows that are one softmax.
    let cells: &str = "animal;dog;cat,0.2,0.6,0.5,0.1\n";
    let few = format!("is,cat,animal,dog,husky\n{}animal,0.1,0.9,0.2,0.1\n", cells.repeat(19));
    fs::write(folder.path().join("few.csv"), few).unwrap();
    let few =
        error(&[&["--keep", "id", "--fit", "few.csv", "--label-column", "is"], &list[..]].concat());
    assert!(few.contains("few.csv") && few.contains("1 of 20 rows can be used"), "{few}");
    assert!(few.contains("19 rows break hard relations") && few.contains("excludes"), "{few}");
    assert!(few.contains("(19 rows)"), "{few}");
    let softmax = "animal,0.2,0.1,0.3,0.4\n".repeat(20);
    fs::write(folder.path().join("one.csv"), format!("is,cat,animal,dog,husky\n{softmax}"))
        .unwrap();
    let one =
        error(&[&["--keep", "id", "--fit", "one.csv", "--label-column", "is"], &list[..]].concat());
    assert!(
        one.contains("one.csv: every row sums to 1") && one.contains("--single-label"),
        "{one}"
    );
    // The labels of other rows.
    fs::write(folder.path().join("short.csv"), "is\nanimal\n").unwrap();
    let short =
        ["--keep", "id", "--fit", "p.csv", "--label-file", "short.csv", "--label-column", "is"];
    let error = error(&short);
    assert!(error.contains("rows") && error.contains('1') && error.contains('3'), "{error}");
}

#[test]
fn an_engine_is_used_wherever_it_fits() {
    let graph = format!("{GRAPH}[[hierarchy]]\nparent = \"red\"\nchildren = [\"wine\"]\n");
    let header = "cat,animal,dog,husky,red,wine";
    let folder = folder(&graph, &format!("{header}\n0.8,0.9,0.6,0.5,0.2,0.7\n"));
    let (status, expected, error) = reconcile(folder.path(), &[]);
    assert!(status == 0 && !error.contains("is only for"), "{error}");
    assert!(error.contains("by `pool` and `family`"), "{error}");
    for (engine, part) in [
        (
            "pool",
            "4 labels are reconciled by `family`: a forest whose siblings exclude each other; `pool` is only for forests",
        ),
        ("categorical", "2 labels are reconciled by `pool`"),
    ] {
        let (status, out, error) = reconcile(folder.path(), &["--engine", engine]);
        assert!(status == 0 && error.contains(part), "{error}");
        for (a, b) in numbers(&expected).iter().flatten().zip(numbers(&out).iter().flatten()) {
            assert!((a - b).abs() < 1e-3, "{engine}: {a} {b}");
        }
    }
    let (status, _, error) =
        reconcile(folder.path(), &["--engine", "newton", "--json", "--out", "q.csv"]);
    assert!(status == 0 && error.contains("by `newton`,") && !error.contains("is only"), "{error}");
}

/// Rows of `names` in a graph, against every truth and what it pays: infinite if it is illegal.
fn never_worse(graph: &str, names: &[&str], engine: &str, cost: impl Fn(&[bool]) -> f64) {
    let mut dice = Dice(11);
    let mut text = format!("{}\n", names.join(","));
    for _ in 0..12 {
        let mut p = || (1.0 / (1.0 + f64::exp(-8.0 * (dice.roll() - 0.5)))).to_string();
        let cells: Vec<String> = names.iter().map(|_| p()).collect();
        text.push_str(&format!("{}\n", cells.join(",")));
    }
    let folder = folder(graph, &text);
    let files = ["--out", "q.csv", "--diagnosis", "d.csv", "--json"];
    let (status, out, error) = reconcile(folder.path(), &files);
    assert_eq!(status, 0, "{error}");
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["engines"], serde_json::json!([engine]), "{summary}");
    let read = |name: &str| table(&fs::read_to_string(folder.path().join(name)).unwrap());
    let row = |row: &std::collections::HashMap<String, String>| -> Vec<f64> {
        names.iter().map(|name| row[*name].parse().unwrap()).collect()
    };
    let loss = |truth: &[bool], p: &[f64]| -> f64 {
        truth.iter().zip(p).map(|(&on, &p)| if on { -p.ln() } else { -(-p).ln_1p() }).sum()
    };
    let before: Vec<Vec<f64>> = table(&text).iter().map(row).collect();
    let after: Vec<Vec<f64>> = read("q.csv").iter().map(row).collect();
    let (mut checked, mut moved) = (0, 0);
    for ((p, q), line) in before.iter().zip(&after).zip(&read("d.csv")) {
        let gain: f64 = line["gain"].parse().unwrap();
        moved += usize::from(gain > 1e-3);
        for bits in 0..1u32 << names.len() {
            let truth: Vec<bool> = (0..names.len()).map(|at| bits >> at & 1 == 1).collect();
            let paid = cost(&truth);
            if paid.is_finite() {
                let (was, is) = (loss(&truth, p), loss(&truth, q));
                assert!(
                    is <= was - gain + paid + 1e-9 * (1.0 + was),
                    "{engine} {truth:?}: {p:?} {q:?}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked >= 12 * 4 && moved > 3, "{engine}: {checked} {moved}");
}

#[test]
fn no_row_is_worse_by_the_other_engines() {
    let dag = "[[hierarchy]]\nparent = \"a\"\nchildren = [\"c\"]\n\
        [[hierarchy]]\nparent = \"b\"\nchildren = [\"c\", \"d\"]\n";
    let names = ["a", "b", "c", "d", "e"];
    let illegal = |broken: bool| if broken { f64::INFINITY } else { 0.0 };
    let order = |t: &[bool]| t[2] && !(t[0] && t[1]) || t[3] && !t[1];
    never_worse(dag, &names[..4], "closure", |t| illegal(order(t)));
    let group = format!("{dag}[[exclusion]]\nlabels = [\"a\", \"d\", \"e\"]\n");
    let two = |t: &[bool]| [t[0], t[3], t[4]].into_iter().filter(|on| *on).count() > 1;
    never_worse(&group, &names, "newton", |t| illegal(order(t) || two(t)));
    // The truth pays for soft relations that it breaks.
    let soft = "[[hierarchy]]\nparent = \"a\"\nchildren = [\"b\"]\nstrength = { w = 0.7 }\n\
        [[exclusion]]\nlabels = [\"b\", \"c\"]\nstrength = { w = 1.2 }\n\
        [[hierarchy]]\nparent = \"c\"\nchildren = [\"d\"]\n";
    never_worse(soft, &names[..4], "newton", |t| {
        let cost = |broken: bool, w: f64| if broken { w } else { 0.0 };
        cost(t[1] && !t[0], 0.7) + cost(t[1] && t[2], 1.2) + illegal(t[3] && !t[2])
    });
}

#[test]
fn no_row_of_softmax_heads_is_worse() {
    let graph = "single_label = true\n[[hierarchy]]\nparent = \"a\"\nchildren = [\"c\", \"d\"]\n\
        [[hierarchy]]\nparent = \"b\"\nchildren = [\"e\"]\n";
    let rows = [[0.3, 0.7, 0.5, 0.3, 0.2], [0.9, 0.1, 0.05, 0.15, 0.8], [0.5, 0.5, 0.2, 0.3, 0.5]];
    let text: Vec<String> = rows.iter().map(|row| row.map(|p| p.to_string()).join(",")).collect();
    let folder = folder(graph, &format!("a,b,c,d,e\n{}\n", text.join("\n")));
    let more = ["--loss", "categorical", "--diagnosis", "d.csv"];
    let (status, out, error) = reconcile(folder.path(), &more);
    assert!(status == 0 && error.contains("by `categorical`"), "{error}");
    let gains = table(&fs::read_to_string(folder.path().join("d.csv")).unwrap());
    for ((p, q), line) in rows.iter().zip(&table(&out)).zip(&gains) {
        let q = ["a", "b", "c", "d", "e"].map(|name| q[name].parse::<f64>().unwrap());
        let gain: f64 = line["gain"].parse().unwrap();
        // Every truth is a path, and each head charges for its label on the path.
        for [kind, class] in [[0, 2], [0, 3], [1, 4]] {
            let loss = |p: &[f64; 5]| -p[kind].ln() - p[class].ln();
            assert!(loss(&q) <= loss(p) - gain + 1e-9, "{p:?} {q:?} {gain}");
        }
    }
}

#[test]
fn map_finds_the_best_legal_sets_of_reconciled_probabilities() {
    let group = "[[one_of]]\nname = \"kind\"\nlabels = [\"cat\", \"dog\", \"owl\"]\n";
    let folder = folder(group, "cat,dog,owl\n0.4,0.5,0.3\n1,0.1,0\n");
    assert_eq!(reconcile(folder.path(), &["--out", "q.csv"]).0, 0);
    let map = ["map", "g.toml", "--scores-are", "probabilities", "--scores", "q.csv"];
    let (status, out, error) = run(folder.path(), &map, "");
    assert_eq!(status, 0, "{error}");
    let sets: Vec<String> = table(&out).iter().map(|row| row["labels"].clone()).collect();
    assert_eq!(sets, ["dog", "cat"], "{out}");
    fs::write(folder.path().join("q.csv"), "cat,dog,owl\n0.4,1.5,0.3\n").unwrap();
    let (status, _, error) = run(folder.path(), &map, "");
    assert!(status == 2 && error.contains("1.5"), "{error}");
}
