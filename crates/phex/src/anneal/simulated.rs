//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983), sixteen chains at a time.
//!
//! A sweep costs O(n + degree of what moved) vector operations for all sixteen chains. The chains
//! end with sweeps at zero temperature.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::chains::{Chains, Narrow, sweep};
use super::lanes::{CHAINS, chain_random};

/// A β that is larger than any energy, so that only downhill moves are accepted. It is far below
/// the largest single-precision number, so that its products stay finite.
pub(super) const FROZEN: f32 = 1e30;

/// The final states of sixteen chains. `betas` are in the scale of `problem`.
pub(super) fn simulated(
    problem: &Narrow,
    betas: &[f32],
    random: &mut Xoshiro256PlusPlus,
    abandoned: &dyn Fn() -> bool,
) -> Vec<Vec<bool>> {
    let mut chains = Chains::new(problem, random);
    let mut uniform = chain_random(random);
    for (at, &beta) in betas.iter().enumerate() {
        sweep(problem, &mut chains, &mut uniform, beta, None);
        if at % 16 == 15 && abandoned() {
            break;
        }
    }
    for _ in 0..2 {
        sweep(problem, &mut chains, &mut uniform, FROZEN, None);
    }
    (0..CHAINS).map(|lane| chains.state(lane)).collect()
}
