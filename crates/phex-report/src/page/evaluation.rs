//! The pages of an evaluation and of a training.

use phex::graph::RelationGraph;
use phex::metrics::{Evaluation, Headline, Spread};

use super::{
    GraphPicture, LabelRow, LabelTable, MethodTable, MetricTable, MetricValue, Page,
    ReliabilityDiagram, Section, SettingsTable, TrainingCurves, Warnings,
};

/// The metrics that matter most; NaN where a metric is not defined.
fn main_metrics(evaluation: &Evaluation) -> Vec<MetricValue> {
    let metric = |line: Headline| MetricValue {
        name: line.name,
        value: Spread::single(line.value),
        meaning: line.meaning.to_owned(),
    };
    evaluation.headlines().into_iter().map(metric).collect()
}

/// The F1 of each label of a graph; NaN for labels without one.
pub fn f1_by_label(graph: &RelationGraph, evaluation: &Evaluation) -> Vec<f64> {
    let mut values = vec![f64::NAN; graph.len()];
    for label in &evaluation.labels {
        if let (Some(id), Some(f1)) = (graph.id(&label.name), label.f1) {
            values[id.index()] = f1;
        }
    }
    values
}

/// Results, calibration, labels and the graph.
fn sections(
    graph: &RelationGraph,
    evaluation: &Evaluation,
    comparison: Option<&MethodTable>,
    notes: &[String],
) -> Vec<Section> {
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let counts = &evaluation.counts;
    let counted = format!(
        "{} rows and {} labels: {} pairs with a known label, {} of them on; {} pairs without one are \
         left out.",
        counts.rows, counts.labels, counts.known, counts.positives, counts.unknown
    );
    let diagram = ReliabilityDiagram::new("All labels", &evaluation.reliability);
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
    let values = f1_by_label(graph, evaluation);
    let picture = GraphPicture { graph, metric: String::from("F1"), values: &values };
    let mut results = Section::new("Results")
        .with(&Warnings { messages: notes.to_vec() })
        .with(&MetricTable { metrics: main_metrics(evaluation) })
        .text(&counted);
    if let Some(comparison) = comparison {
        results = results.text("The model compared with what it has to beat:").with(comparison);
    }
    vec![
        results,
        Section::new("Calibration").with(&diagram),
        Section::new("Labels").with(&LabelTable { rows }),
        Section::new("Graph").with(&picture),
    ]
}

/// The page of an evaluation, with the model beside what it has to beat. The notes are warnings above the results.
pub fn evaluation_page(
    title: &str,
    subtitle: &str,
    graph: &RelationGraph,
    evaluation: &Evaluation,
    comparison: Option<&MethodTable>,
    notes: &[String],
) -> Page {
    let sections = sections(graph, evaluation, comparison, notes);
    Page { title: title.to_owned(), subtitle: subtitle.to_owned(), sections }
}

/// What the page of a training shows.
#[derive(Debug, Clone)]
pub struct TrainingContent<'t> {
    /// The graph that was trained through.
    pub graph: &'t RelationGraph,
    /// The course of the training.
    pub curves: TrainingCurves,
    /// Results on validation rows, if there are any.
    pub evaluation: Option<&'t Evaluation>,
    /// The model beside what it has to beat.
    pub comparison: Option<MethodTable>,
    /// Learned strengths by name, and a sentence about them, if strengths were learned.
    pub strengths: Option<(String, SettingsTable)>,
    /// The settings of the training.
    pub settings: SettingsTable,
    /// Warnings above the results.
    pub notes: &'t [String],
}

/// The page of a training.
pub fn training_page(title: &str, subtitle: &str, content: &TrainingContent<'_>) -> Page {
    let graph = content.graph;
    let mut all = match content.evaluation {
        Some(evaluation) => sections(graph, evaluation, content.comparison.as_ref(), content.notes),
        None => {
            let values = vec![f64::NAN; graph.len()];
            let picture = GraphPicture { graph, metric: String::from("F1"), values: &values };
            vec![
                Section::new("Results").with(&Warnings { messages: content.notes.to_vec() }),
                Section::new("Graph").with(&picture),
            ]
        }
    };
    all.insert(1, Section::new("Training").with(&content.curves));
    if let Some((text, strengths)) = &content.strengths {
        all.push(Section::new("Learned strengths").text(text).with(strengths));
    }
    all.push(Section::new("Settings").with(&content.settings));
    Page { title: title.to_owned(), subtitle: subtitle.to_owned(), sections: all }
}
