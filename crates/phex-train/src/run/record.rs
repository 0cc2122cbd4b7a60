//! What `run.json` says about a finished run.

use std::path::{Path, PathBuf};

use phex::infer::Plan;
use phex::metrics::Evaluation;
use serde::{Serialize, Serializer};

use crate::Error;
use crate::compare::Comparison;
use crate::config::{Config, RowChoice};
use crate::trainer::TrainedRun;

/// The files that a run read.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RunInputs<'a> {
    /// The graph.
    #[serde(serialize_with = "shown")]
    pub graph: &'a Path,
    /// The tables of training rows.
    #[serde(serialize_with = "all_shown")]
    pub data: &'a [PathBuf],
    /// The tables of validation rows.
    #[serde(skip_serializing_if = "<[PathBuf]>::is_empty", serialize_with = "all_shown")]
    pub validation: &'a [PathBuf],
}

/// A path as messages show it: JSON has no way to write one that is not Unicode.
fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn all_shown<S: Serializer>(paths: &&[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.display().to_string()))
}

/// What a run did.
#[derive(Debug, Clone, Serialize)]
pub struct RunRecord<'a> {
    /// The version of phex.
    pub version: &'static str,
    /// What started the run.
    pub command: &'a str,
    /// The seed.
    pub seed: u64,
    /// Which run it was.
    pub fingerprint: &'a str,
    /// The files that it read, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<RunInputs<'a>>,
    /// Rows that were trained on.
    pub rows: usize,
    /// Rows that were validated on.
    pub validation_rows: usize,
    /// Features.
    pub features: usize,
    /// Labels.
    pub labels: usize,
    /// Epochs that were run.
    pub epochs: usize,
    /// The epoch whose weights were kept, if validation chose one.
    pub best_epoch: Option<usize>,
    /// Seconds of training.
    pub seconds: f64,
    /// The device of the engine.
    pub device: String,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// The plan of the engine, if the objective has relations.
    pub plan: Option<&'a Plan>,
    /// The settings.
    pub config: &'a Config,
    /// On the validation rows.
    pub validation: Option<&'a Evaluation>,
    /// The model beside what it has to beat.
    pub comparison: Option<&'a Comparison>,
    /// What is wrong with the model and what to try, if it does not beat the baselines.
    pub verdict: Option<String>,
}

impl<'a> RunRecord<'a> {
    /// The record of a run. `notes` come first, then those about the run itself.
    pub fn new(
        run: &'a TrainedRun,
        command: &'a str,
        inputs: Option<RunInputs<'a>>,
        device: String,
        mut notes: Vec<String>,
    ) -> RunRecord<'a> {
        let model = &run.model;
        notes.extend(own_notes(run));
        RunRecord {
            version: env!("CARGO_PKG_VERSION"),
            command,
            seed: model.config.seed,
            fingerprint: &run.fingerprint,
            inputs,
            rows: run.rows,
            validation_rows: run.validation_rows,
            features: model.head.inputs(),
            labels: model.graph.len(),
            epochs: model.history.len(),
            best_epoch: model.best_epoch,
            seconds: model.seconds(),
            device,
            notes,
            plan: run.plan.as_ref(),
            config: &model.config,
            validation: run.evaluation.as_ref(),
            comparison: run.comparison.as_ref(),
            verdict: run.comparison.as_ref().and_then(Comparison::verdict),
        }
    }

    /// The text of `run.json`.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Error::Model { message: error.to_string() })
    }
}

fn own_notes(run: &TrainedRun) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(plan) = run.plan.as_ref().filter(|plan| plan.approximate) {
        notes.push(format!(
            "no exact engine can handle the graph within the budget: losses and probabilities are \
             those of `{}`, which is approximate",
            plan.method
        ));
    }
    let first = run.model.config.stages.first();
    if let Some(first) = first.filter(|stage| stage.rows == RowChoice::MostSpecific) {
        notes.push(format!(
            "the first {} epochs used only the rows labelled with a leaf; a warm-up of 0 epochs leaves \
             them out",
            first.epochs
        ));
    }
    notes.extend(run.moves.iter().cloned());
    if run.trained_again {
        notes.push(format!(
            "after the measurement the model was trained once more on all {} rows, for as many epochs",
            run.rows + run.validation_rows
        ));
    }
    notes.extend(run.evaluation.as_ref().and_then(Evaluation::lacks_negatives).map(String::from));
    notes.extend(run.comparison.iter().flat_map(|comparison| comparison.signs.iter().cloned()));
    if run.evaluation.is_none() {
        notes.push(String::from(
            "there are no validation data, so the last epoch was kept and nothing was measured",
        ));
    }
    notes
}
