//! Computes all metrics at once.
//!
//! The cost is that of the parts: O(N log P) for N entries of which P are on. In addition to the
//! table, the memory is one byte per entry for the label sets, and one copy of the probabilities
//! for the bins of equal mass.

use serde::{Deserialize, Serialize};

use super::{
    Averages, Binning, ClassReport, Confusion, Counts, HierarchicalScores, LabelTable, Reliability,
    TruthClosure, Violations,
};
use crate::Error;
use crate::decide::{Classes, Decision, Decisions, decide, named};
use crate::graph::{LabelId, RelationGraph};
use crate::infer::Evidence;
use crate::model::Model;
use crate::numeric::Scalar;

/// What to evaluate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvaluationOptions {
    /// How label sets are made from the probabilities. The default is a threshold of 0.5.
    pub decision: Decision,
    /// The classes for multi-class accuracy. Without them it is left out.
    pub classes: Option<Classes>,
    /// The values of `k` for multi-class accuracy. The default is 1 and 5.
    pub top: Vec<usize>,
    /// The names of labels that only multi-class accuracy and violations consider. Usually this is
    /// the root.
    pub leave_out: Vec<String>,
    /// The number of bins of the reliability tables, 1 to 10,000. The default is 15.
    pub bins: usize,
    /// By how much probabilities may violate a relation. The default is 1e-6.
    pub tolerance: f64,
}

impl Default for EvaluationOptions {
    fn default() -> EvaluationOptions {
        EvaluationOptions {
            decision: Decision::default(),
            classes: None,
            top: vec![1, 5],
            leave_out: Vec::new(),
            bins: 15,
            tolerance: 1e-6,
        }
    }
}

/// The scores of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelScores {
    /// Its name.
    pub name: String,
    /// How many entries count.
    pub known: u64,
    /// How many of those are on.
    pub support: u64,
    /// Average precision.
    pub average_precision: Option<f64>,
    /// The area under the ROC curve.
    pub roc_area: Option<f64>,
    /// Precision of the label sets.
    pub precision: Option<f64>,
    /// Recall of the label sets.
    pub recall: Option<f64>,
    /// F1 of the label sets.
    pub f1: Option<f64>,
    /// Accuracy of the label sets.
    pub accuracy: Option<f64>,
    /// Mean log-loss.
    pub log_loss: Option<f64>,
    /// Mean Brier score.
    pub brier: Option<f64>,
}

/// All metrics of a table. It prints as a small table, and `{:#}` adds one line per label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// What was counted, and what was left out.
    pub counts: Counts,
    /// Labels that are not known to be off in any row: only class accuracy and violations consider them.
    pub unjudged_labels: usize,
    /// Rows that have a leaf on.
    pub rows_with_leaf: usize,
    /// Average precision; its micro-average is AU(PRC).
    pub average_precision: Averages,
    /// The interpolated area under the precision–recall curve (Davis and Goadrich).
    pub interpolated_area: Averages,
    /// The area under the ROC curve.
    pub roc_area: Averages,
    /// Multi-class accuracy, if classes were given.
    pub classes: Option<ClassReport>,
    /// The right and wrong entries of the label sets.
    pub confusion: Confusion,
    /// Precision of the label sets.
    pub precision: Averages,
    /// Recall of the label sets.
    pub recall: Averages,
    /// F1 of the label sets.
    pub f1: Averages,
    /// 1 − Hamming loss of the label sets.
    pub accuracy: Option<f64>,
    /// The fraction of the rows whose sets are right in all entries with a known truth.
    pub subset_accuracy: Option<f64>,
    /// Rows without a decision.
    pub undecided_rows: usize,
    /// Hierarchical precision, recall and F of the label sets.
    pub hierarchical: HierarchicalScores,
    /// Relations that the label sets violate.
    pub set_violations: Violations,
    /// Relations that the probabilities violate.
    pub probability_violations: Violations,
    /// Mean log-loss over entries.
    pub log_loss: Option<f64>,
    /// Mean Brier score over entries.
    pub brier: Option<f64>,
    /// Expected calibration error over bins of equal width.
    pub calibration_error: Option<f64>,
    /// Expected calibration error over bins of equal mass.
    pub calibration_error_equal_mass: Option<f64>,
    /// Expected calibration error of the most probable class, if classes were given.
    pub class_calibration_error: Option<f64>,
    /// The bins of equal width.
    pub reliability: Reliability,
    /// The bins of equal mass.
    pub reliability_equal_mass: Reliability,
    /// One entry per label that is not left out.
    pub labels: Vec<LabelScores>,
}

/// Evaluates probabilities: rows with one entry per label, one after another. Truths are closed by the
/// hard relations of the graph first ([`TruthClosure`]).
///
/// ```
/// use phex::infer::Evidence::{Off, On};
/// use phex::metrics::{EvaluationOptions, evaluate};
/// use phex::{graph::GraphBuilder, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let graph = builder.build()?;
/// let model = Model::new(&graph)?;
/// let probabilities = [0.9, 0.8, 0.1, 0.8, 0.6, 0.3];
/// let truths = [On, On, Off, On, Off, On];
/// let options = EvaluationOptions { leave_out: vec!["animal".into()], ..Default::default() };
/// let evaluation = evaluate(&options, &graph, &model, &probabilities, &truths)?;
/// assert_eq!(evaluation.accuracy, Some(0.5));
/// assert_eq!(evaluation.average_precision.micro, Some((1.0 + 2.0 / 3.0) / 2.0));
/// assert!(evaluation.to_string().contains("average precision"));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// As [`LabelTable::new`], [`decide`] and the metrics.
pub fn evaluate<T: Scalar>(
    options: &EvaluationOptions,
    graph: &RelationGraph,
    model: &Model,
    probabilities: &[T],
    truths: &[Evidence],
) -> Result<Evaluation, Error> {
    let sets = decide(&options.decision, graph, probabilities)?;
    evaluate_sets(options, graph, model, probabilities, truths, &sets)
}

/// Evaluates probabilities together with label sets that were decided elsewhere, such as the most
/// likely consistent sets. The decision in the options is ignored.
///
/// # Errors
/// As [`LabelTable::new`] and the metrics.
pub fn evaluate_sets<T: Scalar>(
    options: &EvaluationOptions,
    graph: &RelationGraph,
    model: &Model,
    probabilities: &[T],
    truths: &[Evidence],
    sets: &Decisions,
) -> Result<Evaluation, Error> {
    let left_out = named(graph, &options.leave_out)?;
    // Checks the shape, which closing needs.
    LabelTable::new(graph.len(), probabilities, truths)?;
    let mut closed = truths.to_vec();
    TruthClosure::new(graph).close(&mut closed);
    let whole = LabelTable::new(graph.len(), probabilities, &closed)?.leave_out(&left_out)?;
    let counts = whole.counts();
    let leaves: Vec<LabelId> = graph.leaves().collect();
    let has_leaf =
        |row: &usize| leaves.iter().any(|leaf| whole.truths(*row)[leaf.index()] == Evidence::On);
    let rows_with_leaf = (0..whole.rows()).filter(has_leaf).count();
    let table = whole.clone().leave_out_unjudged();
    let unjudged = |&label: &usize| table.is_left_out(label) && !whole.is_left_out(label);
    let unjudged_labels = (0..graph.len()).filter(unjudged).count();
    let classes = options.classes.as_ref().map(|classes| classes.resolve(graph)).transpose()?;
    let classes = classes.as_deref();
    let report = classes.map(|classes| super::class_report(&table, classes, &options.top));
    let class_bins =
        |classes| super::class_reliability(&table, classes, Binning::EqualWidth, options.bins);
    let class_reliability = classes.map(class_bins).transpose()?;
    let scores = super::set_scores(&table, sets)?;
    let reliability = super::reliability(&table, Binning::EqualWidth, options.bins)?;
    let equal_mass = super::reliability(&table, Binning::EqualMass, options.bins)?;
    let hierarchical = super::hierarchical_scores(graph, &table, sets)?;
    let probability_violations = super::probability_violations(model, &table, options.tolerance)?;
    let areas = super::areas(&table);
    let losses = super::losses(&table);
    let label = |label: usize| LabelScores {
        name: graph.labels()[label].name.clone(),
        known: losses.labels[label].known,
        support: areas.labels[label].positives,
        average_precision: areas.labels[label].average_precision,
        roc_area: areas.labels[label].roc,
        precision: scores.labels[label].precision(),
        recall: scores.labels[label].recall(),
        f1: scores.labels[label].f1(),
        accuracy: scores.labels[label].accuracy(),
        log_loss: losses.labels[label].log_loss,
        brier: losses.labels[label].brier,
    };
    let kept = (0..graph.len()).filter(|&label| !whole.is_left_out(label));
    Ok(Evaluation {
        counts,
        unjudged_labels,
        rows_with_leaf,
        average_precision: areas.average_precision,
        interpolated_area: areas.interpolated,
        roc_area: areas.roc,
        classes: report.transpose()?,
        confusion: scores.total,
        precision: scores.precision,
        recall: scores.recall,
        f1: scores.f1,
        accuracy: scores.accuracy,
        subset_accuracy: scores.subset_accuracy,
        undecided_rows: scores.unanswered,
        hierarchical,
        set_violations: super::set_violations(model, sets)?,
        probability_violations,
        log_loss: losses.log_loss,
        brier: losses.brier,
        calibration_error: reliability.expected_error(),
        calibration_error_equal_mass: equal_mass.expected_error(),
        class_calibration_error: class_reliability.and_then(|bins| bins.expected_error()),
        reliability,
        reliability_equal_mass: equal_mass,
        labels: kept.map(label).collect(),
    })
}
