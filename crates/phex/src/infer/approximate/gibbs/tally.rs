//! Estimates marginals and their standard errors from the chains, and decides whether the chains
//! agree.
//!
//! `m_c` is the mean of the conditionals `p(x_i = 1 | rest)` over the sweeps of chain c: the
//! Rao–Blackwellised estimate of its marginal. Over C chains the marginal is `p = Σ m_c / C`. The
//! chains are independent, so its standard error is `√(Σ (m_c − p)² / (C (C − 1)))`, whatever the
//! correlation along a chain. Two diagnostics follow:
//!
//! - The effective sample: `p (1 − p) / SE²` independent states would have this error. It is
//!   reported as a fraction of the states drawn, at most 1, as the 5 % quantile over labels. (The
//!   smallest of thousands would reflect chance more than the chains.)
//! - The potential scale reduction `R̂` of each label, from half-chains of n sweeps. The variance
//!   of a binary label within one is `m (1 − m) n / (n − 1)`. With W the mean of `m (1 − m)` and B
//!   the variance of m over half-chains, `R̂² = (W + B) / (W n / (n − 1))`. The largest over labels
//!   is reported.
//!
//! Sums over sweeps are in single precision within blocks of [`BLOCK`], and in double precision
//! beyond.

use super::LANES;
use super::sweep::{Vector, same};
use crate::infer::Diagnosis;

/// How many sweeps are added in single precision.
const BLOCK: u32 = 64;
/// Chains agree when no scale reduction exceeds this.
const AGREED: f64 = 1.05;

/// Sums over the sweeps and chains of a row.
#[derive(Debug)]
pub(super) struct Tally {
    /// The sums of conditionals of the current block.
    pub(super) block: Vec<Vector>,
    swept: u32,
    half: Vec<[f64; LANES]>,
    first_half: Vec<[f64; LANES]>,
    /// Sums over all chains so far: of m, of its square, and of the square of m of half-chains.
    labels: Vec<[f64; 3]>,
    chains: f64,
    sweeps: f64,
}

impl Tally {
    /// Prepares for rows with this many labels and an even number of sweeps.
    pub(super) fn new(labels: usize, sweeps: u32) -> Tally {
        Tally {
            block: vec![same(0.0); labels],
            swept: 0,
            half: vec![[0.0; LANES]; labels],
            first_half: vec![[0.0; LANES]; labels],
            labels: vec![[0.0; 3]; labels],
            chains: 0.0,
            sweeps: f64::from(sweeps),
        }
    }

    /// Clears the previous row.
    pub(super) fn clear(&mut self) {
        self.labels.fill([0.0; 3]);
        self.chains = 0.0;
        self.restart();
    }

    /// Ends the burn-in: discards everything added so far.
    pub(super) fn restart(&mut self) {
        self.block.fill(same(0.0));
        self.half.fill([0.0; LANES]);
        self.swept = 0;
    }

    /// Records that a sweep was added to the block.
    pub(super) fn swept(&mut self) {
        self.swept += 1;
        let half = (self.sweeps / 2.0) as u32;
        if self.swept.is_multiple_of(BLOCK) || self.swept.is_multiple_of(half) {
            self.flush();
        }
        if self.swept == half {
            std::mem::swap(&mut self.half, &mut self.first_half);
            self.half.fill([0.0; LANES]);
        }
        if self.swept == 2 * half {
            self.chains_done();
        }
    }

    fn flush(&mut self) {
        for (half, block) in self.half.iter_mut().zip(&mut self.block) {
            half.iter_mut().zip(block.0).for_each(|(half, block)| *half += f64::from(block));
            *block = same(0.0);
        }
    }

    fn chains_done(&mut self) {
        let half = 2.0 / self.sweeps;
        let sums = self.first_half.iter().zip(&self.half).zip(&mut self.labels);
        for ((first, second), [sum, squares, half_squares]) in sums {
            for lane in 0..LANES {
                let (a, b) = (first[lane] * half, second[lane] * half);
                let whole = 0.5 * (a + b);
                *sum += whole;
                *squares += whole * whole;
                *half_squares += a * a + b * b;
            }
        }
        self.chains += LANES as f64;
        self.restart();
    }

    /// The marginal of a label.
    pub(super) fn marginal(&self, label: usize) -> f64 {
        self.labels[label][0] / self.chains
    }

    /// The standard error of a marginal.
    pub(super) fn standard_error(&self, label: usize) -> f64 {
        let [sum, squares, _] = self.labels[label];
        let spread = (squares - sum * sum / self.chains).max(0.0);
        (spread / (self.chains * (self.chains - 1.0))).sqrt()
    }

    /// The potential scale reduction of a label.
    fn scale_reduction(&self, label: usize) -> f64 {
        let [sum, _, squares] = self.labels[label];
        let (halves, sum) = (2.0 * self.chains, 2.0 * sum);
        let n = (self.sweeps / 2.0).max(2.0);
        let within = (sum - squares) / halves;
        let between = ((squares - sum * sum / halves) / (halves - 1.0)).max(0.0);
        // The label is never or always on, up to rounding.
        if between <= 1e-12 {
            return 1.0;
        }
        ((within + between) * (n - 1.0) / (n * within.max(0.0))).sqrt().max(1.0)
    }

    /// The diagnosis, from the labels that were sampled.
    pub(super) fn diagnosis(&self, labels: impl Iterator<Item = usize>, swept: u32) -> Diagnosis {
        let drawn = self.chains * self.sweeps;
        let (mut reduction, mut largest) = (1.0f64, 0.0f64);
        let mut parts = Vec::new();
        for label in labels {
            let (p, error) = (self.marginal(label), self.standard_error(label));
            reduction = reduction.max(self.scale_reduction(label));
            largest = largest.max(error);
            let part = p * (1.0 - p) / (error * error * drawn);
            parts.push(if error > 1e-9 { part.clamp(0.0, 1.0) } else { 1.0 });
        }
        parts.sort_by(f64::total_cmp);
        Diagnosis {
            iterations: swept,
            converged: reduction < AGREED,
            residual: reduction - 1.0,
            bounds: None,
            effective_sample: Some(parts.get(parts.len() / 20).copied().unwrap_or(1.0)),
            standard_error: Some(largest),
        }
    }
}
