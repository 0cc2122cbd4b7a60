//! The rows that can be fitted: what is known of them is closed under the hard relations and legal.
//!
//! Closing a truth that contradicts a relation, however indirectly, ends in a relation that is
//! broken in plain sight. Such rows are left out and counted by relation.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::report::{BrokenRelation, IllegalTruths};
use crate::graph::closure::{Logic, SetSource};
use crate::graph::{LabelId, RelationGraph};
use crate::infer::Evidence;
use crate::metrics::TruthClosure;

/// The rows that can be used.
#[derive(Debug)]
pub(super) struct LegalRows {
    /// Their numbers.
    pub(super) rows: Vec<usize>,
    /// What is known of them, row after row.
    pub(super) truths: Vec<Evidence>,
    /// How many rows were left out because nothing is known of them.
    pub(super) unknown: usize,
    pub(super) illegal: IllegalTruths,
}

/// A relation, as a key that sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Hierarchy { parent: LabelId, child: LabelId },
    Exclusion { a: LabelId, b: LabelId },
    OneOf(usize),
}

impl Key {
    fn text(self, graph: &RelationGraph) -> String {
        match self {
            Key::Hierarchy { parent, child } => {
                format!("{} is below {}", graph.label(child), graph.label(parent))
            }
            Key::Exclusion { a, b } => {
                format!("{} excludes {}", graph.label(a), graph.label(b))
            }
            Key::OneOf(group) => format!("exactly one of `{}` is on", graph.one_of()[group].name),
        }
    }
}

impl LegalRows {
    /// The legal ones of some rows of truths.
    pub(super) fn of(
        graph: &RelationGraph,
        truths: &[Evidence],
        rows: impl Iterator<Item = usize>,
    ) -> LegalRows {
        let n = graph.len();
        let logic = Logic::hard(graph);
        let closure = TruthClosure::new(graph);
        let rows: Vec<usize> = rows.collect();
        let closed: Vec<(usize, Vec<Evidence>, Vec<Key>)> = rows
            .into_par_iter()
            .map(|row| {
                let mut truth = truths[row * n..(row + 1) * n].to_vec();
                closure.close(&mut truth);
                let broken = broken(graph, &logic, &truth);
                (row, truth, broken)
            })
            .collect();
        let (mut kept, mut kept_truths, mut unknown, mut illegal) = (Vec::new(), Vec::new(), 0, 0);
        let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
        for (row, truth, broken) in closed {
            if !broken.is_empty() {
                illegal += 1;
                broken.into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
            } else if truth.iter().all(|truth| *truth == Evidence::Unknown) {
                unknown += 1;
            } else {
                kept.push(row);
                kept_truths.extend(truth);
            }
        }
        let mut relations: Vec<BrokenRelation> = counts
            .into_iter()
            .map(|(key, rows)| BrokenRelation { relation: key.text(graph), rows })
            .collect();
        relations.sort_by_key(|broken| std::cmp::Reverse(broken.rows));
        let illegal = IllegalTruths { rows: illegal, relations };
        LegalRows { rows: kept, truths: kept_truths, unknown, illegal }
    }
}

/// The relations that a closed truth breaks.
fn broken(graph: &RelationGraph, logic: &Logic, truth: &[Evidence]) -> Vec<Key> {
    let on = |label: LabelId| truth[label.index()] == Evidence::On;
    let off = |label: LabelId| truth[label.index()] == Evidence::Off;
    let mut found = Vec::new();
    for edge in graph.hierarchy().iter().filter(|edge| edge.strength.is_hard()) {
        if on(edge.child) && off(edge.parent) {
            found.push(Key::Hierarchy { parent: edge.parent, child: edge.child });
        }
    }
    for set in logic.sets() {
        let mut members = set.labels.iter().copied().filter(|&label| on(label));
        let (Some(a), Some(b)) = (members.next(), members.next()) else { continue };
        found.push(match set.source {
            SetSource::OneOf(group) => Key::OneOf(group),
            SetSource::Exclusion(_) | SetSource::Rule => Key::Exclusion { a, b },
        });
    }
    for (at, group) in logic.groups().iter().enumerate() {
        if group.iter().all(|&label| off(label)) {
            found.push(Key::OneOf(at));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
