//! Writes out all relations that follow from the given ones by chains.
//!
//! An ancestor subsumes its descendants, and labels exclude each other when labels above them do.
//! The work is done one label at a time with bit sets. It takes O(n) memory in addition to the
//! result, and O(n²) time in all. Relations that follow only because a one-of group leaves no other
//! choice, or vacuously because a label is dead, are not added. This is the only operation that
//! makes a list of n² pairs, so they are counted before any is written down.

use std::cell::Cell;

use fixedbitset::FixedBitSet;

use super::super::topology::Walk;
use super::super::{Exclusion, Hierarchy, LabelId, RelationGraph, SourceLocation, Strength};
use super::logic::Logic;
use crate::Error;

/// Relations that take more bytes than this are not written out. Writing them to a file takes three
/// times as much again.
const MAX_BYTES: u64 = 512 << 20;
/// Bytes of an edge.
const EDGE: u64 = size_of::<Hierarchy>() as u64;
/// Bytes of a pair, with the smallest block that holds its labels.
const PAIR: u64 = size_of::<Exclusion>() as u64 + 32;

impl Logic {
    /// Calls `edge` with every implied `(parent, child)` and `pair` with every implied exclusion
    /// `(a, b)`, `a < b`.
    fn each_implied<E>(
        &self,
        mut edge: impl FnMut(LabelId, LabelId) -> Result<(), E>,
        mut pair: impl FnMut(LabelId, LabelId) -> Result<(), E>,
    ) -> Result<(), E> {
        let topology = &self.topology;
        let (mut up, mut down) = (Walk::new(self.len()), Walk::new(self.len()));
        let mut partners = FixedBitSet::with_capacity(self.len());
        for label in self.ids() {
            let above = up.reach([label], |id| topology.parents(id));
            for &parent in &above[1..] {
                edge(parent, label)?;
            }
            partners.clear();
            for &ancestor in above {
                for &set in self.sets_of(ancestor) {
                    let others = self.sets[set as usize].labels.iter();
                    partners.extend(others.filter(|&&id| id != ancestor).map(|id| id.index()));
                }
            }
            let excluded =
                down.reach(partners.ones().map(LabelId::from), |id| topology.children(id));
            let mut later: Vec<LabelId> =
                excluded.iter().copied().filter(|&other| other > label).collect();
            later.sort_unstable();
            later.into_iter().try_for_each(|other| pair(label, other))?;
        }
        Ok(())
    }

    /// How many hierarchy edges and exclusion pairs follow by chains.
    pub fn implied_counts(&self) -> (u64, u64) {
        let (mut edges, mut pairs) = (0, 0);
        let counted: Result<(), std::convert::Infallible> = self.each_implied(
            |_, _| {
                edges += 1;
                Ok(())
            },
            |_, _| {
                pairs += 1;
                Ok(())
            },
        );
        match counted {
            Ok(()) => (edges, pairs),
        }
    }
}

impl RelationGraph {
    /// The graph with every hard relation that follows by chains written out pair by pair. It has
    /// the same legal states. Soft relations stay as they are.
    ///
    /// # Errors
    /// [`Error::TooManyPairs`] when the relations take more than 512 MiB: above eleven million
    /// edges, or four million pairs.
    pub fn densify(&self) -> Result<RelationGraph, Error> {
        let logic = Logic::hard(self);
        // Cells let the two closures share the limit.
        let (edges, pairs) = (Cell::new(0u64), Cell::new(0u64));
        let count = |counter: &Cell<u64>| {
            counter.set(counter.get() + 1);
            let bytes = EDGE * edges.get() + PAIR * pairs.get();
            if bytes <= MAX_BYTES {
                return Ok(());
            }
            let n = self.len() as u64;
            let counted = edges.get() + pairs.get();
            Err(Error::TooManyPairs {
                operation: "densify",
                pairs: counted.max(n * n.saturating_sub(1) / 2),
                limit: counted - 1,
                help: "keep the graph sparse, or state its exclusions as a rule",
            })
        };
        logic.each_implied(|_, _| count(&edges), |_, _| count(&pairs))?;
        let mut hierarchy = Vec::with_capacity(edges.get() as usize);
        let mut exclusions = Vec::with_capacity(pairs.get() as usize);
        let strength = Strength::Hard;
        logic.each_implied(
            |parent, child| {
                hierarchy.push(Hierarchy {
                    parent,
                    child,
                    strength,
                    place: SourceLocation::default(),
                });
                Ok::<_, Error>(())
            },
            |a, b| {
                let (name, place) = (None, SourceLocation::default());
                exclusions.push(Exclusion { name, labels: vec![a, b], strength, place });
                Ok(())
            },
        )?;
        let soft = self.hierarchy.iter().filter(|edge| !edge.strength.is_hard());
        hierarchy.extend(soft.cloned());
        hierarchy.sort_by_key(|edge| (edge.parent, edge.child, !edge.strength.is_hard()));
        hierarchy.dedup_by_key(|edge| (edge.parent, edge.child));
        let soft = self.exclusions.iter().filter(|exclusion| !exclusion.strength.is_hard());
        exclusions.extend(soft.cloned());
        exclusions.sort_by(|a, b| {
            (&a.labels, !a.strength.is_hard()).cmp(&(&b.labels, !b.strength.is_hard()))
        });
        exclusions.dedup_by(|b, a| a.labels == b.labels);
        let rule = self.write_out_soft_rule(&mut exclusions);
        Ok(self.with_relations(hierarchy, exclusions, rule))
    }
}
