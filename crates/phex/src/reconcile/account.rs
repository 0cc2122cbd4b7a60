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

use super::ReconcileLoss;
use super::compile::Families;
use crate::numeric::{Grid, ln_slice, softplus_slice};

/// The sum that does not depend on the truth, and scratch memory.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// `x` for each label of the part, 0 for labels that did not move.
    pub(super) shift: Vec<f64>,
    moved: Vec<u32>,
    buffers: [Vec<f64>; 3],
    best: Vec<f64>,
}

/// What a row gains.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Account {
    /// At least, whatever the truth.
    pub(super) gain: f64,
    /// How much the best output gains more, at most.
    pub(super) gap: f64,
}

impl Ledger {
    /// Fills `shift` and returns `Σ w [log(1 − q) − log(1 − p)]`.
    ///
    /// `values` are the logits of the input (its probabilities for the Brier score).
    pub(super) fn compare<T: Grid>(
        &mut self,
        loss: ReconcileLoss,
        values: &[f64],
        input: &[T],
        output: &[T],
        weights: &[f64],
    ) -> f64 {
        self.shift.clear();
        self.shift.resize(values.len(), 0.0);
        self.moved.clear();
        let changed = input.iter().zip(output).enumerate().filter(|(_, (p, q))| p != q);
        self.moved.extend(changed.map(|(at, _)| at as u32));
        if loss == ReconcileLoss::Brier {
            let mut base = 0.0;
            for &at in &self.moved {
                let at = at as usize;
                let (p, q, w) = (values[at], output[at].to_f64(), weights[at]);
                base += w * (p - q) * (p + q);
                self.shift[at] = 2.0 * w * (p - q);
            }
            return base;
        }
        let [before, on, off] = &mut self.buffers;
        before.clear();
        before.extend(self.moved.iter().map(|&at| values[at as usize]));
        softplus_slice(before);
        on.clear();
        on.extend(self.moved.iter().map(|&at| output[at as usize].to_f64()));
        off.clear();
        off.extend(on.iter().map(|q| 1.0 - q));
        ln_slice(on);
        ln_slice(off);
        let mut base = 0.0;
        for (slot, &at) in self.moved.iter().enumerate() {
            let at = at as usize;
            base += weights[at] * (off[slot] + before[slot]);
            self.shift[at] = weights[at] * (values[at] - (on[slot] - off[slot]));
        }
        base
    }

    /// `xᵀq`.
    pub(super) fn mean<T: Grid>(&self, output: &[T]) -> f64 {
        self.moved.iter().map(|&at| self.shift[at as usize] * output[at as usize].to_f64()).sum()
    }

    /// The account on a forest.
    pub(super) fn close<T: Grid>(&mut self, forest: &Families, base: f64, output: &[T]) -> Account {
        let most = self.most(forest);
        self.settle(base, most, output)
    }

    /// The account, given an upper bound of `xᵀy` over the legal states.
    pub(super) fn settle<T: Grid>(&self, base: f64, most: f64, output: &[T]) -> Account {
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
                super::compile::NONE => total += most,
                parent => best[parent as usize] += most,
            }
        }
        total
    }
}
