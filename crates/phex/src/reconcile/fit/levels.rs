//! The levels of a graph: labels that share a temperature, a bias and a weight.
//!
//! A level is what a classifier usually has one head for: labels at the same depth of the hierarchy.
//! For the loss `categorical` it is a one-of group, whose labels share one distribution.

use crate::graph::RelationGraph;
use crate::reconcile::ReconcileLoss;

/// The levels of a graph, the most general first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Levels {
    pub(super) names: Vec<String>,
    /// The columns of each level.
    pub(super) members: Vec<Vec<usize>>,
    /// Whether the labels of a level share one distribution.
    pub(super) heads: bool,
}

impl Levels {
    pub(super) fn of(graph: &RelationGraph, loss: ReconcileLoss) -> Levels {
        let heads = loss == ReconcileLoss::Categorical;
        let n = graph.len();
        let mut of = vec![u32::MAX; n];
        let mut groups: Vec<(usize, String)> = Vec::new();
        let topology = graph.topology();
        let once = heads && {
            let mut count = vec![0; n];
            let members = graph.one_of().iter().flat_map(|group| &group.labels);
            members.for_each(|label| count[label.index()] += 1);
            count.iter().all(|&count| count == 1)
        };
        if once {
            for (at, group) in graph.one_of().iter().enumerate() {
                group.labels.iter().for_each(|label| of[label.index()] = at as u32);
                let depth = group.labels.iter().map(|&label| topology.depth(label)).max();
                groups.push((depth.unwrap_or(0), group.name.clone()));
            }
        } else {
            let depth = graph.ids().map(|label| topology.depth(label)).max().unwrap_or(0);
            groups.extend((0..=depth).map(|depth| (depth, format!("level {depth}"))));
            for label in graph.ids() {
                of[label.index()] = topology.depth(label) as u32;
            }
        }
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&at| groups[at].0);
        let members: Vec<Vec<usize>> = order
            .iter()
            .map(|&level| (0..n).filter(|&label| of[label] as usize == level).collect())
            .collect();
        let names = order.iter().map(|&level| groups[level].1.clone()).collect();
        Levels { names, members, heads }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
}
