//! `pool` for rows side by side: forests of moderate depth, exactly, without heaps.
//!
//! Let `m_v` be the mean of the block on top of which `v` stands when nothing above `v` limits it.
//! The value of a label is the least `m` of itself and everything above it. Below `v`, exactly the
//! labels whose least `m` up to `v` exceeds `t` pull a limit `t` upwards, so
//!
//! `w_v (t − ℓ_v) = Σ { w_u (ℓ_u − t) : u below v, least m of u up to v > t }`
//!
//! has the solution `t = m_v`. The right side is convex and decreasing, so Newton's method from `ℓ_v`
//! rises to `m_v` and reaches it exactly when the set of labels stays the same, mostly after two to
//! five rounds. Labels stand in preorder, so what is below a label stands together, and a label that
//! does not pull is skipped with everything below it if that is much. The cost is at most O(rounds ·
//! Σ depths), with eight rows in one instruction. Chains and other deep trees go to the heaps of `pool`.

use multiversion::multiversion;

use crate::reconcile::compile::{Families, NONE};
use crate::reconcile::forest::abreast::ABREAST;

/// A forest in preorder.
#[derive(Debug)]
pub(in crate::reconcile) struct Preorder {
    /// The node at each place.
    node: Vec<u32>,
    /// Where the labels below each place end. They begin behind it.
    end: Vec<u32>,
    weight: Vec<f64>,
}

/// Fewer labels are not skipped: a branch that is hard to predict costs more.
const SKIPPED: usize = 12;

/// Scratch memory: the values and the least means, in preorder.
#[derive(Debug, Default)]
pub(in crate::reconcile) struct PreorderScratch {
    value: Vec<[f64; ABREAST]>,
    least: Vec<[f64; ABREAST]>,
}

impl Preorder {
    /// How many labels may stand above a label on average.
    const DEPTH: usize = 24;

    /// `None` for a deep forest.
    pub(in crate::reconcile) fn of(forest: &Families) -> Option<Preorder> {
        let n = forest.nodes();
        let parent = |v: usize| forest.parent[forest.group[v] as usize];
        let (mut depth, mut below) = (vec![0usize; n], vec![1u32; n]);
        for v in 0..n {
            depth[v] = if parent(v) == NONE { 0 } else { depth[parent(v) as usize] + 1 };
        }
        if depth.iter().sum::<usize>() > Preorder::DEPTH * n {
            return None;
        }
        for v in (0..n).rev().filter(|&v| parent(v) != NONE) {
            below[parent(v) as usize] += below[v];
        }
        // The next free place below each node, and of the roots.
        let (mut next, mut free) = (vec![0u32; n], 0);
        let mut order = Preorder { node: vec![0; n], end: vec![0; n], weight: vec![0.0; n] };
        for v in 0..n {
            let slot = if parent(v) == NONE { &mut free } else { &mut next[parent(v) as usize] };
            let place = *slot;
            *slot += below[v];
            next[v] = place + 1;
            order.node[place as usize] = v as u32;
            order.end[place as usize] = place + below[v];
            order.weight[place as usize] = forest.weights[v];
        }
        Some(order)
    }
}

/// The nearest values such that no child is above its parent. `values` holds the input and then the
/// answer. Values that do not change keep their bits.
#[multiversion(targets = "simd")]
pub(in crate::reconcile) fn pool_abreast(
    order: &Preorder,
    values: &mut [[f64; ABREAST]],
    scratch: &mut PreorderScratch,
) {
    let PreorderScratch { value, least } = scratch;
    value.clear();
    value.extend(order.node.iter().map(|&node| values[node as usize]));
    least.clear();
    least.extend_from_slice(value);
    for place in (0..order.node.len()).rev() {
        let below = place + 1..order.end[place] as usize;
        let start = value[place];
        let mut mean = start;
        let mut moved = false;
        // `&` on conditions, because `&&` is a branch for each lane.
        loop {
            let (mut pull, mut total) = ([0.0; ABREAST], [order.weight[place]; ABREAST]);
            // The smallest least mean of a label that pulls: below it, the same labels pull.
            let mut floor = [f64::INFINITY; ABREAST];
            let mut at = below.start;
            while at < below.end {
                let least = least[at];
                let end = order.end[at] as usize;
                if end - at >= SKIPPED && !any_above(&least, &mean) {
                    at = end;
                    continue;
                }
                let (value, weight) = (&value[at], order.weight[at]);
                for lane in 0..ABREAST {
                    // A product in place of a branch.
                    let pulls = least[lane] > mean[lane];
                    let share = if pulls { weight } else { 0.0 };
                    pull[lane] += share * (value[lane] - start[lane]);
                    total[lane] += share;
                    let low = if pulls { least[lane] } else { f64::INFINITY };
                    floor[lane] = if low < floor[lane] { low } else { floor[lane] };
                }
                at += 1;
            }
            let (mut open, mut rise) = (false, false);
            for lane in 0..ABREAST {
                let next = start[lane] + pull[lane] / total[lane];
                let rises = next > mean[lane];
                mean[lane] = if rises { next } else { mean[lane] };
                rise |= rises;
                open |= rises & (next >= floor[lane]);
            }
            moved |= rise;
            if !open {
                break;
            }
        }
        if !moved {
            continue;
        }
        least[place] = mean;
        let mut at = below.start;
        while at < below.end {
            let mut limited = least[at];
            let end = order.end[at] as usize;
            if end - at >= SKIPPED && !any_above(&limited, &mean) {
                at = end;
                continue;
            }
            for lane in 0..ABREAST {
                let fits = limited[lane] < mean[lane];
                limited[lane] = if fits { limited[lane] } else { mean[lane] };
            }
            least[at] = limited;
            at += 1;
        }
    }
    for (&node, least) in order.node.iter().zip(least.iter()) {
        values[node as usize] = *least;
    }
}

/// Whether a lane of a label is above the mean. If not, nothing below the label is.
#[inline(always)]
fn any_above(least: &[f64; ABREAST], mean: &[f64; ABREAST]) -> bool {
    let mut any = false;
    for lane in 0..ABREAST {
        any |= least[lane] > mean[lane];
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;
    use crate::reconcile::compile::forest_of;
    use crate::reconcile::pool::{PoolScratch, pool};
    use crate::testkit::{Random, RandomGraph};

    #[test]
    fn rows_side_by_side_are_pooled_as_rows_by_themselves() {
        let (mut heaps, mut scratch) = (PoolScratch::default(), PreorderScratch::default());
        let mut checked = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let n = 2 + random.below(40);
            let Some(mut forest) = forest_of(&RandomGraph::new(n, seed).draw()) else { continue };
            if seed % 2 == 1 {
                forest.weights.iter_mut().for_each(|w| *w = 0.2 + random.next());
            }
            let order = Preorder::of(&forest).unwrap();
            let mut values: Vec<[f64; ABREAST]> = (0..forest.nodes())
                .map(|_| std::array::from_fn(|_| random.normals(1)[0]))
                .collect();
            let before = values.clone();
            pool_abreast(&order, &mut values, &mut scratch);
            for lane in 0..ABREAST {
                let mut row: Vec<f64> = before.iter().map(|values| values[lane]).collect();
                pool(&forest, &mut row, &mut heaps);
                for ((pooled, row), before) in values.iter().zip(&row).zip(&before) {
                    assert!((pooled[lane] - row).abs() < 1e-12, "seed {seed}");
                    assert_eq!(pooled[lane] == before[lane], *row == before[lane], "seed {seed}");
                }
            }
            // A second projection changes nothing.
            let again = values.clone();
            pool_abreast(&order, &mut values, &mut scratch);
            assert_eq!(again, values);
            checked += 1;
        }
        assert!(checked > 200, "{checked}");
    }

    #[test]
    fn deep_trees_go_to_the_heaps() {
        let mut builder = GraphBuilder::new();
        (1..100).for_each(|at| {
            builder.hierarchy(&format!("c{}", at - 1), &format!("c{at}"), None);
        });
        let chain = forest_of(&builder.build().unwrap()).unwrap();
        assert!(Preorder::of(&chain).is_none());
    }
}
