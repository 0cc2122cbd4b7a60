//! What a run leaves: the bundle with its card, the report, and `run.json`.

use std::path::{Path, PathBuf};

use phex::infer::Plan;
use phex::metrics::Evaluation;
use phex_io::{ModelCard, write_bundle, write_text};
use phex_train::{Config, Metric, ObjectiveConfig, RowChoice};
use serde::Serialize;

use super::{Job, Place, Trained};
use crate::{output, pages};

/// The files that a run read.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Inputs<'a> {
    pub(crate) graph: &'a Path,
    pub(crate) data: &'a [PathBuf],
    #[serde(skip_serializing_if = "<[PathBuf]>::is_empty")]
    pub(crate) validation: &'a [PathBuf],
}

/// What is wanted beside the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) report: bool,
    /// Where the report goes, if not into the folder of the model.
    pub(crate) report_file: Option<&'a Path>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// What a run did.
#[derive(Serialize)]
struct Run<'a> {
    version: &'static str,
    command: &'static str,
    seed: u64,
    fingerprint: &'a str,
    inputs: Inputs<'a>,
    rows: usize,
    validation_rows: usize,
    features: usize,
    labels: usize,
    epochs: usize,
    best_epoch: Option<usize>,
    seconds: f64,
    /// Where the engine ran.
    device: String,
    notes: Vec<String>,
    /// Where relations take part.
    plan: Option<&'a Plan>,
    config: &'a Config,
    /// On the validation rows.
    validation: Option<&'a Evaluation>,
}

/// Writes all of it, `run.json` last: where it is, the rest is.
pub(crate) fn write(
    place: &Place,
    job: &Job<'_>,
    trained: &Trained,
    inputs: &Inputs<'_>,
    wanted: &Wanted<'_>,
) -> anyhow::Result<()> {
    let Trained { model, fingerprint, plan, evaluation, validation_rows } = trained;
    let training = &job.sets.training;
    let mut notes = job.sets.notes.clone();
    if let Some(plan) = plan.as_ref().filter(|plan| plan.approximate) {
        notes.push(format!(
            "no exact engine takes the graph within the budget: losses and probabilities are those \
             of `{}`, which is approximate",
            plan.method
        ));
    }
    if let Some(first) =
        job.config.stages.first().filter(|stage| stage.rows == RowChoice::MostSpecific)
    {
        notes.push(format!(
            "the first {} epochs were on the rows that know a leaf alone (--warm-up 0 leaves them out)",
            first.epochs
        ));
    }
    notes.extend(evaluation.as_ref().and_then(pages::one_sided));
    if evaluation.is_none() {
        notes.push(String::from(
            "there are no validation data, so the last epoch was kept and nothing was measured",
        ));
    }
    let run = Run {
        version: env!("CARGO_PKG_VERSION"),
        command: "train",
        seed: job.config.seed,
        fingerprint,
        inputs: *inputs,
        rows: training.rows() - if job.sets.validation.is_none() { *validation_rows } else { 0 },
        validation_rows: *validation_rows,
        features: training.features.columns,
        labels: job.graph.len(),
        epochs: model.history.len(),
        best_epoch: model.best_epoch,
        seconds: model.history.iter().map(|record| record.seconds).sum(),
        device: job.device.name(),
        notes,
        plan: plan.as_ref(),
        config: &job.config,
        validation: evaluation.as_ref(),
    };
    let mut bundle = model.to_bundle(card(place, &run, job).markdown(&model.graph))?;
    job.sets.labels.remember(&mut bundle.config)?;
    place.clear()?;
    write_bundle(&place.folder, &bundle)?;
    let title = place.folder.file_name().unwrap_or_default().to_string_lossy();
    if wanted.report {
        let path = wanted.report_file.map_or_else(|| place.report_file(), Path::to_owned);
        let subtitle = describe(&run);
        let page = pages::training(&title, &subtitle, trained, &run.notes)?;
        write_text(&path, &page.html())?;
    }
    let text = serde_json::to_string_pretty(&run)? + "\n";
    write_text(&place.run_file(), &text)?;
    place.forget()?;
    if wanted.json {
        output::text(&text)?;
    }
    if !wanted.quiet {
        run.notes.iter().for_each(|note| eprintln!("phex: {note}"));
        eprintln!("{}{}", describe(&run), measured(&run));
        eprintln!("written to {}", place.folder.display());
    }
    Ok(())
}

/// "600 rows, 12 features, 9 labels; 30 epochs in 2.1 s, the best is 24".
fn describe(run: &Run<'_>) -> String {
    let best = run.best_epoch.map_or(String::new(), |best| format!(", the best is {best}"));
    format!(
        "{} rows, {} features, {} labels; {} epoch{} in {:.1} s{best}",
        run.rows,
        run.features,
        run.labels,
        run.epochs,
        if run.epochs == 1 { "" } else { "s" },
        run.seconds
    )
}

/// The results that are told at the end.
fn measured(run: &Run<'_>) -> String {
    let Some(evaluation) = run.validation else { return String::new() };
    let shown = [
        ("AU(PRC)", evaluation.average_precision.micro),
        ("F1", evaluation.f1.micro),
        ("calibration error", evaluation.calibration_error),
    ];
    let mut text = format!("\nvalidation ({} rows)", run.validation_rows);
    for (name, value) in shown {
        if let Some(value) = value {
            text.push_str(&format!(", {name} {value:.4}"));
        }
    }
    if let Some(top) = evaluation.classes.as_ref().and_then(|classes| classes.top.first())
        && let Some(accuracy) = top.accuracy
    {
        text.push_str(&format!(", accuracy {accuracy:.4}"));
    }
    text
}

fn card(place: &Place, run: &Run<'_>, job: &Job<'_>) -> ModelCard {
    let config = &job.config;
    let objective = match config.objective {
        ObjectiveConfig::Relations { loss } => {
            format!("the {} loss of the observed labels under their relations", loss.name())
        }
        ObjectiveConfig::Independent => String::from("each label on its own (a baseline)"),
        ObjectiveConfig::Softmax { .. } => String::from("a softmax over the leaves (a baseline)"),
        ObjectiveConfig::MaxConstraint => {
            String::from("the largest sigmoid below each label (a baseline)")
        }
    };
    let head = match config.head.hidden.as_slice() {
        [] => String::from("A linear head"),
        hidden => format!("A head with hidden layers of {hidden:?}"),
    };
    let stages: Vec<String> = config
        .stages
        .iter()
        .map(|stage| {
            format!("{} ({} epochs, strength {})", stage.name, stage.epochs, stage.strength)
        })
        .collect();
    let kept = match (run.best_epoch, config.validation.metric) {
        (Some(best), metric) => {
            format!(" The weights of epoch {best} had the best {}.", name(metric))
        }
        (None, _) => String::new(),
    };
    let evaluation = run.validation.map_or(Vec::new(), |evaluation| {
        phex_report::main_metrics(evaluation)
            .into_iter()
            .filter(|metric| metric.value.mean.is_finite())
            .map(|metric| phex_io::Evaluation {
                data: String::from("validation"),
                measure: metric.name,
                value: metric.value.mean,
            })
            .collect()
    });
    let title = place.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ModelCard {
        title,
        tags: Vec::new(),
        uses: String::from(
            "`phex predict` gives a probability for each label, or label sets; `phex eval` tells \
             how good they are on other data.",
        ),
        training: format!(
            "{head} over {} features, trained on {} rows by {objective}. Stages: {}.{kept} Seed {}. \
             `config.json` has all settings and what became of each epoch.",
            run.features,
            run.rows,
            stages.join(", "),
            run.seed
        ),
        evaluation,
        limits: run.notes.iter().map(|note| format!("- {note}\n")).collect(),
    }
}

fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Loss => "loss",
        Metric::Accuracy => "accuracy",
        Metric::AuPrc => "AU(PRC)",
    }
}
