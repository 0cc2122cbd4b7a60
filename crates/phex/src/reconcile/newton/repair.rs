//! Makes the probabilities of any rows consistent to the last bit, and bounds what that costs.
//!
//! From the bottom, upper labels are lifted to the sum of their members: this costs little where
//! they are unlikely. Then, from the top, members that still exceed their limit are scaled down, as
//! on forests: this costs little where they are likely, and it never breaks a row above, because
//! rows stand in the order of their upper labels. So without one-of groups the result is always
//! consistent. One-of groups are scaled to 1 before each round, and after a few rounds they may
//! still be off; then the row needs more accurate multipliers.
//!
//! **Account.** With `x = w (ℓ − z)` of the output, any multipliers `λ` bound `xᵀy` for every truth:
//!
//! ```text
//! xᵀy ≤ bᵀλ + h(y) + Σ max(0, ε),      ε = x − Aᵀλ
//! ```
//!
//! where `h(y)` is what `y` pays for soft relations, 0 if it violates none. From the bottom, each
//! multiplier is set such that the largest `ε` of its members is 0, which passes their surplus to
//! their upper label once instead of counting it for each of them.

use super::super::account::{Account, Ledger};
use super::super::compile::NONE;
use super::super::repair::{excess, fit_group};
use super::system::RowSystem;
use crate::numeric::Grid;

/// How often one-of groups are scaled.
const ROUNDS: usize = 12;

/// Scratch memory.
#[derive(Debug, Default)]
pub(super) struct Mender<T> {
    members: Vec<T>,
    /// Whether each label is in an equation.
    tied: Vec<bool>,
    surplus: Vec<f64>,
    multiplier: Vec<f64>,
}

/// The sum of a row's members, and what it may be: `q_a` or 1.
#[inline(always)]
pub(super) fn sides<T: Grid>(system: &RowSystem, row: usize, q: &[T]) -> (f64, f64) {
    let sum = system.members.of(row).iter().map(|&label| q[label as usize].to_f64()).sum();
    let limit = match system.upper[row] {
        NONE => 1.0,
        upper => q[upper as usize].to_f64(),
    };
    (sum, limit)
}

/// The largest violation of a hard row, and what the violations of soft rows cost.
pub(super) fn violation<T: Grid>(system: &RowSystem, q: &[T]) -> (f64, f64) {
    let (mut worst, mut cost) = (0.0, 0.0);
    for row in 0..system.len() {
        let (sum, limit) = sides(system, row, q);
        if system.is_hard(row) {
            let off = excess::<T>(sum, limit, system.equal[row], system.members.of(row).len());
            worst = if off > worst { off } else { worst };
        } else if sum > limit {
            let cap = system.cap[row];
            let segments = (0..system.segments(row)).map(|j| (sum - limit - j as f64).max(0.0));
            cost += cap * segments.sum::<f64>();
        }
    }
    (worst, cost)
}

impl<T: Grid> Mender<T> {
    pub(super) fn new(system: &RowSystem) -> Mender<T> {
        let mut tied = vec![false; system.labels.len()];
        for row in (0..system.len()).filter(|&row| system.equal[row]) {
            system.members.of(row).iter().for_each(|&label| tied[label as usize] = true);
        }
        Mender { members: Vec::new(), tied, surplus: Vec::new(), multiplier: Vec::new() }
    }

    /// Makes probabilities consistent. Returns whether they are.
    pub(super) fn fit(&mut self, system: &RowSystem, q: &mut [T]) -> bool {
        let equations = self.tied.contains(&true);
        for _ in 0..ROUNDS {
            for row in (0..system.len()).filter(|&row| system.equal[row]) {
                self.scale(system, row, q, true, false);
            }
            self.lift(system, q, equations);
            for row in (0..system.len()).filter(|&row| !system.equal[row] && system.is_hard(row)) {
                let (sum, limit) = sides(system, row, q);
                if sum > limit {
                    if equations {
                        self.scale(system, row, q, false, true);
                    }
                    self.scale(system, row, q, false, false);
                }
            }
            if violation(system, q).0 == 0.0 {
                return true;
            }
        }
        false
    }

    /// Raises upper labels to the sum of their members, from the bottom.
    fn lift(&mut self, system: &RowSystem, q: &mut [T], always: bool) {
        let most = T::ONE.below();
        for row in (0..system.len()).rev() {
            let upper = system.upper[row];
            if upper == NONE || !system.is_hard(row) || self.tied[upper as usize] {
                continue;
            }
            let (sum, limit) = sides(system, row, q);
            let cheap = limit < 0.5 || sum - limit < 0.1 * (1.0 - limit);
            if sum > limit && (cheap || always) {
                let raised = T::round_up(sum);
                q[upper as usize] = if raised > most { most } else { raised };
            }
        }
    }

    /// Scales the members of a row to its limit: all of them, or those that are in no equation as
    /// far as they go.
    fn scale(&mut self, system: &RowSystem, row: usize, q: &mut [T], equal: bool, loose: bool) {
        let takes = |label: u32| !loose || !self.tied[label as usize];
        let labels = system.members.of(row);
        self.members.clear();
        self.members.extend(labels.iter().filter(|l| takes(**l)).map(|&l| q[l as usize]));
        if self.members.is_empty() || (loose && self.members.len() == labels.len()) {
            return;
        }
        let upper = system.upper[row];
        let mut limit = if upper == NONE { T::ONE } else { q[upper as usize] };
        if loose {
            let others = labels.iter().filter(|label| !takes(**label));
            let kept: f64 = others.map(|&label| q[label as usize].to_f64()).sum();
            let mine: f64 = self.members.iter().map(|q| q.to_f64()).sum();
            // Half of each at least, so that no probability becomes 0.
            limit = T::round_down((limit.to_f64() - kept).max(0.5 * mine));
        }
        fit_group(&mut self.members, limit, equal);
        let chosen = labels.iter().filter(|label| takes(**label));
        for (&label, &value) in chosen.zip(&self.members) {
            q[label as usize] = value;
        }
    }

    /// What a row gains at least.
    pub(super) fn account(
        &mut self,
        system: &RowSystem,
        ledger: &Ledger,
        base: f64,
        output: &[T],
        multipliers: &[f64],
    ) -> Account {
        let Mender { surplus, multiplier, .. } = self;
        surplus.clear();
        surplus.extend_from_slice(&ledger.shift);
        multiplier.clear();
        multiplier.extend((0..system.len()).map(|row| {
            let (low, high) = system.range(row);
            multipliers[row].clamp(low, high)
        }));
        let charge = |surplus: &mut [f64], row: usize, change: f64| {
            for &label in system.members.of(row) {
                surplus[label as usize] -= change;
            }
            if system.upper[row] != NONE {
                surplus[system.upper[row] as usize] += change;
            }
        };
        for (row, &lambda) in multiplier.iter().enumerate() {
            if lambda != 0.0 {
                charge(surplus, row, lambda);
            }
        }
        let mut most = 0.0;
        for row in (0..system.len()).rev() {
            if system.is_hard(row) {
                let members = system.members.of(row).iter().map(|&label| surplus[label as usize]);
                let largest = members.fold(f64::NEG_INFINITY, |a, b| if a > b { a } else { b });
                let (low, _) = system.range(row);
                let change = largest.max(low - multiplier[row]);
                if change != 0.0 {
                    multiplier[row] += change;
                    charge(surplus, row, change);
                }
            }
            most += system.price(row, multiplier[row]);
        }
        most += surplus.iter().map(|surplus| surplus.max(0.0)).sum::<f64>();
        let (_, cost) = violation(system, output);
        Account { gain: base - most, gap: (most - ledger.mean(output) + cost).max(0.0) }
    }
}
