//! Batches in which at least a share of the rows is labelled with a leaf.
//!
//! Where few rows are labelled with a leaf, most batches have nothing that tells the leaves apart, and
//! the labels above them are learned first. With a share `q`, a batch of `b` rows has `b − ⌈q b⌉` rows
//! of the epoch and `⌈q b⌉` rows with a leaf, which are used again and again. An epoch still goes over
//! all rows once.

use phex::graph::RelationGraph;

use crate::examples::{Examples, mix, shuffled};

/// The seed of the order of rows with a leaf differs from that of the other rows.
const LEAVES: u64 = 0x6c65_6166;

/// The rows to train on that are labelled with a leaf, and how many rows there are.
#[derive(Debug)]
pub(super) struct LeafRows {
    rows: Vec<u32>,
    all: usize,
}

impl LeafRows {
    pub(super) fn new(examples: &Examples<'_>, rows: &[u32], graph: &RelationGraph) -> LeafRows {
        let has_leaf = examples.have_leaf(graph);
        let with_leaf = rows.iter().copied().filter(|&row| has_leaf[row as usize]);
        LeafRows { rows: with_leaf.collect(), all: rows.len() }
    }

    /// The rows of an epoch with leaf rows mixed in, in batches. Without rows with a leaf, or with
    /// enough of them, the order stays as it is.
    pub(super) fn mixed(
        &self,
        order: Vec<u32>,
        share: f64,
        batch: usize,
        place: [u64; 3],
    ) -> Vec<u32> {
        let enough = self.rows.len() as f64 >= share * self.all as f64;
        let drawn = ((share * batch as f64).ceil() as usize).min(batch.saturating_sub(1));
        if share == 0.0 || enough || self.rows.is_empty() || drawn == 0 || order.len() < self.all {
            return order;
        }
        let [seed, stage, epoch] = place;
        let leaves = shuffled(&self.rows, mix(&[seed, stage, epoch, LEAVES]));
        let mut leaves = leaves.iter().cycle().copied();
        let mut mixed = Vec::with_capacity(order.len() * batch / (batch - drawn) + batch);
        for part in order.chunks(batch - drawn) {
            mixed.extend_from_slice(part);
            mixed.extend(leaves.by_ref().take(drawn));
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_has_its_share_and_every_row_comes_once() {
        let leaves = LeafRows { rows: vec![100, 101, 102], all: 103 };
        let order: Vec<u32> = (0..103).collect();
        let mixed = leaves.mixed(order.clone(), 0.25, 8, [1, 2, 3]);
        for batch in mixed.chunks(8) {
            assert!(batch.iter().filter(|&&row| row >= 100).count() >= 2, "{batch:?}");
        }
        assert!((0..100).all(|row| mixed.iter().filter(|&&found| found == row).count() == 1));
        assert_eq!(mixed, leaves.mixed(order.clone(), 0.25, 8, [1, 2, 3]));
        assert_eq!(leaves.mixed(order.clone(), 0.0, 8, [1, 2, 3]), order);
        assert_eq!(leaves.mixed(order.clone(), 0.02, 8, [1, 2, 3]), order, "there are enough");
    }
}
