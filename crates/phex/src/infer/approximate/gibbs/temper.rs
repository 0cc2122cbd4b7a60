//! Parallel tempering: replicas of each chain at factors `1 = β₀ > β₁ > … ` on all log-weights.
//!
//! Neighbours on the ladder exchange their factors with probability
//! `min(1, exp((β_a − β_b)(U_b − U_a)))`, where U is the log-weight of the state. The pairs (0, 1),
//! (2, 3) … alternate with (1, 2), (3, 4) …. Factors move rather than states, lane by lane, so the
//! chain of a lane is whichever of its replicas is at β = 1. An exchange costs two thirds of a
//! sweep, most of it for the log-weights.

use super::LANES;
use super::quadratic::CountedQuadratic;
use super::row::GibbsRow;
use super::sweep::{Replica, log_weight, same};
use crate::numeric::LaneRandom;

/// Sweeps between exchanges.
pub(super) const EVERY: u32 = 2;

/// The factors, and which replica has which.
#[derive(Debug)]
pub(super) struct Ladder {
    factors: Vec<f32>,
    /// For each factor, the replica that has it in each lane.
    at: Vec<[usize; LANES]>,
    odd: bool,
}

impl Ladder {
    /// A geometric ladder from 1 down to `hottest`.
    pub(super) fn new(temperatures: u32, hottest: f64) -> Ladder {
        let steps = f64::from(temperatures.max(2) - 1);
        let factor = |rank: u32| hottest.powf(f64::from(rank) / steps) as f32;
        let factors = (0..temperatures.max(1)).map(factor).collect();
        Ladder { factors, at: Vec::new(), odd: false }
    }

    /// Puts each replica on its own rung.
    pub(super) fn reset(&mut self, replicas: &mut [Replica]) {
        self.at = (0..self.factors.len()).map(|rank| [rank; LANES]).collect();
        self.odd = false;
        for (replica, &factor) in replicas.iter_mut().zip(&self.factors) {
            replica.beta = same(factor);
        }
    }

    /// Tries to exchange every other pair of neighbours in every lane.
    pub(super) fn exchange(
        &mut self,
        form: &CountedQuadratic,
        row: &GibbsRow,
        replicas: &mut [Replica],
        random: &mut LaneRandom<LANES>,
    ) {
        let weights: Vec<_> = replicas.iter().map(|r| log_weight(form, row, r)).collect();
        for rank in (usize::from(self.odd)..self.factors.len() - 1).step_by(2) {
            let uniform = random.uniform();
            let gap = self.factors[rank] - self.factors[rank + 1];
            for lane in 0..LANES {
                let (cold, hot) = (self.at[rank][lane], self.at[rank + 1][lane]);
                let gain = gap * (weights[hot].0[lane] - weights[cold].0[lane]);
                if uniform.0[lane] < gain.min(0.0).exp() {
                    self.at[rank][lane] = hot;
                    self.at[rank + 1][lane] = cold;
                    replicas[hot].beta.0[lane] = self.factors[rank];
                    replicas[cold].beta.0[lane] = self.factors[rank + 1];
                }
            }
        }
        self.odd = !self.odd;
    }
}
