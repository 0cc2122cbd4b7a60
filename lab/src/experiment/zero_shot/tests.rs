use std::sync::atomic::AtomicBool;

use crate::Experiment;
use crate::harness::{JobQueue, Journal, NoProgress};

/// The miniature of an experiment on generated data: it learns, and what is resumed is the same.
#[test]
fn a_miniature_runs_and_resumes_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let stop = AtomicBool::new(false);
    let experiment = Experiment::load("cub", true).unwrap();
    let run = |resume: bool| {
        let journal = Journal::open(&path, resume).unwrap();
        let queue = JobQueue::new(journal, 2, &NoProgress, &stop);
        experiment.run(folder.path(), &queue).unwrap()
    };
    let whole = run(false);
    assert!(whole.data.contains("Generated"), "{}", whole.data);
    let text = whole.page().markdown();
    for name in
        ["HEX", "constant, u = 0.1", "variable (linear)", "recipe", "learned", "DAP", "ESZSL"]
    {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    // Better than chance among six or seven unseen classes.
    let hex = &whole.figures[0].panels[0].series.iter().find(|one| one.name == "HEX").unwrap();
    assert!(hex.points[0].1.mean > 0.25, "{text}");
    // Half of the runs are lost.
    let lines = std::fs::read_to_string(&path).unwrap();
    let count = lines.lines().count();
    let half: Vec<&str> = lines.lines().take(count / 2).collect();
    std::fs::write(&path, half.join("\n") + "\n").unwrap();
    let again = run(true);
    assert_eq!((&again.tables, &again.figures), (&whole.tables, &whole.figures));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), count);
}

#[test]
fn settings_out_of_range_are_refused() {
    let text = include_str!("../../../experiments/apy.toml");
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let refused = |from: &str, to: &str, field: &str| {
        assert!(text.contains(from), "{from}");
        let journal = Journal::open(&folder.path().join("runs.jsonl"), false).unwrap();
        let queue = JobQueue::new(journal, 1, &NoProgress, &stop);
        let experiment = Experiment::parse("apy", &text.replace(from, to), false).unwrap();
        let error = experiment.run(folder.path(), &queue).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    };
    refused("folds = 5", "folds = 2", "folds");
    refused("validations = ", "validations = 9 #", "validations");
    refused("detector_area = 0.8", "detector_area = 1.5", "detector_area");
    refused("batch = ", "batch = 0 #", "batch");
}
