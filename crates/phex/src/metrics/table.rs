//! A table of predicted probabilities and true labels.

use serde::Serialize;

use crate::Error;
use crate::decide::{Decisions, rows_of};
use crate::graph::LabelId;
use crate::infer::Evidence;
use crate::numeric::Scalar;

/// How far outside `[0, 1]` a probability may be, by rounding or from approximate engines.
const SLACK: f64 = 1e-3;

/// Rows × labels of probabilities and of truths, borrowed. Everything in [`metrics`](super) works
/// on one.
///
/// An entry is left out when its truth is [`Evidence::Unknown`], when its probability is NaN or
/// infinite (inference could not answer), or when [`LabelTable::leave_out`] names its label. Rows
/// and labels are accessed by number. A number that is out of range panics, as a slice index does.
///
/// ```
/// use phex::infer::Evidence::{Off, On, Unknown};
/// use phex::metrics::LabelTable;
/// let table = LabelTable::new(2, &[0.9, 0.2, f64::NAN, 0.7], &[On, Unknown, On, Off])?;
/// assert_eq!(table.entries().collect::<Vec<_>>(), [(0.9, true), (0.7, false)]);
/// let counts = table.counts();
/// assert_eq!((counts.rows, counts.known, counts.unknown, counts.unanswered), (2, 2, 1, 1));
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelTable<'a, T> {
    labels: usize,
    probabilities: &'a [T],
    truths: &'a [Evidence],
    left_out: Vec<bool>,
}

/// How many entries a table has, and how many of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Rows.
    pub rows: usize,
    /// Labels, without those left out.
    pub labels: usize,
    /// Entries that count: the truth is known and the probability is finite.
    pub known: usize,
    /// How many of those are on.
    pub positives: usize,
    /// Entries without a known truth.
    pub unknown: usize,
    /// Entries with a known truth but without a probability.
    pub unanswered: usize,
}

impl<'a, T: Scalar> LabelTable<'a, T> {
    /// Rows of `labels` entries each, one after another.
    ///
    /// # Errors
    /// [`Error::Shape`] when the probabilities are not whole rows, or the number of truths differs.
    /// [`Error::NotProbability`] for a number outside `[0, 1]` by more than 0.001, which is
    /// probably a score.
    pub fn new(
        labels: usize,
        probabilities: &'a [T],
        truths: &'a [Evidence],
    ) -> Result<LabelTable<'a, T>, Error> {
        rows_of("the probabilities", labels, probabilities.len())?;
        let (expected, found) = (probabilities.len(), truths.len());
        if expected != found {
            return Err(Error::Shape { what: "the truths", expected, found });
        }
        let (low, high) = (T::from_f64(-SLACK), T::from_f64(1.0 + SLACK));
        let beyond = |p: &T| p.is_finite() && !(*p >= low && *p <= high);
        if let Some(at) = probabilities.iter().position(beyond) {
            let (row, column, value) = (at / labels, at % labels, probabilities[at].to_f64());
            return Err(Error::NotProbability { row, column, value });
        }
        Ok(LabelTable { labels, probabilities, truths, left_out: vec![false; labels] })
    }

    /// Leaves labels out of everything that is counted, such as a root that is always on.
    ///
    /// # Errors
    /// [`Error::LabelOutOfRange`].
    pub fn leave_out(mut self, labels: &[LabelId]) -> Result<LabelTable<'a, T>, Error> {
        self.check_labels(labels)?;
        for label in labels {
            self.left_out[label.index()] = true;
        }
        Ok(self)
    }

    /// Leaves out the labels that are off in no row: a model that always turns them on would be
    /// perfect.
    #[must_use]
    pub fn leave_out_unjudged(mut self) -> LabelTable<'a, T> {
        let mut judged = vec![false; self.labels];
        for row in self.truths.chunks_exact(self.labels.max(1)) {
            judged.iter_mut().zip(row).for_each(|(judged, t)| *judged |= *t == Evidence::Off);
        }
        self.left_out.iter_mut().zip(judged).for_each(|(out, judged)| *out |= !judged);
        self
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.probabilities.len() / self.labels.max(1)
    }

    /// How many labels each row has, including those left out.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Whether the label is left out.
    pub fn is_left_out(&self, label: usize) -> bool {
        self.left_out[label]
    }

    /// The probabilities of a row.
    pub fn probabilities(&self, row: usize) -> &'a [T] {
        &self.probabilities[row * self.labels..(row + 1) * self.labels]
    }

    /// The truths of a row.
    pub fn truths(&self, row: usize) -> &'a [Evidence] {
        &self.truths[row * self.labels..(row + 1) * self.labels]
    }

    /// The entries of a row that count: label, probability, and whether it is on.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T, bool)> + Clone + '_ {
        let entries = self.probabilities(row).iter().zip(self.truths(row)).zip(&self.left_out);
        let entries = entries.enumerate().filter(|(_, (_, left_out))| !**left_out);
        entries.filter_map(|(label, ((&p, &truth), _))| {
            let on = truth.is_on().filter(|_| p.is_finite())?;
            Some((label, p, on))
        })
    }

    /// The entries of a label that count.
    pub fn column(&self, label: usize) -> impl Iterator<Item = (T, bool)> + Clone + '_ {
        let rows = if self.left_out[label] { 0 } else { self.rows() };
        (0..rows).filter_map(move |row| {
            let at = row * self.labels + label;
            let p = self.probabilities[at];
            self.truths[at].is_on().filter(|_| p.is_finite()).map(|on| (p, on))
        })
    }

    /// All entries that count.
    pub fn entries(&self) -> impl Iterator<Item = (T, bool)> + Clone + '_ {
        (0..self.rows()).flat_map(|row| self.row(row).map(|(_, p, on)| (p, on)))
    }

    /// Counts the entries.
    pub fn counts(&self) -> Counts {
        let kept = self.left_out.iter().filter(|left_out| !**left_out).count();
        let mut counts = Counts { rows: self.rows(), labels: kept, ..Counts::default() };
        for row in 0..self.rows() {
            let truths = self.truths(row).iter().zip(&self.left_out);
            let unknown = truths.filter(|(t, out)| **t == Evidence::Unknown && !**out).count();
            let mut row_known = 0;
            for (_, _, on) in self.row(row) {
                row_known += 1;
                counts.positives += usize::from(on);
            }
            counts.known += row_known;
            counts.unknown += unknown;
            counts.unanswered += kept - unknown - row_known;
        }
        counts
    }

    /// Checks that the labels are labels of the table.
    pub(super) fn check_labels(&self, labels: &[LabelId]) -> Result<(), Error> {
        match labels.iter().find(|label| label.index() >= self.labels) {
            None => Ok(()),
            Some(label) => {
                Err(Error::LabelOutOfRange { label: label.index(), labels: self.labels })
            }
        }
    }

    /// Checks that a graph or model has as many labels.
    pub(super) fn check_width(&self, expected: usize) -> Result<(), Error> {
        let found = self.labels;
        if found == expected { Ok(()) } else { Err(Error::Columns { expected, found }) }
    }

    /// Checks that there is one label set per row.
    pub(super) fn check_sets(&self, sets: &Decisions) -> Result<(), Error> {
        let what = "the label sets";
        let (expected, found) = (self.probabilities.len(), sets.rows() * sets.labels());
        if sets.labels() != self.labels {
            return Err(Error::Columns { expected: self.labels, found: sets.labels() });
        }
        if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
    }
}
