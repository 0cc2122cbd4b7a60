//! What a row gains at least, computed from the output itself.
//!
//! Let `p` be the input with logits `ℓ`, `q` the output with logits `z`, and `x = w (ℓ − z)`. For a
//! truth `y` the loss falls by `Σ w [log(1 − q) − log(1 − p)] − xᵀy`, so whatever the truth, it falls
//! by at least
//!
//! ```text
//! gain = Σ w [log(1 − q) − log(1 − p)] − max over legal y of xᵀy.
//! ```
//!
//! On a forest the maximum is found in one pass. Elsewhere any multipliers `λ` bound it from above:
//! `xᵀy ≤ bᵀλ + Σ max(0, x − Aᵀλ)`, because legal truths satisfy the rows `A y ≤ b`. The account
//! depends on no solver: rounding, repairs and stopped iterations are all part of it.
//!
//! The divergence of the output from the input is the same sum with `xᵀq` in place of the maximum.
//! It is at least what the best output gains, so `gap = divergence − gain` bounds how much more
//! there is to gain, and `|q − q*| ≤ √(gap / 2w)` for every label by Pinsker's inequality.
//!
//! The Brier score is the same with `p²` and `2 w (p − q)` in place of the logarithms and `x`.

use multiversion::multiversion;

use crate::numeric::{Grid, LogLane, softplus_lane};
use crate::reconcile::ReconcileLoss;
use crate::reconcile::compile::Families;

/// The sum that does not depend on the truth, and scratch memory.
#[derive(Debug, Default)]
pub(in crate::reconcile) struct Ledger {
    /// `x` for each label of the part, 0 for labels that did not move.
    pub(in crate::reconcile) shift: Vec<f64>,
    base: Vec<f64>,
    best: Vec<f64>,
}

/// What a row gains.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(in crate::reconcile) struct Account {
    /// At least, whatever the truth.
    pub(in crate::reconcile) gain: f64,
    /// How much the best output gains more, at most.
    pub(in crate::reconcile) gap: f64,
}

impl Ledger {
    /// Fills `shift` and returns `Σ w [log(1 − q) − log(1 − p)]`.
    ///
    /// `values` are the logits of the input (its probabilities for the Brier score).
    pub(in crate::reconcile) fn compare<T: Grid>(
        &mut self,
        loss: ReconcileLoss,
        values: &[f64],
        input: &[T],
        output: &[T],
        weights: &[f64],
    ) -> f64 {
        self.shift.resize(values.len(), 0.0);
        self.base.resize(values.len(), 0.0);
        entries(loss, values, input, output, &mut self.base, &mut self.shift);
        self.shift.iter_mut().zip(weights).for_each(|(shift, weight)| *shift *= weight);
        self.base.iter().zip(weights).map(|(base, weight)| base * weight).sum()
    }

    /// `xᵀq`.
    pub(in crate::reconcile) fn mean<T: Grid>(&self, output: &[T]) -> f64 {
        self.shift.iter().zip(output).map(|(shift, q)| shift * q.to_f64()).sum()
    }

    /// The account on a forest.
    pub(in crate::reconcile) fn close<T: Grid>(
        &mut self,
        forest: &Families,
        base: f64,
        output: &[T],
    ) -> Account {
        let most = self.most(forest);
        self.settle(base, most, output)
    }

    /// The account, given an upper bound of `xᵀy` over the legal states.
    pub(in crate::reconcile) fn settle<T: Grid>(
        &self,
        base: f64,
        most: f64,
        output: &[T],
    ) -> Account {
        Account { gain: base - most, gap: (most - self.mean(output)).max(0.0) }
    }

    /// The maximum of `xᵀy` over the legal states of a forest.
    fn most(&mut self, forest: &Families) -> f64 {
        let best = &mut self.best;
        best.clear();
        best.extend_from_slice(&self.shift);
        let mut total = 0.0;
        for g in (0..forest.groups()).rev() {
            let floor = if forest.equal[g] { f64::NEG_INFINITY } else { 0.0 };
            let most =
                best[forest.members(g)].iter().fold(floor, |a, &b| if a > b { a } else { b });
            match forest.parent[g] {
                crate::reconcile::compile::NONE => total += most,
                parent => best[parent as usize] += most,
            }
        }
        total
    }
}

/// For each label without its weight: `log(1 − q) − log(1 − p)` and `x`, or 0 and 0 if it did not
/// move.
pub(in crate::reconcile) fn entries<T: Grid>(
    loss: ReconcileLoss,
    values: &[f64],
    input: &[T],
    output: &[T],
    base: &mut [f64],
    shift: &mut [f64],
) {
    if loss != ReconcileLoss::Brier {
        return log_entries(values, input, output, base, shift);
    }
    let labels = values.iter().zip(input.iter().zip(output));
    for ((&p, (before, after)), (base, shift)) in labels.zip(base.iter_mut().zip(shift)) {
        let q = after.to_f64();
        let moved = before != after;
        *base = if moved { (p - q) * (p + q) } else { 0.0 };
        *shift = if moved { 2.0 * (p - q) } else { 0.0 };
    }
}

#[multiversion(targets = "simd")]
fn log_entries<T: Grid>(
    values: &[f64],
    input: &[T],
    output: &[T],
    base: &mut [f64],
    shift: &mut [f64],
) {
    let labels = values.iter().zip(input.iter().zip(output));
    for ((&value, (before, after)), (base, shift)) in labels.zip(base.iter_mut().zip(shift)) {
        let q = after.to_f64();
        let (on, off) = (q.ln_lane(), (1.0 - q).ln_lane());
        let moved = before != after;
        *base = if moved { off + softplus_lane(value) } else { 0.0 };
        *shift = if moved { value - (on - off) } else { 0.0 };
    }
}
