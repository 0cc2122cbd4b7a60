//! The error type of this crate. Each variant has structured fields, and its message says what to
//! do where that is clear.

use crate::graph::Report;
use crate::infer::{Evidence, Method, Refusal};
use crate::numeric::SCORE_LIMIT;

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The declarations do not make a usable graph.
    #[error("the label graph is not usable:\n{}", report.errors_as_text())]
    Graph {
        /// Every finding.
        report: Box<Report>,
    },
    /// A question about legal states needs more steps than the budget allows.
    #[error("{question} needs more than {budget} steps on this graph; {help}")]
    Budget {
        /// The question.
        question: &'static str,
        /// How many steps are allowed.
        budget: u64,
        /// What to do.
        help: &'static str,
    },
    /// The system does not give what an answer needs.
    #[error("the system has no room for {what}, which needs {bytes} bytes; raise its limits")]
    NoRoom {
        /// What it was for.
        what: &'static str,
        /// How many bytes it needs.
        bytes: usize,
    },
    /// An operation would write out more pairs than the limit allows.
    #[error("{operation} would write {pairs} pairs, more than the {limit} allowed; {help}")]
    TooManyPairs {
        /// The operation.
        operation: &'static str,
        /// How many pairs it would write.
        pairs: u64,
        /// How many pairs are allowed.
        limit: u64,
        /// What to do.
        help: &'static str,
    },
    /// Two graphs that must have the same labels do not.
    #[error("the graphs have different labels: `{label}` is only in the {which}")]
    DifferentLabels {
        /// A label that one of the graphs lacks.
        label: String,
        /// The graph that has the label: `first` or `second`.
        which: &'static str,
    },
    /// The one-of groups cannot be satisfied.
    #[error(
        "no state is legal: the one-of groups contradict the other relations; `check` explains it"
    )]
    NoLegalState,
    /// An Ising model cannot hold hard constraints.
    #[error(
        "the model has hard constraints, which an Ising model cannot hold; give a finite cost for them"
    )]
    HardIsing,
    /// No engine can handle the model.
    #[error(
        "none of the requested engines can handle this model within the budget:\n{}",
        refusals(refused)
    )]
    Unfit {
        /// Each engine that was tried, with the reason why it cannot handle the model.
        refused: Vec<Refusal>,
    },
    /// The rows do not have one score per label.
    #[error("rows have {found} scores, but the model has {expected} labels")]
    Columns {
        /// The number of labels of the model.
        expected: usize,
        /// The number of scores per row.
        found: usize,
    },
    /// Best sets, samples and derivatives of marginals need an exact engine.
    #[error(
        "`{method}` is not exact on this model, but best label sets, samples and derivatives of marginals need an exact engine; remove the cap, raise the budget, choose another method, or let `anneal` search for good label sets"
    )]
    NotExact {
        /// The engine.
        method: Method,
    },
    /// The terms of a quadratic form are not valid.
    #[error("this quadratic form cannot be minimised: {reason}")]
    Quadratic {
        /// What is wrong.
        reason: String,
    },
    /// Annealing does not compute probabilities.
    #[error(
        "`anneal` finds the best label sets, not probabilities; request label sets, or choose another method"
    )]
    BestOnly,
    /// A score is not finite, or is too large to compute with.
    #[error("row {row}: the score of `{label}` is NaN, infinite or beyond ±{:e}", SCORE_LIMIT)]
    BadScore {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: String,
    },
    /// No legal label set agrees with the evidence of a row, so inference has no answer.
    #[error("row {row}: no legal label set agrees with the evidence")]
    Impossible {
        /// The row, counted from 0.
        row: usize,
    },
    /// A computed strength is out of range.
    #[error("a relation cannot have this strength: {message}")]
    Strength {
        /// What is wrong with it.
        message: String,
    },
    /// No strength of the graph can be learned.
    #[error("no strength can be learned: {reason}")]
    NothingToLearn {
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A table does not have one entry per row and label.
    #[error("{what}: {found} entries, but {expected} are needed")]
    Shape {
        /// What has the wrong number of entries.
        what: &'static str,
        /// How many entries it needs.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A table of probabilities contains a value that is not a probability.
    #[error(
        "row {row}, column {column}: {value} is not a probability; give marginals, not scores (inference turns scores into marginals)"
    )]
    NotProbability {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A value is not a finished probability, or not its logit.
    #[error(
        "row {row}: {value} is not a probability of `{label}`: probabilities are between 0 and 1; if these are scores, give them as logits"
    )]
    NotFinished {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: String,
        /// The value.
        value: f64,
    },
    /// A value is not the logarithm of a probability.
    #[error(
        "row {row}: {value} is not the logarithm of a probability of `{label}`: those are at most 0"
    )]
    NotLogProbability {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: String,
        /// The value.
        value: f64,
    },
    /// The rows look like one softmax over labels that do not exclude each other.
    #[error(
        "every row sums to 1 over all {labels} labels, as one softmax does, but `{child}` is a kind of `{parent}` and not an alternative to it; if the classifier decides between the leaves, infer the other labels from its logits under a single-label graph"
    )]
    OneSoftmax {
        /// How many labels there are.
        labels: usize,
        /// A label that has a label below it.
        parent: String,
        /// A label below it.
        child: String,
    },
    /// The probabilities of a softmax head are not a distribution.
    #[error(
        "row {row}: the probabilities of `{label}` and the other labels of its level sum to {sum}, not to 1; give the softmax of each level, or its logits"
    )]
    NotDistribution {
        /// The row, counted from 0.
        row: usize,
        /// The first label of the level.
        label: String,
        /// The sum.
        sum: f64,
    },
    /// The graph has no relations that probabilities could violate.
    #[error(
        "the graph has no relations, so all probabilities are consistent with it; declare a hierarchy, exclusions or a one-of group"
    )]
    NoRelations,
    /// These relations cannot be reconciled as requested.
    #[error("the probabilities cannot be reconciled in this way: {reason}")]
    Unreconcilable {
        /// Why, and what to do.
        reason: String,
    },
    /// Reconciled probabilities have no derivative that could be computed.
    #[error("these reconciled probabilities have no gradient: {reason}")]
    NoGradient {
        /// Why, and what to do.
        reason: String,
    },
    /// Parameters of reconciling cannot be fitted, or do not belong to this graph.
    #[error("the fit is not possible: {reason}")]
    Unfittable {
        /// Why, and what to do.
        reason: String,
    },
    /// A label number is too large.
    #[error("label number {label} is out of range: there are {labels} labels, counted from 0")]
    LabelOutOfRange {
        /// The number.
        label: usize,
        /// How many labels there are.
        labels: usize,
    },
    /// The graph does not have this name.
    #[error("the graph has no {kind} `{name}`")]
    UnknownName {
        /// `label` or `one-of group`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A name is not one of the choices.
    #[error("`{name}` is not a {what}: use one of {choices}")]
    UnknownChoice {
        /// What kind of thing is chosen.
        what: &'static str,
        /// The name.
        name: String,
        /// The names to choose from.
        choices: String,
    },
    /// An option is out of range.
    #[error("{option} is {value}, but must be {range}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// The value that was given.
        value: f64,
        /// The allowed values, in words.
        range: &'static str,
    },
    /// The evidence of a row contradicts hard relations, so it has no joint probability.
    #[error(
        "row {row} ({}) contradicts the hard relations of the graph; correct its labels, soften the relations, give the row the weight 0, or use the marginal loss",
        labels.join(", ")
    )]
    Contradiction {
        /// The row, counted from 0.
        row: usize,
        /// What the row says of labels: `dog`, `not cat`.
        labels: Vec<String>,
    },
    /// The most likely consistent set cannot be computed from marginals.
    #[error(
        "`consistent` decides from scores, not from marginals; give it an engine and a block of scores"
    )]
    NeedsEngine,
    /// A device that runs engines in place of the CPU failed, or cannot run this engine.
    #[error(transparent)]
    Device {
        /// The device's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// [`Error::Contradiction`] of a row with this evidence, one entry for each name. Labels that are on
    /// come first, and long lists are cut.
    ///
    /// ```
    /// use phex::infer::Evidence::{Off, On, Unknown};
    /// let names = ["animal", "cat", "dog"];
    /// let error = phex::Error::contradiction(4, names, &[Off, Unknown, On]);
    /// assert!(error.to_string().starts_with("row 4 (dog, not animal) contradicts"));
    /// let error = phex::Error::contradiction(4, names, &[Off, Off, On]);
    /// assert!(error.to_string().starts_with("row 4 (dog, nothing else) contradicts"));
    /// ```
    pub fn contradiction<'n>(
        row: usize,
        names: impl IntoIterator<Item = &'n str>,
        evidence: &[Evidence],
    ) -> Error {
        const MOST: usize = 12;
        let (mut labels, mut off) = (Vec::new(), Vec::new());
        for (name, entry) in names.into_iter().zip(evidence) {
            match entry {
                Evidence::On => labels.push(String::from(name)),
                Evidence::Off => off.push(format!("not {name}")),
                Evidence::Unknown => {}
            }
        }
        if labels.len() + off.len() == evidence.len() && !off.is_empty() {
            off = vec![String::from("nothing else")];
        }
        let more = (labels.len() + off.len()).saturating_sub(MOST);
        labels.append(&mut off);
        if more > 0 {
            labels.truncate(MOST);
            labels.push(format!("{more} more"));
        }
        Error::Contradiction { row, labels }
    }
}

fn refusals(refused: &[Refusal]) -> String {
    refused.iter().map(|refusal| format!("  {refusal}")).collect::<Vec<_>>().join("\n")
}
