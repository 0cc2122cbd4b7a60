//! Finds a few relations whose removal revives most dead labels.
//!
//! This is a maximum-coverage problem, which is solved greedily: each round removes the relation
//! that revives the most labels. A label with one parent and no exclusion of its own is dead
//! exactly when its parent is. So only *heads* (labels with several parents, an exclusion, or a
//! living parent) are tried, weighted by the labels that follow them. A round costs O(heads · edges
//! above · ancestors).

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::closure::{Logic, SetSource};
use super::super::{ExclusionRule, LabelId, RelationGraph};
use super::dead::{Dead, Prover};
use super::finding::{RootCause, Step, StepRelation};

/// At most this many relations are reported.
const MAX_CAUSES: usize = 64;
/// The search considers at most this many heads, because its result is advice and not a proof.
const MAX_HEADS: usize = 4_000;
/// The search visits at most this many labels, because its result is advice and may be incomplete.
const MAX_STEPS: u64 = 20_000_000;

/// A relation that may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Removal {
    /// An exclusive set that was declared explicitly, not by a rule.
    Set(u32),
    /// A hierarchy edge.
    Edge(LabelId, LabelId),
}

/// The relations to remove, in order, each with the labels that it revives in addition to those
/// before it.
pub(super) fn root_causes(graph: &RelationGraph, logic: &Logic, dead: &[Dead]) -> Vec<RootCause> {
    let labels: Vec<LabelId> =
        dead.iter().filter(|dead| dead.guilty.is_empty()).map(|dead| dead.label).collect();
    let mut causes = by_groups(graph, dead);
    let mut revived = causes.last().map_or(0, |cause| cause.revived);
    let mut search = CauseSearch::new(graph, logic, &labels);
    let prover = Prover::new(graph, logic);
    while causes.len() < MAX_CAUSES && !search.heads.is_empty() {
        let Some(removal) = search.best() else { break };
        let revives = search.remove(removal);
        revived += revives.len();
        let remove = match removal {
            Removal::Edge(parent, child) => Step::is_a(graph, child, parent),
            Removal::Set(set) => {
                let labels = &logic.sets()[set as usize].labels;
                let step = prover.exclusion(labels[0], labels[1]);
                // The whole group is removed, not one of its pairs.
                let text = if labels.len() > 2 { all_exclude(graph, labels) } else { step.text };
                Step { text, ..step }
            }
        };
        let revives = revives.iter().map(|&label| graph.name(label).to_owned()).collect();
        causes.push(RootCause { remove, revives, revived, dead: dead.len() });
    }
    // A relation that revives nothing by itself is reported only when later ones build on it.
    while causes.last().is_some_and(|cause| cause.revives.is_empty()) {
        causes.pop();
    }
    causes
}

/// "food, frozen food and toy exclude each other".
fn all_exclude(graph: &RelationGraph, labels: &[LabelId]) -> String {
    let shown = if labels.len() > 4 { 3 } else { labels.len() - 1 };
    let names: Vec<String> =
        labels[..shown].iter().map(|&id| graph.label(id).to_string()).collect();
    let last = match labels.len() - shown {
        1 => graph.label(labels[shown]).to_string(),
        more => format!("{more} more"),
    };
    format!("{} and {last} exclude each other", names.join(", "))
}

/// One-of groups that alone cause dead labels, the worst first.
fn by_groups(graph: &RelationGraph, dead: &[Dead]) -> Vec<RootCause> {
    let mut blamed: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for dead in dead {
        if let [group] = dead.guilty[..] {
            blamed.entry(group).or_default().push(graph.name(dead.label).to_owned());
        }
    }
    let mut blamed: Vec<(usize, Vec<String>)> = blamed.into_iter().collect();
    blamed.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
    let mut revived = 0;
    let cause = |(group, revives): (usize, Vec<String>)| {
        let group = &graph.one_of()[group];
        revived += revives.len();
        let name = |at: usize| graph.name(group.labels[at]).to_owned();
        let remove = Step {
            relation: StepRelation::OneOf,
            a: name(0),
            b: name(group.labels.len() - 1),
            text: format!("exactly one label of the group `{}` is on", group.name),
            place: group.place.clone(),
        };
        RootCause { remove, revives, revived, dead: dead.len() }
    };
    blamed.into_iter().map(cause).collect()
}

struct CauseSearch<'g> {
    logic: &'g Logic,
    not_subsumed: bool,
    removed: HashSet<Removal>,
    /// Dead heads, each with the labels that are dead exactly when it is.
    heads: BTreeMap<LabelId, Vec<LabelId>>,
    rank: Vec<u32>,
    /// The number of downward paths, as a measure of how general a label is.
    below: Vec<u32>,
    /// The number of labels visited so far.
    steps: Cell<u64>,
}

impl<'g> CauseSearch<'g> {
    fn new(graph: &RelationGraph, logic: &'g Logic, dead: &[LabelId]) -> CauseSearch<'g> {
        let topology = logic.topology();
        let mut rank = vec![0; logic.len()];
        let mut below = vec![1u32; logic.len()];
        for (at, label) in topology.order().iter().enumerate() {
            rank[label.index()] = at as u32;
        }
        for &label in topology.order().iter().rev() {
            for parent in topology.parents(label) {
                below[parent.index()] = below[parent.index()].saturating_add(below[label.index()]);
            }
        }
        let is_dead: HashSet<LabelId> = dead.iter().copied().collect();
        let mut head_of: HashMap<LabelId, LabelId> = HashMap::new();
        let mut heads: BTreeMap<LabelId, Vec<LabelId>> = BTreeMap::new();
        for &label in topology.order().iter().filter(|label| is_dead.contains(label)) {
            let head = match topology.parents(label) {
                [only]
                    if is_dead.contains(only) && explicit_sets(logic, label).next().is_none() =>
                {
                    head_of[only]
                }
                _ => label,
            };
            head_of.insert(label, head);
            heads.entry(head).or_default().push(label);
        }
        while heads.len() > MAX_HEADS {
            heads.pop_last();
        }
        let rule = graph.rule().map(|declared| declared.rule);
        let in_use = logic.sets().iter().any(|set| set.source == SetSource::Rule);
        let not_subsumed = in_use && rule == Some(ExclusionRule::NotSubsumed);
        CauseSearch {
            logic,
            not_subsumed,
            removed: HashSet::new(),
            heads,
            rank,
            below,
            steps: Cell::new(0),
        }
    }

    /// A label and its ancestors, without the removed edges. The label comes first, and parents
    /// come after their children.
    fn above(&self, label: LabelId, without: Option<Removal>) -> Vec<LabelId> {
        let mut above = vec![label];
        let mut seen: HashSet<LabelId> = HashSet::from([label]);
        let mut at = 0;
        while at < above.len() {
            let child = above[at];
            at += 1;
            for &parent in self.logic.topology().parents(child) {
                let edge = Removal::Edge(parent, child);
                let gone = without == Some(edge) || self.removed.contains(&edge);
                if !gone && seen.insert(parent) {
                    above.push(parent);
                }
            }
        }
        above
    }

    /// How many pairs among a label and its ancestors exclude each other.
    fn conflicts(&self, label: LabelId, without: Option<Removal>) -> usize {
        let mut above = self.above(label, without);
        self.steps.set(self.steps.get() + above.len() as u64);
        let mut owners: HashMap<u32, usize> = HashMap::new();
        let mut conflicts = 0;
        for &ancestor in &above {
            for set in explicit_sets(self.logic, ancestor) {
                let removal = Removal::Set(set);
                if without != Some(removal) && !self.removed.contains(&removal) {
                    let owner = owners.entry(set).or_default();
                    conflicts += *owner;
                    *owner += 1;
                }
            }
        }
        if self.not_subsumed {
            // Without a conflict the ancestors form a chain, in which each is a parent of the next.
            above.sort_unstable_by_key(|id| self.rank[id.index()]);
            conflicts += above
                .windows(2)
                .filter(|pair| {
                    let edge = Removal::Edge(pair[0], pair[1]);
                    let there = self.logic.topology().parents(pair[1]).contains(&pair[0]);
                    !there || without == Some(edge) || self.removed.contains(&edge)
                })
                .count();
        }
        conflicts
    }

    /// The relations above a label that could be removed.
    fn candidates(&self, label: LabelId) -> Vec<Removal> {
        let above = self.above(label, None);
        let mut candidates = Vec::new();
        let mut sets: HashMap<u32, usize> = HashMap::new();
        for &child in &above {
            let parents = self.logic.topology().parents(child).iter();
            candidates.extend(parents.map(|&parent| Removal::Edge(parent, child)));
            for set in explicit_sets(self.logic, child) {
                *sets.entry(set).or_default() += 1;
            }
        }
        candidates.extend(sets.iter().filter(|(_, n)| **n > 1).map(|(&set, _)| Removal::Set(set)));
        candidates.retain(|removal| !self.removed.contains(removal));
        candidates
    }

    /// The relation whose removal revives the most labels. If none revives a label on its own, the
    /// one that resolves the most conflicts.
    fn best(&self) -> Option<Removal> {
        let mut score: HashMap<Removal, (usize, usize)> = HashMap::new();
        for (&head, followers) in &self.heads {
            if self.steps.get() > MAX_STEPS {
                return None;
            }
            let before = self.conflicts(head, None);
            for removal in self.candidates(head) {
                let after = self.conflicts(head, Some(removal));
                let entry = score.entry(removal).or_default();
                if after == 0 {
                    entry.0 += followers.len();
                }
                entry.1 += before.saturating_sub(after) * followers.len();
            }
        }
        let useful = score.into_iter().filter(|(_, (revived, resolved))| revived + resolved > 0);
        useful
            .max_by_key(|&(removal, (revived, resolved))| {
                (revived, if revived == 0 { resolved } else { 0 }, self.preference(removal))
            })
            .map(|(removal, _)| removal)
    }

    /// The order among equals: exclusions come before edges, edges to a label that keeps another
    /// parent before edges that would orphan it, and narrow parents before wide ones.
    fn preference(&self, removal: Removal) -> (bool, bool, u32, std::cmp::Reverse<Removal>) {
        let tie = std::cmp::Reverse(removal);
        match removal {
            Removal::Set(_) => (true, true, 0, tie),
            Removal::Edge(parent, child) => {
                let keeps_one = self.logic.topology().parents(child).len() > 1;
                (false, keeps_one, u32::MAX - self.below[parent.index()], tie)
            }
        }
    }

    /// Removes a relation and returns the labels that it revives.
    fn remove(&mut self, removal: Removal) -> Vec<LabelId> {
        self.removed.insert(removal);
        let alive = |head: &LabelId| self.conflicts(*head, None) == 0;
        let revived: Vec<LabelId> = self.heads.keys().copied().filter(alive).collect();
        let mut labels: Vec<LabelId> =
            revived.iter().flat_map(|head| self.heads.remove(head).unwrap_or_default()).collect();
        labels.sort_unstable();
        labels
    }
}

/// The explicitly declared sets of a label. The sets of a rule are left out, because they change
/// with the hierarchy.
fn explicit_sets(logic: &Logic, label: LabelId) -> impl Iterator<Item = u32> + '_ {
    let declared = |set: &u32| logic.sets()[*set as usize].source != SetSource::Rule;
    logic.sets_of(label).iter().copied().filter(declared)
}
