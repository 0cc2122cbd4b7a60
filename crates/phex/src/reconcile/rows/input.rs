//! What users should know about their values: scores that look like finished probabilities,
//! probabilities that look like one softmax, and values that are clipped.

use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::Number;
use crate::numeric::{Scalar, logit};
use crate::reconcile::{FinishedRows, Reconciled};

/// Sees values that are meant to be scores, and says whether they look like finished probabilities.
///
/// ```
/// let mut watch = phex::reconcile::FinishedWatch::default();
/// watch.see(&[0.2_f32, 0.7, 1.0]);
/// assert!(watch.looks_finished());
/// watch.see(&[1.5_f32]);
/// assert!(!watch.looks_finished());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct FinishedWatch {
    /// Values that are neither 0 nor 1, but between them.
    between: bool,
    /// Values below 0 or above 1.
    outside: bool,
    several: bool,
}

impl FinishedWatch {
    /// Sees more values. NaN says nothing.
    pub fn see<T: Scalar>(&mut self, values: &[T]) {
        self.several |= values.len() > 1;
        for value in values {
            if self.outside {
                return;
            }
            let value = value.to_f64();
            self.between |= value > 0.0 && value < 1.0;
            self.outside |= !value.is_nan() && !(0.0..=1.0).contains(&value);
        }
    }

    /// Whether a value was below 0 or above 1.
    pub(crate) fn is_outside(&self) -> bool {
        self.outside
    }

    /// Whether all values so far are between 0 and 1, and some are neither.
    pub fn looks_finished(&self) -> bool {
        self.several && self.between && !self.outside
    }
}

/// How far the sum of a row may be from 1, by the rounding of printed numbers.
const ROUNDED: f64 = 2e-3;

/// Refuses rows that look like one softmax over labels of a hierarchy: each row sums to 1, and most
/// rows were inconsistent. One row is too little to tell.
///
/// # Errors
/// [`Error::OneSoftmax`].
pub fn refuse_softmax<T: Number>(
    graph: &RelationGraph,
    rows: FinishedRows<'_, T>,
    answer: &Reconciled<T>,
) -> Result<(), Error> {
    let FinishedRows::Probabilities(values) = rows else { return Ok(()) };
    let Some(edge) = graph.hierarchy().iter().find(|edge| edge.strength.is_hard()) else {
        return Ok(());
    };
    let (count, labels) = (answer.rows(), graph.len());
    let inconsistent = answer.input_violation.iter().filter(|off| **off > ROUNDED).count();
    let sums_to_one = |row: &[T]| {
        let sum: f64 = row.iter().map(|p| p.to_f64()).sum();
        (sum - 1.0).abs() <= ROUNDED
    };
    if count < 2
        || labels < 3
        || 2 * inconsistent <= count
        || !values.chunks_exact(labels).all(sums_to_one)
    {
        return Ok(());
    }
    let name = |label| graph.name(label).to_owned();
    Err(Error::OneSoftmax { labels, parent: name(edge.parent), child: name(edge.child) })
}

/// Which rows have a value whose logit is clipped, such as a probability of exactly 0 or 1. If such a
/// row changes, its gain counts from the clipped values.
pub fn clipped_rows<T: Number>(rows: FinishedRows<'_, T>, labels: usize) -> Vec<bool> {
    let is_clipped = |value: &T| match rows {
        FinishedRows::Probabilities(_) => logit(value.to_f64()).abs() > T::CLIP,
        FinishedRows::Logits(_) => value.to_f64().abs() > T::CLIP,
    };
    rows.values().chunks_exact(labels.max(1)).map(|row| row.iter().any(is_clipped)).collect()
}
