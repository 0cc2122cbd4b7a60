//! Turns rows of scores into weights side by side, runs the passes, and turns the results back into
//! rows.

use multiversion::multiversion;

use super::lanes::{Lanes, Real};
use super::number::Semiring;
use super::plan::ForestProgram;
use super::scratch::Scratch;
use super::weights::Weights;
use crate::infer::pool::Pool;
use crate::infer::{Block, Evidence};
use crate::numeric::Scalar;

/// How many labels move between rows and lanes at a time, so that they stay in the first-level
/// cache.
const TILE: usize = 64;

/// Fixed additions to the scores, and the groups of labels that are shifted together.
#[derive(Debug)]
pub(super) struct Scores {
    pub(super) bias: Vec<f64>,
    /// Disjoint one-of groups. Exactly one label of each is on, so a common shift of their scores
    /// only changes log Z. Shifting by their log-sum-exp keeps the layers at comparable sizes.
    pub(super) shifted: Vec<Vec<usize>>,
    /// The other labels.
    pub(super) single: Vec<usize>,
}

/// Memory that is kept from block to block. For small blocks, allocating it would cost more than
/// the passes.
#[derive(Debug)]
pub(super) struct Buffers<T: Real, const L: usize> {
    pub(super) scratch: Scratch<Lanes<T, L>>,
    upper: Option<Scratch<Lanes<T, L>>>,
    bias: Vec<T>,
    theta: Vec<Lanes<T, L>>,
    /// −1 for off, 0 for unknown, 1 for on. Empty without evidence.
    evidence: Vec<Lanes<T, L>>,
}

/// A program with its constants.
pub(super) type Weighed<'a, N> = (&'a ForestProgram, &'a Weights<N>);

/// The rows in one register, and everything computed for them.
pub(super) struct LanePass<'a, T: Real, const L: usize> {
    scores: &'a Scores,
    plan: &'a ForestProgram,
    weights: &'a Weights<Lanes<T, L>>,
    /// The program that keeps the overflow of a cap.
    upper: Option<Weighed<'a, Lanes<T, L>>>,
    expectations: bool,
    pub(super) buffers: Buffers<T, L>,
    /// What was divided out of the weights, in nats.
    offset: [f64; L],
    suspect: Lanes<T, L>,
}

impl<'a, T: Real, const L: usize> LanePass<'a, T, L> {
    pub(super) fn new(
        scores: &'a Scores,
        (plan, weights): Weighed<'a, Lanes<T, L>>,
        upper: Option<Weighed<'a, Lanes<T, L>>>,
        expectations: bool,
        pool: &Pool<Buffers<T, L>>,
    ) -> LanePass<'a, T, L> {
        let mut buffers = pool.take().unwrap_or_else(|| Buffers {
            scratch: Scratch::new(plan),
            upper: upper.map(|upper| Scratch::new(upper.0)),
            bias: scores.bias.iter().map(|&bias| T::from_f64(bias)).collect(),
            theta: vec![Lanes::ZERO; scores.bias.len()],
            evidence: Vec::new(),
        });
        buffers.evidence.clear();
        if expectations {
            buffers.scratch.expect_pairs(plan);
        }
        let (offset, suspect) = ([0.0; L], Lanes::ZERO);
        LanePass { scores, plan, weights, upper, expectations, buffers, offset, suspect }
    }

    /// Loads up to `L` rows. Lanes without a row get scores of zero.
    pub(super) fn load<S: Scalar>(&mut self, block: &Block<'_, S>) {
        let n = self.buffers.theta.len();
        let rows = block.rows();
        if rows < L {
            self.buffers.theta.fill(Lanes::ZERO);
        }
        for from in (0..n).step_by(TILE) {
            let tile = from..n.min(from + TILE);
            for row in 0..rows {
                let scores = &block.row(row)[tile.clone()];
                for (theta, score) in self.buffers.theta[tile.clone()].iter_mut().zip(scores) {
                    theta.0[row] = T::from_f64(score.to_f64());
                }
            }
        }
        if block.evidence.is_none() {
            return;
        }
        self.buffers.evidence.clear();
        self.buffers.evidence.resize(n, Lanes::ZERO);
        for row in 0..rows {
            for (label, evidence) in self.buffers.evidence.iter_mut().enumerate() {
                evidence.0[row] = match block.evidence(row, label) {
                    Evidence::Off => -T::ONE,
                    Evidence::Unknown => T::ZERO,
                    Evidence::On => T::ONE,
                };
            }
        }
    }

    /// Computes the weights of the labels from their scores, then runs both passes.
    #[inline(always)]
    pub(super) fn infer(&mut self) {
        self.offset = [0.0; L];
        self.suspect = Lanes::ZERO;
        self.weigh_single();
        for group in 0..self.scores.shifted.len() {
            self.weigh_shifted(group);
        }
        if let (Some(scratch), Some((plan, weights))) = (&mut self.buffers.upper, self.upper) {
            // The two programs differ in their cells only.
            scratch.inside.copy_from_slice(&self.buffers.scratch.inside);
            scratch.inside(plan, weights);
        }
        self.buffers.scratch.inside(self.plan, self.weights);
        self.buffers.scratch.outside(self.plan, self.weights, self.expectations);
    }

    /// Weights `[1, e^θ]`, divided by the larger one.
    #[inline(always)]
    fn weigh_single(&mut self) {
        for &label in &self.scores.single {
            let bias = self.buffers.bias[label];
            let theta = self.buffers.theta[label].map(|score| score + bias);
            let size = theta.map(T::absolute);
            let in_range = |size: T, before: T| if size <= T::LIMIT { before } else { T::ONE };
            self.suspect = size.zip(self.suspect, in_range);
            let clamped = size.map(|size| if size < T::LIMIT { size } else { T::LIMIT });
            let small = clamped.map(|size| (-size).exp_negative());
            let off = theta.zip(small, |theta, x| if theta > T::ZERO { x } else { T::ONE });
            let on = theta.zip(small, |theta, x| if theta > T::ZERO { T::ONE } else { x });
            for lane in 0..L {
                let theta = theta.0[lane];
                self.offset[lane] += if theta > T::ZERO { theta } else { T::ZERO }.to_f64();
            }
            self.place(label, [off, on]);
        }
    }

    /// Weights `[1, e^θ / Σ e^θ]` over a one-of group. Labels with evidence off are left out.
    #[inline(always)]
    fn weigh_shifted(&mut self, group: usize) {
        let labels = &self.scores.shifted[group];
        let floor = T::from_f64(-1e30);
        let mut most = Lanes([floor; L]);
        for &label in labels {
            let bias = self.buffers.bias[label];
            let theta = self.buffers.theta[label].map(|score| score + bias);
            let theta = match self.buffers.evidence.get(label) {
                Some(evidence) => evidence.zip(theta, |k, x| if k < T::ZERO { floor } else { x }),
                None => theta,
            };
            self.buffers.theta[label] = theta;
            most = most.larger(theta);
        }
        let mut sum = Lanes::ZERO;
        for &label in labels {
            let theta = self.buffers.theta[label];
            let below = theta.zip(most, |theta, most| most - theta);
            let in_range = |below: T, before: T| if below <= T::LIMIT { before } else { T::ONE };
            let suspect = below.zip(self.suspect, in_range);
            // Labels with evidence off may be arbitrarily far below.
            let left_out = |theta: T, before: T| if theta == floor { before } else { T::ONE };
            let suspect_here = theta.zip(self.suspect, left_out);
            self.suspect = suspect.zip(suspect_here, |a, b| if a < b { a } else { b });
            let clamped = below.map(|below| if below < T::LIMIT { below } else { T::LIMIT });
            let weight = clamped.map(|below| (-below).exp_negative());
            let weight = theta.zip(weight, |t, w| if t == floor { T::ZERO } else { w });
            sum = sum.plus(weight);
            self.buffers.theta[label] = weight;
        }
        let inverse = sum.reciprocal();
        for &label in labels {
            let on = self.buffers.theta[label].times(inverse);
            self.place(label, [Lanes::ONE, on]);
        }
        for lane in 0..L {
            self.offset[lane] += most.0[lane].to_f64() + sum.0[lane].to_f64().ln();
        }
    }

    /// Writes the weights of a label, with zero where the evidence rules it out.
    #[inline(always)]
    fn place(&mut self, label: usize, [mut off, mut on]: [Lanes<T, L>; 2]) {
        if let Some(evidence) = self.buffers.evidence.get(label) {
            off = evidence.zip(off, |k, x| if k > T::ZERO { T::ZERO } else { x });
            on = evidence.zip(on, |k, x| if k < T::ZERO { T::ZERO } else { x });
        }
        let slots = self.plan.slots[label];
        self.buffers.scratch.inside[slots[0]] = off;
        self.buffers.scratch.inside[slots[1]] = on;
    }

    /// Log Z of a row and the bound on its error, or `None` when the row needs the log domain.
    pub(super) fn log_partition(&self, lane: usize) -> Option<(f64, f64)> {
        let log = |scratch: &Scratch<Lanes<T, L>>, plan: &ForestProgram| {
            let exponent = f64::from(scratch.exponents.0[lane]);
            scratch.value(plan).0[lane].to_f64().ln() + exponent * std::f64::consts::LN_2
        };
        let low = log(&self.buffers.scratch, self.plan);
        let gap = match (&self.buffers.upper, self.upper) {
            (Some(scratch), Some(upper)) => log(scratch, upper.0) - low,
            _ => 0.0,
        };
        let fine =
            self.suspect.0[lane] == T::ZERO && self.buffers.scratch.suspect.0[lane] == T::ZERO;
        let finite = low.is_finite() && gap.is_finite();
        (fine && finite).then(|| (low + self.offset[lane], -(-gap.max(0.0)).exp_m1()))
    }

    /// Writes the marginals of the rows.
    pub(super) fn store<S: Scalar>(&self, marginals: &mut [S]) {
        let n = self.buffers.theta.len();
        for from in (0..n).step_by(TILE) {
            let tile = from..n.min(from + TILE);
            for (row, marginals) in marginals.chunks_exact_mut(n).enumerate() {
                let lanes = &self.buffers.scratch.marginals[tile.clone()];
                for (out, value) in marginals[tile.clone()].iter_mut().zip(lanes) {
                    *out = S::from_f64(value.0[row].to_f64());
                }
            }
        }
    }
}

/// Runs a register in single precision, compiled for each vector width (512 bits only on CPUs that
/// do not slow down for them). The passes are `inline(always)`, so that they are compiled with it.
#[multiversion(targets = "simd")]
pub(super) fn infer_16(kernel: &mut LanePass<'_, f32, 16>) {
    kernel.infer();
}

/// Runs a register in double precision, compiled for each vector width.
#[multiversion(targets = "simd")]
pub(super) fn infer_8(kernel: &mut LanePass<'_, f64, 8>) {
    kernel.infer();
}
