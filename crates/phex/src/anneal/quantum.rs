//! Simulated quantum annealing: path-integral Monte Carlo with a transverse field that is switched
//! off (Martoňák, Santoro and Tosatti 2002).
//!
//! The Suzuki–Trotter formula turns `H = E(x) − Γ Σ σˣ` at temperature `T` into `P` copies of the
//! problem (slices), each at `β/P = 1/(P T)`. Every variable is bound to itself in the slices
//! before and after by `K = −½ ln tanh(β Γ / P)`. The binding is weak at first, so that the slices
//! diverge, and strong at the end, when all are one state. Γ falls linearly. After each sweep of
//! the slices, a sweep of whole lines flips a variable in all of them. One-of groups are drawn with
//! the same binding of each member. Sixteen restarts run side by side. A sweep costs `2 P` times a
//! sweep of simulated annealing.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::chains::{Chains, Narrow, Time, sweep, sweep_lines};
use super::lanes::{CHAINS, Lane, chain_random};
use super::simulated::FROZEN;

/// The path of the field.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// β of one slice, in the scale of the problem.
    pub(super) beta: f32,
    /// The binding between slices, one value per sweep.
    pub(super) couplings: Vec<f32>,
    /// The number of slices.
    pub(super) slices: usize,
}

impl Path {
    /// `field` is the transverse field at the start and at the end, times β of a slice.
    pub(super) fn new(beta: f64, field: (f64, f64), slices: usize, sweeps: usize) -> Path {
        let last = sweeps.saturating_sub(1).max(1) as f64;
        let coupling = |sweep: usize| {
            let field = field.0 + (field.1 - field.0) * sweep as f64 / last;
            (-0.5 * field.max(1e-12).tanh().ln()) as f32
        };
        Path { beta: beta as f32, couplings: (0..sweeps).map(coupling).collect(), slices }
    }
}

/// The final states of all slices of sixteen restarts, grouped by restart.
pub(super) fn quantum(
    problem: &Narrow,
    path: &Path,
    random: &mut Xoshiro256PlusPlus,
    abandoned: &dyn Fn() -> bool,
) -> Vec<Vec<Vec<bool>>> {
    let mut slices: Vec<Chains> = (0..path.slices).map(|_| Chains::new(problem, random)).collect();
    let mut uniform = chain_random(random);
    for (at, &coupling) in path.couplings.iter().enumerate() {
        for slice in 0..slices.len() {
            let mut chains = std::mem::take(&mut slices[slice]);
            let before: &[Lane] = match slice {
                0 => &slices[slices.len() - 1].sign,
                _ => &slices[slice - 1].sign,
            };
            let after: &[Lane] = &slices[(slice + 1) % slices.len()].sign;
            let time = Time { before, after, coupling };
            sweep(problem, &mut chains, &mut uniform, path.beta, Some(&time));
            slices[slice] = chains;
        }
        sweep_lines(problem, &mut slices, &mut uniform, path.beta);
        if at % 4 == 3 && abandoned() {
            break;
        }
    }
    for chains in &mut slices {
        (0..2).for_each(|_| sweep(problem, chains, &mut uniform, FROZEN, None));
    }
    let ends = |lane| slices.iter().map(|chains| chains.state(lane)).collect();
    (0..CHAINS).map(ends).collect()
}

/// β of one slice for a problem whose annealing uses this range. It is cold, because the field does
/// the melting.
pub(super) fn beta((hot, cold): (f64, f64)) -> f64 {
    hot.powf(0.4) * cold.powf(0.6)
}

/// The transverse field at the start and at the end, times β of a slice.
pub(super) const FIELD: (f64, f64) = (2.0, 0.01);
