//! `mean-field` approximates the model by independent nodes, which gives a lower bound on log Z.
//!
//! For any `q(x) = Π q_node`, `log Z ≥ E_q[log weight(x)] + H(q)`. The bound is computed from the
//! final `q`, so it holds wherever the ascent stopped. The ascent starts from the scores alone and
//! goes node by node ([`ascent`]).
//!
//! A forbidden cell with any mass makes the bound −∞. So hard models first need distributions whose
//! states are all compatible. An ascent with finite costs in place of infinite ones finds which
//! states are wanted. Then the nodes decide, most certain first, as far as they must
//! ([`Support::settle`]), and the ascent continues from there. With strong relations, a second
//! ascent starts in the same way from the scores but treats strong relations as hard, and the
//! better bound of each row is kept. At costs of 12 this closes most of the gap.
//!
//! A sweep costs O(entries), where an exclusion group of k labels has k entries.

// Loops over lanes index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod ascent;
mod energy;

use crate::infer::{Kernel, forward_to_own};
use std::ops::Range;

use ascent::Ascent;
use energy::Energy;

use crate::infer::approximate::network::{Frame, Live, Network, PairPlace, Support};
use crate::infer::registers::run_in_registers;
use crate::infer::{
    Answers, Block, Diagnosis, GroupForm, MessageOptions, NO_BOUND, Number, Options, Unfit,
};
use crate::model::Model;

/// How many rows run side by side.
const LANES: usize = 8;

/// From this cost on, a relation counts as strong: the second ascent starts from states that do not
/// violate it.
const STRONG: f64 = 3.0;

/// A model compiled for mean field.
#[derive(Debug)]
pub(crate) struct MeanField {
    network: Network,
    frame: Frame,
    support: Support,
    /// The same with strong relations treated as hard.
    strong: Support,
    energy: Energy,
    messages: MessageOptions,
}

/// The answers for some rows.
struct RowsFound<const L: usize> {
    ascent: Ascent<L>,
    bound: [f64; L],
    diagnosis: [Diagnosis; L],
}

impl MeanField {
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<MeanField, Unfit> {
        let network = Network::new(model, GroupForm::Cardinality)?;
        let frame = Frame::new(&network);
        let support = Support::new(&network, &frame, f64::INFINITY);
        let strong = Support::new(&network, &frame, STRONG);
        let energy = Energy::new(&network, &frame, &support);
        Ok(MeanField { network, frame, support, strong, energy, messages: options.messages })
    }

    /// Operations per row, for the number of sweeps that moderate relations need.
    pub(crate) fn operations(&self) -> f64 {
        let sweeps = f64::from(self.messages.iterations.min(30));
        sweeps * (20.0 * self.frame.states() as f64 + 4.0 * self.network.entries() as f64)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let lanes = 8 * LANES * (3 * self.frame.states() + self.network.entries());
        (3 * lanes + 48 * self.network.entries()) as u64
    }

    pub(crate) fn run<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let (one, many) = (Self::run_rows::<T, 1>, Self::run_rows::<T, LANES>);
        run_in_registers(self, block, answers, LANES, one, many);
    }

    /// Runs some rows. Lanes beyond them repeat the last row.
    fn run_rows<T: Number, const L: usize>(
        &self,
        block: &Block<'_, T>,
        rows: Range<usize>,
        answers: &mut Answers<'_, T>,
    ) {
        let mut ascent = Ascent::<L>::new(&self.energy, self.frame.states());
        let possible =
            self.support.weigh(&self.network, &self.frame, block, &rows, &mut ascent.weights);
        ascent.start_at_scores(&self.frame);
        let found = self.climb_twice(&ascent);
        for (lane, row) in rows.enumerate() {
            self.write(&found, lane, row, answers);
            if !possible[lane] {
                answers.log_partition[row] = f64::NEG_INFINITY;
            }
        }
    }

    /// Continues the ascent from its current distributions.
    fn climb<const L: usize>(&self, mut ascent: Ascent<L>) -> RowsFound<L> {
        let limits = (self.messages.iterations, self.messages.tolerance);
        let course = ascent.climb(&self.energy, &self.frame, true, limits);
        let bound = ascent.bound(&self.energy);
        let diagnosis = std::array::from_fn(|lane| Diagnosis {
            iterations: course.iterations[lane],
            converged: course.residual[lane] <= self.messages.tolerance,
            residual: course.residual[lane],
            ..Diagnosis::default()
        });
        RowsFound { ascent, bound, diagnosis }
    }

    /// Runs the ascent from two starting points, and keeps the better bound of each row.
    fn climb_twice<const L: usize>(&self, scores: &Ascent<L>) -> RowsFound<L> {
        let mut soft = scores.clone();
        let mut best = if self.energy.is_hard() {
            let limits = (self.messages.iterations, self.messages.tolerance.max(1e-4));
            soft.climb(&self.energy, &self.frame, false, limits);
            self.climb_settled(&soft, &self.support)
        } else {
            self.climb(scores.clone())
        };
        if self.strong.is_empty() {
            return best;
        }
        let other = self.climb_settled(scores, &self.strong);
        for lane in 0..L {
            let copy = |to: &mut Ascent<L>, from: &Ascent<L>| {
                let masses = to.mass.iter_mut().zip(&from.mass);
                masses.for_each(|(to, from)| to.0[lane] = from.0[lane]);
            };
            if other.bound[lane] > best.bound[lane] {
                best.bound[lane] = other.bound[lane];
                best.diagnosis[lane] = other.diagnosis[lane];
                copy(&mut best.ascent, &other.ascent);
            }
            if best.bound[lane] == f64::NEG_INFINITY {
                best.bound[lane] = NO_BOUND;
                best.diagnosis[lane].converged = false;
                copy(&mut best.ascent, &soft);
            }
        }
        best.ascent.tally(&self.energy);
        best
    }

    /// Keeps the states of each node that are compatible with those of the others, and continues
    /// the ascent from there.
    fn climb_settled<const L: usize>(&self, from: &Ascent<L>, support: &Support) -> RowsFound<L> {
        let mut ascent = from.clone();
        let mut settled = [true; L];
        let mut live = Live::default();
        for lane in 0..L {
            let weights: Vec<f64> = from.weights.iter().map(|weight| weight.0[lane]).collect();
            let mass = |state: usize| from.mass[state].0[lane];
            let sure = |node: usize| self.frame.of(node).map(mass).fold(0.0, f64::max);
            let mut order: Vec<usize> = (0..self.frame.nodes()).collect();
            order.sort_by(|&a, &b| sure(b).total_cmp(&sure(a)));
            settled[lane] = support.start(&weights, &mut live)
                && support.settle(&self.frame, &mut live, &order, mass);
            if !settled[lane] {
                continue;
            }
            for node in 0..self.frame.nodes() {
                let states = || self.frame.of(node).filter(|&state| live.state[state]);
                let (sum, count) = (states().map(mass).sum::<f64>(), states().count() as f64);
                for state in self.frame.of(node) {
                    let share = if sum > 0.0 { mass(state) / sum } else { 1.0 / count };
                    ascent.mass[state].0[lane] = if live.state[state] { share } else { 0.0 };
                }
            }
        }
        let mut found = self.climb(ascent);
        for lane in (0..L).filter(|&lane| !settled[lane]) {
            found.bound[lane] = f64::NEG_INFINITY;
        }
        found
    }

    fn write<T: Number, const L: usize>(
        &self,
        found: &RowsFound<L>,
        lane: usize,
        row: usize,
        answers: &mut Answers<'_, T>,
    ) {
        let n = self.network.labels;
        let mass = |state: usize| found.ascent.mass[state].0[lane];
        let on = |label: usize| mass(self.frame.on[label]);
        for label in 0..n {
            answers.marginals[row * n + label] = T::from_f64(on(label));
        }
        let bound = found.bound[lane];
        let known = bound > NO_BOUND;
        answers.log_partition[row] = if known { bound + self.energy.constant } else { NO_BOUND };
        answers.diagnosis[row] = found.diagnosis[lane];
        let Some(all) = &mut answers.expectations else { return };
        let terms = self.network.terms.len();
        let both = |place: PairPlace| match place {
            PairPlace::Pair(at) => on(self.network.pairs[at].a) * on(self.network.pairs[at].b),
            PairPlace::Link(at, state) => {
                let link = &self.network.links[at];
                mass(self.frame.first[self.frame.group(link.group)] + state) * on(link.label)
            }
            PairPlace::Table(at, s, t) => {
                let table = &self.network.tables[at];
                let [a, b] = [table.a, table.b].map(|g| self.frame.first[self.frame.group(g)]);
                mass(a + s) * mass(b + t)
            }
            PairPlace::Never => 0.0,
        };
        let pairs_on = |group: usize| found.ascent.pairs_on(group, lane);
        let out = &mut all[row * terms..(row + 1) * terms];
        self.network.expectations(on, both, pairs_on, out);
    }
}

impl Kernel for MeanField {
    forward_to_own!();
}
