//! Reads the relations of a graph as logical constraints.

use super::super::topology::Topology;
use super::super::{LabelId, RelationGraph, Semantics, Strength};
use super::rules;

/// Where an exclusive set comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SetSource {
    /// An exclusion edge or group, by its index in the graph.
    Exclusion(usize),
    /// A one-of group, by its index in the graph.
    OneOf(usize),
    /// The exclusion rule.
    Rule,
}

/// Labels of which at most one may be on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExclusiveSet {
    /// Two or more labels in ascending order.
    pub labels: Vec<LabelId>,
    /// Where it comes from.
    pub source: SetSource,
}

/// Upward implications, exclusive sets and one-of groups.
#[derive(Debug, Clone)]
pub struct Logic {
    pub(super) topology: Topology,
    pub(super) sets: Vec<ExclusiveSet>,
    /// The indices of the sets that contain each label, ascending.
    pub(super) sets_of: Vec<Vec<u32>>,
    pub(super) groups: Vec<Vec<LabelId>>,
    /// The one-of group of each label, if any.
    pub(super) group_of: Vec<Option<u32>>,
}

impl Logic {
    /// The hard relations of a graph.
    pub fn hard(graph: &RelationGraph) -> Logic {
        Logic::of(graph, Strength::is_hard)
    }

    /// All relations of a graph, soft ones read as hard.
    pub fn all(graph: &RelationGraph) -> Logic {
        Logic::of(graph, |_| true)
    }

    fn of(graph: &RelationGraph, takes: impl Fn(Strength) -> bool) -> Logic {
        let edges = graph.hierarchy().iter().filter(|edge| takes(edge.strength));
        let topology = Topology::new(graph.len(), edges.map(|edge| (edge.parent, edge.child)));
        let mut sets: Vec<ExclusiveSet> = Vec::new();
        for (at, exclusion) in graph.exclusions().iter().enumerate() {
            if takes(exclusion.strength) {
                let labels = exclusion.labels.clone();
                sets.push(ExclusiveSet { labels, source: SetSource::Exclusion(at) });
            }
        }
        for (at, group) in graph.one_of().iter().enumerate() {
            if group.labels.len() > 1 {
                let labels = group.labels.clone();
                sets.push(ExclusiveSet { labels, source: SetSource::OneOf(at) });
            }
        }
        if let Some(declared) = graph.rule().filter(|declared| takes(declared.strength)) {
            // The rule refers to the hierarchy as declared, including soft edges. Its minimal pairs
            // represent all its pairs when the hierarchy is hard, and by definition under sparse
            // semantics.
            let all_hard = graph.hierarchy().iter().all(|edge| takes(edge.strength));
            let minimal = all_hard || graph.semantics() == Semantics::Sparse;
            let expand = if minimal { rules::minimal_sets } else { rules::all_pairs };
            let found = expand(declared.rule, graph.topology());
            let rule = |labels| ExclusiveSet { labels, source: SetSource::Rule };
            sets.extend(found.into_iter().map(rule));
        }
        let groups = graph.one_of().iter().map(|group| group.labels.clone()).collect();
        Logic::new(topology, sets, groups)
    }

    pub(crate) fn new(
        topology: Topology,
        sets: Vec<ExclusiveSet>,
        groups: Vec<Vec<LabelId>>,
    ) -> Logic {
        let n = topology.len();
        let mut sets_of = vec![Vec::new(); n];
        for (at, set) in sets.iter().enumerate() {
            for label in &set.labels {
                sets_of[label.index()].push(at as u32);
            }
        }
        let mut group_of = vec![None; n];
        for (at, group) in groups.iter().enumerate() {
            for label in group {
                group_of[label.index()] = Some(at as u32);
            }
        }
        Logic { topology, sets, sets_of, groups, group_of }
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.topology.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.topology.is_empty()
    }

    /// The hierarchy of the relations that are read as constraints.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The exclusive sets: exclusions, one-of groups and the minimal sets of the rule.
    pub fn sets(&self) -> &[ExclusiveSet] {
        &self.sets
    }

    /// The sets that a label is in, as indices of [`Logic::sets`].
    pub fn sets_of(&self, label: LabelId) -> &[u32] {
        &self.sets_of[label.index()]
    }

    /// The one-of groups.
    pub fn groups(&self) -> &[Vec<LabelId>] {
        &self.groups
    }

    /// The number of free leaves: neither they nor labels above them are in an exclusive set or a
    /// one-of group. With everything above them on, each can be on or off independently. So if
    /// there is a legal state at all, there are at least 2 to this power. Costs O(labels +
    /// relations).
    pub(crate) fn free_leaves(&self) -> usize {
        let mut tied = vec![false; self.len()];
        let mut free = 0;
        for &label in self.topology.order() {
            let at = label.index();
            let above = self.topology.parents(label).iter().any(|parent| tied[parent.index()]);
            tied[at] = above || !self.sets_of[at].is_empty() || self.group_of[at].is_some();
            free += usize::from(!tied[at] && self.topology.children(label).is_empty());
        }
        free
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = LabelId> + Clone + use<> {
        (0..self.len()).map(LabelId::from)
    }

    /// A set that contains both labels.
    pub(in crate::graph) fn shared_set(&self, a: LabelId, b: LabelId) -> Option<u32> {
        if a == b {
            return None;
        }
        let (mine, other) = (self.sets_of(a), self.sets_of(b));
        let (few, many) = if mine.len() < other.len() { (mine, other) } else { (other, mine) };
        few.iter().copied().find(|set| many.binary_search(set).is_ok())
    }

    /// The edges `(parent, child)` of the hierarchy.
    pub(super) fn edges(&self) -> impl Iterator<Item = (LabelId, LabelId)> + Clone + '_ {
        let topology = &self.topology;
        self.ids().flat_map(move |parent| {
            topology.children(parent).iter().map(move |&child| (parent, child))
        })
    }
}
