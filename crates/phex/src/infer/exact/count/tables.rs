//! The inside and outside recursions over counts.
//!
//! `G_v(a, s, t)` is the weight of the subtree of `v` when `a` ancestors of `v` are on, `s` labels
//! of the subtree are on, and `t` is the set of one-of groups with a member among these. The
//! children of `v` are merged one at a time. Pairs of labels in the subtrees of different children
//! meet at `v`:
//!
//! ```text
//! F_0(0, ∅) = 1,   F_j(S + s, t ∪ t') += F_{j−1}(S, t) · G_c(a', s, t') · exp(−w_v S s)
//! G_v(a, S + y, t) += ψ_v(y) · exp(−e_v (depth − a) y) · F_k(S, t)   with a' = a + y
//! ```
//!
//! The outside pass runs the same sums backwards with `B_k = O_v`. Groups require `t ∩ t' = ∅`.

use super::CountForest;
use super::semiring::Weight;

/// The dimensions of a table: ancestors on × labels on × groups satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountShape {
    pub(super) above: usize,
    pub(super) counts: usize,
    pub(super) layers: usize,
}

impl CountShape {
    pub(super) fn len(&self) -> usize {
        self.above * self.counts * self.layers
    }

    #[inline(always)]
    pub(super) fn at(&self, above: usize, count: usize, layer: usize) -> usize {
        (above * self.counts + count) * self.layers + layer
    }
}

/// A table with the logarithm of its scale.
#[derive(Debug, Clone)]
pub(super) struct CountTable<W> {
    pub(super) shape: CountShape,
    pub(super) cells: Vec<W>,
    pub(super) scale: f64,
}

impl<W: Weight> CountTable<W> {
    fn zeros(shape: CountShape) -> CountTable<W> {
        CountTable { shape, cells: vec![W::ZERO; shape.len()], scale: 0.0 }
    }
}

/// The log-weights of off and on for a label in one row.
pub(super) type Unary = [f64; 2];

/// The inside pass of one row. Node `n` is the virtual root above all trees.
pub(super) struct Inside<W> {
    /// `F_0, F_1, …` of each node.
    pub(super) merged: Vec<Vec<CountTable<W>>>,
    /// `G` of each label.
    pub(super) subtree: Vec<CountTable<W>>,
}

/// `exp(−cost · times)`, with `∞ · 0 = 0`.
#[inline(always)]
fn penalty<W: Weight>(cost: f64, times: usize) -> W {
    if times == 0 || cost == 0.0 { W::ONE } else { W::from_log(-cost * times as f64) }
}

impl<W: Weight> Inside<W> {
    /// Returns `None` when a table is all zero, either by underflow or because no state is
    /// possible.
    pub(super) fn new(forest: &CountForest, unary: &[Unary]) -> Option<Inside<W>> {
        let n = forest.parent.len();
        let mut inside: Inside<W> =
            Inside { merged: vec![Vec::new(); n + 1], subtree: Vec::with_capacity(n) };
        inside.subtree.resize(n, CountTable::zeros(CountShape { above: 0, counts: 0, layers: 0 }));
        for &node in &forest.bottom_up {
            inside.merge(forest, node)?;
            if node < n {
                inside.subtree[node] = inside.close(forest, node, unary[node])?;
            }
        }
        Some(inside)
    }

    /// Merges the children of a node.
    fn merge(&mut self, forest: &CountForest, node: usize) -> Option<()> {
        // The ancestors that the children see: those of the node, and the node itself.
        let above = forest.seen_by_children(node);
        let layers = forest.layers;
        let mut first = CountTable::<W>::zeros(CountShape { above, counts: 1, layers });
        (0..above).for_each(|a| {
            let at = first.shape.at(a, 0, 0);
            first.cells[at] = W::ONE;
        });
        let mut merged = vec![first];
        for &child in &forest.children[node] {
            let so_far = &merged[merged.len() - 1];
            let sub = &self.subtree[child];
            let counts = forest.capped(so_far.shape.counts - 1 + sub.shape.counts - 1) + 1;
            let mut next = CountTable::<W>::zeros(CountShape { above, counts, layers });
            next.scale = so_far.scale + sub.scale;
            for a in 0..above {
                for big in 0..so_far.shape.counts {
                    for small in 0..sub.shape.counts {
                        let cost = penalty::<W>(forest.family_cost[node], big * small);
                        let sum = forest.capped(big + small);
                        for &(mine, its, both) in &forest.disjoint {
                            let (x, y) = (
                                so_far.cells[so_far.shape.at(a, big, mine)],
                                sub.cells[sub.shape.at(a, small, its)],
                            );
                            let at = next.shape.at(a, sum, both);
                            next.cells[at] = next.cells[at].plus(x.times(y).times(cost));
                        }
                    }
                }
            }
            next.scale += W::rescale(&mut next.cells)?;
            merged.push(next);
        }
        self.merged[node] = merged;
        Some(())
    }

    /// Adds the node itself to its merged children.
    fn close(&self, forest: &CountForest, node: usize, unary: Unary) -> Option<CountTable<W>> {
        let merged = &self.merged[node][forest.children[node].len()];
        let above = forest.depth[node] + 1;
        let counts = forest.capped(merged.shape.counts) + 1;
        let mut table = CountTable::<W>::zeros(CountShape { above, counts, layers: forest.layers });
        table.scale = merged.scale;
        for a in 0..above {
            for on in 0..2 {
                let weight = forest.own_weight::<W>(node, a, on, unary);
                for count in 0..merged.shape.counts {
                    for layer in 0..forest.layers {
                        let Some(with) = forest.layer_with(node, on, layer) else { continue };
                        let x = merged.cells[merged.shape.at(a + on, count, layer)];
                        let at = table.shape.at(a, forest.capped(count + on), with);
                        table.cells[at] = table.cells[at].plus(x.times(weight));
                    }
                }
            }
        }
        table.scale += W::rescale(&mut table.cells)?;
        Some(table)
    }

    /// The log-partition with and without the overflow cell of a capped count.
    pub(super) fn log_partition(&self, forest: &CountForest) -> (f64, f64) {
        let root = &self.merged[forest.parent.len()];
        let total = &root[root.len() - 1];
        let (mut with, mut without) = (W::ZERO, W::ZERO);
        for count in 0..total.shape.counts {
            let cell = total.cells[total.shape.at(0, count, forest.layers - 1)];
            with = with.plus(cell);
            if !forest.is_overflow(count) {
                without = without.plus(cell);
            }
        }
        (with.log() + total.scale, without.log() + total.scale)
    }
}

/// The result of the outside pass.
pub(super) struct Expected {
    pub(super) marginals: Vec<f64>,
    /// For each label, the expected number of its ancestors that are off while it is on. Then for
    /// each node, the virtual root last, the expected number of pairs that meet there.
    pub(super) violations: Vec<f64>,
}

/// The outside pass. `None` when something underflowed: the mass of some node is not the partition
/// function. Sums in the log domain always give an answer.
pub(super) fn outside<W: Weight>(
    forest: &CountForest,
    inside: &Inside<W>,
    unary: &[Unary],
    log_z: f64,
) -> Option<Expected> {
    let n = forest.parent.len();
    let mut expected = Expected { marginals: vec![0.0; n], violations: vec![0.0; 2 * n + 1] };
    let mut outer: Vec<Option<CountTable<W>>> = vec![None; n];
    for &node in forest.bottom_up.iter().rev() {
        let merged = &inside.merged[node];
        let last = &merged[merged.len() - 1];
        let mut back = CountTable::<W>::zeros(last.shape);
        if node == n {
            for count in (0..last.shape.counts).filter(|&count| !forest.is_overflow(count)) {
                back.cells[last.shape.at(0, count, forest.layers - 1)] = W::ONE;
            }
        } else {
            let own = outer[node].take()?;
            back.scale = own.scale;
            let (mut on_mass, mut mass) = (W::ZERO, W::ZERO);
            for a in 0..own.shape.above {
                for on in 0..2 {
                    let weight = forest.own_weight::<W>(node, a, on, unary[node]);
                    let mut here = W::ZERO;
                    for count in 0..last.shape.counts {
                        for layer in 0..forest.layers {
                            let Some(with) = forest.layer_with(node, on, layer) else { continue };
                            let o = own.cells[own.shape.at(a, forest.capped(count + on), with)];
                            let at = last.shape.at(a + on, count, layer);
                            back.cells[at] = back.cells[at].plus(o.times(weight));
                            here = here.plus(o.times(weight).times(last.cells[at]));
                        }
                    }
                    mass = mass.plus(here);
                    if on == 1 {
                        on_mass = on_mass.plus(here);
                        let p = (here.log() + own.scale + last.scale - log_z).exp();
                        expected.violations[node] += p * (forest.depth[node] - a) as f64;
                    }
                }
            }
            let found = mass.log() + own.scale + last.scale;
            let close = (found - log_z).abs() <= 1e-7;
            if W::UNDERFLOWS && !close {
                return None;
            }
            expected.marginals[node] = (on_mass.log() - mass.log()).exp();
        }
        back.scale += W::rescale(&mut back.cells)?;
        for (step, &child) in forest.children[node].iter().enumerate().rev() {
            let (before, sub) = (&merged[step], &inside.subtree[child]);
            let mut to_child = CountTable::<W>::zeros(sub.shape);
            let mut to_before = CountTable::<W>::zeros(before.shape);
            (to_child.scale, to_before.scale) = (back.scale + before.scale, back.scale + sub.scale);
            let level = back.scale + before.scale + sub.scale - log_z;
            for a in 0..before.shape.above {
                for big in 0..before.shape.counts {
                    for small in 0..sub.shape.counts {
                        let cost = penalty::<W>(forest.family_cost[node], big * small);
                        let sum = forest.capped(big + small);
                        let mut pairs = W::ZERO;
                        for &(mine, its, both) in &forest.disjoint {
                            let b = back.cells[back.shape.at(a, sum, both)].times(cost);
                            let x = before.cells[before.shape.at(a, big, mine)];
                            let y = sub.cells[sub.shape.at(a, small, its)];
                            let at = to_child.shape.at(a, small, its);
                            to_child.cells[at] = to_child.cells[at].plus(b.times(x));
                            let at = to_before.shape.at(a, big, mine);
                            to_before.cells[at] = to_before.cells[at].plus(b.times(y));
                            pairs = pairs.plus(b.times(x).times(y));
                        }
                        if big * small > 0 {
                            let p = (pairs.log() + level).exp();
                            expected.violations[n + node] += p * (big * small) as f64;
                        }
                    }
                }
            }
            to_child.scale += W::rescale(&mut to_child.cells)?;
            to_before.scale += W::rescale(&mut to_before.cells)?;
            outer[child] = Some(to_child);
            back = to_before;
        }
    }
    Some(expected)
}
