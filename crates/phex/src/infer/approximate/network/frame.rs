//! Nodes with their states: binary labels have two (off, on), and one-of groups one per label.
//!
//! States are numbered consecutively, node by node, with binary nodes first.

use super::Network;
use crate::infer::{Block, Evidence, Number};

/// The states of all nodes.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The first state of each node, and at the end the number of states.
    pub(crate) first: Vec<usize>,
    /// How many nodes are binary. They come first.
    pub(crate) binary: usize,
    /// The node of each label.
    pub(crate) node: Vec<usize>,
    /// The state in which each label is on.
    pub(crate) on: Vec<usize>,
}

impl Frame {
    pub(crate) fn new(network: &Network) -> Frame {
        let binary: Vec<usize> = network.binary().collect();
        let (mut node, mut on) = (vec![0; network.labels], vec![0; network.labels]);
        let mut first = Vec::with_capacity(binary.len() + network.groups.len() + 1);
        for (at, &label) in binary.iter().enumerate() {
            first.push(2 * at);
            (node[label], on[label]) = (at, 2 * at + 1);
        }
        let mut next = 2 * binary.len();
        for labels in &network.groups {
            for (state, &label) in labels.iter().enumerate() {
                (node[label], on[label]) = (first.len(), next + state);
            }
            first.push(next);
            next += labels.len();
        }
        first.push(next);
        Frame { first, binary: binary.len(), node, on }
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// How many states all nodes have together.
    pub(crate) fn states(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    /// The states of a node.
    pub(crate) fn of(&self, node: usize) -> std::ops::Range<usize> {
        self.first[node]..self.first[node + 1]
    }

    /// The node of a one-of group.
    pub(crate) fn group(&self, group: usize) -> usize {
        self.binary + group
    }

    /// Writes the log-weight of every state in a row. It is minus infinity where the evidence or
    /// the model excludes the state.
    pub(crate) fn weigh<T: Number>(
        &self,
        network: &Network,
        block: &Block<'_, T>,
        row: usize,
        weights: &mut [f64],
    ) {
        weights[..2 * self.binary].fill(0.0);
        for (label, score) in block.row(row).iter().enumerate() {
            weights[self.on[label]] = score.to_f64() + network.bias[label];
        }
        if block.evidence.is_none() {
            return;
        }
        for label in 0..network.labels {
            let (on, states) = (self.on[label], self.of(self.node[label]));
            match block.evidence(row, label) {
                Evidence::Unknown => {}
                Evidence::Off => weights[on] = f64::NEG_INFINITY,
                Evidence::On => {
                    let others = states.filter(|&state| state != on);
                    others.for_each(|state| weights[state] = f64::NEG_INFINITY);
                }
            }
        }
    }
}
