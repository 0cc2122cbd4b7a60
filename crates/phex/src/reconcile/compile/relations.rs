//! What is left of a graph's relations when labels that never change are taken out.
//!
//! A label that is off in every legal state gets the probability 0, and one that is on in every
//! legal state gets 1. Left in, their multipliers would be infinite and every method would crawl.
//! What remains falls into components that no relation connects.

use crate::Error;
use crate::graph::closure::{Logic, SetSource};
use crate::graph::{LabelId, RelationGraph, Topology};

/// A child, its parent, and what a violation costs at most (infinite for a hard relation).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::reconcile) struct Edge {
    pub(in crate::reconcile) parent: u32,
    pub(in crate::reconcile) child: u32,
    pub(in crate::reconcile) cap: f64,
}

/// Labels of which at most one may be on.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::reconcile) struct Exclusive {
    /// Ascending.
    pub(in crate::reconcile) labels: Vec<u32>,
    pub(in crate::reconcile) cap: f64,
}

/// Labels that relations connect, with numbers of their own.
#[derive(Debug, Clone, Default)]
pub(in crate::reconcile) struct Component {
    /// The column of each label.
    pub(in crate::reconcile) labels: Vec<u32>,
    pub(in crate::reconcile) edges: Vec<Edge>,
    pub(in crate::reconcile) sets: Vec<Exclusive>,
    /// Labels of which exactly one is on. They are exclusive sets as well.
    pub(in crate::reconcile) one_of: Vec<Vec<u32>>,
}

impl Component {
    /// Whether labels exclude each other.
    pub(in crate::reconcile) fn has_exclusions(&self) -> bool {
        !self.sets.is_empty() || !self.one_of.is_empty()
    }

    /// Whether every relation is hard.
    pub(in crate::reconcile) fn is_hard(&self) -> bool {
        self.edges.iter().all(|edge| edge.cap == f64::INFINITY)
            && self.sets.iter().all(|set| set.cap == f64::INFINITY)
    }
}

/// The relations among labels that can be on and off.
#[derive(Debug)]
pub(super) struct LiveRelations {
    pub(super) constant: Vec<Option<bool>>,
    pub(super) components: Vec<Component>,
    /// How many relations are soft.
    pub(super) soft: usize,
}

impl LiveRelations {
    pub(super) fn of(graph: &RelationGraph) -> Result<LiveRelations, Error> {
        let logic = Logic::hard(graph);
        let constant = logic.constant_labels()?;
        let live = |label: LabelId| constant[label.index()].is_none();
        let mut edges = hard_edges(&logic, &constant);
        let mut sets = Vec::new();
        let mut add = |labels: &[LabelId], cap: f64| {
            let kept: Vec<u32> = labels.iter().filter(|l| live(**l)).map(|l| l.0).collect();
            if kept.len() > 1 {
                sets.push(Exclusive { labels: kept, cap });
            }
        };
        // A one-of group that another label settles has no live members.
        for set in logic.sets() {
            add(&set.labels, f64::INFINITY);
        }
        let is_soft = |cost: f64| cost > 0.0 && cost < f64::INFINITY;
        let mut soft = 0;
        for edge in graph.hierarchy().iter().filter(|edge| is_soft(edge.strength.cost())) {
            soft += 1;
            let implied = logic.topology().subsumes(edge.parent, edge.child);
            if live(edge.parent) && live(edge.child) && !implied {
                let (parent, child) = (edge.parent.0, edge.child.0);
                edges.push(Edge { parent, child, cap: edge.strength.cost() });
            }
        }
        for exclusion in graph.exclusions().iter().filter(|e| is_soft(e.strength.cost())) {
            soft += 1;
            add(&exclusion.labels, exclusion.strength.cost());
        }
        if let Some(rule) = graph.rule().filter(|rule| is_soft(rule.strength.cost())) {
            soft += 1;
            graph.rule_sets().iter().for_each(|set| add(set, rule.strength.cost()));
        }
        let groups = logic.groups().iter();
        let one_of = groups
            .map(|group| group.iter().filter(|l| live(**l)).map(|l| l.0).collect::<Vec<u32>>())
            .filter(|group| group.len() > 1 && is_open(group, graph, &constant))
            .collect::<Vec<_>>();
        let any = !edges.is_empty()
            || !sets.is_empty()
            || constant.iter().any(Option::is_some)
            || logic.sets().iter().any(|set| matches!(set.source, SetSource::OneOf(_)));
        if !any {
            return Err(Error::NoRelations);
        }
        let components = components(graph.len(), edges, sets, one_of);
        Ok(LiveRelations { constant, components, soft })
    }
}

/// Whether no member of the group of these labels is always on.
fn is_open(group: &[u32], graph: &RelationGraph, constant: &[Option<bool>]) -> bool {
    let holds = |labels: &[LabelId]| labels.iter().any(|label| label.0 == group[0]);
    let found = graph.one_of().iter().find(|one_of| holds(&one_of.labels));
    found.is_none_or(|one_of| one_of.labels.iter().all(|l| constant[l.index()] != Some(true)))
}

/// The hard edges between live labels that other edges do not imply.
fn hard_edges(logic: &Logic, constant: &[Option<bool>]) -> Vec<Edge> {
    let n = logic.len();
    let live = |label: LabelId| constant[label.index()].is_none();
    let all: Vec<(LabelId, LabelId)> = (0..n)
        .map(LabelId::from)
        .filter(|&child| live(child))
        .flat_map(|child| logic.topology().parents(child).iter().map(move |&p| (p, child)))
        .filter(|&(parent, _)| live(parent))
        .collect();
    let topology = Topology::new(n, all.iter().copied());
    let needed = |&(parent, child): &(LabelId, LabelId)| {
        let mut others = topology.parents(child).iter().filter(|&&other| other != parent);
        !others.any(|&other| topology.subsumes(parent, other))
    };
    let mut kept: Vec<(LabelId, LabelId)> = all.iter().copied().filter(needed).collect();
    kept.dedup();
    let edge = |(parent, child): (LabelId, LabelId)| Edge {
        parent: parent.0,
        child: child.0,
        cap: f64::INFINITY,
    };
    kept.into_iter().map(edge).collect()
}

fn components(
    n: usize,
    edges: Vec<Edge>,
    sets: Vec<Exclusive>,
    one_of: Vec<Vec<u32>>,
) -> Vec<Component> {
    let mut root: Vec<u32> = (0..n as u32).collect();
    fn find(root: &mut [u32], mut at: u32) -> u32 {
        while root[at as usize] != at {
            root[at as usize] = root[root[at as usize] as usize];
            at = root[at as usize];
        }
        at
    }
    let mut join = |labels: &[u32]| {
        for pair in labels.windows(2) {
            let (a, b) = (find(&mut root, pair[0]), find(&mut root, pair[1]));
            // The smaller label stays the root, so that components are in the order of labels.
            root[a.max(b) as usize] = a.min(b);
        }
    };
    edges.iter().for_each(|edge| join(&[edge.parent, edge.child]));
    sets.iter().for_each(|set| join(&set.labels));
    one_of.iter().for_each(|group| join(group));
    let (mut number, mut local) = (vec![u32::MAX; n], vec![0; n]);
    let mut parts: Vec<Component> = Vec::new();
    for label in 0..n as u32 {
        let top = find(&mut root, label) as usize;
        if number[top] == u32::MAX {
            number[top] = parts.len() as u32;
            parts.push(Component::default());
        }
        let part = &mut parts[number[top] as usize].labels;
        local[label as usize] = part.len() as u32;
        part.push(label);
    }
    let mut of = |label: u32| number[find(&mut root, label) as usize] as usize;
    let rename = |labels: &[u32]| labels.iter().map(|&l| local[l as usize]).collect::<Vec<u32>>();
    for edge in edges {
        let (parent, child) = (local[edge.parent as usize], local[edge.child as usize]);
        parts[of(edge.child)].edges.push(Edge { parent, child, ..edge });
    }
    for set in sets {
        let labels = rename(&set.labels);
        parts[of(set.labels[0])].sets.push(Exclusive { labels, ..set });
    }
    for group in one_of {
        parts[of(group[0])].one_of.push(rename(&group));
    }
    parts.retain(|part| part.labels.len() > 1);
    parts
}
