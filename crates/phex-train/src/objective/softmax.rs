//! A softmax over the leaves: `p(leaf) ∝ exp(ℓ)`, and a label above is the sum of its leaves.
//!
//! The targets leave a set of leaves `A`: those below every label that is on and below none that is off.
//! The loss is `log Σ_all exp ℓ − log Σ_A exp ℓ`. Without coarse rows, only rows with a leaf that is on
//! count.

use phex::graph::RelationGraph;
use phex::infer::Evidence;

/// The leaves below each label.
#[derive(Debug, Clone)]
pub(crate) struct Softmax {
    leaves: Vec<u32>,
    /// For each label the positions of its leaves.
    below: Vec<Vec<u32>>,
    coarse: bool,
}

impl Softmax {
    pub(super) fn new(graph: &RelationGraph, coarse: bool) -> Softmax {
        let leaves: Vec<u32> = graph.leaves().map(|leaf| leaf.0).collect();
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); graph.len()];
        for (at, &leaf) in leaves.iter().enumerate() {
            below[leaf as usize].push(at as u32);
        }
        let topology = graph.topology();
        for &label in topology.order().iter().rev() {
            let children = topology.children(label).iter();
            let mut found: Vec<u32> =
                children.flat_map(|child| below[child.index()].iter().copied()).collect();
            found.append(&mut below[label.index()]);
            found.sort_unstable();
            found.dedup();
            below[label.index()] = found;
        }
        Softmax { leaves, below, coarse }
    }

    pub(super) fn labels(&self) -> usize {
        self.below.len()
    }

    /// `None` when no leaf is left.
    pub(super) fn loss(
        &self,
        logits: &[f32],
        evidence: &[Evidence],
        by_logit: &mut [f32],
    ) -> Option<f64> {
        let has_leaf = self.leaves.iter().any(|&leaf| evidence[leaf as usize] == Evidence::On);
        if evidence.iter().all(|&entry| entry == Evidence::Unknown) || !(self.coarse || has_leaf) {
            return Some(0.0);
        }
        let mut on = 0u32;
        let mut hits = vec![0u32; self.leaves.len()];
        for (label, &entry) in evidence.iter().enumerate() {
            match entry {
                Evidence::Unknown => {}
                Evidence::On => {
                    on += 1;
                    self.below[label].iter().for_each(|&at| hits[at as usize] += 1);
                }
                // A leaf that is off can never have as many hits as there are labels that are on.
                Evidence::Off => {
                    self.below[label].iter().for_each(|&at| hits[at as usize] = u32::MAX / 2);
                }
            }
        }
        let all = self.weights(logits);
        let allowed: f64 =
            all.iter().zip(&hits).filter(|(_, hit)| **hit == on).map(|(w, _)| w).sum();
        if allowed == 0.0 {
            return None;
        }
        let total: f64 = all.iter().sum();
        for ((&leaf, weight), hit) in self.leaves.iter().zip(&all).zip(&hits) {
            let clamped = if *hit == on { weight / allowed } else { 0.0 };
            by_logit[leaf as usize] += (weight / total - clamped) as f32;
        }
        Some((total / allowed).ln())
    }

    fn weights(&self, logits: &[f32]) -> Vec<f64> {
        let scores = self.leaves.iter().map(|&leaf| f64::from(logits[leaf as usize]));
        let most = scores.clone().fold(f64::NEG_INFINITY, f64::max);
        scores.map(|score| (score - most).exp()).collect()
    }

    pub(super) fn probabilities(&self, logits: &[f32]) -> Vec<f32> {
        let row = |logits: &[f32]| -> Vec<f32> {
            let weights = self.weights(logits);
            let total: f64 = weights.iter().sum();
            let sum =
                |below: &Vec<u32>| -> f64 { below.iter().map(|&at| weights[at as usize]).sum() };
            self.below.iter().map(|below| (sum(below) / total) as f32).collect()
        };
        logits.chunks_exact(self.labels()).flat_map(row).collect()
    }
}
