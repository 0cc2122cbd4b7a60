//! The passes over the trees: sums along paths, one exponential per end, sums over subtrees.
//!
//! ```text
//! s_v = s_parent + ℓ_v + Σ log Z of the trees below v        down each tree
//! m   = max s_v over the ends v, and 0 if the tree may be empty
//! T_v = [v is an end] e^{s_v − m} + Σ T_child                 up each tree
//! Z   = [the tree may be empty] e^{−m} + Σ T_top,             log Z = m + ln Z
//! p_v = T_v / Z · p(the node that the tree hangs from)        from the first bundle to the last
//! ```
//!
//! Scores are only added and compared before they are exponentiated, relative to the largest, so any
//! score within the limit is safe.
//!
//! Evidence: each node holds 1 where its label is on, a large negative number where it is off, else
//! 0. Summed along a path these equal their sum over the labels that are on exactly where the path has
//! all the labels that are on and none that is off.

use super::pack::Pack;
use super::program::{Bundle, NO_NODE, PathProgram, PathTree, Siblings};
use crate::numeric::{LogLane, Scalar};

/// The evidence of a label that is off. It outweighs any number of labels that are on.
pub(super) const OFF: f64 = -1e30;

/// Products of totals are turned into logarithms before they leave the range of singles.
const LARGEST_PRODUCT: f64 = 1e30;

/// Memory that the passes use, for the rows of one pack.
#[derive(Debug)]
pub(super) struct PathBuffers<P> {
    /// By node: scores, then sums along paths, then sums over subtrees, then marginals.
    pub(super) values: Vec<P>,
    /// By node: evidence, then its sums along paths. Empty without evidence.
    pub(super) known: Vec<P>,
    /// By tree: 1 / Z, or 0 where Z is.
    scales: Vec<P>,
    /// By row: log Z.
    pub(super) log_partition: Vec<f64>,
}

impl<P: Pack> PathBuffers<P> {
    pub(super) fn new(program: &PathProgram) -> PathBuffers<P> {
        let zero = P::splat(P::Scalar::ZERO);
        PathBuffers {
            values: vec![zero; program.len()],
            known: Vec::new(),
            scales: vec![zero; program.trees.len()],
            log_partition: vec![0.0; zero.rows().len()],
        }
    }
}

/// What is left to do after the passes, and how large the sums were.
pub(super) struct Passed<P> {
    /// A factor that turns values into marginals.
    pub(super) factor: P,
    /// The largest absolute sum along a path.
    pub(super) largest: P,
}

/// Turns scores into marginals and log Z.
#[inline(always)]
pub(super) fn infer<P: Pack, const KNOWN: bool>(
    program: &PathProgram,
    buffers: &mut PathBuffers<P>,
) -> Passed<P> {
    let mut largest = P::splat(P::Scalar::ZERO);
    buffers.log_partition.fill(0.0);
    for bundle in program.bundles.iter().rev() {
        bundle_up::<P, KNOWN>(program, bundle, buffers, &mut largest);
    }
    let values = &mut buffers.values;
    for &[node, first] in &program.repeats {
        values[first as usize] = values[first as usize].plus(values[node as usize]);
    }
    if program.is_one_tree() {
        return Passed { factor: buffers.scales[0], largest };
    }
    let one = P::splat(P::Scalar::ONE);
    for bundle in &program.bundles {
        let above = bundle.above.map_or(one, |node| values[node]);
        for tree in bundle.trees.clone() {
            let scale = buffers.scales[tree].times(above);
            for value in &mut values[program.trees[tree].nodes.clone()] {
                *value = value.times(scale);
            }
        }
    }
    Passed { factor: one, largest }
}

/// log Z of the trees of a bundle, added to the score of the node above or to that of the rows.
#[inline(always)]
fn bundle_up<P: Pack, const KNOWN: bool>(
    program: &PathProgram,
    bundle: &Bundle,
    buffers: &mut PathBuffers<P>,
    largest: &mut P,
) {
    let (zero, one) = (P::splat(P::Scalar::ZERO), P::splat(P::Scalar::ONE));
    let (mut logs, mut product, mut bound) = (zero, one, 1.0);
    let (mut possible, mut needed) = (one, zero);
    for tree in bundle.trees.clone() {
        let Totals { most, total, known } =
            tree_up::<P, KNOWN>(program, &program.trees[tree], buffers, largest);
        buffers.scales[tree] =
            total.map(|z| if z > P::Scalar::ZERO { P::Scalar::ONE / z } else { P::Scalar::ZERO });
        let size = (program.trees[tree].nodes.len() + 1) as f64;
        if bound * size > LARGEST_PRODUCT {
            logs = flush(bundle, logs, product, &mut buffers.log_partition);
            (product, bound) = (one, 1.0);
        }
        bound *= size;
        if bundle.above.is_none() {
            for (log, most) in buffers.log_partition.iter_mut().zip(most.rows()) {
                *log += most.to_f64();
            }
            product = product.times(total);
        } else {
            logs = logs.plus(most);
            // An empty total leaves the product positive, so that its logarithm is finite.
            product = product.zip(total, |a, z| if z > P::Scalar::ZERO { a * z } else { a });
            possible = possible.zip(total, |a, z| if z > P::Scalar::ZERO { a } else { z });
            needed = needed.plus(known);
        }
    }
    logs = flush(bundle, logs, product, &mut buffers.log_partition);
    if let Some(above) = bundle.above {
        buffers.values[above] = buffers.values[above].plus(logs);
        if KNOWN {
            let off = P::Scalar::from_f64(OFF);
            let implied = possible.zip(needed, |possible, needed| {
                let on = if needed > P::Scalar::ZERO { P::Scalar::ONE } else { P::Scalar::ZERO };
                // Evidence below that cannot be met is a contradiction. `needed` may be NaN itself.
                let never = if needed == P::Scalar::ZERO { off } else { P::Scalar::NAN };
                if possible > P::Scalar::ZERO { on } else { never }
            });
            buffers.known[above] = buffers.known[above].zip(implied, agree);
        }
    }
}

/// Adds the logarithm of a product of totals.
#[inline(always)]
fn flush<P: Pack>(bundle: &Bundle, logs: P, product: P, log_partition: &mut [f64]) -> P {
    if bundle.above.is_some() {
        return logs.plus(product.map(P::Scalar::ln_lane));
    }
    for (log, product) in log_partition.iter_mut().zip(product.rows()) {
        *log += product.to_f64().ln();
    }
    logs
}

/// Two pieces of evidence on a node. NaN where they disagree, which equals no sum.
#[inline(always)]
fn agree<T: Scalar>(a: T, b: T) -> T {
    let disagree = (a > T::ZERO && b < T::ZERO) || (a < T::ZERO && b > T::ZERO);
    if disagree { T::NAN } else { a + b }
}

/// The largest log-weight of a tree, the sum of its weights relative to it, and how much evidence
/// must lie on its path.
struct Totals<P> {
    most: P,
    total: P,
    known: P,
}

#[inline(always)]
fn tree_up<P: Pack, const KNOWN: bool>(
    program: &PathProgram,
    tree: &PathTree,
    buffers: &mut PathBuffers<P>,
    largest: &mut P,
) -> Totals<P> {
    let zero = P::splat(P::Scalar::ZERO);
    let nothing = P::splat(P::Scalar::NEG_INFINITY);
    let PathBuffers { values, known, .. } = buffers;
    let mut needed = zero;
    if KNOWN {
        for &known in &known[tree.nodes.clone()] {
            needed = needed.zip(known, |sum, k| if k < P::Scalar::ZERO { sum } else { sum + k });
        }
    }
    for &[node, first] in &program.repeats {
        values[node as usize] = values[first as usize];
        if KNOWN {
            known[node as usize] = known[first as usize];
        }
    }
    // Whether a path may be empty, given the evidence: 1 or 0.
    let empty = if !tree.may_be_empty { zero } else { needed.map(if_zero) };
    let mut most =
        empty.zip(nothing, |e, low| if e > P::Scalar::ZERO { P::Scalar::ZERO } else { low });
    for family in &program.families[tree.families.clone()] {
        sums_down::<P, KNOWN>(family, values, known, needed, &mut most, largest);
    }
    // Without a state all weights are 0 whatever the shift is.
    let most = most.map(|m| if m > P::Scalar::NEG_INFINITY { m } else { P::Scalar::ZERO });
    // The largest is below 0 only where no path may be empty.
    let mut total = zero.minus(most.larger(zero)).exp().times(empty);
    for family in program.families[tree.families.clone()].iter().rev() {
        let sum = weights_up::<P, KNOWN>(family, values, known, needed, most);
        if family.parent == NO_NODE {
            total = total.plus(sum);
        } else {
            let parent = family.parent as usize;
            values[parent] = if family.parent_is_end {
                let own = weight::<P, KNOWN>(values[parent], known.get(parent), needed, most);
                own.plus(sum)
            } else {
                sum
            };
        }
    }
    Totals { most, total, known: needed }
}

#[inline(always)]
fn if_zero<T: Scalar>(value: T) -> T {
    if value == T::ZERO { T::ONE } else { T::ZERO }
}

/// Adds the sum of the parent to each of its children.
#[inline(always)]
fn sums_down<P: Pack, const KNOWN: bool>(
    family: &Siblings,
    values: &mut [P],
    known: &mut [P],
    needed: P,
    most: &mut P,
    largest: &mut P,
) {
    let zero = P::splat(P::Scalar::ZERO);
    let is_top = family.parent == NO_NODE;
    let above = if is_top { zero } else { values[family.parent as usize] };
    let [_, ends, on] = family.counts();
    let siblings = &mut values[family.all()];
    // In registers while the family is summed.
    let (mut most_here, mut largest_here) = (*most, *largest);
    if KNOWN {
        let known_above = if is_top { zero } else { known[family.parent as usize] };
        let siblings = siblings[..on].iter_mut().zip(&mut known[family.all()]).enumerate();
        for (at, (value, known)) in siblings {
            *known = known.plus(known_above);
            *value = value.plus(above);
            largest_here = largest_here.larger(value.magnitude());
            if at < ends {
                let low = P::Scalar::NEG_INFINITY;
                let allowed = known.zip(needed, if_equal);
                let allowed = allowed.zip(*value, |a, v| if a > P::Scalar::ZERO { v } else { low });
                most_here = most_here.larger(allowed);
            }
        }
    } else {
        let (ends, passed) = siblings[..on].split_at_mut(ends);
        for value in ends {
            *value = value.plus(above);
            largest_here = largest_here.larger(value.magnitude());
            most_here = most_here.larger(*value);
        }
        for value in passed {
            *value = value.plus(above);
            largest_here = largest_here.larger(value.magnitude());
        }
    }
    (*most, *largest) = (most_here, largest_here);
}

#[inline(always)]
fn if_equal<T: Scalar>(a: T, b: T) -> T {
    if a == b { T::ONE } else { T::ZERO }
}

/// The weight of a path that ends at a node.
#[inline(always)]
fn weight<P: Pack, const KNOWN: bool>(sum: P, known: Option<&P>, needed: P, most: P) -> P {
    let below = sum.minus(most);
    match known.filter(|_| KNOWN) {
        None => below.exp(),
        Some(&known) => {
            // Paths that are not allowed may weigh more than the largest that is.
            let below = below.map(|x| -(-x).max(P::Scalar::ZERO));
            below.exp().times(known.zip(needed, if_equal))
        }
    }
}

/// The sum of the weights of all paths through these siblings. Each of them gets its own sum.
#[inline(always)]
fn weights_up<P: Pack, const KNOWN: bool>(
    family: &Siblings,
    values: &mut [P],
    known: &[P],
    needed: P,
    most: P,
) -> P {
    let [leaves, _, on] = family.counts();
    let siblings = &mut values[family.all()];
    let known = if KNOWN { &known[family.all()] } else { &[] };
    let mut sum = P::splat(P::Scalar::ZERO);
    let (childless, others) = siblings.split_at_mut(leaves);
    for (at, value) in childless.iter_mut().enumerate() {
        *value = weight::<P, KNOWN>(*value, known.get(at), needed, most);
        sum = sum.plus(*value);
    }
    let (parents, never) = others.split_at_mut(on - leaves);
    for value in parents {
        sum = sum.plus(*value);
    }
    never.fill(P::splat(P::Scalar::ZERO));
    sum
}
