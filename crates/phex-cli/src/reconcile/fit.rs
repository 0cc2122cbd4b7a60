//! `--fit`: how far each level can be trusted, from labelled rows that the classifier has not seen.

use std::path::PathBuf;

use anyhow::bail;
use phex::graph::RelationGraph;
use phex::infer::{Evidence, Number};
use phex::reconcile::{
    FinishedRows, FitOptions, FittedReconciler, ReconcileOptions, Reconciled, Reconciler, fit,
};
use phex_io::ScoreValues;

use super::table::{explain_table, next_rows, open};
use crate::args::ReconcileCommand;
use crate::data::label_settings;
use crate::{data, train};

/// A reconciler, fitted or not.
pub(super) enum Compiled {
    Plain(Reconciler),
    Fitted(FittedReconciler),
}

impl Compiled {
    /// The reconciler, with fitted weights if it is fitted.
    pub(super) fn reconciler(&self) -> &Reconciler {
        match self {
            Compiled::Plain(reconciler) => reconciler,
            Compiled::Fitted(fitted) => fitted.reconciler(),
        }
    }

    pub(super) fn run<T: Number>(
        &self,
        rows: FinishedRows<'_, T>,
    ) -> Result<Reconciled<T>, phex::Error> {
        match self {
            Compiled::Plain(reconciler) => reconciler.run(rows),
            Compiled::Fitted(fitted) => fitted.run(rows),
        }
    }
}

/// Fits on the held-out rows.
pub(super) fn fitted(
    command: &ReconcileCommand,
    graph: &RelationGraph,
    options: ReconcileOptions,
) -> anyhow::Result<FittedReconciler> {
    let labels = &command.labels;
    if labels.label_column.is_none() && labels.label_file.is_empty() {
        bail!("--fit needs the labels of its rows: --label-column COLUMN or --label-file FILE");
    }
    let is_logits = command.probabilities.is_none();
    let values = values(command, graph)?;
    let truths = truths(command, graph)?;
    let (rows, found) = (truths.len() / graph.len(), values.len() / graph.len());
    if rows != found {
        bail!("--fit has {found} rows of probabilities, and the labels have {rows}");
    }
    let options = FitOptions { reconcile: options, ..FitOptions::default() };
    let rows = match is_logits {
        true => FinishedRows::Logits(&values),
        false => FinishedRows::Probabilities(&values),
    };
    fit(graph, rows, &truths, &options).map_err(|error| explain_table(error, &shown(&command.fit)))
}

/// The probabilities or logits of the held-out rows.
fn values(command: &ReconcileCommand, graph: &RelationGraph) -> anyhow::Result<Vec<f64>> {
    let column =
        command.labels.label_column.iter().filter(|_| command.labels.label_file.is_empty());
    let label: Vec<String> = column.cloned().collect();
    let keep: Vec<String> = label.iter().chain(&command.keep).cloned().collect();
    let mut values = Vec::new();
    for path in &command.fit {
        // The held-out rows may have the kept columns of the others, but need not.
        let mut reader = match open(path, None, command, graph, &keep) {
            Ok(reader) => reader,
            Err(_) if !command.keep.is_empty() => open(path, None, command, graph, &label)?,
            Err(error) => return Err(error),
        };
        while let Some(rows) = next_rows(&mut reader, 4096)? {
            crate::interrupt::check()?;
            match rows.values {
                ScoreValues::F32(block) => values.extend(block.into_iter().map(f64::from)),
                ScoreValues::F64(block) => values.extend(block),
            }
        }
    }
    Ok(values)
}

/// The labels of the held-out rows.
fn truths(command: &ReconcileCommand, graph: &RelationGraph) -> anyhow::Result<Vec<Evidence>> {
    let settings = label_settings(&command.labels)?;
    let targets = settings.target_options(&command.fit, &command.labels.label_file);
    let options = phex_io::DatasetOptions {
        features: Some(Vec::new()),
        targets: Some(targets.map_err(train::with_flag)?),
        ..phex_io::DatasetOptions::default()
    };
    let data = phex_io::read_dataset(&command.fit, &options, Some(graph))?;
    let targets = data::targets(&data)?;
    Ok((0..targets.rows()).flat_map(|row| targets.evidence(row)).collect())
}

/// The names of files.
fn shown(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}
