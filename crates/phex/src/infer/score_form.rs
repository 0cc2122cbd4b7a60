//! What the numbers of a classifier are, and how they become scores.
//!
//! ```text
//! a sigmoid per label:        score = ln p − ln(1 − p)      p between 10⁻¹³ and 1 − 10⁻¹³
//! one softmax over leaves:    score = ln p                  p at least 10⁻¹³
//! ```
//!
//! Engines need logits. Probabilities are one softmax if the graph says that exactly one leaf is on, only
//! leaves have values, and most rows of the first block sum to 1; the softmax of their logarithms is again
//! the same distribution. Logarithms below −100 count as −100. Cost: O(values), and a logarithm each.

use crate::graph::RelationGraph;
use crate::numeric::Scalar;
use crate::reconcile::FinishedWatch;
use crate::{Error, Named};

/// What the numbers are that a classifier gives.
///
/// ```
/// use phex::{Named, infer::ScoreForm};
/// assert_eq!(ScoreForm::from_name("log-probabilities")?, ScoreForm::LogProbabilities);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScoreForm {
    /// Scores as engines need them: logits of sigmoids, or of one softmax.
    #[default]
    Logits,
    /// Finished probabilities, from 0 to 1.
    Probabilities,
    /// Their natural logarithms, at most 0.
    LogProbabilities,
}

impl Named for ScoreForm {
    const WHAT: &'static str = "kind of scores";
    const CHOICES: &'static [(&'static str, ScoreForm)] = &[
        ("logits", ScoreForm::Logits),
        ("probabilities", ScoreForm::Probabilities),
        ("log-probabilities", ScoreForm::LogProbabilities),
    ];
}

/// Probabilities below this count as this, and those of sigmoids above 1 minus this as 1 minus this.
pub const PROBABILITY_FLOOR: f64 = 1e-13;
/// Logarithms of probabilities below this count as this.
const LOG_FLOOR: f64 = -100.0;
/// How far the logarithm of a probability may be above 0, by rounding.
const ABOVE: f64 = 1e-5;
/// How far the sum of a softmax may be from 1, by the rounding of printed numbers and of halves.
const SUM_SLACK: f64 = 0.02;

/// The score that each label has if nothing scores it: 0 for the labels above leaves if exactly one leaf is on, because
/// the leaves then keep their softmax and the others are its sums. Other labels need a score of their own.
pub fn unscored(graph: &RelationGraph) -> Vec<Option<f64>> {
    let has_one_leaf = graph.has_one_leaf();
    graph.ids().map(|label| (has_one_leaf && !graph.is_leaf(label)).then_some(0.0)).collect()
}

/// Turns rows of numbers into scores, and watches whether numbers that are meant to be logits look like
/// something else.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::infer::{ScoreForm, ScoreInput};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None).single_label();
/// let graph = builder.build()?;
/// // Only the leaves have a column.
/// let mut input = ScoreInput::new(ScoreForm::Probabilities, vec![false, true, true], Some(&graph));
/// let mut row = [0.0, 0.8, 0.2];
/// input.convert(&mut row)?;
/// assert!(input.is_softmax());
/// assert_eq!(row, [0.0, 0.8_f64.ln(), 0.2_f64.ln()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScoreInput {
    form: ScoreForm,
    /// Whether each label has a value; the others already have a score.
    given: Vec<bool>,
    names: Vec<String>,
    /// Whether the values may be one softmax over the leaves.
    may_be_softmax: bool,
    /// Whether they are, once a row was seen.
    is_softmax: Option<bool>,
    watch: FinishedWatch,
    rows: u64,
    /// Rows whose values sum to 1.
    unit_rows: u64,
}

impl ScoreInput {
    /// For rows in which these labels have values. Without a graph, no values are one softmax.
    pub fn new(form: ScoreForm, given: Vec<bool>, graph: Option<&RelationGraph>) -> ScoreInput {
        let only_leaves = |graph: &RelationGraph| {
            let is_leaf = |(label, given): (_, &bool)| graph.is_leaf(label) == *given;
            graph.has_one_leaf() && graph.ids().zip(&given).all(is_leaf)
        };
        let may_be_softmax = graph.is_some_and(only_leaves);
        let labels = graph.map_or(&[][..], |graph| graph.labels());
        ScoreInput {
            form,
            names: labels.iter().map(|label| label.name.clone()).collect(),
            given,
            may_be_softmax,
            is_softmax: None,
            watch: FinishedWatch::default(),
            rows: 0,
            unit_rows: 0,
        }
    }

    /// Turns rows into scores, in place.
    ///
    /// # Errors
    /// [`Error::NotFinished`] if a number is not what it is said to be, and [`Error::NotDistribution`] if
    /// other rows are one softmax over the leaves and this one is not.
    pub fn convert<T: Scalar>(&mut self, values: &mut [T]) -> Result<(), Error> {
        let labels = self.given.len().max(1);
        let before = self.rows as usize;
        self.rows += (values.len() / labels) as u64;
        if self.form == ScoreForm::Logits {
            self.see(values);
            return Ok(());
        }
        self.check(values, before)?;
        let sums: Vec<f64> = match self.may_be_softmax {
            true => values.chunks_exact(labels).map(|row| self.sum(row)).collect(),
            false => Vec::new(),
        };
        let off = |sum: &f64| (sum - 1.0).abs() > SUM_SLACK;
        if self.is_softmax.is_none() && !values.is_empty() {
            let others = sums.iter().filter(|sum| off(sum)).count();
            self.is_softmax = Some(self.may_be_softmax && 2 * others < sums.len());
        }
        let is_softmax = self.is_softmax == Some(true);
        if let Some(row) = sums.iter().position(off).filter(|_| is_softmax) {
            let first = self.given.iter().position(|given| *given);
            let label = first.map(|label| self.name(label)).unwrap_or_default();
            return Err(Error::NotDistribution { row: before + row, label, sum: sums[row] });
        }
        for row in values.chunks_exact_mut(labels) {
            for (value, _) in row.iter_mut().zip(&self.given).filter(|(_, given)| **given) {
                *value = T::from_f64(score(value.to_f64(), self.form, is_softmax));
            }
        }
        Ok(())
    }

    /// Whether probabilities were read as one softmax over the leaves.
    pub fn is_softmax(&self) -> bool {
        self.is_softmax == Some(true)
    }

    /// Whether all numbers that are meant to be logits are between 0 and 1.
    pub fn looks_finished(&self) -> bool {
        self.watch.looks_finished()
    }

    /// Whether they also look like one softmax over the leaves: all rows sum to 1.
    pub fn looks_like_softmax(&self) -> bool {
        self.looks_finished() && self.may_be_softmax && self.unit_rows == self.rows
    }

    /// Watches numbers that are meant to be logits.
    fn see<T: Scalar>(&mut self, values: &[T]) {
        if self.watch.is_outside() {
            return;
        }
        if self.given.iter().all(|given| *given) {
            self.watch.see(values);
        } else {
            let given = values.iter().zip(self.given.iter().cycle()).filter(|(_, given)| **given);
            self.watch.see(&given.map(|(value, _)| *value).collect::<Vec<T>>());
        }
        if self.may_be_softmax {
            let rows = values.chunks_exact(self.given.len().max(1));
            let unit = rows.filter(|row| (self.sum(row) - 1.0).abs() <= SUM_SLACK).count();
            self.unit_rows += unit as u64;
        }
    }

    /// The sum of the probabilities of a row.
    fn sum<T: Scalar>(&self, row: &[T]) -> f64 {
        let given = row.iter().zip(&self.given).filter(|(_, given)| **given);
        let values = given.map(|(value, _)| value.to_f64());
        match self.form {
            ScoreForm::LogProbabilities => values.map(f64::exp).sum(),
            _ => values.sum(),
        }
    }

    fn check<T: Scalar>(&self, values: &[T], before: usize) -> Result<(), Error> {
        let labels = self.given.len().max(1);
        let valid = |value: f64| match self.form {
            ScoreForm::LogProbabilities => value <= ABOVE,
            _ => (0.0..=1.0).contains(&value),
        };
        let wrong = |(at, value): (usize, &T)| {
            (self.given[at % labels] && !valid(value.to_f64())).then_some((at, value.to_f64()))
        };
        let Some((at, value)) = values.iter().enumerate().find_map(wrong) else { return Ok(()) };
        let (row, label) = (before + at / labels, self.name(at % labels));
        match self.form {
            ScoreForm::LogProbabilities => Err(Error::NotLogProbability { row, label, value }),
            _ => Err(Error::NotFinished { row, label, value }),
        }
    }

    fn name(&self, label: usize) -> String {
        self.names.get(label).cloned().unwrap_or_else(|| label.to_string())
    }
}

/// The score of a number that is not a logit.
fn score(value: f64, form: ScoreForm, is_softmax: bool) -> f64 {
    let is_log = form == ScoreForm::LogProbabilities;
    let log = match is_log {
        true => value.clamp(LOG_FLOOR, 0.0),
        false => value.max(PROBABILITY_FLOOR).ln(),
    };
    if is_softmax {
        return log;
    }
    // The probability that the label is off keeps its digits where the label is unlikely.
    let off = if is_log { -log.exp_m1() } else { 1.0 - value };
    log - off.max(PROBABILITY_FLOOR).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::numeric::sigmoid;

    fn graph(single_label: bool) -> RelationGraph {
        let mut builder = GraphBuilder::new();
        for (parent, child) in [("a", "x"), ("a", "y"), ("b", "z")] {
            builder.hierarchy(parent, child, None);
        }
        if single_label {
            builder.single_label();
        }
        builder.build().unwrap()
    }

    /// The labels are a, x, y, b, z.
    const LEAVES: [bool; 5] = [false, true, true, false, true];

    fn input(form: ScoreForm, single_label: bool) -> ScoreInput {
        ScoreInput::new(form, LEAVES.to_vec(), Some(&graph(single_label)))
    }

    #[test]
    fn sigmoids_come_back() {
        for p in [0.0, 1e-9, 0.2, 0.5, 0.999, 1.0] {
            let direct = score(p, ScoreForm::Probabilities, false);
            assert!((sigmoid(direct) - p).abs() < 2e-13, "{p}");
            let log = score(f64::ln(p), ScoreForm::LogProbabilities, false);
            assert!((sigmoid(log) - p).abs() < 2e-13, "{p}");
        }
        assert_eq!(score(f64::NEG_INFINITY, ScoreForm::LogProbabilities, true), LOG_FLOOR);
        assert_eq!(score(0.0, ScoreForm::Probabilities, true), PROBABILITY_FLOOR.ln());
    }

    #[test]
    fn a_softmax_needs_a_graph_with_one_leaf_and_rows_that_sum_to_one() {
        let row = [0.0, 0.5, 0.25, 0.0, 0.25];
        let softmax = |single_label: bool, row: [f64; 5]| {
            let mut input = input(ScoreForm::Probabilities, single_label);
            let mut values = row;
            input.convert(&mut values).unwrap();
            assert_eq!((values[0], values[3]), (row[0], row[3]), "no value, so no change");
            input.is_softmax()
        };
        assert!(softmax(true, row));
        assert!(!softmax(false, row));
        assert!(!softmax(true, [0.0, 0.5, 0.5, 0.0, 0.5]));
        let mut all = ScoreInput::new(ScoreForm::Probabilities, vec![true; 5], Some(&graph(true)));
        all.convert(&mut row.clone()).unwrap();
        assert!(!all.is_softmax());
    }

    #[test]
    fn rows_that_differ_from_the_others_are_named() {
        let mut softmax = input(ScoreForm::Probabilities, true);
        softmax.convert(&mut [0.0, 0.5, 0.25, 0.0, 0.25]).unwrap();
        let error = softmax.convert(&mut [0.0, 0.5, 0.5, 0.0, 0.5]).unwrap_err();
        assert!(matches!(error, Error::NotDistribution { row: 1, .. }), "{error}");
        for (form, value) in [(ScoreForm::Probabilities, 1.5), (ScoreForm::LogProbabilities, 0.1)] {
            let row = &mut [0.0, 0.0, value, 0.0, 0.0];
            let error = input(form, true).convert(row).unwrap_err().to_string();
            assert!(error.starts_with("row 0: ") && error.contains("`y`"), "{error}");
            let row = &mut [0.0, 0.0, f64::NAN, 0.0, 0.0];
            assert!(input(form, true).convert(row).is_err());
        }
    }

    #[test]
    fn logits_that_look_finished_are_noticed() {
        let mut seen = input(ScoreForm::Logits, true);
        seen.convert(&mut [7.0, 0.5, 0.25, -7.0, 0.25]).unwrap();
        assert!(seen.looks_finished() && seen.looks_like_softmax());
        seen.convert(&mut [0.0, 0.5, 0.5, 0.0, 0.25]).unwrap();
        assert!(seen.looks_finished() && !seen.looks_like_softmax());
        seen.convert(&mut [0.0, 0.5, 3.0, 0.0, 0.25]).unwrap();
        assert!(!seen.looks_finished());
    }
}
