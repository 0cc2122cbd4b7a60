//! The frozen graph: its names are resolved, its hierarchy has no cycle, and every strength is in
//! range.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::topology::Topology;
use super::{
    Defaults, Exclusion, ExclusionRule, Hierarchy, Label, LabelId, OneOf, RuleDeclaration,
    Semantics, Strength,
};
use crate::Error;

/// Labels and the relations between them, checked and immutable.
///
/// [`GraphBuilder::build`](super::GraphBuilder::build) makes it. Its hierarchy has no cycle, names
/// are unique, every strength is in range and no label is in two one-of groups. It may still
/// contain labels that can never be on, which [`RelationGraph::check`] finds.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct RelationGraph {
    pub(super) labels: Vec<Label>,
    pub(super) index: HashMap<String, LabelId>,
    pub(super) hierarchy: Vec<Hierarchy>,
    pub(super) exclusions: Vec<Exclusion>,
    pub(super) one_of: Vec<OneOf>,
    pub(super) rule: Option<RuleDeclaration>,
    pub(super) semantics: Semantics,
    pub(super) defaults: Defaults,
    pub(super) topology: Topology,
}

impl RelationGraph {
    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The labels in the order of their ids.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// A label by its id.
    ///
    /// # Panics
    /// When the id is out of range because it belongs to another graph.
    pub fn label(&self, id: LabelId) -> &Label {
        &self.labels[id.index()]
    }

    /// The name of a label.
    pub fn name(&self, id: LabelId) -> &str {
        &self.label(id).name
    }

    /// The id of the label with this name.
    pub fn id(&self, name: &str) -> Option<LabelId> {
        self.index.get(name).copied()
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.labels.len()).map(LabelId::from)
    }

    /// The hierarchy edges.
    pub fn hierarchy(&self) -> &[Hierarchy] {
        &self.hierarchy
    }

    /// The exclusion edges and groups.
    pub fn exclusions(&self) -> &[Exclusion] {
        &self.exclusions
    }

    /// The one-of groups.
    pub fn one_of(&self) -> &[OneOf] {
        &self.one_of
    }

    /// The exclusion rule, if one is declared.
    pub fn rule(&self) -> Option<&RuleDeclaration> {
        self.rule.as_ref()
    }

    /// Which violations the model charges for.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The default strengths. They are only for reference, because every relation already has its
    /// own strength.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The hierarchy as parents, children and a topological order.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether every relation is hard.
    pub fn is_hard(&self) -> bool {
        self.strengths().all(Strength::is_hard)
    }

    /// The strength of every relation: hierarchy edges, exclusions, the rule.
    pub fn strengths(&self) -> impl Iterator<Item = Strength> + '_ {
        let hierarchy = self.hierarchy.iter().map(|edge| edge.strength);
        let exclusions = self.exclusions.iter().map(|exclusion| exclusion.strength);
        hierarchy.chain(exclusions).chain(self.rule.iter().map(|rule| rule.strength))
    }

    /// The labels without parents.
    pub fn roots(&self) -> impl Iterator<Item = LabelId> + '_ {
        self.ids().filter(|&id| self.topology.parents(id).is_empty())
    }

    /// The labels without children.
    pub fn leaves(&self) -> impl Iterator<Item = LabelId> + '_ {
        self.ids().filter(|&id| self.topology.children(id).is_empty())
    }

    /// Whether each thing is exactly one kind: labels without a common descendant exclude each other,
    /// and exactly one leaf is on.
    pub fn is_single_label(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.rule == ExclusionRule::NoCommonDescendant)
            && self.one_of.iter().any(|group| self.leaves().eq(group.labels.iter().copied()))
    }

    /// Whether every legal state has exactly one leaf and the labels above it, so that scores of the leaves
    /// alone are one softmax.
    pub fn has_one_leaf(&self) -> bool {
        self.is_single_label() && self.is_hard()
    }

    /// Whether a label has no children.
    pub fn is_leaf(&self, label: LabelId) -> bool {
        self.topology.children(label).is_empty()
    }

    /// Whether any two labels exclude each other.
    pub fn has_exclusions(&self) -> bool {
        self.rule.is_some()
            || !self.exclusions.is_empty()
            || self.one_of.iter().any(|group| group.labels.len() > 1)
    }

    /// The first root with children of each part of the graph that no relation connects with the
    /// others, if there are several.
    pub fn unrelated_roots(&self) -> Vec<LabelId> {
        if self.rule.as_ref().is_some_and(|rule| rule.rule != ExclusionRule::Siblings) {
            return Vec::new();
        }
        fn find(part: &mut [usize], mut at: usize) -> usize {
            while part[at] != at {
                part[at] = part[part[at]];
                at = part[at];
            }
            at
        }
        let mut part: Vec<usize> = (0..self.len()).collect();
        let mut join = |a: LabelId, b: LabelId| {
            let (a, b) = (find(&mut part, a.index()), find(&mut part, b.index()));
            part[a] = b;
        };
        self.hierarchy.iter().for_each(|edge| join(edge.parent, edge.child));
        let groups = self.exclusions.iter().map(|exclusion| &exclusion.labels);
        for labels in groups.chain(self.one_of.iter().map(|group| &group.labels)) {
            labels.windows(2).for_each(|pair| join(pair[0], pair[1]));
        }
        let mut seen = vec![false; self.len()];
        let first = |id: &LabelId| {
            let part = find(&mut part, id.index());
            !self.topology.children(*id).is_empty() && !std::mem::replace(&mut seen[part], true)
        };
        let roots: Vec<LabelId> = self.roots().filter(first).collect();
        if roots.len() > 1 { roots } else { Vec::new() }
    }

    /// The same labels with other relations.
    pub(super) fn with_relations(
        &self,
        hierarchy: Vec<Hierarchy>,
        exclusions: Vec<Exclusion>,
        rule: Option<RuleDeclaration>,
    ) -> RelationGraph {
        let edges = hierarchy.iter().map(|edge| (edge.parent, edge.child));
        let topology = Topology::new(self.len(), edges);
        RelationGraph { hierarchy, exclusions, rule, topology, ..self.clone() }
    }
}

impl std::fmt::Debug for RelationGraph {
    /// Prints the written form, because the indices behind it add no information.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_string(&Document::from(self)).map_err(|_| std::fmt::Error)?;
        f.write_str(&json)
    }
}

impl TryFrom<Document> for RelationGraph {
    type Error = Error;

    fn try_from(document: Document) -> Result<RelationGraph, Error> {
        document.builder().build()
    }
}

impl From<RelationGraph> for Document {
    fn from(graph: RelationGraph) -> Document {
        Document::from(&graph)
    }
}
