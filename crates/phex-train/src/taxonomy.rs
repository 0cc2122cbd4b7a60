//! Whether the relations say what the labels of the rows suggest.
//!
//! Rows that list one label each, and none as off, come from a taxonomy as a rule: each thing is one
//! of its kinds. If the relations do not say so, such rows have no negatives, and the best model of
//! them turns everything on.

use phex::graph::{LabelId, RelationGraph};

use crate::Examples;

/// What the relations leave out although each row lists one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaxonomyDoubt {
    /// No label excludes another one.
    NothingExcludes,
    /// Roots that no relation connects.
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

    /// What the relations leave out, if each row lists one label.
    pub fn taxonomy_doubt(&self, graph: &RelationGraph) -> Option<TaxonomyDoubt> {
        if graph.len() < 2 || !self.list_one_label(graph) {
            return None;
        }
        if !graph.has_exclusions() {
            return Some(TaxonomyDoubt::NothingExcludes);
        }
        let roots = graph.unrelated_roots();
        (!roots.is_empty()).then_some(TaxonomyDoubt::UnrelatedRoots(roots))
    }
}
