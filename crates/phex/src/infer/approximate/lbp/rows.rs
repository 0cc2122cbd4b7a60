//! Runs rows through lanes. Each lane takes the next row as soon as its own is done.

use multiversion::multiversion;

use super::labels::{Damping, Pairs, flood, visit};
use super::layout::Weights;
use super::number::Odds;
use super::state::MessageState;
use super::{Lbp, Program};
use crate::infer::pool::Pool;
use crate::infer::{Answers, Block, Diagnosis, MessageOrder, Number};

/// A belief whose odds change relatively by more than this times the tolerance has not converged,
/// however close to 0 or 1 it is. A damped message may still be moving towards a distant value.
const DRIFT: f64 = 1e3;

/// What an iteration needs in addition to the messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationInputs<'a, T> {
    pub(super) compiled: &'a Program,
    pub(super) pairs: Pairs<'a, T>,
    pub(super) damping: Option<Damping<T>>,
    pub(super) wide_damping: Option<Damping<f64>>,
    pub(super) flooding: bool,
}

impl<T: Odds> IterationInputs<'_, T> {
    /// Runs one iteration. `backwards` reverses the order of in-place sweeps.
    #[inline(always)]
    fn iterate<const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        watch: bool,
        backwards: bool,
    ) {
        let Program { layout, network, .. } = self.compiled;
        for factor in 0..network.cardinalities.len() {
            self.compiled.visit_count(state, factor, self.wide_damping);
        }
        for group in 0..network.groups.len() {
            self.compiled.visit_group(state, group, self.wide_damping, watch);
        }
        if self.flooding {
            return flood(layout, &self.pairs, state, self.damping, watch);
        }
        let nodes = layout.nodes();
        for at in 0..nodes {
            let node = if backwards { nodes - 1 - at } else { at };
            visit(layout, &self.pairs, state, node, self.damping, watch);
        }
    }

    /// Runs some iterations and watches the last two, because after a reversal a label has no news
    /// from those behind it.
    #[inline(always)]
    fn iterations<const L: usize>(&self, state: &mut MessageState<T, L>, stride: u32) {
        (state.change.0, state.drift.0) = ([T::ZERO; L], [T::ZERO; L]);
        for at in 0..stride {
            // Forwards and backwards: in a tree two sweeps reach everything.
            self.iterate(state, at + 2 >= stride, at % 2 == 1);
        }
    }
}

/// A number type whose functions are compiled for each vector width.
pub(super) trait Vectors<const L: usize>: Odds {
    fn iterations(step: &IterationInputs<'_, Self>, state: &mut MessageState<Self, L>, stride: u32);
    fn load(compiled: &Program, state: &mut MessageState<Self, L>, fresh: &[bool; L]);
    fn settle(
        compiled: &Program,
        weights: &[Weights<Self>],
        state: &mut MessageState<Self, L>,
    ) -> [f64; L];
}

macro_rules! vectors {
    ($type:ty, $lanes:literal) => {
        impl Vectors<$lanes> for $type {
            fn iterations(
                step: &IterationInputs<'_, $type>,
                state: &mut MessageState<$type, $lanes>,
                stride: u32,
            ) {
                #[multiversion(targets = "simd")]
                fn go(
                    step: &IterationInputs<'_, $type>,
                    state: &mut MessageState<$type, $lanes>,
                    stride: u32,
                ) {
                    step.iterations(state, stride);
                }
                go(step, state, stride);
            }

            fn load(
                compiled: &Program,
                state: &mut MessageState<$type, $lanes>,
                fresh: &[bool; $lanes],
            ) {
                #[multiversion(targets = "simd")]
                fn go(
                    compiled: &Program,
                    state: &mut MessageState<$type, $lanes>,
                    fresh: &[bool; $lanes],
                ) {
                    state.load(&compiled.network, &compiled.layout, fresh);
                }
                go(compiled, state, fresh);
            }

            fn settle(
                compiled: &Program,
                weights: &[Weights<$type>],
                state: &mut MessageState<$type, $lanes>,
            ) -> [f64; $lanes] {
                #[multiversion(targets = "simd")]
                fn go(
                    compiled: &Program,
                    weights: &[Weights<$type>],
                    state: &mut MessageState<$type, $lanes>,
                ) -> [f64; $lanes] {
                    compiled.settle(weights, state)
                }
                go(compiled, weights, state)
            }
        }
    };
}

vectors!(f32, 16);
vectors!(f64, 8);
vectors!(f32, 1);
vectors!(f64, 1);

impl Lbp {
    /// Runs rows side by side until each has converged or has used up its iterations.
    pub(super) fn run_lanes<S: Number, T: Vectors<L>, const L: usize>(
        &self,
        pairs: Pairs<'_, T>,
        pool: &Pool<MessageState<T, L>>,
        block: &Block<'_, S>,
        answers: &mut Answers<'_, S>,
    ) {
        let weights = pairs.weights;
        let options = &self.options;
        let flooding = options.schedule == MessageOrder::Flooding;
        let damped = options.damping > 0.0;
        let step = IterationInputs {
            compiled: &self.compiled,
            pairs,
            damping: damped.then(|| Damping::new(options.damping)),
            wide_damping: damped.then(|| Damping::new(options.damping)),
            flooding,
        };
        let Program { network, layout, .. } = &self.compiled;
        let fresh = || MessageState::new(network, layout, pairs.ratios, flooding);
        let mut state = pool.take().unwrap_or_else(fresh);
        // All lanes are at multiples of the stride, so that a row's answer does not depend on the
        // others.
        let stride =
            [4, 2, 1].into_iter().find(|&s| options.iterations.is_multiple_of(s)).unwrap_or(1);
        let tolerance = options.tolerance.max(T::NOISE);
        let drift = (tolerance * DRIFT).clamp(T::ROUNDING, 1e-3);
        let mut row_of: [Option<usize>; L] = [None; L];
        let mut done = [0u32; L];
        let mut next = 0..block.rows();
        loop {
            let mut fresh: [Option<usize>; L] = [None; L];
            for lane in 0..L {
                if row_of[lane].is_none() {
                    fresh[lane] = next.next();
                    row_of[lane] = fresh[lane];
                    done[lane] = 0;
                }
            }
            if row_of.iter().all(Option::is_none) {
                return pool.give_back(state);
            }
            if fresh.iter().any(Option::is_some) {
                state.gather(network, block, &fresh);
                T::load(&self.compiled, &mut state, &fresh.map(|row| row.is_some()));
            }
            T::iterations(&step, &mut state, stride);
            let mut finished = [false; L];
            for lane in 0..L {
                done[lane] += stride;
                let still = state.change.0[lane].to_f64() <= tolerance
                    && state.drift.0[lane].to_f64() <= drift;
                finished[lane] = row_of[lane].is_some()
                    && (still && options.tolerance > 0.0 || done[lane] >= options.iterations);
            }
            if !finished.contains(&true) {
                continue;
            }
            let (changes, drifts) = (state.change, state.drift);
            // Rows that continue must not see the changes from answering others.
            let goes_on = (0..L).any(|lane| row_of[lane].is_some() && !finished[lane]);
            let kept = goes_on.then(|| state.keep());
            state.spread(layout);
            let log_partition = T::settle(&self.compiled, weights, &mut state);
            let mut written = row_of;
            for lane in 0..L {
                written[lane] = written[lane].filter(|_| finished[lane]);
            }
            self.compiled.write_binary(&state, &written, answers);
            for lane in (0..L).filter(|&lane| finished[lane]) {
                let Some(row) = row_of[lane].take() else { continue };
                let residual = changes.0[lane].to_f64();
                answers.diagnosis[row] = Diagnosis {
                    iterations: done[lane],
                    converged: residual <= tolerance.max(1e-6)
                        && drifts.0[lane].to_f64() <= drift
                        && !state.contradicted[lane],
                    residual,
                    ..Diagnosis::default()
                };
                answers.log_partition[row] = log_partition[lane];
                self.compiled.write(weights, &state, lane, row, block, answers);
            }
            if let Some(kept) = kept {
                state.restore(kept);
            }
        }
    }
}
