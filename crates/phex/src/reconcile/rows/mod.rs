//! Rows as engines see them: checked input, one outcome per row, and the account of constant labels.

pub(super) mod account;
pub(super) mod input;
pub(super) mod repair;
pub(super) mod result;

use multiversion::multiversion;

use super::FinishedRows;
use super::ReconcileLoss;
use crate::infer::{Diagnosis, Number, Trust};
use crate::numeric::{Grid, LogLane, probability_lane};

/// The part of the options that matters while rows run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSettings {
    pub(super) loss: ReconcileLoss,
    pub(super) tolerance: f64,
    pub(super) passes: u32,
    /// How often `newton` tries a row, each time more precisely.
    pub(super) attempts: usize,
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
        let (cells, form) = self.source(loss);
        let row = &cells[row * self.labels..(row + 1) * self.labels];
        for (out, &label) in out.iter_mut().zip(labels) {
            *out = row[label as usize].to_f64();
        }
        form.apply(out, T::CLIP);
    }

    /// The numbers from which values are made, and how.
    pub(super) fn source(&self, loss: ReconcileLoss) -> (&[T], ValueForm) {
        match (self.input, loss) {
            (_, ReconcileLoss::Brier) => (self.probabilities, ValueForm::Same),
            (FinishedRows::Logits(cells), _) => (cells, ValueForm::Clipped),
            (FinishedRows::Probabilities(cells), _) => (cells, ValueForm::LogOdds),
        }
    }
}

/// How the values that are projected follow from the input.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueForm {
    /// They are the input.
    Same,
    /// The input is logits.
    Clipped,
    /// The input is probabilities, whose logits are projected.
    LogOdds,
}

impl ValueForm {
    /// Replaces the input by the values.
    pub(super) fn apply(self, numbers: &mut [f64], most: f64) {
        match self {
            ValueForm::Same => {}
            ValueForm::Clipped => {
                numbers.iter_mut().for_each(|number| *number = number.clamp(-most, most));
            }
            ValueForm::LogOdds => log_odds(numbers, most),
        }
    }
}

/// Replaces probabilities by clipped logits. Both logarithms keep their digits, near 0 as well as
/// near 1.
#[multiversion(targets = "simd")]
fn log_odds(numbers: &mut [f64], most: f64) {
    for number in numbers {
        let (on, off) = (*number, 1.0 - *number);
        let on = if on > TINY { on } else { TINY };
        let off = if off > TINY { off } else { TINY };
        let logit = on.ln_lane() - off.ln_lane();
        let logit = if logit > most { most } else { logit };
        *number = if logit < -most { -most } else { logit };
    }
}

/// Below every clipped probability, and a normal number.
const TINY: f64 = 1e-300;

/// Turns the answer `z` into probabilities. Labels whose value did not change keep the bits of the
/// input.
pub(super) fn round<T: Grid>(
    loss: ReconcileLoss,
    values: &[f64],
    z: &[f64],
    input: &[T],
    output: &mut [T],
) {
    if loss != ReconcileLoss::Brier {
        return round_logits(values, z, input, output);
    }
    for (((out, &z), value), &p) in output.iter_mut().zip(z).zip(values).zip(input) {
        *out = if z == *value { p } else { T::from_f64(z) };
    }
}

#[multiversion(targets = "simd")]
fn round_logits<T: Grid>(values: &[f64], z: &[f64], input: &[T], output: &mut [T]) {
    for (((out, &z), value), &p) in output.iter_mut().zip(z).zip(values).zip(input) {
        let q = T::towards_half(probability_lane(z));
        *out = if z == *value { p } else { q };
    }
}

/// Whether a gain is accepted. At the last attempt, rounding may cost a little.
pub(super) fn accepted<T: Grid>(gain: f64, last: bool) -> bool {
    gain >= 0.0 || (last && gain >= -(64.0 * T::STEP).max(1e-9))
}
