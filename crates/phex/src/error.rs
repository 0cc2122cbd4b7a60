//! The errors of this crate.

use crate::graph::Report;
use crate::infer::{Evidence, Method, Refusal};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The declarations are not a graph.
    #[error("the label graph is not usable:\n{}", report.errors_as_text())]
    Graph {
        /// Everything that was found.
        report: Box<Report>,
    },
    /// A question about legal states needs more work than allowed.
    #[error("{question} needs more than {budget} steps on this graph; {help}")]
    Budget {
        /// What was asked.
        question: &'static str,
        /// How many steps were allowed.
        budget: u64,
        /// What to do.
        help: &'static str,
    },
    /// An operation would write out more pairs than allowed.
    #[error("{operation} would write {pairs} pairs, more than the {limit} allowed; {help}")]
    TooManyPairs {
        /// What was asked.
        operation: &'static str,
        /// How many pairs it has.
        pairs: u64,
        /// How many are allowed.
        limit: u64,
        /// What to do.
        help: &'static str,
    },
    /// Two graphs that should have the same labels differ in them.
    #[error("the graphs have different labels: `{label}` is only in the {which}")]
    DifferentLabels {
        /// A label that one of them lacks.
        label: String,
        /// `first` or `second`.
        which: &'static str,
    },
    /// The one-of groups cannot be satisfied.
    #[error(
        "no state is legal: the one-of groups contradict the other relations; `check` explains it"
    )]
    NoLegalState,
    /// An Ising model has no hard constraints.
    #[error(
        "the model has hard constraints, which an Ising model cannot hold; give a finite cost for them"
    )]
    HardIsing,
    /// No engine takes the model.
    #[error(
        "no engine that was asked for takes the model within the budget:\n{}",
        refusals(refused)
    )]
    Unfit {
        /// The engines that were tried, and why each does not take it.
        refused: Vec<Refusal>,
    },
    /// Rows have another number of scores than the model has labels.
    #[error("rows have {found} scores, but the model has {expected} labels")]
    Columns {
        /// The labels of the model.
        expected: usize,
        /// The scores of a row.
        found: usize,
    },
    /// Best sets, samples and derivatives of marginals need an exact engine.
    #[error(
        "`{method}` is not exact here, and best label sets, samples and derivatives of marginals need an exact engine; leave out the cap, raise the budget, name another method, or take the best found by `anneal`"
    )]
    NotExact {
        /// The engine.
        method: Method,
    },
    /// The terms of a quadratic form cannot be searched.
    #[error("not a quadratic form to minimise: {reason}")]
    Quadratic {
        /// What is wrong.
        reason: String,
    },
    /// Annealing gives no probabilities.
    #[error(
        "`anneal` finds the best label sets, not probabilities; ask for those, or name another method"
    )]
    BestOnly,
    /// A score is not a number to compute with.
    #[error("row {row}: the score of `{label}` is NaN, infinite or beyond ±1e30")]
    BadScore {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: String,
    },
    /// A strength that was computed is out of range.
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
    /// A table has not an entry for each row and label.
    #[error("{what}: {found} entries where {expected} are needed")]
    Shape {
        /// What has the wrong number of entries.
        what: &'static str,
        /// How many entries it needs.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A table of probabilities holds something else.
    #[error(
        "row {row}, column {column}: {value} is not a probability; give marginals, not scores (inference makes the one of the other)"
    )]
    NotProbability {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// What stands there.
        value: f64,
    },
    /// A label is named by a number that no column has.
    #[error("label number {label} is out of range: there are {labels}, counted from 0")]
    LabelOutOfRange {
        /// The number.
        label: usize,
        /// How many labels there are.
        labels: usize,
    },
    /// A name that the graph does not have.
    #[error("the graph has no {kind} `{name}`")]
    UnknownName {
        /// `label` or `one-of group`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An option is out of its range.
    #[error("{option} is {value}, but has to be {range}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// What was given.
        value: f64,
        /// What may be given, in words.
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
    /// The most likely consistent set is not a function of marginals.
    #[error(
        "`consistent` decides from scores, not from marginals; give an engine and a block of scores"
    )]
    NeedsEngine,
    /// A device that answers in the place of the processor does not take an engine, or failed.
    #[error(transparent)]
    Device {
        /// What the device says.
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
