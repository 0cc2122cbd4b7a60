//! Makes the probabilities of any rows consistent to the last bit, and bounds what that costs.
//!
//! From the bottom, unlikely upper labels are lifted to the sum of their members: this costs as much
//! as they move. (Lifting a label that is nearly 1 costs more: it could be off.) Then, from the top,
//! members that still exceed their limit are scaled down, as on forests, and this never breaks a row
//! above, because rows stand in the order of their upper labels. So without one-of groups the
//! result is always consistent. One-of groups are filled to 1 before each round, never above, because
//! relations that they imply must hold too. After a few rounds they may still be off; then the row needs
//! more accurate multipliers.
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

use super::super::compile::NONE;
use super::super::rows::account::{Account, Ledger};
use super::super::rows::repair::{excess, fit_group};
use super::system::RowSystem;
use crate::lists::Lists;
use crate::numeric::Grid;

/// How often one-of groups are scaled.
const ROUNDS: usize = 12;

/// In later rounds, likely labels above one-of groups are lifted too.
const PATIENCE: usize = 6;

/// Scratch memory.
#[derive(Debug)]
pub(super) struct Mender<T> {
    members: Vec<T>,
    /// Whether each label is in an equation, and the rows of which each is a member.
    tied: Vec<bool>,
    rows: Lists<u32>,
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

/// Whether a one-of group exceeds its limit, if only by rounding. Relations that the group implies would too.
fn overfull<T: Grid>(system: &RowSystem, q: &[T]) -> bool {
    (0..system.len()).filter(|&row| system.equal[row]).any(|row| {
        let (sum, limit) = sides(system, row, q);
        sum > limit
    })
}

impl<T: Grid> Mender<T> {
    pub(super) fn new(system: &RowSystem) -> Mender<T> {
        let mut tied = vec![false; system.labels.len()];
        for row in (0..system.len()).filter(|&row| system.equal[row]) {
            system.members.of(row).iter().for_each(|&label| tied[label as usize] = true);
        }
        let pairs = (0..system.len()).flat_map(|row| {
            system.members.of(row).iter().map(move |&label| (label as usize, row as u32))
        });
        let rows = Lists::by_key(system.labels.len(), pairs);
        Mender { members: Vec::new(), tied, rows, surplus: Vec::new(), multiplier: Vec::new() }
    }

    /// Makes probabilities consistent. Returns whether they are.
    pub(super) fn fit(&mut self, system: &RowSystem, q: &mut [T]) -> bool {
        let equations = self.tied.contains(&true);
        for round in 0..ROUNDS {
            for row in (0..system.len()).filter(|&row| system.equal[row]) {
                if round > 1 {
                    self.fill_room(system, row, q);
                }
                self.fill(system, row, q);
            }
            self.lift(system, q, round >= PATIENCE);
            for row in (0..system.len()).filter(|&row| !system.equal[row] && system.is_hard(row)) {
                let (sum, limit) = sides(system, row, q);
                if sum > limit {
                    if equations {
                        self.lower(system, row, q, true);
                    }
                    self.lower(system, row, q, false);
                }
            }
            let last = round + 1 == ROUNDS;
            if violation(system, q).0 == 0.0 && (last || !overfull(system, q)) {
                return true;
            }
        }
        false
    }

    /// Raises unlikely upper labels to the sum of their members, from the bottom, and likely ones
    /// above one-of groups if nothing else helps.
    fn lift(&mut self, system: &RowSystem, q: &mut [T], always: bool) {
        let most = T::ONE.below();
        for row in (0..system.len()).rev() {
            let upper = system.upper[row];
            if upper == NONE || !system.is_hard(row) || self.tied[upper as usize] {
                continue;
            }
            let (sum, limit) = sides(system, row, q);
            let tied = || system.members.of(row).iter().any(|&label| self.tied[label as usize]);
            if sum > limit && (limit < 0.5 || (always && tied())) {
                let raised = T::round_up(sum);
                q[upper as usize] = if raised > most { most } else { raised };
            }
        }
    }

    /// Makes a one-of group sum to 1. What is missing goes to its unlikely members, and what is too
    /// much comes from a likely one: both cost about as much as they move.
    fn fill(&mut self, system: &RowSystem, row: usize, q: &mut [T]) {
        let (sum, limit) = sides(system, row, q);
        let labels = system.members.of(row);
        if sum <= limit && excess::<T>(sum, limit, true, labels.len()) == 0.0 {
            return;
        }
        let value = |q: &[T], label: u32| q[label as usize].to_f64();
        // No probability becomes 0.
        let some = |value: f64| {
            let scaled = T::from_f64(value);
            if scaled > T::ZERO { scaled } else { T::round_up(1e-300) }
        };
        let top = labels.iter().copied().max_by(|&a, &b| value(q, a).total_cmp(&value(q, b)));
        let Some(top) = top else { return };
        let likely = value(q, top);
        let others = sum - likely;
        if likely < 0.5 || others <= 0.0 {
            for &label in labels {
                q[label as usize] = some(value(q, label) * limit / sum);
            }
        } else if sum > limit && limit > others {
            q[top as usize] = T::from_f64(limit - others);
        } else {
            let scale = (limit - likely).max(0.0) / others;
            for &label in labels.iter().filter(|label| **label != top) {
                q[label as usize] = some(value(q, label) * scale);
            }
        }
        // What rounding added is taken from the largest.
        let (mut sum, limit) = sides(system, row, q);
        while sum > limit && q[top as usize] > T::ZERO {
            let (next, exact) = (q[top as usize].below(), value(q, top) - (sum - limit));
            let exact = T::round_down(exact.max(0.0));
            q[top as usize] = if exact < next { exact } else { next };
            sum = sides(system, row, q).0;
        }
    }

    /// Gives what a one-of group lacks to members whose rows have room for it.
    fn fill_room(&self, system: &RowSystem, row: usize, q: &mut [T]) {
        for &label in system.members.of(row) {
            let (sum, limit) = sides(system, row, q);
            let lacks = limit - sum;
            if lacks <= 0.0 {
                return;
            }
            let others = self.rows.of(label as usize).iter().map(|&other| other as usize);
            let limiting = others.filter(|&other| other != row && system.is_hard(other));
            let room = limiting.map(|other| {
                let (sum, limit) = sides(system, other, q);
                limit - sum
            });
            let room = room.fold(lacks, f64::min).max(0.0);
            q[label as usize] = T::from_f64(q[label as usize].to_f64() + room);
        }
    }

    /// Scales the members of a row to its limit: all of them, or those that are in no equation as
    /// far as they go.
    fn lower(&mut self, system: &RowSystem, row: usize, q: &mut [T], loose: bool) {
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
        fit_group(&mut self.members, limit, false);
        let chosen = labels.iter().filter(|label| takes(**label));
        for (&label, &value) in chosen.zip(&self.members) {
            // What rounding left goes to the largest member. Above its old value it could break another row.
            let old = q[label as usize];
            let value = if value > old { old } else { value };
            // Rounding down must not make a probability 0, or its loss could be infinite.
            let least = T::round_up(1e-300);
            q[label as usize] = if value < least { least } else { value };
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
