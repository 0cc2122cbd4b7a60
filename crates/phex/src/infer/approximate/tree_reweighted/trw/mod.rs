//! `trw` is tree-reweighted belief propagation, which gives an upper bound on log Z.
//!
//! Every edge is in a fraction ρ of a set of spanning trees ([`trees`]). The messages are those of
//! belief propagation, weighted with ρ, and divide the parameters among the trees ([`messages`]).
//! The bound is the mean log-partition of the trees ([`bound`]). It is at least log Z whatever the
//! messages are, so it holds at every iterate and not only at a fixed point, which the messages may
//! never reach. Once they have converged it is the smallest such bound. It is convex in the
//! messages, so they cannot converge to a wrong place.
//!
//! States that evidence and hard relations exclude are removed first, so that everything left is
//! finite. A sweep costs O(pairs), where an exclusion group of k labels is k² / 2 pairs. The bound
//! at the end costs O(labels) per tree. There are at least as many trees as the densest part of the
//! graph has edges per label.
//!
//! `forests` shares no step with it. There the fractions are one over the number of parents, the
//! trees are never listed and the bound is a closed sum that holds only after convergence; here
//! trees are laid out, sweeps go through any factor graph, and the bound is recomputed on each tree.

// Loops over lanes index several arrays at once.
#![allow(clippy::needless_range_loop)]

mod bound;
mod edges;
mod math;
mod messages;
mod trees;

use crate::infer::{Kernel, forward_to_own};
use std::ops::Range;

use edges::Edges;
use messages::{Stride, TreeMessages, sweep};

use crate::infer::approximate::network::{Frame, Network, PairPlace, Support};
use crate::infer::registers::run_in_registers;
use crate::infer::{Answers, Block, Diagnosis, GroupForm, MessageOptions, Number, Options, Unfit};
use crate::model::Model;
use crate::numeric::{log_max, sigmoid};

/// How many rows run side by side.
const LANES: usize = 8;

/// The bound is first checked after this many sweeps, and again each time they have doubled. Rows
/// whose bound hardly changed since then are done, because with strong relations the bound settles
/// long before the beliefs. Rows whose bound grew are oscillating, and are damped more.
const CHECKPOINT: u32 = 10;

/// A gain of the bound that is not worth continuing for, in tolerances per node.
const GAIN: f64 = 100.0;

/// A model compiled for tree-reweighted messages.
#[derive(Debug)]
pub(crate) struct Trw {
    network: Network,
    support: Support,
    edges: Edges,
    options: MessageOptions,
}

impl Trw {
    pub(crate) fn compile(model: &Model, options: &Options) -> Result<Trw, Unfit> {
        let network = Network::new(model, GroupForm::Pairs)?;
        let frame = Frame::new(&network);
        let support = Support::new(&network, &frame, f64::INFINITY);
        let edges = Edges::new(&network, frame, options.seed)?;
        Ok(Trw { network, support, edges, options: options.messages })
    }

    /// Operations per row, for the number of sweeps that moderate relations need.
    pub(crate) fn operations(&self) -> f64 {
        let sweeps = f64::from(self.options.iterations.min(50));
        let entries = self.network.entries() as f64;
        let trees = self.edges.trees.steps.len() as f64;
        60.0 * sweeps * entries + 60.0 * trees * self.edges.frame.states() as f64
    }

    pub(crate) fn bytes(&self) -> u64 {
        let edges = &self.edges;
        let messages = 2 * edges.pairs.len() + edges.link_messages + edges.table_messages;
        let steps = edges.trees.steps.len() * edges.frame.nodes();
        let lanes = 8 * LANES * (messages + 5 * edges.frame.states());
        (lanes + 8 * steps + 160 * self.network.entries()) as u64
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
        let frame = &self.edges.frame;
        let mut messages = TreeMessages::<L>::new(&self.edges);
        let possible =
            self.support.weigh(&self.network, frame, block, &rows, &mut messages.weights);
        let (bound, diagnosis) = self.pass(&mut messages, possible);
        for (lane, row) in rows.enumerate() {
            self.write(&messages, lane, row, answers);
            answers.diagnosis[row] = diagnosis[lane];
            answers.log_partition[row] = bound[lane] + self.network.constant;
            if !possible[lane] {
                answers.log_partition[row] = f64::NEG_INFINITY;
            }
        }
    }

    /// Sweeps forwards and backwards until no probability changes by more than the tolerance, or
    /// the bound no longer improves.
    fn pass<const L: usize>(
        &self,
        messages: &mut TreeMessages<L>,
        mut active: [bool; L],
    ) -> ([f64; L], [Diagnosis; L]) {
        let mut diagnosis = [Diagnosis::default(); L];
        let mut best = [f64::INFINITY; L];
        let enough = GAIN * self.options.tolerance * self.edges.frame.nodes() as f64;
        let mut checkpoint = CHECKPOINT;
        let mut last = best;
        let mut damping = [self.options.damping; L];
        for iteration in 0..self.options.iterations {
            if active == [false; L] {
                break;
            }
            if iteration == checkpoint {
                checkpoint *= 2;
                let now = self.look(messages, &mut best);
                for lane in 0..L {
                    let gain = last[lane] - now[lane];
                    active[lane] &= gain.abs() > enough;
                    // The messages oscillate.
                    let swings = gain < 0.0;
                    damping[lane] = if swings { 0.5 + 0.5 * damping[lane] } else { damping[lane] };
                }
                last = now;
            }
            let backwards = iteration % 2 == 0;
            let stride = Stride { backwards, damping: &damping, active: &active };
            let change = sweep(messages, &self.edges, stride);
            for lane in 0..L {
                if !active[lane] {
                    continue;
                }
                let residual = change.0[lane];
                // The first sweep only reflects the scores alone.
                let converged = iteration > 0 && residual <= self.options.tolerance;
                let iterations = iteration + 1;
                diagnosis[lane] =
                    Diagnosis { iterations, converged, residual, ..Diagnosis::default() };
                active[lane] = !converged;
            }
        }
        self.look(messages, &mut best);
        (best, diagnosis)
    }

    /// Computes the bound of these messages, and keeps it in the rows where it is the best.
    fn look<const L: usize>(
        &self,
        messages: &mut TreeMessages<L>,
        best: &mut [f64; L],
    ) -> [f64; L] {
        messages.refresh(&self.edges);
        let bound = bound::bound(messages, &self.edges);
        for lane in 0..L {
            // NaN: messages overflowed, so the bound carries no information.
            best[lane] = if bound.0[lane] < best[lane] { bound.0[lane] } else { best[lane] };
        }
        bound.0
    }

    fn write<T: Number, const L: usize>(
        &self,
        messages: &TreeMessages<L>,
        lane: usize,
        row: usize,
        answers: &mut Answers<'_, T>,
    ) {
        let (n, frame) = (self.network.labels, &self.edges.frame);
        let share = |state: usize| messages.shares[state].0[lane];
        let on = |label: usize| share(frame.on[label]);
        for label in 0..n {
            answers.marginals[row * n + label] = T::from_f64(on(label));
        }
        let Some(all) = &mut answers.expectations else { return };
        let terms = self.network.terms.len();
        let both = |place: PairPlace| self.both(messages, lane, place);
        let out = &mut all[row * terms..(row + 1) * terms];
        self.network.expectations(on, both, |_| 0.0, out);
    }

    /// The probability that two states are on together: the probability of one times that of the
    /// other given it.
    fn both<const L: usize>(
        &self,
        messages: &TreeMessages<L>,
        lane: usize,
        place: PairPlace,
    ) -> f64 {
        let frame = &self.edges.frame;
        let belief = |state: usize| messages.beliefs[state].0[lane];
        let share = |state: usize| messages.shares[state].0[lane];
        let odds = |node: usize| belief(2 * node + 1) - belief(2 * node);
        match place {
            PairPlace::Pair(at) => {
                let pair = &self.edges.pairs[at];
                let [c0, c1] = pair.costs[1];
                let odds = odds(pair.nodes[1]) - messages.pairs[2 * at + 1].0[lane];
                times(share(2 * pair.nodes[0] + 1), || sigmoid(less(odds, c0, c1)))
            }
            PairPlace::Link(at, state) => {
                let link = &self.edges.links[at];
                let entry = link.entries.iter().find(|entry| entry.0 == state);
                let [c0, c1] = entry.map_or([0.0; 2], |entry| entry.1);
                let odds = odds(link.label) - messages.labels[at].0[lane];
                times(share(frame.first[link.group] + state), || sigmoid(less(odds, c0, c1)))
            }
            PairPlace::Table(at, s, t) => {
                let table = &self.edges.tables[at];
                let [a, b] = table.nodes;
                let mut logs: Vec<f64> = (0..frame.of(b).len())
                    .map(|state| {
                        let message = messages.tables[table.first[1] + state].0[lane];
                        belief(frame.first[b] + state) - message
                    })
                    .collect();
                let row = table.cells[0].iter().filter(|cell| cell.0 == s);
                row.for_each(|cell| logs[cell.1] -= cell.2);
                let most = log_max(logs.iter().copied());
                let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
                times(share(frame.first[a] + s), || (logs[t] - most).exp() / sum)
            }
            PairPlace::Never => 0.0,
        }
    }
}

/// The odds minus the difference of two costs, at most one of which is infinite.
fn less(odds: f64, off: f64, on: f64) -> f64 {
    if on == f64::INFINITY {
        f64::NEG_INFINITY
    } else if off == f64::INFINITY {
        f64::INFINITY
    } else {
        odds + off - on
    }
}

/// The product of a probability and another that is only defined where the first is not 0.
fn times(first: f64, second: impl Fn() -> f64) -> f64 {
    if first > 0.0 { first * second() } else { 0.0 }
}

impl Kernel for Trw {
    forward_to_own!();
}
