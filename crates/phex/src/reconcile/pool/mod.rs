//! `pool`: forests with nothing but hierarchy, exactly, by pooling adjacent violators on the tree.
//!
//! `q_c ≤ q_p` is `z_c ≤ z_p`, so the projection is the weighted least-squares projection of the
//! logits (or of the probabilities, for the Brier score): blocks of labels share the mean logit of
//! the block. Bottom up, a label whose children's blocks are larger merges with the largest, again
//! and again. Each label keeps the blocks below it in a leftist heap, which is built only where
//! something merges, so rows that are nearly consistent cost O(labels), and any row costs O(labels ·
//! log labels).

pub(super) mod abreast;

use super::compile::{Families, NONE};

/// Scratch memory for rows of one forest.
#[derive(Debug, Default)]
pub(super) struct PoolScratch {
    value: Vec<f64>,
    /// The sum and the weight of the block of a label that other labels merged into.
    sum: Vec<f64>,
    weight: Vec<f64>,
    heaps: Heaps,
    /// The label that this one merged into.
    into: Vec<u32>,
}

/// Leftist heaps of labels, the largest value on top.
#[derive(Debug, Default)]
struct Heaps {
    left: Vec<u32>,
    right: Vec<u32>,
    rank: Vec<u32>,
    /// The top of the heap of the blocks below a label, once it is built.
    top: Vec<u32>,
    built: Vec<bool>,
    path: Vec<u32>,
}

impl Heaps {
    fn reset(&mut self, n: usize) {
        for list in [&mut self.left, &mut self.right, &mut self.rank, &mut self.top] {
            list.resize(n, NONE);
        }
        self.built.clear();
        self.built.resize(n, false);
    }

    fn rank_of(&self, at: u32) -> u32 {
        if at == NONE { 0 } else { self.rank[at as usize] }
    }

    fn meld(&mut self, value: &[f64], mut a: u32, mut b: u32) -> u32 {
        self.path.clear();
        while a != NONE && b != NONE {
            if value[a as usize] < value[b as usize] {
                std::mem::swap(&mut a, &mut b);
            }
            self.path.push(a);
            a = self.right[a as usize];
        }
        let mut under = if a == NONE { b } else { a };
        while let Some(at) = self.path.pop() {
            let slot = at as usize;
            self.right[slot] = under;
            if self.rank_of(self.left[slot]) < self.rank_of(under) {
                self.right[slot] = self.left[slot];
                self.left[slot] = under;
            }
            self.rank[slot] = self.rank_of(self.right[slot]) + 1;
            under = at;
        }
        under
    }

    /// Puts the children of a label into its heap.
    fn build(&mut self, value: &[f64], v: usize, children: std::ops::Range<usize>) {
        if std::mem::replace(&mut self.built[v], true) {
            return;
        }
        let mut top = NONE;
        for c in children {
            (self.left[c], self.right[c], self.rank[c]) = (NONE, NONE, 1);
            top = self.meld(value, top, c as u32);
        }
        self.top[v] = top;
    }
}

/// The nearest values, weighted by the labels' weights, such that no child is above its parent.
/// `values` holds the input and then the answer. Values that do not change keep their bits.
pub(super) fn pool(forest: &Families, values: &mut [f64], scratch: &mut PoolScratch) {
    let n = forest.nodes();
    let children = |v: usize| {
        let groups = forest.below(v);
        forest.start[groups.start] as usize..forest.start[groups.end] as usize
    };
    scratch.value.clear();
    scratch.value.extend_from_slice(values);
    scratch.into.clear();
    scratch.into.resize(n, NONE);
    scratch.weight.clear();
    scratch.weight.resize(n, 0.0);
    scratch.sum.resize(n, 0.0);
    scratch.heaps.reset(n);
    let (value, heaps) = (&mut scratch.value, &mut scratch.heaps);
    for v in (0..n).rev() {
        let mine = value[v];
        if value[children(v)].iter().all(|&child| child <= mine) {
            continue;
        }
        heaps.build(value, v, children(v));
        let mut weight = forest.weights[v];
        let mut sum = weight * values[v];
        while heaps.top[v] != NONE && value[heaps.top[v] as usize] > value[v] {
            let u = heaps.top[v];
            let slot = u as usize;
            heaps.build(value, slot, children(slot));
            let others = heaps.meld(value, heaps.left[slot], heaps.right[slot]);
            heaps.top[v] = heaps.meld(value, others, heaps.top[slot]);
            scratch.into[slot] = v as u32;
            if scratch.weight[slot] > 0.0 {
                weight += scratch.weight[slot];
                sum += scratch.sum[slot];
            } else {
                weight += forest.weights[slot];
                sum += forest.weights[slot] * values[slot];
            }
            value[v] = sum / weight;
        }
        (scratch.weight[v], scratch.sum[v]) = (weight, sum);
    }
    for v in 0..n {
        let into = scratch.into[v];
        values[v] = if into == NONE { value[v] } else { values[into as usize] };
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::forest_of;
    use super::*;
    use crate::testkit::{Random, RandomGraph};

    /// Merges the worst violated edge until there is none: slow, and right by the definition of
    /// pooling for trees.
    fn slow(forest: &Families, values: &[f64]) -> Vec<f64> {
        let n = forest.nodes();
        let mut block: Vec<usize> = (0..n).collect();
        loop {
            let mean = |b: usize| {
                let members = || (0..n).filter(|&v| block[v] == b);
                let weight: f64 = members().map(|v| forest.weights[v]).sum();
                members().map(|v| forest.weights[v] * values[v]).sum::<f64>() / weight
            };
            let violation = |&v: &usize| {
                let p = forest.parent[forest.group[v] as usize];
                if p == NONE { 0.0 } else { mean(block[v]) - mean(block[p as usize]) }
            };
            let worst = (0..n).max_by(|a, b| violation(a).total_cmp(&violation(b))).unwrap();
            if violation(&worst) <= 1e-13 {
                return (0..n).map(|v| mean(block[v])).collect();
            }
            let parent = forest.parent[forest.group[worst] as usize] as usize;
            let (from, to) = (block[worst], block[parent]);
            block.iter_mut().filter(|b| **b == from).for_each(|b| *b = to);
        }
    }

    #[test]
    fn pooling_agrees_with_merging_the_worst_edge() {
        let mut scratch = PoolScratch::default();
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let n = 2 + random.below(12);
            let Some(mut forest) = forest_of(&RandomGraph::new(n, seed).draw()) else { continue };
            forest.weights.iter_mut().for_each(|w| *w = 0.2 + random.next());
            let values: Vec<f64> = random.normals(forest.nodes());
            let mut fast = values.clone();
            pool(&forest, &mut fast, &mut scratch);
            for (a, b) in fast.iter().zip(slow(&forest, &values)) {
                assert!((a - b).abs() < 1e-12, "seed {seed}");
            }
            // A second projection changes nothing.
            let again = fast.clone();
            pool(&forest, &mut fast, &mut scratch);
            assert!(again.iter().zip(&fast).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
