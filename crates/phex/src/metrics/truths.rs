//! What follows from the truths that a row lists.
//!
//! People list few labels: `dog`. By the hard relations more is known: `animal` is on, `car` is off,
//! and only the labels below `dog` are unknown. [`TruthClosure`] adds what follows, so that metrics
//! have negatives to judge by.
//!
//! The rules are applied until nothing changes: labels above one that is on are on; labels below one
//! that is off are off; in an exclusive set or one-of group with a label that is on, the others are
//! off; in a one-of group with one label that is not off, this label is on. Soft relations say
//! nothing. The cost is O(labels + members of relations) per row.

use crate::graph::closure::Logic;
use crate::graph::{LabelId, RelationGraph};
use crate::infer::Evidence;

/// Adds to the truths of rows what follows from them by the hard relations of a graph.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::infer::Evidence::{Off, On, Unknown};
/// use phex::metrics::TruthClosure;
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("dog", "husky", None);
/// builder.hierarchy("dog", "poodle", None).hierarchy("vehicle", "car", None).single_label();
/// let graph = builder.build()?;
/// // animal, dog, husky, poodle, vehicle, car
/// let mut truths = [Unknown, On, Unknown, Unknown, Unknown, Unknown];
/// TruthClosure::new(&graph).close(&mut truths);
/// assert_eq!(truths, [On, On, Unknown, Unknown, Off, Off]);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TruthClosure {
    logic: Logic,
}

impl TruthClosure {
    /// The closure by the hard relations of a graph.
    pub fn new(graph: &RelationGraph) -> TruthClosure {
        TruthClosure { logic: Logic::hard(graph) }
    }

    /// Closes rows of truths, one after another. Truths that are given are never changed, even where
    /// they contradict the relations.
    ///
    /// # Panics
    /// When the truths are not whole rows.
    pub fn close(&self, truths: &mut [Evidence]) {
        let labels = self.logic.len().max(1);
        assert_eq!(truths.len() % labels, 0, "the truths are rows with one entry per label");
        let mut agenda = Vec::new();
        truths.chunks_exact_mut(labels).for_each(|row| self.close_row(row, &mut agenda));
    }

    fn close_row(&self, row: &mut [Evidence], agenda: &mut Vec<LabelId>) {
        let known = |row: &[Evidence]| row.iter().any(|truth| *truth != Evidence::Unknown);
        if !known(row) || !row.contains(&Evidence::Unknown) {
            return;
        }
        let given = (0..row.len()).filter(|&at| row[at] != Evidence::Unknown);
        agenda.extend(given.map(LabelId::from));
        loop {
            while let Some(label) = agenda.pop() {
                self.follow(label, row, agenda);
            }
            for group in self.logic.groups() {
                let mut open = group.iter().filter(|id| row[id.index()] != Evidence::Off);
                if let (Some(&last), None) = (open.next(), open.next()) {
                    set(row, agenda, last, Evidence::On);
                }
            }
            if agenda.is_empty() {
                return;
            }
        }
    }

    /// Sets what follows from one label.
    fn follow(&self, label: LabelId, row: &mut [Evidence], agenda: &mut Vec<LabelId>) {
        let topology = self.logic.topology();
        if row[label.index()] == Evidence::Off {
            for &child in topology.children(label) {
                set(row, agenda, child, Evidence::Off);
            }
            return;
        }
        for &parent in topology.parents(label) {
            set(row, agenda, parent, Evidence::On);
        }
        for &at in self.logic.sets_of(label) {
            for &other in self.logic.sets()[at as usize].labels.iter().filter(|id| **id != label) {
                set(row, agenda, other, Evidence::Off);
            }
        }
    }
}

fn set(row: &mut [Evidence], agenda: &mut Vec<LabelId>, label: LabelId, truth: Evidence) {
    let entry = &mut row[label.index()];
    if *entry == Evidence::Unknown {
        *entry = truth;
        agenda.push(label);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::graph::{ExclusionRule, GraphBuilder, Strength};
    use Evidence::{Off, On, Unknown};

    #[test]
    fn soft_relations_say_nothing_and_given_truths_stay() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", Some(Strength::U(1.0)));
        builder.hierarchy("animal", "cat", None).exclusion("dog", "cat", None);
        let closure = TruthClosure::new(&builder.build().unwrap());
        let mut truths = [Unknown, On, Unknown, Unknown, Unknown, On, Off, Unknown, On];
        closure.close(&mut truths);
        assert_eq!(truths, [Unknown, On, Off, On, Off, On, Off, Off, On]);
    }

    #[test]
    fn the_last_leaf_of_a_group_is_on_and_siblings_leave_other_roots_open() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "x", None).hierarchy("a", "y", None).hierarchy("b", "z", None);
        let mut siblings = builder.clone();
        siblings.exclusion_rule(ExclusionRule::Siblings, None);
        builder.single_label();
        let closed = |builder: &GraphBuilder, mut row: Vec<Evidence>| {
            TruthClosure::new(&builder.build().unwrap()).close(&mut row);
            row
        };
        // a, x, y, b, z
        let row = || vec![Unknown, Off, Unknown, Off, Unknown];
        assert_eq!(closed(&builder, row()), [On, Off, On, Off, Off]);
        let leaf = || vec![Unknown, On, Unknown, Unknown, Unknown];
        assert_eq!(closed(&builder, leaf()), [On, On, Off, Off, Off]);
        assert_eq!(closed(&siblings, leaf()), [On, On, Off, Unknown, Unknown]);
    }
}
