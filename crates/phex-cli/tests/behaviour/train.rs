//! `phex train`, `phex predict` and `phex eval` as a user runs them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::animals::{Animals, TRAIN};
use crate::common::{run, table};

#[test]
fn train_predict_and_evaluate() {
    let folder = Animals::new(300, 120);
    let path = folder.path();
    let more =
        ["--out", "m", "--epochs", "25", "--learning-rate", "0.03", "--json", "--hidden", "8"];
    let (status, out, error) = run(path, &[&TRAIN[..], &more[..]].concat(), "");
    assert_eq!(status, 0, "{error}");
    let run_json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&run_json["rows"], &run_json["validation_rows"]), (&240.into(), &60.into()));
    assert_eq!(run_json["epochs"], 25);
    assert_eq!(run_json["plan"]["exact"], true);
    let mut names: Vec<String> = fs::read_dir(path.join("m"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected =
        ["README.md", "config.json", "graph.json", "model.safetensors", "report.html", "run.json"];
    assert_eq!(names, expected);
    assert!(!path.join("m.checkpoint").exists());
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(path.join("m/run.json")).unwrap()).unwrap();
    assert_eq!(kept, run_json);

    // Probabilities keep the hierarchy; new columns may be in another order.
    let (status, _, error) =
        run(path, &["predict", "m", "--data", "test.csv", "--keep", "id", "--out", "p.csv"], "");
    assert_eq!(status, 0, "{error}");
    let rows = table(&fs::read_to_string(path.join("p.csv")).unwrap());
    assert_eq!((rows.len(), rows[3]["id"].as_str()), (120, "r3"));
    for row in &rows {
        let p = |label: &str| row[label].parse::<f64>().unwrap();
        assert!(p("husky") <= p("dog") + 1e-6 && p("dog") <= p("animal") + 1e-6);
        assert!(p("dog") + p("cat") <= 1.0 + 1e-6);
    }

    // What `eval` says is what the decisions are.
    let (status, sets, error) = run(
        path,
        &["predict", "m", "--data", "test.csv", "--keep", "is", "--out", "-", "--decide", "best"],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let sets = table(&sets);
    let leaves: Vec<_> = sets.iter().filter(|row| row["is"] != "dog").collect();
    let right = |row: &&&std::collections::HashMap<String, String>| {
        row["labels"].split(';').any(|label| label == row["is"])
    };
    let right = leaves.iter().filter(right).count();
    let (status, out, error) =
        run(path, &["eval", "m", "--data", "test.csv", "--json", "--top", "1"], "");
    assert_eq!(status, 0, "{error}");
    let evaluation: Value = serde_json::from_str(&out).unwrap();
    let accuracy = evaluation["classes"]["top"][0]["accuracy"].as_f64().unwrap();
    assert!((accuracy - right as f64 / leaves.len() as f64).abs() < 1e-12);
    assert!(accuracy > 0.8, "{accuracy}");

    // The same from the table of probabilities.
    let (status, table_out, error) = run(
        path,
        &[
            "eval",
            "--graph",
            "m/graph.json",
            "--probabilities",
            "p.csv",
            "--keep",
            "id",
            "--data",
            "test.csv",
            "--label-column",
            "is",
            "--unlisted",
            "off",
            "--json",
            "--top",
            "1",
            "--report",
            "e.html",
        ],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let by_table: Value = serde_json::from_str(&table_out).unwrap();
    let distance =
        by_table["log_loss"].as_f64().unwrap() - evaluation["log_loss"].as_f64().unwrap();
    assert!(distance.abs() < 1e-6, "{distance}");
    assert!(fs::read_to_string(path.join("e.html")).unwrap().contains("Evaluation of p.csv"));

    // Label sets by the other rules, as JSON lines.
    for rule in ["threshold=0.7", "back-off=0.9", "consistent"] {
        let arguments =
            ["predict", "m", "--data", "test.csv", "--out", "s.jsonl", "--decide", rule];
        let (status, _, error) = run(path, &arguments, "");
        assert_eq!(status, 0, "{rule}: {error}");
        let lines = fs::read_to_string(path.join("s.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), 120);
        let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert!(line["labels"].is_array(), "{rule}: {line}");
    }
}

#[test]
fn a_finished_run_is_left_alone() {
    let folder = Animals::new(60, 10);
    let path = folder.path();
    let with = |more: &[&str]| {
        run(path, &[&TRAIN[..], &["--out", "m", "--epochs", "2"], more].concat(), "")
    };
    assert_eq!(with(&[]).0, 0);
    let before = fs::metadata(path.join("m/model.safetensors")).unwrap().modified().unwrap();
    let (status, _, error) = with(&[]);
    assert_eq!(status, 0);
    assert!(error.contains("m is already finished"), "{error}");
    let after = fs::metadata(path.join("m/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(before, after);
    let (status, _, error) = with(&["--seed", "1"]);
    assert_eq!(status, 2);
    assert!(error.contains("another run; --restart replaces it"), "{error}");
    assert_eq!(with(&["--seed", "1", "--restart"]).0, 0);
    // A folder of something else is never replaced.
    fs::create_dir(path.join("mine")).unwrap();
    fs::write(path.join("mine/thesis.txt"), "years of work").unwrap();
    let (status, _, error) = run(path, &[&TRAIN[..], &["--out", "mine", "--restart"]].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("`thesis.txt`, which is not part of a model"), "{error}");
    assert!(path.join("mine/thesis.txt").exists());
}

#[test]
fn settings_come_from_a_file_and_flags_win() {
    let folder = Animals::new(60, 10);
    let path = folder.path();
    let settings = "seed = 7\n[head]\nhidden = [4]\n[optimiser]\nlearning_rate = 0.5\nbatch = 16\n\
                    [[stages]]\nname = \"only\"\nepochs = 2\nstrength = \"u=0.5\"\n";
    fs::write(path.join("c.toml"), settings).unwrap();
    let more = ["--config", "c.toml", "--learning-rate", "0.25", "--out", "m", "--json"];
    let head = ["--prior", "--feature-clip", "4.5"];
    let (status, out, error) = run(path, &[&TRAIN[..], &more, &head].concat(), "");
    assert_eq!(status, 0, "{error}");
    let config = &serde_json::from_str::<Value>(&out).unwrap()["config"];
    assert_eq!(config["seed"], 7);
    assert_eq!(config["head"]["hidden"], serde_json::json!([4]));
    assert_eq!(
        (&config["head"]["prior"], &config["head"]["feature_clip"]),
        (&true.into(), &4.5.into())
    );
    assert_eq!(config["optimiser"]["learning_rate"], 0.25);
    assert_eq!(config["optimiser"]["batch"], 16);
    assert_eq!(config["stages"][0]["strength"], "u=0.5");
    fs::write(path.join("c.toml"), "[head]\nwidth = 3\n").unwrap();
    let (status, _, error) =
        run(path, &[&TRAIN[..], &["--config", "c.toml", "--out", "n"]].concat(), "");
    assert_eq!(status, 2);
    assert!(error.contains("c.toml: ") && error.contains("unknown field `width`"), "{error}");
}

#[test]
fn curricula_and_warm_ups_are_stages() {
    let folder = Animals::new(120, 10);
    let path = folder.path();
    let (coarse, whole) = (&TRAIN[..10], &TRAIN[..]);
    let stages_of = |train: &[&str], out: &str, more: &[&str]| {
        let (status, out, error) =
            run(path, &[train, &["--json", "--out", out], more].concat(), "");
        assert_eq!(status, 0, "{error}");
        let run: Value = serde_json::from_str(&out).unwrap();
        let of = |stage: &Value| {
            let text = |key: &str| stage[key].as_str().unwrap().to_owned();
            (text("name"), text("strength"), text("rows"), stage["epochs"].as_u64().unwrap())
        };
        let stages = run["config"]["stages"].as_array().unwrap();
        stages.iter().map(of).collect::<Vec<_>>()
    };
    let stages = |out: &str, more: &[&str]| stages_of(whole, out, more);
    let stage = |name: &str, strength: &str, rows: &str, epochs| {
        (name.to_owned(), strength.to_owned(), rows.to_owned(), epochs)
    };
    assert_eq!(
        stages("a", &["--curriculum", "hard-to-soft=0.5", "--epochs", "5"]),
        [stage("hard", "hard", "all", 2), stage("soft", "u=0.5", "all", 3)]
    );
    assert_eq!(
        stages("b", &["--curriculum", "soft-to-hard=1", "--stage-epochs", "1,3", "--warm-up", "2"]),
        [
            stage("warm-up", "u=1", "most-specific", 2),
            stage("soft", "u=1", "all", 1),
            stage("hard", "hard", "all", 3)
        ]
    );
    assert_eq!(
        stages("c", &["--warm-up", "1", "--epochs", "2", "--strength", "scale=2"]),
        [stage("warm-up", "scale=2", "most-specific", 1), stage("train", "scale=2", "all", 2)]
    );
    // On its own where rows leave leaves open: with unlisted labels off none does.
    assert_eq!(stages("d", &["--epochs", "2"]), [stage("train", "given", "all", 2)]);
    assert_eq!(
        stages_of(coarse, "e", &["--epochs", "2"]),
        [stage("warm-up", "given", "most-specific", 1), stage("train", "given", "all", 2)]
    );
    assert_eq!(
        stages_of(coarse, "f", &["--epochs", "2", "--warm-up", "0"]),
        [stage("train", "given", "all", 2)]
    );
    // A model of soft relations has them in its graph, and the report has the stages.
    let graph = run(path, &["graph", "show", "a/graph.json"], "").1;
    assert!(graph.contains("[u=0.5]"), "{graph}");
    let graph = run(path, &["graph", "show", "b/graph.json"], "").1;
    assert!(!graph.contains("[u="), "{graph}");
    let report = fs::read_to_string(path.join("b/report.html")).unwrap();
    assert!(report.contains("warm-up from epoch 1, soft from epoch 3"), "no stages");
}

#[test]
fn learned_strengths_are_written_back() {
    let folder = Animals::new(200, 10);
    let path = folder.path();
    let learned = ["--strength", "u=1", "--learn-strengths", "relation"];
    let together = ["--strength-folds", "0", "--strength-rate", "0.2", "--strength-every", "1"];
    let more =
        [&learned[..], &together, &["--out", "m", "--epochs", "6"], &["--strength-prior", "0"]];
    let (status, _, error) = run(path, &[&TRAIN[..], &more.concat()].concat(), "");
    assert_eq!(status, 0, "{error}");
    assert_learned(path, "m");
    let more = [&learned[..], &["--out", "folds", "--epochs", "6"]].concat();
    let (status, _, error) = run(path, &[&TRAIN[..], &more].concat(), "");
    assert_eq!(status, 0, "{error}");
    assert_learned(path, "folds");
    let more = [&learned[..], &["--out", "other", "--strength-every", "1"]].concat();
    let (status, _, error) = run(path, &[&TRAIN[..], &more].concat(), "");
    assert!(status == 2 && error.contains("0 folds"), "{error}");
}

/// Every strength of the model's graph has moved from u = 1, and its report lists them.
fn assert_learned(path: &Path, model: &str) {
    let graph = run(path, &["graph", "show", &format!("{model}/graph.json")], "").1;
    let costs: Vec<f64> = graph
        .match_indices("[w=")
        .map(|(at, _)| graph[at + 3..].split(']').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(costs.len(), 6, "four hierarchy edges and two exclusions: {graph}");
    // They start at w = 4 u and moved, each its own way; those of parents that no row names hardly.
    assert!(costs.iter().all(|cost| (cost - 4.0).abs() > 1e-5), "{costs:?}");
    assert!(costs.iter().any(|cost| (cost - costs[0]).abs() > 1e-6), "{costs:?}");
    let report = fs::read_to_string(path.join(model).join("report.html")).unwrap();
    assert!(report.contains("Learned strengths") && report.contains("dog | cat"), "no strengths");
}

#[test]
fn what_cannot_be_used_is_named() {
    let folder = Animals::new(30, 5);
    let path = folder.path();
    let csv = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    csv("wolf.csv", "x,is\n1,dog\n2,wolf\n");
    csv("text.csv", "x,is\n1,dog\n2\n");
    csv("one.csv", "x,is\n1,dog\n");
    csv("both.csv", "x,dog,cat\n1,1,0\n2,1,1\n3,0,1\n");
    csv("empty.csv", "");
    csv("infinite.csv", "x,is\n1,dog\ninf,cat\n");
    let cases: [(&[&str], &str); 13] = [
        (
            &["train", "g.toml", "--data", "wolf.csv", "--label-column", "is"],
            "wolf.csv:3: column `is`: `wolf` is not a label",
        ),
        (
            &["train", "g.toml", "--data", "wolf.csv", "--label-column", "si"],
            "wolf.csv: no column is named `si`",
        ),
        (&["train", "g.toml", "--data", "text.csv", "--label-column", "is"], "text.csv:3"),
        (&["train", "g.toml", "--data", "one.csv", "--label-column", "is"], "two rows or more"),
        (
            &["train", "g.toml", "--data", "both.csv"],
            "row 1 (dog, cat) contradicts the hard relations",
        ),
        (&["train", "g.toml", "--data", "empty.csv", "--label-column", "is"], "empty.csv"),
        (
            &["train", "g.toml", "--data", "missing.csv", "--label-column", "is"],
            "missing.csv: cannot be read",
        ),
        (&["train", "g.toml"], "--data FILE is missing"),
        (
            &["train", "g.toml", "--data", "train.csv", "--label-column", "is", "--drop", "nose"],
            "no column is named `nose`",
        ),
        (
            &[
                "train",
                "g.toml",
                "--data",
                "train.csv",
                "--label-column",
                "is",
                "--learn-strengths",
                "kind",
            ],
            "every relation is hard",
        ),
        (
            &[
                "train",
                "g.toml",
                "--data",
                "train.csv",
                "--label-column",
                "is",
                "--strength-rate",
                "1",
            ],
            "are for strengths that are learned (--learn-strengths)",
        ),
        (
            &["train", "g.toml", "--data", "train.csv", "--label-column", "is", "--hidden", "4,x"],
            "write widths such as `500,500`",
        ),
        (
            &[
                "train",
                "g.toml",
                "--data",
                "train.csv",
                "--label-column",
                "is",
                "--validation-fraction",
                "0.2",
                "--epochs",
                "0",
            ],
            "stages: one stage with one epoch is needed (--epochs)",
        ),
    ];
    for (arguments, expected) in cases {
        let (status, out, error) = run(path, &[arguments, &["--out", "m"]].concat(), "");
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert_eq!(out, "");
        assert!(!path.join("m").exists() && !path.join("m.checkpoint").exists(), "{arguments:?}");
    }
    let base = [&TRAIN[..], &["--out", "m", "--report"]].concat();
    for (report, expected) in
        [("m/page.html", "the report is `report.html`"), ("no/page.html", "there is no folder no")]
    {
        let (status, _, error) = run(path, &[&base[..], &[report]].concat(), "");
        assert_eq!(status, 2);
        assert!(error.contains(expected), "{error}");
        assert!(!path.join("m").exists());
    }
    // A cell that is not a number turns a column into categories, with a note.
    let most = ["--data", "infinite.csv", "--label-column", "is", "--out", "i", "--epochs", "1"];
    let (status, _, error) = run(path, &[&["train", "g.toml"], &most[..]].concat(), "");
    assert_eq!(status, 0);
    assert!(
        error.contains("column `x` is read as categories, because `inf` is not a number"),
        "{error}"
    );
    // New data without a column of the training data, and folders that are not models.
    assert_eq!(run(path, &[&TRAIN[..], &["--out", "m", "--epochs", "1"]].concat(), "").0, 0);
    let cases: [(&[&str], &str); 5] = [
        (&["predict", "m", "--data", "one.csv", "--out", "p.csv"], "one.csv: "),
        (
            &["predict", "nothing", "--data", "test.csv", "--out", "p.csv"],
            "nothing: there is no such folder",
        ),
        (
            &["predict", "m", "--data", "test.csv", "--out", "p.npy", "--decide", "best"],
            "p.npy: label sets",
        ),
        (
            &["predict", "m", "--data", "test.csv", "--out", "p.csv", "--decide", "best=size"],
            "`size`",
        ),
        (&["eval", "m", "--data", "test.csv", "--leave-out", "tail"], "`tail`"),
    ];
    for (arguments, expected) in cases {
        let (status, _, error) = run(path, arguments, "");
        assert_eq!(status, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(!path.join("p.csv").exists() && !path.join("p.npy").exists());
    }
}

#[test]
fn arff_files_are_graph_and_data_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let header = "@relation genes\n@attribute size numeric\n@attribute kind {a,b}\n\
                  @attribute class hierarchical 1,1/1,1/2,2\n@data\n";
    let rows = |count: usize| {
        let class = |at: usize| ["1/1", "1/2", "2", "1/1@2"][at % 4];
        let size = |at: usize| [1.0, 2.0, -3.0, -1.0][at % 4] + 0.01 * (at % 7) as f64;
        let kind = |at: usize| if at.is_multiple_of(2) { "a" } else { "b" };
        (0..count)
            .map(|at| format!("{},{},{}\n", size(at), kind(at), class(at)))
            .collect::<String>()
    };
    fs::write(path.join("train.arff"), format!("{header}{}", rows(80))).unwrap();
    fs::write(path.join("valid.arff"), format!("{header}{}", rows(20))).unwrap();
    let (status, out, error) = run(
        path,
        &[
            "train",
            "train.arff",
            "--data",
            "train.arff",
            "--valid",
            "valid.arff",
            "--epochs",
            "60",
            "--learning-rate",
            "0.05",
            "--metric",
            "au-prc",
            "--out",
            "m",
            "--json",
            "--loss",
            "marginal",
            "--hidden",
            "16",
        ],
        "",
    );
    assert_eq!(status, 0, "{error}");
    let run_json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&run_json["labels"], &run_json["features"]), (&4.into(), &3.into()));
    let (status, out, error) = run(path, &["eval", "m", "--data", "valid.arff", "--json"], "");
    assert_eq!(status, 0, "{error}");
    let evaluation: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(evaluation["counts"]["known"], 80, "the attribute lists all labels of a row");
    assert!(evaluation["average_precision"]["micro"].as_f64().unwrap() > 0.95, "{out}");
    let predict = ["predict", "m", "--data", "valid.arff", "--out", "p.parquet"];
    assert_eq!(run(path, &predict, "").0, 0);
    let eval = [
        "eval",
        "--graph",
        "train.arff",
        "--probabilities",
        "p.parquet",
        "--data",
        "valid.arff",
        "--json",
    ];
    let (status, again, error) = run(path, &eval, "");
    assert_eq!(status, 0, "{error}");
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["average_precision"]["micro"], evaluation["average_precision"]["micro"]);
}
