//! Checks whether the relations say what the labels of the rows suggest.
//!
//! Rows that list one label each, and none as off, usually come from a taxonomy, in which each thing is
//! one of the kinds. If the relations do not say so, such rows have no negatives, and the best model of
//! them turns everything on. The same is true of rows that list several labels, none of them as off.

use phex::graph::{LabelId, RelationGraph};

use crate::Examples;

/// What the relations leave out although rows list only labels that are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaxonomyDoubt {
    /// Each row lists one label, and no label excludes another one.
    NothingExcludes,
    /// Rows list several labels, none as off, and no label excludes another one.
    NoNegatives,
    /// Each row lists one label, and no relation connects these roots.
    UnrelatedRoots(Vec<LabelId>),
}

impl Examples<'_> {
    /// Whether each row lists one most specific label, and no label is known to be off.
    pub fn list_one_label(&self, graph: &RelationGraph) -> bool {
        let lists_one = |row: usize| {
            let target = self.targets.row(row);
            !target.others_off
                && target.listed.iter().all(|entry| entry.on)
                && self.most_specific(row, graph).len() == 1
        };
        self.rows() > 0 && (0..self.rows()).all(lists_one)
    }

    /// Whether no label of any row is off.
    fn lack_negatives(&self) -> bool {
        (0..self.rows()).all(|row| {
            let target = self.targets.row(row);
            !target.others_off && target.listed.iter().all(|entry| entry.on)
        })
    }

    /// What the relations leave out, if rows list only labels that are on.
    pub fn taxonomy_doubt(&self, graph: &RelationGraph) -> Option<TaxonomyDoubt> {
        if graph.len() < 2 || !self.lack_negatives() {
            return None;
        }
        let one_label = self.list_one_label(graph);
        if !graph.has_exclusions() {
            let doubt = match one_label {
                true => TaxonomyDoubt::NothingExcludes,
                false => TaxonomyDoubt::NoNegatives,
            };
            return Some(doubt);
        }
        if !one_label {
            return None;
        }
        let roots = graph.unrelated_roots();
        (!roots.is_empty()).then_some(TaxonomyDoubt::UnrelatedRoots(roots))
    }
}
