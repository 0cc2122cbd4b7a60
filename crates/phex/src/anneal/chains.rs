//! Sixteen annealing chains side by side, in single precision.
//!
//! A vector holds sixteen chains, not sixteen variables of one chain, because a sweep has to visit
//! variables one after another while chains are independent. A chain keeps for each variable its
//! sign (1 when off, −1 when on) and its field `∂E/∂x` without counters. Counters keep how many of
//! their members are on. One step visits the same variable of all chains: `Δ = sign · field`,
//! accepted with probability `min(1, exp_six_digits(−β Δ))`. It adds the change to the fields of
//! the neighbours, with one vector operation each, unless no chain moved. A one-of group is redrawn
//! from its conditional distribution (heat bath), which costs O(members).
//!
//! Terms are scaled by a power of two so that the largest is near 1. Integers below 2²⁴ stay exact,
//! and the rest is rounded. The energies of the final states are recomputed in double precision.

use crate::lists::Lists;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::lanes::{CHAINS, ChainRandom, Lane};
use super::problem::Problem;
use crate::numeric::{Lanes, exp_six_digits};

/// No random number is drawn for moves that are less likely than the smallest random number.
const NEVER: f32 = 17.0;

/// A problem in single precision.
#[derive(Debug)]
pub(super) struct Narrow {
    singles: usize,
    groups: Vec<std::ops::Range<usize>>,
    linear: Vec<f32>,
    rows: Lists<(u32, f32)>,
    costs: Vec<f32>,
    counters_of: Lists<u32>,
    /// The factor between energies here and those of the problem.
    pub(super) scale: f64,
}

impl Narrow {
    pub(super) fn new(problem: &Problem) -> Narrow {
        // A power of two, in the range in which dividing by it is exact.
        let scale = match problem.largest {
            0.0 => 1.0,
            largest => (-largest.log2().ceil().clamp(-1000.0, 1000.0)).exp2(),
        };
        let narrow = |value: f64| (value * scale) as f32;
        Narrow {
            singles: problem.singles,
            groups: problem.groups.clone(),
            linear: problem.linear.iter().map(|&value| narrow(value)).collect(),
            rows: problem.rows.map(|(other, value)| (other, narrow(value))),
            costs: problem.counters.iter().map(|counter| narrow(counter.cost)).collect(),
            counters_of: problem.counters_of.clone(),
            scale,
        }
    }

    fn variables(&self) -> usize {
        self.linear.len()
    }
}

/// The states of the chains.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    pub(super) sign: Vec<Lane>,
    pub(super) field: Vec<Lane>,
    count: Vec<Lane>,
    scratch: Vec<Lane>,
}

/// The neighbours of a slice in imaginary time, and the coupling to them.
pub(super) struct Time<'a> {
    pub(super) before: &'a [Lane],
    pub(super) after: &'a [Lane],
    pub(super) coupling: f32,
}

impl Time<'_> {
    /// The cost of turning a variable on.
    #[inline(always)]
    fn field(&self, at: usize) -> Lane {
        let mut out = Lane::NONE;
        for lane in 0..CHAINS {
            let sum = self.before[at].0[lane] + self.after[at].0[lane];
            out.0[lane] = 2.0 * self.coupling * sum;
        }
        out
    }
}

impl Chains {
    /// Random states.
    pub(super) fn new(problem: &Narrow, random: &mut Xoshiro256PlusPlus) -> Chains {
        let n = problem.variables();
        let mut chains = Chains { sign: vec![Lanes([1.0; CHAINS]); n], ..Chains::default() };
        for sign in &mut chains.sign[..problem.singles] {
            let bits: u16 = random.random();
            for lane in 0..CHAINS {
                sign.0[lane] = if bits >> lane & 1 == 1 { -1.0 } else { 1.0 };
            }
        }
        for group in &problem.groups {
            for lane in 0..CHAINS {
                chains.sign[random.random_range(group.clone())].0[lane] = -1.0;
            }
        }
        chains.scratch =
            vec![Lane::NONE; problem.groups.iter().map(|g| g.len()).max().unwrap_or(0)];
        chains.settle(problem);
        chains
    }

    /// Computes fields and counts from the states. O(n + pairs).
    fn settle(&mut self, problem: &Narrow) {
        self.field = problem.linear.iter().map(|&value| Lanes([value; CHAINS])).collect();
        self.count = vec![Lane::NONE; problem.costs.len()];
        for at in 0..problem.variables() {
            let on = on(self.sign[at]);
            spread(problem, self, at, on);
            problem.counters_of.of(at).iter().for_each(|&c| add(&mut self.count[c as usize], on));
        }
    }

    /// The states of one chain.
    pub(super) fn state(&self, lane: usize) -> Vec<bool> {
        self.sign.iter().map(|sign| sign.0[lane] < 0.0).collect()
    }
}

#[inline(always)]
fn on(sign: Lane) -> Lane {
    Lanes(sign.0.map(|sign| (1.0 - sign) / 2.0))
}

#[inline(always)]
fn add(sum: &mut Lane, value: Lane) {
    for lane in 0..CHAINS {
        sum.0[lane] += value.0[lane];
    }
}

#[inline(always)]
fn any(lane: Lane) -> bool {
    let mut bits = 0;
    for value in lane.0 {
        bits |= value.to_bits();
    }
    bits & 0x7fff_ffff != 0
}

/// Adds the change of a variable to the fields of its neighbours.
#[inline(always)]
fn spread(problem: &Narrow, chains: &mut Chains, at: usize, change: Lane) {
    for &(other, value) in problem.rows.of(at) {
        let field = &mut chains.field[other as usize];
        for lane in 0..CHAINS {
            field.0[lane] += value * change.0[lane];
        }
    }
}

/// The field including counters, in which the variable itself is not counted.
#[inline(always)]
fn whole_field(problem: &Narrow, chains: &Chains, at: usize, own: Lane) -> Lane {
    let mut field = chains.field[at];
    for &counter in problem.counters_of.of(at) {
        let (cost, count) = (problem.costs[counter as usize], chains.count[counter as usize]);
        for lane in 0..CHAINS {
            field.0[lane] += cost * (count.0[lane] - own.0[lane]);
        }
    }
    field
}

/// One step for every variable and group at inverse temperature `beta`.
#[multiversion::multiversion(targets = "simd")]
pub(super) fn sweep(
    problem: &Narrow,
    chains: &mut Chains,
    random: &mut ChainRandom,
    beta: f32,
    time: Option<&Time<'_>>,
) {
    for at in 0..problem.singles {
        let sign = chains.sign[at];
        let field = if problem.costs.is_empty() {
            chains.field[at]
        } else {
            whole_field(problem, chains, at, on(sign))
        };
        let across = time.map_or(Lane::NONE, |time| time.field(at));
        let mut cost = Lane::NONE;
        let mut possible = false;
        for lane in 0..CHAINS {
            cost.0[lane] = sign.0[lane] * (beta * field.0[lane] + across.0[lane]);
            possible |= cost.0[lane] < NEVER;
        }
        if !possible {
            continue;
        }
        let uniform = random.uniform_fine();
        let mut change = Lane::NONE;
        for lane in 0..CHAINS {
            let uphill = if cost.0[lane] > 0.0 { -cost.0[lane] } else { 0.0 };
            change.0[lane] =
                if uniform.0[lane] < exp_six_digits(uphill) { sign.0[lane] } else { 0.0 };
        }
        apply(problem, chains, at, change);
        if any(change) {
            for &counter in problem.counters_of.of(at) {
                add(&mut chains.count[counter as usize], change);
            }
        }
    }
    for group in &problem.groups {
        draw_group(problem, chains, random, beta, time, group.clone());
    }
}

#[inline(always)]
fn apply(problem: &Narrow, chains: &mut Chains, at: usize, change: Lane) {
    if any(change) {
        for lane in 0..CHAINS {
            chains.sign[at].0[lane] -= 2.0 * change.0[lane];
        }
        spread(problem, chains, at, change);
    }
}

/// Draws the member of a group that is on, given everything else.
#[inline(always)]
fn draw_group(
    problem: &Narrow,
    chains: &mut Chains,
    random: &mut ChainRandom,
    beta: f32,
    time: Option<&Time<'_>>,
    group: std::ops::Range<usize>,
) {
    for at in group.clone() {
        let off = Lanes(on(chains.sign[at]).0.map(|on| -on));
        let counters = problem.counters_of.of(at).iter();
        counters.for_each(|&counter| add(&mut chains.count[counter as usize], off));
    }
    let mut least = Lanes([f32::INFINITY; CHAINS]);
    for (slot, at) in group.clone().enumerate() {
        let field = whole_field(problem, chains, at, Lane::NONE);
        let across = time.map_or(Lane::NONE, |time| time.field(at));
        for lane in 0..CHAINS {
            let cost = beta * field.0[lane] + across.0[lane];
            chains.scratch[slot].0[lane] = cost;
            least.0[lane] = if cost < least.0[lane] { cost } else { least.0[lane] };
        }
    }
    let mut total = Lane::NONE;
    for slot in 0..group.len() {
        for lane in 0..CHAINS {
            total.0[lane] += exp_six_digits(least.0[lane] - chains.scratch[slot].0[lane]);
            chains.scratch[slot].0[lane] = total.0[lane];
        }
    }
    let uniform = random.uniform_fine();
    let mut open = Lanes([1.0; CHAINS]);
    for (slot, at) in group.clone().enumerate() {
        let last = at + 1 == group.end;
        let mut chosen = Lane::NONE;
        let mut change = Lane::NONE;
        let old = on(chains.sign[at]);
        for lane in 0..CHAINS {
            // Rounding may leave a remainder beyond the last member, to which it then belongs.
            let here = last | (chains.scratch[slot].0[lane] > uniform.0[lane] * total.0[lane]);
            chosen.0[lane] = if here { open.0[lane] } else { 0.0 };
            open.0[lane] -= chosen.0[lane];
            change.0[lane] = chosen.0[lane] - old.0[lane];
        }
        apply(problem, chains, at, change);
        let counters = problem.counters_of.of(at).iter();
        counters.for_each(|&counter| add(&mut chains.count[counter as usize], chosen));
    }
}

/// Flips single variables in all slices at once, because once slices are bound to each other
/// nothing else moves them. `beta` is that of one slice.
#[multiversion::multiversion(targets = "simd")]
pub(super) fn sweep_lines(
    problem: &Narrow,
    slices: &mut [Chains],
    random: &mut ChainRandom,
    beta: f32,
) {
    for at in 0..problem.singles {
        let mut cost = Lane::NONE;
        for chains in slices.iter() {
            let sign = chains.sign[at];
            let field = whole_field(problem, chains, at, on(sign));
            for lane in 0..CHAINS {
                cost.0[lane] += beta * sign.0[lane] * field.0[lane];
            }
        }
        if cost.0.iter().all(|&cost| cost >= NEVER) {
            continue;
        }
        let uniform = random.uniform_fine();
        let mut accepted = Lane::NONE;
        for lane in 0..CHAINS {
            let uphill = if cost.0[lane] > 0.0 { -cost.0[lane] } else { 0.0 };
            accepted.0[lane] = if uniform.0[lane] < exp_six_digits(uphill) { 1.0 } else { 0.0 };
        }
        if !any(accepted) {
            continue;
        }
        for chains in slices.iter_mut() {
            let mut change = chains.sign[at];
            for lane in 0..CHAINS {
                change.0[lane] *= accepted.0[lane];
            }
            apply(problem, chains, at, change);
            for &counter in problem.counters_of.of(at) {
                add(&mut chains.count[counter as usize], change);
            }
        }
    }
}
