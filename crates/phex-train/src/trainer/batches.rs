//! Batches in which at least a share of the rows is labelled with a leaf.
//!
//! If few rows are labelled with a leaf, most batches have nothing that tells the leaves apart, and
//! the labels above them are learned first. With a share `q`, a batch of `b` rows has `b − ⌈q b⌉` rows
//! of the epoch and `⌈q b⌉` rows with a leaf, which are used again and again. An epoch still goes over
//! all rows once.
//!
//! Processes that train together share the rows of an epoch: process `r` of `w` takes every `w`-th row
//! from the `r`-th on, so that all have equally many. It takes rows with a leaf in the same way, from
//! their endless repetition, so that each batch of each process has its share.

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

/// One of the processes that share the rows of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPart {
    /// Which process it is, from 0.
    pub rank: usize,
    /// How many processes there are.
    pub of: usize,
}

impl WorkerPart {
    /// The only process.
    pub const WHOLE: WorkerPart = WorkerPart { rank: 0, of: 1 };

    /// Its rows. The first rows come once more where the rows do not go round.
    fn take(self, order: &[u32]) -> Vec<u32> {
        let all = order.len().next_multiple_of(self.of);
        (self.rank..all).step_by(self.of).map(|at| order[at % order.len()]).collect()
    }
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
        part: WorkerPart,
    ) -> Vec<u32> {
        let enough = self.rows.len() as f64 >= share * self.all as f64;
        let drawn = ((share * batch as f64).ceil() as usize).min(batch.saturating_sub(1));
        let is_choice = order.len() < self.all;
        let order = if part.of > 1 { part.take(&order) } else { order };
        if share == 0.0 || enough || self.rows.is_empty() || drawn == 0 || is_choice {
            return order;
        }
        let [seed, stage, epoch] = place;
        let leaves = shuffled(&self.rows, mix(&[seed, stage, epoch, LEAVES]));
        let mut leaves = leaves.iter().cycle().skip(part.rank).step_by(part.of).copied();
        let mut mixed = Vec::with_capacity(order.len() * batch / (batch - drawn) + batch);
        for rest in order.chunks(batch - drawn) {
            mixed.extend_from_slice(rest);
            mixed.extend(leaves.by_ref().take(drawn));
        }
        mixed
    }
}

/// The rows of an epoch as a trainer goes over them, for samplers of other frameworks: each part of
/// `batch` rows is a batch. `has_leaf` says which rows are labelled with a leaf.
///
/// ```
/// use phex_train::{WorkerPart, epoch_rows};
///
/// let mut has_leaf = vec![false; 100];
/// has_leaf[7] = true;
/// let order = epoch_rows(&has_leaf, 0.25, 8, 0, 0, WorkerPart::WHOLE);
/// assert!(order.chunks(8).all(|batch| batch.iter().filter(|row| **row == 7).count() >= 2));
/// ```
pub fn epoch_rows(
    has_leaf: &[bool],
    share: f64,
    batch: usize,
    seed: u64,
    epoch: u64,
    part: WorkerPart,
) -> Vec<u32> {
    let rows: Vec<u32> = (0..has_leaf.len() as u32).collect();
    let with_leaf = rows.iter().copied().filter(|&row| has_leaf[row as usize]);
    let leaves = LeafRows { rows: with_leaf.collect(), all: rows.len() };
    let place = [seed, 0, epoch];
    leaves.mixed(shuffled(&rows, mix(&place)), share, batch, place, part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_has_its_share_and_every_row_comes_once() {
        let leaves = LeafRows { rows: vec![100, 101, 102], all: 103 };
        let order: Vec<u32> = (0..103).collect();
        let mixed = leaves.mixed(order.clone(), 0.25, 8, [1, 2, 3], WorkerPart::WHOLE);
        for batch in mixed.chunks(8) {
            assert!(batch.iter().filter(|&&row| row >= 100).count() >= 2, "{batch:?}");
        }
        assert!((0..100).all(|row| mixed.iter().filter(|&&found| found == row).count() == 1));
        assert_eq!(mixed, leaves.mixed(order.clone(), 0.25, 8, [1, 2, 3], WorkerPart::WHOLE));
        assert_eq!(leaves.mixed(order.clone(), 0.0, 8, [1, 2, 3], WorkerPart::WHOLE), order);
        assert_eq!(
            leaves.mixed(order.clone(), 0.02, 8, [1, 2, 3], WorkerPart::WHOLE),
            order,
            "there are enough"
        );
    }

    #[test]
    fn processes_share_the_rows_and_each_has_its_share_of_leaves() {
        let has_leaf: Vec<bool> = (0..1003).map(|row| row < 3).collect();
        for of in [1, 2, 3, 8] {
            let parts: Vec<Vec<u32>> = (0..of)
                .map(|rank| epoch_rows(&has_leaf, 0.1, 16, 5, 1, WorkerPart { rank, of }))
                .collect();
            assert!(parts.iter().all(|part| part.len() == parts[0].len()), "{of} processes");
            for batch in parts.iter().flat_map(|part| part.chunks(16)) {
                assert!(batch.iter().filter(|&&row| row < 3).count() >= 2, "{batch:?}");
            }
            let mut seen = vec![0; 1003];
            parts.iter().flatten().for_each(|&row| seen[row as usize] += 1);
            assert!(seen[3..].iter().all(|&count| (1..=2).contains(&count)), "{of} processes");
            let repeated = seen[3..].iter().filter(|&&count| count == 2).count();
            assert!(repeated < of, "{repeated} rows come twice for {of} processes");
        }
        let other = epoch_rows(&has_leaf, 0.1, 16, 5, 2, WorkerPart::WHOLE);
        assert_ne!(other, epoch_rows(&has_leaf, 0.1, 16, 5, 1, WorkerPart::WHOLE));
    }
}
