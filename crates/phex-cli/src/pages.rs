//! From results to the pieces of a report.

use phex::graph::RelationGraph;
use phex::learn::Strengths;
use phex::metrics::{Evaluation, Reliability};
use phex_train::{
    EpochRecord, Headline, Metric as Chosen, StrengthConfig, TrainedModel, TrainedRun, headlines,
};
use serde_json::Value;

use crate::report::{
    Bin, Curves, Epoch, GraphPicture, LabelRow, LabelTable, Measured, Metric, ReliabilityDiagram,
    Report, Section, Settings, Stage, Summary, Warnings,
};

/// More learned strengths than this are not listed.
const LISTED: usize = 60;

fn summary(evaluation: &Evaluation) -> Summary {
    let metric = |line: Headline| Metric {
        name: line.name,
        value: Measured { mean: line.value, deviation: None },
        meaning: line.meaning.to_owned(),
    };
    Summary { metrics: headlines(evaluation).into_iter().map(metric).collect() }
}

/// Results, calibration, labels and the graph.
fn sections(graph: &RelationGraph, evaluation: &Evaluation, notes: &[String]) -> Vec<Section> {
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let counts = &evaluation.counts;
    let counted = format!(
        "{} rows and {} labels: {} pairs whose truth is known, {} of them on; {} of unknown truth \
         are left out.",
        counts.rows, counts.labels, counts.known, counts.positives, counts.unknown
    );
    let diagram = reliability("All labels", &evaluation.reliability);
    let mut rows = Vec::with_capacity(evaluation.labels.len());
    for label in &evaluation.labels {
        let id = graph.id(&label.name);
        let title = id.and_then(|id| graph.label(id).short_title()).map(str::to_owned);
        rows.push(LabelRow {
            name: label.name.clone(),
            title: title.filter(|title| *title != label.name),
            support: label.support,
            average_precision: of(label.average_precision),
            precision: of(label.precision),
            recall: of(label.recall),
            f1: of(label.f1),
        });
    }
    let values = f1(graph, evaluation);
    let picture = GraphPicture { graph, metric: String::from("F1"), values: &values };
    vec![
        Section::new("Results")
            .with(&Warnings { messages: notes.to_vec() })
            .with(&summary(evaluation))
            .text(&counted),
        Section::new("Calibration").with(&diagram),
        Section::new("Labels").with(&LabelTable { rows }),
        Section::new("Graph").with(&picture),
    ]
}

/// How often labels of a probability are on.
pub(crate) fn reliability(name: &str, reliability: &Reliability) -> ReliabilityDiagram {
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let bins = reliability.bins.iter().map(|bin| Bin {
        range: (bin.low, bin.high),
        mean_predicted: of(bin.predicted),
        observed: of(bin.observed),
        count: bin.count,
    });
    ReliabilityDiagram {
        name: name.to_owned(),
        bins: bins.collect(),
        expected_calibration_error: of(reliability.expected_error()),
    }
}

/// F1 of each label; NaN where there is none.
pub(crate) fn f1(graph: &RelationGraph, evaluation: &Evaluation) -> Vec<f64> {
    let mut values = vec![f64::NAN; graph.len()];
    for label in &evaluation.labels {
        if let (Some(id), Some(f1)) = (graph.id(&label.name), label.f1) {
            values[id.index()] = f1;
        }
    }
    values
}

/// The page of an evaluation.
pub(crate) fn evaluation(
    title: &str,
    subtitle: &str,
    graph: &RelationGraph,
    evaluation: &Evaluation,
    notes: &[String],
) -> Report {
    let sections = sections(graph, evaluation, notes);
    Report { title: title.to_owned(), subtitle: subtitle.to_owned(), sections }
}

/// The page of a training.
pub(crate) fn training(
    title: &str,
    subtitle: &str,
    run: &TrainedRun,
    notes: &[String],
) -> anyhow::Result<Report> {
    let model = &run.model;
    let curves = Section::new("Training").with(&curves(model));
    let mut all = match &run.evaluation {
        Some(evaluation) => sections(&model.graph, evaluation, notes),
        None => {
            let values = vec![f64::NAN; model.graph.len()];
            let metric = String::from("F1");
            let picture = GraphPicture { graph: &model.graph, metric, values: &values };
            vec![
                Section::new("Results").with(&Warnings { messages: notes.to_vec() }),
                Section::new("Graph").with(&picture),
            ]
        }
    };
    all.insert(1, curves);
    if let Some(strengths) = strengths(model) {
        all.push(strengths);
    }
    all.push(Section::new("Settings").with(&settings(&serde_json::to_value(&model.config)?)));
    Ok(Report { title: title.to_owned(), subtitle: subtitle.to_owned(), sections: all })
}

/// Losses, the metric and the learning rate by epoch.
pub(crate) fn curves(model: &TrainedModel) -> Curves {
    // The loss has a panel in any case.
    let metric = model.config.validation.metric;
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let epoch = |record: &EpochRecord| Epoch {
        training_loss: record.training_loss,
        validation_loss: of(record.validation_loss),
        metric: of(record.validation_metric.filter(|_| metric != Chosen::Loss)),
        learning_rate: record.learning_rate,
    };
    let mut stages: Vec<Stage> = Vec::new();
    for record in &model.history {
        if stages.last().is_none_or(|stage| stage.name != record.stage) {
            stages.push(Stage { name: record.stage.clone(), first_epoch: record.epoch });
        }
    }
    if stages.len() == 1 {
        stages.clear();
    }
    Curves {
        epochs: model.history.iter().map(epoch).collect(),
        metric: metric.name().to_owned(),
        stages,
        best: model.best_epoch,
    }
}

/// The strengths that were learned.
fn strengths(model: &TrainedModel) -> Option<Section> {
    let StrengthConfig::Learned { tie, .. } = model.config.strengths else { return None };
    let epoch = model.best_epoch.unwrap_or(model.history.len());
    let record = model.history.iter().find(|record| record.epoch == epoch)?;
    let learned = Strengths::new(model.graph.clone(), tie).ok()?;
    let names = learned.names().iter().zip(&record.strengths);
    let entries: Vec<(String, String)> =
        names.take(LISTED).map(|(name, value)| (name.clone(), format!("{value:.4}"))).collect();
    let what = match tie {
        phex::learn::Tie::Relation => "The cost w of each relation",
        _ => "Factors on the given costs",
    };
    let more = record.strengths.len().saturating_sub(entries.len());
    let more = if more > 0 { format!("; {more} more are in `graph.json`") } else { String::new() };
    let text = format!("{what}, as they were learned by epoch {epoch}{more}.");
    Some(Section::new("Learned strengths").text(&text).with(&Settings { entries }))
}

/// Settings as keys with points and values.
pub(crate) fn settings(value: &Value) -> Settings {
    let mut entries = Vec::new();
    flatten("", value, &mut entries);
    Settings { entries }
}

fn flatten(key: &str, value: &Value, entries: &mut Vec<(String, String)>) {
    let join = |part: &str| if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(part, value)| flatten(&join(part), value, entries));
        }
        Value::Array(parts) if parts.iter().any(Value::is_object) => {
            for (at, value) in parts.iter().enumerate() {
                flatten(&join(&(at + 1).to_string()), value, entries);
            }
        }
        Value::Null => {}
        Value::String(text) => entries.push((key.to_owned(), text.clone())),
        other => entries.push((key.to_owned(), other.to_string())),
    }
}
