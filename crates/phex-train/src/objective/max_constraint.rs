//! The largest sigmoid below each label: the layer and loss of C-HMCNN (Giunchiglia and Lukasiewicz
//! 2020), as a baseline.
//!
//! `p_A = max_{B ⊑ A} σ(ℓ_B)` over the labels that `A` subsumes, itself included. A target
//! costs `−log(1 − p_A)` when it is off and `−log max_{B ⊑ A, B on} σ(ℓ_B)` when it is on: in that case only
//! labels that are on count. A row costs O(labels + edges).

use phex::graph::RelationGraph;
use phex::infer::Evidence;
use phex::numeric::{sigmoid, softplus};

/// The hierarchy from the leaves up.
#[derive(Debug, Clone)]
pub(crate) struct MaxConstraint {
    /// Labels with their children, children before parents.
    order: Vec<(u32, Vec<u32>)>,
}

impl MaxConstraint {
    pub(super) fn new(graph: &RelationGraph) -> MaxConstraint {
        let topology = graph.topology();
        let children = |label: &phex::graph::LabelId| {
            (label.0, topology.children(*label).iter().map(|child| child.0).collect())
        };
        MaxConstraint { order: topology.order().iter().rev().map(children).collect() }
    }

    pub(super) fn labels(&self) -> usize {
        self.order.len()
    }

    /// For each label, the allowed label below it with the largest logit.
    fn best(&self, logits: &[f32], may: impl Fn(usize) -> bool) -> Vec<Option<u32>> {
        let mut best: Vec<Option<u32>> = vec![None; logits.len()];
        for (label, children) in &self.order {
            let own = may(*label as usize).then_some(*label);
            let all = children.iter().filter_map(|&child| best[child as usize]);
            let larger =
                |a: u32, b: u32| if logits[b as usize] > logits[a as usize] { b } else { a };
            best[*label as usize] = own.into_iter().chain(all).reduce(larger);
        }
        best
    }

    pub(super) fn loss(&self, logits: &[f32], evidence: &[Evidence], by_logit: &mut [f32]) -> f64 {
        let any = self.best(logits, |_| true);
        let on = self.best(logits, |label| evidence[label] == Evidence::On);
        let mut total = 0.0;
        for (label, &entry) in evidence.iter().enumerate() {
            match (entry, any[label], on[label]) {
                (Evidence::On, _, Some(best)) => {
                    let logit = logits[best as usize];
                    total += f64::from(softplus(-logit));
                    by_logit[best as usize] += sigmoid(logit) - 1.0;
                }
                (Evidence::Off, Some(best), _) => {
                    let logit = logits[best as usize];
                    total += f64::from(softplus(logit));
                    by_logit[best as usize] += sigmoid(logit);
                }
                _ => {}
            }
        }
        total
    }

    pub(super) fn probabilities(&self, logits: &[f32]) -> Vec<f32> {
        let row = |logits: &[f32]| -> Vec<f32> {
            let best = self.best(logits, |_| true);
            let largest =
                |best: Option<u32>| best.map_or(0.0, |best| sigmoid(logits[best as usize]));
            best.into_iter().map(largest).collect()
        };
        logits.chunks_exact(self.labels()).flat_map(row).collect()
    }
}
