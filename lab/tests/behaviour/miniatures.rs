//! The built-in experiments: descriptions, miniatures on generated data, resuming.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lab::{Error, Experiment, Findings, JobQueue, Journal, NoProgress};

fn run(name: &str, journal: &Path, resume: bool) -> Findings {
    let experiment = Experiment::load(name, true).unwrap();
    let stop = AtomicBool::new(false);
    let journal = Journal::open(journal, resume).unwrap();
    let queue = JobQueue::new(journal, 2, &NoProgress, &stop);
    experiment.run(Path::new("there is no such folder"), &queue).unwrap()
}

#[test]
fn every_description_is_well_formed() {
    for name in Experiment::names() {
        for quick in [false, true] {
            assert_eq!(Experiment::load(name, quick).unwrap().name(), name);
        }
    }
    let unknown = Experiment::load("imagnet", false).unwrap_err().to_string();
    assert!(unknown.contains("imagenet, cifar100"), "{unknown}");
    let text = "kind = \"speed\"\ntitle = \"\"\ngraphs = []\nu = 1\nrows = 1\nsecond = 1";
    let wrong = Experiment::parse("mine", text, false).unwrap_err().to_string();
    assert!(wrong.contains("mine") && wrong.contains("second"), "{wrong}");
}

#[test]
fn a_full_run_needs_its_data_and_a_miniature_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for name in Experiment::names() {
        let stop = AtomicBool::new(false);
        let journal = Journal::open(&folder.path().join(name), false).unwrap();
        let queue = JobQueue::new(journal, 1, &NoProgress, &stop);
        let full = Experiment::load(name, false).unwrap();
        let error = full.run(folder.path(), &queue).unwrap_err();
        assert!(matches!(error, Error::NoData { .. }), "{name}: {error}");
        let findings = run(name, &folder.path().join(format!("{name}.jsonl")), false);
        assert!(findings.tables.iter().all(|table| !table.rows.is_empty()), "{findings:?}");
        for table in &findings.tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
        }
        assert!(findings.page().markdown().contains("--quick"));
    }
}

/// The findings do not depend on which runs were done earlier.
#[test]
fn a_resumed_run_finds_what_an_uninterrupted_one_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.jsonl");
    let whole = run("cifar100", &path, false);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let resumed = run("cifar100", &path, true);
    assert_eq!(whole.tables, resumed.tables);
    assert_eq!(whole.figures, resumed.figures);
}

/// The error of a well-formed description.
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let journal = Journal::open(&folder.path().join("runs"), false).unwrap();
    let queue = JobQueue::new(journal, 1, &NoProgress, &stop);
    let experiment = Experiment::parse("mine", text, false).unwrap();
    experiment.run(folder.path(), &queue).unwrap_err().to_string()
}

const FEW_ROWS: &str = "kind = \"relabelled\"\ntitle = \"few rows\"\ndata = \"generated\"\nrows-a-class = 50\n\
                        relabelled = [0.5, 0.99]\nstrengths = [1.0]\nseeds = 1\nepochs = 1\nbatch = 8\n\
                        learning-rates = [0.1]\n[[methods]]\ngroup = \"g\"\nname = \"HEX\"\nrelations = \"hard\"";

#[test]
fn a_description_that_leaves_no_fine_row_is_refused() {
    let refused = refusal(FEW_ROWS);
    assert!(refused.contains("few rows") && refused.contains("rows-a-class"), "{refused}");
}

#[test]
fn every_method_has_the_same_number_of_trials() {
    let refused = refusal(&format!("{FEW_ROWS}\nlearning-rates = [0.1, 0.2]"));
    assert!(refused.contains("same trials"), "{refused}");
}

#[test]
fn learning_rates_that_are_none_are_refused_before_anything_runs() {
    let refused = refusal(&FEW_ROWS.replace("[0.5, 0.99]", "[0.5]").replace("[0.1]", "[-0.1]"));
    assert!(refused.contains("`learning-rates` must be above 0"), "{refused}");
}
