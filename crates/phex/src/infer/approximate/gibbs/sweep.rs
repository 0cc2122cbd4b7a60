//! One sweep over the labels of a replica: [`LANES`] chains of one row side by side.
//!
//! A label: `f = θ_i + Σ J_ij x_j − Σ_g w_g (m_g − x_i)`, `p = 1 / (1 + e^(−βf))`, `x_i = [u < p]`.
//! This costs one multiply-add per neighbour or counter, one sigmoid and one random number, without
//! a branch per lane.
//!
//! A one-of group is one block: the fields of all states, their softmax, and the state in whose
//! part of the total `u · total` falls. The totals before and after are sums in the same order, so
//! exactly one state is on. The loops over lanes are plain, and the compiler turns them into
//! vectors of the machine's width.

use crate::numeric::LaneRandom;
use crate::numeric::sigmoid_of_power;
use multiversion::multiversion;

use super::LANES;
use super::quadratic::CountedQuadratic;
use super::row::GibbsRow;
use crate::numeric::{Elementary, Lanes};

/// One number per chain.
pub(super) type Vector = Lanes<f32, LANES>;

/// The same number for all chains.
#[inline(always)]
pub(super) fn same(value: f32) -> Vector {
    Lanes([value; LANES])
}

/// Chains of one row, each at its own temperature.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    /// Whether each label is on: 0 or 1.
    pub(super) on: Vec<Vector>,
    /// The number of members of each counter that are on.
    pub(super) counts: Vec<Vector>,
    /// The factor on all log-weights.
    pub(super) beta: Vector,
    /// 1 for chains that are counted now, otherwise 0.
    pub(super) weight: Vector,
    pub(super) random: LaneRandom<LANES>,
}

#[inline(always)]
fn add_scaled(sum: &mut Vector, factor: f32, other: &Vector) {
    for lane in 0..LANES {
        sum.0[lane] += factor * other.0[lane];
    }
}

/// The field of a label, without counters.
#[inline(always)]
fn pair_field(form: &CountedQuadratic, row: &GibbsRow, on: &[Vector], label: usize) -> Vector {
    let mut field = same(row.theta[label]);
    let edges = form.neighbours.range(label);
    let neighbours = &form.neighbours.items()[edges.clone()];
    for (&neighbour, &coupling) in neighbours.iter().zip(&row.couplings[edges]) {
        add_scaled(&mut field, coupling, &on[neighbour as usize]);
    }
    field
}

/// Sweeps once, and adds to `sums` the conditional probability that each label is on, for chains
/// that count.
#[multiversion(targets = "simd")]
pub(super) fn sweep(
    form: &CountedQuadratic,
    row: &GibbsRow,
    replica: &mut Replica,
    sums: &mut [Vector],
    scratch: &mut [Vector],
) {
    let mut random = replica.random;
    let scale = replica.beta.map(|beta| -std::f32::consts::LOG2_E * beta);
    for &label in &row.free {
        update_label(form, row, replica, &mut random, sums, (label as usize, &scale));
    }
    for states in &row.groups {
        update_group(form, row, replica, &mut random, sums, scratch, states);
    }
    replica.random = random;
}

#[inline(always)]
fn update_label(
    form: &CountedQuadratic,
    row: &GibbsRow,
    replica: &mut Replica,
    random: &mut LaneRandom<LANES>,
    sums: &mut [Vector],
    (label, scale): (usize, &Vector),
) {
    let Replica { on, counts, weight, .. } = replica;
    let mut field = pair_field(form, row, on, label);
    let counters = form.counters.of(label);
    let before = on[label];
    for &counter in counters {
        let counter = counter as usize;
        let others = counts[counter] - before;
        counts[counter] = others;
        add_scaled(&mut field, -row.costs[counter], &others);
    }
    let uniform = random.uniform();
    let sum = &mut sums[label];
    let mut after = before;
    for lane in 0..LANES {
        let p = sigmoid_of_power(field.0[lane] * scale.0[lane]);
        after.0[lane] = if uniform.0[lane] < p { 1.0 } else { 0.0 };
        sum.0[lane] += weight.0[lane] * p;
    }
    on[label] = after;
    for &counter in counters {
        counts[counter as usize] += after;
    }
}

#[inline(always)]
fn update_group(
    form: &CountedQuadratic,
    row: &GibbsRow,
    replica: &mut Replica,
    random: &mut LaneRandom<LANES>,
    sums: &mut [Vector],
    scratch: &mut [Vector],
    states: &[u32],
) {
    let Replica { on, counts, beta, weight, .. } = replica;
    // The group leaves all its counters before any field is read from them.
    for &label in states {
        for &counter in form.counters.of(label as usize) {
            counts[counter as usize] = counts[counter as usize] - on[label as usize];
        }
    }
    let mut most = same(f32::NEG_INFINITY);
    for (&label, slot) in states.iter().zip(&mut *scratch) {
        let mut field = pair_field(form, row, on, label as usize);
        for &counter in form.counters.of(label as usize) {
            add_scaled(&mut field, -row.costs[counter as usize], &counts[counter as usize]);
        }
        *slot = field * *beta;
        most = most.zip(*slot, |a, b| if a > b { a } else { b });
    }
    let mut total = same(0.0);
    for slot in &mut scratch[..states.len()] {
        *slot = slot.zip(most, |field, most| (field - most).exp_downwards());
        total += *slot;
    }
    let threshold = random.uniform() * total;
    let share = weight.zip(total, |weight, total| weight / total);
    let mut reached = same(0.0);
    let mut below = same(0.0);
    for (&label, slot) in states.iter().zip(&*scratch) {
        let label = label as usize;
        reached += *slot;
        let now = threshold.zip(reached, |at, reached| if at < reached { 1.0 } else { 0.0 });
        on[label] = now - below;
        below = now;
        sums[label] += *slot * share;
        for &counter in form.counters.of(label) {
            counts[counter as usize] += on[label];
        }
    }
}

/// The log-weight of each chain, up to a constant of the row.
#[multiversion(targets = "simd")]
pub(super) fn log_weight(form: &CountedQuadratic, row: &GibbsRow, replica: &Replica) -> Vector {
    let mut total = same(0.0);
    for (label, on) in replica.on.iter().enumerate() {
        // Each pair occurs twice.
        let field = pair_field(form, row, &replica.on, label);
        total += *on * field.map(|field| 0.5 * (field + row.theta[label]));
    }
    for (counts, &cost) in replica.counts.iter().zip(&row.costs) {
        total += counts.map(|m| -0.5 * cost * m * (m - 1.0));
    }
    total
}

/// Counts the chains in which each label is on and both labels of each pair are on, and the pairs
/// of each counter that are on in them. Only chains that count are included.
#[multiversion(targets = "simd")]
pub(super) fn count_states(
    replica: &Replica,
    pairs: &[(u32, u32)],
    [labels_on, pairs_on, counters_on]: [&mut [f64]; 3],
) {
    let Replica { on, counts, weight, .. } = replica;
    for (on, out) in on.iter().zip(labels_on) {
        *out += f64::from(across(*weight * *on));
    }
    for (&(a, b), out) in pairs.iter().zip(pairs_on) {
        *out += f64::from(across(*weight * on[a as usize] * on[b as usize]));
    }
    for (counts, out) in counts.iter().zip(counters_on) {
        *out += f64::from(across(*weight * counts.map(|m| 0.5 * m * (m - 1.0))));
    }
}

/// The sum over lanes. The numbers are integers, so the order does not matter.
#[inline(always)]
fn across(mut vector: Vector) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            vector.0[lane] += vector.0[lane + width];
        }
        width /= 2;
    }
    vector.0[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn across_adds_all_lanes() {
        let mut vector = same(1.0);
        vector.0[3] = 5.0;
        assert_eq!(across(vector), LANES as f32 + 4.0);
    }
}
