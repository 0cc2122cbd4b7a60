//! Compares predicted label sets with true ones.
//!
//! With `TP`, `FP`, `FN` and `TN` entries: precision `TP / (TP + FP)`, recall `TP / (TP + FN)`,
//! `F1 = 2 TP / (2 TP + FP + FN)`, accuracy `(TP + TN) / all` (1 − Hamming loss). Entries of
//! unknown truth, labels that the table leaves out and rows without a decision are not counted.
//!
//! Macro and weighted averages run over the labels with at least one positive. The precision of
//! such a label counts as 0 when it is never predicted. The cost is O(rows × labels).

use serde::Serialize;

use super::{Averages, LabelTable};
use crate::Error;
use crate::decide::Decisions;
use crate::numeric::Scalar;

/// Right and wrong entries.
///
/// ```
/// use phex::metrics::Confusion;
/// let counts = Confusion {
///     true_positives: 3, false_positives: 1, false_negatives: 3, true_negatives: 3,
/// };
/// assert_eq!((counts.precision(), counts.recall()), (Some(0.75), Some(0.5)));
/// assert_eq!((counts.f1(), counts.accuracy()), (Some(0.6), Some(0.6)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Confusion {
    /// On and predicted on.
    pub true_positives: u64,
    /// Off and predicted on.
    pub false_positives: u64,
    /// On and predicted off.
    pub false_negatives: u64,
    /// Off and predicted off.
    pub true_negatives: u64,
}

impl Confusion {
    fn add(&mut self, on: bool, predicted: bool) {
        *match (on, predicted) {
            (true, true) => &mut self.true_positives,
            (false, true) => &mut self.false_positives,
            (true, false) => &mut self.false_negatives,
            (false, false) => &mut self.true_negatives,
        } += 1;
    }

    /// Entries that are on.
    pub fn support(&self) -> u64 {
        self.true_positives + self.false_negatives
    }

    /// All entries.
    pub fn entries(&self) -> u64 {
        self.support() + self.false_positives + self.true_negatives
    }

    /// The fraction of the predicted entries that is on. `None` when nothing is predicted.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.true_positives, self.true_positives + self.false_positives)
    }

    /// The fraction of the entries on that is predicted. `None` when nothing is on.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.true_positives, self.support())
    }

    /// The harmonic mean of precision and recall. `None` when nothing is predicted or on.
    pub fn f1(&self) -> Option<f64> {
        let twice = 2 * self.true_positives;
        ratio(twice, twice + self.false_positives + self.false_negatives)
    }

    /// The fraction of the entries that is predicted correctly. `None` without entries.
    pub fn accuracy(&self) -> Option<f64> {
        ratio(self.true_positives + self.true_negatives, self.entries())
    }
}

/// How well label sets were predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetScores {
    /// All entries together.
    pub total: Confusion,
    /// Precision.
    pub precision: Averages,
    /// Recall.
    pub recall: Averages,
    /// F1.
    pub f1: Averages,
    /// The fraction of all entries that is predicted correctly: 1 − Hamming loss.
    pub accuracy: Option<f64>,
    /// Rows with a decision and at least one entry with a known truth.
    pub rows: usize,
    /// How many of those are predicted correctly in all entries with a known truth.
    pub exact_rows: usize,
    /// `exact_rows / rows`.
    pub subset_accuracy: Option<f64>,
    /// Rows left out because they have no decision.
    pub unanswered: usize,
    /// One entry per label.
    pub labels: Vec<Confusion>,
}

/// Compares label sets with the truths of a table. Its probabilities are ignored.
///
/// ```
/// use phex::decide::Decisions;
/// use phex::infer::Evidence::{Off, On, Unknown};
/// use phex::metrics::{LabelTable, set_scores};
/// let table = LabelTable::new(2, &[0.9, 0.2, 0.6, 0.1], &[On, Off, Off, Unknown])?;
/// let sets = Decisions::from_sets(2, vec![true, false, true, false])?;
/// let scores = set_scores(&table, &sets)?;
/// assert_eq!(scores.precision.micro, Some(0.5));
/// assert_eq!(scores.accuracy, Some(2.0 / 3.0));
/// assert_eq!(scores.subset_accuracy, Some(0.5));
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Columns`] or [`Error::Shape`] when there is not one set per row.
pub fn set_scores<T: Scalar>(
    table: &LabelTable<'_, T>,
    sets: &Decisions,
) -> Result<SetScores, Error> {
    table.check_sets(sets)?;
    let mut labels = vec![Confusion::default(); table.labels()];
    let (mut rows, mut exact_rows) = (0, 0);
    for row in (0..table.rows()).filter(|&row| sets.is_answered(row)) {
        let (mut entries, mut right) = (0, 0);
        let pairs = table.truths(row).iter().zip(sets.row(row)).enumerate();
        for (label, (&truth, &predicted)) in pairs {
            let Some(on) = truth.is_on().filter(|_| !table.is_left_out(label)) else { continue };
            labels[label].add(on, predicted);
            entries += 1;
            right += usize::from(on == predicted);
        }
        rows += usize::from(entries > 0);
        exact_rows += usize::from(entries > 0 && right == entries);
    }
    let sum = |count: fn(&Confusion) -> u64| labels.iter().map(count).sum();
    let total = Confusion {
        true_positives: sum(|label| label.true_positives),
        false_positives: sum(|label| label.false_positives),
        false_negatives: sum(|label| label.false_negatives),
        true_negatives: sum(|label| label.true_negatives),
    };
    let average = |score: fn(&Confusion) -> Option<f64>| {
        let label = |label: &Confusion| (label.support(), Some(score(label).unwrap_or(0.0)));
        Averages::new(score(&total), labels.iter().map(label))
    };
    Ok(SetScores {
        total,
        precision: average(Confusion::precision),
        recall: average(Confusion::recall),
        f1: average(Confusion::f1),
        accuracy: total.accuracy(),
        rows,
        exact_rows,
        subset_accuracy: ratio(exact_rows as u64, rows as u64),
        unanswered: sets.unanswered(),
        labels,
    })
}

/// A fraction. `None` when the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
