//! The levels of a graph: labels that share a temperature, a bias and a weight.
//!
//! A level is what a classifier usually has one head for: labels at the same depth of the hierarchy.
//! For the loss `categorical` they share one distribution.

use crate::graph::RelationGraph;
use crate::numeric::log_sum_exp;
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
        let topology = graph.topology();
        let depth = graph.ids().map(|label| topology.depth(label)).max().unwrap_or(0);
        let names = (0..=depth).map(|depth| format!("level {depth}")).collect();
        let mut members = vec![Vec::new(); depth + 1];
        graph.ids().for_each(|label| members[topology.depth(label)].push(label.index()));
        Levels { names, members, heads }
    }

    /// How many labels there are.
    pub(super) fn labels(&self) -> usize {
        self.members.iter().map(Vec::len).sum()
    }

    /// Makes the exponentials of each level sum to 1.
    pub(super) fn normalise(&self, row: &mut [f64]) {
        for members in &self.members {
            let total = log_sum_exp(members.iter().map(|&at| row[at]));
            members.iter().for_each(|&at| row[at] -= total);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
}
