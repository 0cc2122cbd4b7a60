//! Chooses temperatures that suit a problem.
//!
//! Hottest: the β at which a typical bad move from a random state is accepted half of the time,
//! `ln 2 / mean |Δ|`. Coldest: the β at which the smaller excitations of local minima are frozen,
//! `3 / Δ`, where Δ is the lower decile of the moves out of them. (The smallest move would only
//! reflect rounding and ties, which the final descent handles.) Both come from 8 random states and
//! descents from them, at a cost of O(8 · (pairs + n²)).

use super::generator;
use super::options::{Cooling, CoolingShape};
use super::problem::Problem;
use super::search::{Search, random_state};

const SAMPLES: usize = 8;

/// The hottest and the coldest β for a problem.
pub(super) fn range(problem: &Problem) -> (f64, f64) {
    // The seed is fixed and not the caller's, because the temperatures belong to the problem.
    let mut random = generator(0, u64::MAX - 1);
    let (mut hot, mut excited) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let mut search = Search::new(problem, &random_state(problem, &mut random));
        hot.extend(search.changes().iter().map(|change| change.abs()));
        search.descend();
        excited
            .extend(search.changes().into_iter().filter(|&change| change > 1e-9 * problem.largest));
    }
    let mean = hot.iter().sum::<f64>() / hot.len().max(1) as f64;
    if mean == 0.0 || excited.is_empty() {
        return (1.0, 1.0);
    }
    excited.sort_by(f64::total_cmp);
    let hottest = std::f64::consts::LN_2 / mean;
    (hottest, (COLD / excited[excited.len() / 10]).max(hottest))
}

const COLD: f64 = 3.0;

impl Cooling {
    /// β of each sweep.
    pub(super) fn betas(&self, problem: &Problem, sweeps: usize) -> Vec<f64> {
        let (hot, cold) = self.beta.unwrap_or_else(|| range(problem));
        let last = sweeps.saturating_sub(1).max(1) as f64;
        let at = |sweep: usize| {
            let t = sweep as f64 / last;
            match self.shape {
                CoolingShape::Geometric => hot * (cold / hot).powf(t),
                CoolingShape::Linear => hot + (cold - hot) * t,
            }
        };
        (0..sweeps).map(at).collect()
    }
}
