//! Rows as engines see them: checked input, one outcome per row, and the account of constant labels.

use super::ReconcileLoss;
use super::result::FinishedRows;
use crate::infer::{Diagnosis, Number, Trust};
use crate::numeric::{Grid, ln_slice, sigmoid_slice};

/// The part of the options that matters while rows run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSettings {
    pub(super) loss: ReconcileLoss,
    pub(super) tolerance: f64,
    pub(super) passes: u32,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowOutcome {
    pub(super) gain: f64,
    pub(super) gap: f64,
    pub(super) violation: f64,
    pub(super) input_violation: f64,
    pub(super) passes: u32,
    /// How far a probability may be from the best one.
    pub(super) distance: f64,
    /// Whether an engine gave up, and a part of the row is the input.
    pub(super) failed: bool,
}

impl RowOutcome {
    /// Notes how inconsistent a part of the input is.
    pub(super) fn see_violation(&mut self, off: f64) {
        self.input_violation = self.input_violation.max(off);
    }

    /// A part of the row stays as it was.
    pub(super) fn give_up(&mut self) {
        self.failed = true;
        self.violation = self.input_violation;
        self.passes = self.passes.max(1);
    }

    pub(super) fn trust(&self) -> Trust {
        if self.failed {
            let residual = self.violation;
            let iterations = self.passes;
            Trust::Approximate(Diagnosis { iterations, residual, ..Diagnosis::default() })
        } else if self.distance > 0.0 {
            Trust::Certified(self.distance)
        } else {
            Trust::Exact
        }
    }
}

/// Some rows of a block, and their outcomes.
pub(super) struct Chunk<'a, T> {
    pub(super) labels: usize,
    pub(super) input: FinishedRows<'a, T>,
    /// The input as probabilities at first, and the output in the end.
    pub(super) probabilities: &'a mut [T],
    pub(super) outcomes: &'a mut [RowOutcome],
}

impl<T: Number> Chunk<'_, T> {
    pub(super) fn rows(&self) -> usize {
        self.outcomes.len()
    }

    /// The probabilities of some labels of a row.
    pub(super) fn gather(&self, row: usize, labels: &[u32], out: &mut [T]) {
        let row = &self.probabilities[row * self.labels..(row + 1) * self.labels];
        for (out, &label) in out.iter_mut().zip(labels) {
            *out = row[label as usize];
        }
    }

    /// Writes the probabilities of some labels of a row.
    pub(super) fn scatter(&mut self, row: usize, labels: &[u32], values: &[T]) {
        let row = &mut self.probabilities[row * self.labels..(row + 1) * self.labels];
        for (&value, &label) in values.iter().zip(labels) {
            row[label as usize] = value;
        }
    }

    /// What is projected: the clipped logits of a row's input, or its probabilities for the Brier
    /// score.
    pub(super) fn values(&self, row: usize, labels: &[u32], loss: ReconcileLoss, out: &mut [f64]) {
        let start = row * self.labels;
        let at = |label: &u32| self.input.values()[start + *label as usize].to_f64();
        match (self.input, loss) {
            (_, ReconcileLoss::Brier) => {
                for (out, label) in out.iter_mut().zip(labels) {
                    *out = self.probabilities[start + *label as usize].to_f64();
                }
            }
            (FinishedRows::Logits(_), _) => {
                for (out, label) in out.iter_mut().zip(labels) {
                    *out = at(label).clamp(-T::CLIP, T::CLIP);
                }
            }
            (FinishedRows::Probabilities(_), _) => {
                // Both logarithms keep their digits, near 0 as well as near 1.
                let mut off: Vec<f64> =
                    labels.iter().map(|label| (1.0 - at(label)).max(TINY)).collect();
                for (out, label) in out.iter_mut().zip(labels) {
                    *out = at(label).max(TINY);
                }
                ln_slice(out);
                ln_slice(&mut off);
                for (out, off) in out.iter_mut().zip(off) {
                    *out = (*out - off).clamp(-T::CLIP, T::CLIP);
                }
            }
        }
    }
}

/// Below every clipped probability, and a normal number.
const TINY: f64 = 1e-300;

/// Turns the answer `z` into probabilities. Labels whose value did not change keep the bits of the
/// input. `z` is overwritten.
pub(super) fn round<T: Grid>(
    loss: ReconcileLoss,
    values: &[f64],
    z: &mut [f64],
    input: &[T],
    output: &mut [T],
) {
    let stays: Vec<bool> = z.iter().zip(values).map(|(z, value)| z == value).collect();
    if loss != ReconcileLoss::Brier {
        sigmoid_slice(z);
    }
    for (at, out) in output.iter_mut().enumerate() {
        *out = if stays[at] {
            input[at]
        } else if loss == ReconcileLoss::Brier {
            T::from_f64(z[at])
        } else {
            T::towards_half(z[at])
        };
    }
}

/// Whether a gain is accepted. At the last attempt, rounding may cost a little.
pub(super) fn accepted<T: Grid>(gain: f64, last: bool) -> bool {
    gain >= 0.0 || (last && gain >= -(64.0 * T::STEP).max(1e-9))
}
