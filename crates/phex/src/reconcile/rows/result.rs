//! Rows of finished probabilities, and the consistent ones that replace them.

use crate::infer::Trust;
use crate::numeric::{Grid, Scalar};

/// Rows of finished probabilities, one value per label, row after row.
#[derive(Debug, Clone, Copy)]
pub enum FinishedRows<'a, T> {
    /// Probabilities in `[0, 1]`.
    Probabilities(&'a [T]),
    /// Logits `log(p / (1 − p))`. They keep the digits that probabilities near 1 lose. Infinite
    /// logits stand for the probabilities 0 and 1. For the categorical loss, they are the logits of
    /// softmax heads.
    Logits(&'a [T]),
}

impl<'a, T> FinishedRows<'a, T> {
    /// The values.
    pub fn values(&self) -> &'a [T] {
        match self {
            FinishedRows::Probabilities(values) | FinishedRows::Logits(values) => values,
        }
    }

    /// At most this many of the values, from the start.
    pub(in crate::reconcile) fn first(self, most: usize) -> FinishedRows<'a, T> {
        let cut = |values: &'a [T]| &values[..values.len().min(most)];
        match self {
            FinishedRows::Probabilities(values) => FinishedRows::Probabilities(cut(values)),
            FinishedRows::Logits(values) => FinishedRows::Logits(cut(values)),
        }
    }
}

/// Consistent probabilities for a block of rows, and what is guaranteed about each row.
///
/// For every row and every legal truth `y`, `loss(y, input) − loss(y, output) ≥ gain`. The loss is
/// the sum over labels. Where a row contained 0 or 1 and had to change, the input counts as clipped
/// to logits of ±30 (±15 in single precision), because the loss would be infinite otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconciled<T> {
    /// How many labels each row has.
    pub labels: usize,
    /// The probability of each label, row after row.
    pub probabilities: Vec<T>,
    /// By how much the loss of each row falls at least, whatever its legal truth. 0 for rows that
    /// were consistent: they come back bit for bit. Rounding to the number type is part of the
    /// account, so a tiny gain may be negative: by less than 10⁻⁵ in single precision and 10⁻⁹ in
    /// double precision.
    pub gain: Vec<f64>,
    /// By how much the loss could fall more at most. 0 up to rounding when the answer is the best.
    pub gap: Vec<f64>,
    /// The largest violation of a relation by each row of the output: 0, or rounding of an
    /// equation. If an engine gave up on a row, the row is the input, and this is its violation.
    pub violation: Vec<f64>,
    /// The largest violation of a relation by each row of the input.
    pub input_violation: Vec<f64>,
    /// How many passes the engine took for each row: 0 for rows that were consistent.
    pub passes: Vec<u32>,
    /// How far each row can be from the best consistent one. `Certified(δ)` bounds the distance of
    /// every probability.
    pub trust: Vec<Trust>,
}

impl<T: Scalar> Reconciled<T> {
    pub(in crate::reconcile) fn new(labels: usize, rows: usize) -> Reconciled<T> {
        Reconciled {
            labels,
            probabilities: vec![T::ZERO; rows * labels],
            gain: vec![0.0; rows],
            gap: vec![0.0; rows],
            violation: vec![0.0; rows],
            input_violation: vec![0.0; rows],
            passes: vec![0; rows],
            trust: vec![Trust::Exact; rows],
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.gain.len()
    }

    /// The probabilities of a row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.probabilities[row * self.labels..(row + 1) * self.labels]
    }

    /// Whether a row was consistent and came back as it was.
    pub fn is_unchanged(&self, row: usize) -> bool {
        self.passes[row] == 0
    }
}

#[allow(private_bounds)] // Sealed, because rounding is private.
impl<T: Grid> Reconciled<T> {
    /// The logits of the probabilities, clipped to ±30 (±15 in single precision).
    pub fn logits(&self) -> Vec<T> {
        let logit = |p: &T| {
            let p = p.to_f64();
            let logit = p.ln() - (-p).ln_1p();
            T::from_f64(logit.clamp(-T::CLIP, T::CLIP))
        };
        self.probabilities.iter().map(logit).collect()
    }
}
