//! `newton`: any relations, label weights and soft relations, by Newton's method on the multipliers.
//!
//! With the rows `A q ≤ b` of [`system`], the answer is `z = ℓ − W⁻¹Aᵀλ` for the multipliers that
//! maximise `d(λ) = Σ w [softplus(ℓ) − softplus(z)] − bᵀλ` over `λ ≥ 0` (any sign for equations, at
//! most the cap for soft rows). A Newton step solves `A V W⁻¹ Aᵀ Δ = A q − b` over the free rows,
//! with a factor whose pattern is found once ([`elimination`]). Typical rows need 10 to 20 steps.
//!
//! | module | what it has |
//! |---|---|
//! | [`cliques`] | from relations to rows |
//! | [`elimination`] | the factorisation |
//! | [`lanes`] | ascent and Newton steps for several rows side by side |
//! | [`solve`] | which row takes which step, and when it is done |
//! | [`repair`] | consistent to the last bit, and what each row gains |
//! | [`tangent`] | gradients, for every engine |

mod cliques;
#[allow(clippy::needless_range_loop)] // Loops over lanes index several arrays at once.
mod elimination;
#[allow(clippy::needless_range_loop)] // Loops over lanes index several arrays at once.
mod lanes;
mod repair;
mod solve;
mod system;
mod tangent;

use self::elimination::Elimination;
use self::repair::{Mender, violation};
pub(super) use self::system::{Inequality, RowSystem};
pub(super) use self::tangent::{SIDE, Tangent, TangentRow};
use super::family::Stopping;
use super::forest::Desk;
use super::rows::{Chunk, RunSettings, accepted};
use crate::infer::Number;

/// A part of the graph with its rows and its factor.
#[derive(Debug)]
pub(super) struct NewtonPart {
    pub(super) system: RowSystem,
    /// `None` when the factor would be too large. Then all passes are ascent.
    plan: Option<Elimination>,
    lightest: f64,
}

impl NewtonPart {
    pub(super) fn new(system: RowSystem) -> NewtonPart {
        let plan = Elimination::of(&system);
        let lightest = system.weights.iter().copied().fold(f64::INFINITY, f64::min);
        NewtonPart { system, plan, lightest }
    }

    /// How many multiplications a factorisation takes. `None` without a factor.
    pub(super) fn updates(&self) -> Option<usize> {
        self.plan.as_ref().map(Elimination::updates)
    }

    /// Reconciles the rows of a chunk.
    pub(super) fn run<T: Number>(&self, chunk: &mut Chunk<'_, T>, settings: &RunSettings) {
        let system = &self.system;
        let mut desk = Desk::new(system.labels.len());
        let mut mender = Mender::new(system);
        let mut todo = Vec::new();
        for row in 0..chunk.rows() {
            chunk.gather(row, &system.labels, &mut desk.input);
            let (off, cost) = violation(system, &desk.input);
            if off > 0.0 || cost > 0.0 {
                chunk.outcomes[row].see_violation(off);
                todo.push(row);
            }
        }
        let mut stopping = Stopping { tolerance: settings.tolerance, passes: settings.passes };
        let mut change = vec![0.0; system.labels.len()];
        for attempt in 0..settings.attempts {
            let mut again = Vec::new();
            let cell = std::cell::RefCell::new(&mut *chunk);
            let load = |row: usize, out: &mut [f64]| {
                cell.borrow().values(row, &system.labels, settings.loss, out);
            };
            let done = |row: usize, multipliers: &[f64], passes: u32| {
                let chunk = &mut cell.borrow_mut();
                desk.open(chunk, &system.labels, row, settings);
                self.shift(multipliers, &mut change);
                for ((z, &value), &change) in desk.z.iter_mut().zip(&desk.values).zip(&change) {
                    *z = value - change;
                }
                let last = attempt > 0;
                let mut finish = Finish { part: self, mender: &mut mender, settings, last };
                if !finish.row(chunk, &mut desk, row, multipliers, passes) {
                    again.push(row);
                }
            };
            let plan = self.plan.as_ref();
            if attempt > 0 {
                solve::solve::<f64, 1>(system, plan, &todo, stopping, load, done);
            } else if T::STEP > 1e-10 {
                solve::solve::<T, 16>(system, plan, &todo, stopping, load, done);
            } else {
                solve::solve::<T, 8>(system, plan, &todo, stopping, load, done);
            }
            if again.is_empty() {
                return;
            }
            todo = again;
            stopping = stopping.harder();
        }
        todo.into_iter().for_each(|row| chunk.outcomes[row].give_up());
    }

    /// `W⁻¹Aᵀλ`.
    fn shift(&self, multipliers: &[f64], change: &mut [f64]) {
        let system = &self.system;
        change.fill(0.0);
        for (row, &lambda) in multipliers.iter().enumerate().filter(|(_, lambda)| **lambda != 0.0) {
            system.members.of(row).iter().for_each(|&label| change[label as usize] += lambda);
            if system.upper[row] != super::compile::NONE {
                change[system.upper[row] as usize] -= lambda;
            }
        }
        change.iter_mut().zip(&system.weights).for_each(|(change, weight)| *change /= weight);
    }
}

/// The last steps of a row.
struct Finish<'a, T> {
    part: &'a NewtonPart,
    mender: &'a mut Mender<T>,
    settings: &'a RunSettings,
    last: bool,
}

impl<T: Number> Finish<'_, T> {
    /// Rounds, repairs and accounts for the answer in `z`, and writes it if it is accepted.
    fn row(
        &mut self,
        chunk: &mut Chunk<'_, T>,
        desk: &mut Desk<T>,
        row: usize,
        multipliers: &[f64],
        passes: u32,
    ) -> bool {
        let system = &self.part.system;
        desk.round(self.settings);
        if !self.mender.fit(system, &mut desk.output) {
            return false;
        }
        let base = desk.ledger.compare(
            self.settings.loss,
            &desk.values,
            &desk.input,
            &desk.output,
            &system.weights,
        );
        let account = self.mender.account(system, &desk.ledger, base, &desk.output, multipliers);
        if !accepted::<T>(account.gain, self.last) {
            return false;
        }
        chunk.scatter(row, &system.labels, &desk.output);
        let (off, _) = violation(system, &desk.output);
        chunk.outcomes[row].add(account, off, passes, false, self.part.lightest);
        true
    }
}
