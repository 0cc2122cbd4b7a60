//! Forests whose siblings fall into groups of exclusive labels.
//!
//! Nodes are numbered breadth first, so that parents come before children and the members of a
//! group stand together. Each node is a member of one group, which may be a group of one:
//!
//! `Σ_{c ∈ g} q_c ≤ q_{parent(g)}` (or ≤ 1 for roots), or `=`.
//!
//! These rows describe the hull of the legal states exactly: drawn from the top, a parent that is
//! on lets each of its groups pick the child `c` with the probability `q_c / q_parent`, or none.
//!
//! A one-of group fits if its labels exclude each other through siblings: then whatever is above
//! one of its labels is on exactly when one of the labels below it is, so the rows above the group
//! are equations.

use std::collections::HashSet;

use super::relations::Component;

/// No parent.
pub(in crate::reconcile) const NONE: u32 = u32::MAX;

/// A forest with sibling groups.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::reconcile) struct Families {
    /// The column of each node.
    pub(in crate::reconcile) labels: Vec<u32>,
    /// The group that each node is a member of.
    pub(in crate::reconcile) group: Vec<u32>,
    /// The members of group `g` are the nodes `start[g]..start[g + 1]`.
    pub(in crate::reconcile) start: Vec<u32>,
    /// The node above each group, or [`NONE`].
    pub(in crate::reconcile) parent: Vec<u32>,
    /// Whether the members of each group sum to their parent.
    pub(in crate::reconcile) equal: Vec<bool>,
    /// The groups below node `v` are `first[v]..first[v + 1]`. Groups before `first[0]` are roots.
    pub(in crate::reconcile) first: Vec<u32>,
    /// The weight of each node in the loss.
    pub(in crate::reconcile) weights: Vec<f64>,
    /// Whether all groups are single nodes without an equation.
    pub(in crate::reconcile) plain: bool,
}

impl Families {
    /// The forest of a component, if it is one and all its exclusions are between siblings.
    pub(in crate::reconcile) fn of(part: &Component, weights: &[f64]) -> Option<Families> {
        let n = part.labels.len();
        if !part.is_hard() {
            return None;
        }
        let mut above = vec![NONE; n];
        for edge in &part.edges {
            if std::mem::replace(&mut above[edge.child as usize], edge.parent) != NONE {
                return None;
            }
        }
        let class = sibling_classes(part, &above)?;
        let mut tied = vec![false; n];
        for set in &part.sets {
            // Sets of siblings make classes.
            let first = above[set.labels[0] as usize];
            let one_of = part.one_of.contains(&set.labels);
            if !one_of && set.labels.iter().all(|&label| above[label as usize] == first) {
                continue;
            }
            let visited = implied(&set.labels, &above, &class)?;
            if one_of {
                visited.into_iter().for_each(|label| tied[label as usize] = true);
            }
        }
        let families = Families::number(part, &above, &class, &tied, weights);
        // A group is either above the one-of group as a whole or not at all.
        let whole = |g: usize| {
            let members = &families.labels[families.members(g)];
            let column = |label: &u32| part.labels.binary_search(label).unwrap_or(0);
            let count = members.iter().filter(|label| tied[column(label)]).count();
            count == 0 || count == members.len()
        };
        (0..families.groups()).all(whole).then_some(families)
    }

    fn number(
        part: &Component,
        above: &[u32],
        class: &[u32],
        tied: &[bool],
        weights: &[f64],
    ) -> Families {
        let n = part.labels.len();
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); n + 1];
        for label in 0..n as u32 {
            let parent = above[label as usize];
            below[if parent == NONE { n } else { parent as usize }].push(label);
        }
        let mut families = Families {
            labels: Vec::with_capacity(n),
            group: Vec::with_capacity(n),
            start: vec![0],
            parent: Vec::new(),
            equal: Vec::new(),
            first: Vec::with_capacity(n + 1),
            weights: Vec::with_capacity(n),
            plain: true,
        };
        let mut order: Vec<u32> = Vec::with_capacity(n);
        let mut at = 0;
        let mut parent = NONE;
        loop {
            let slot = if parent == NONE { n } else { order[parent as usize] as usize };
            let mut children = std::mem::take(&mut below[slot]);
            children.sort_by_key(|&child| (class[child as usize], child));
            for members in children.chunk_by(|&a, &b| class[a as usize] == class[b as usize]) {
                let equal = tied[members[0] as usize];
                families.plain &= members.len() == 1 && !equal;
                families.group.extend(members.iter().map(|_| families.parent.len() as u32));
                order.extend(members);
                families.parent.push(parent);
                families.equal.push(equal);
                families.start.push(order.len() as u32);
            }
            if at == order.len() {
                break;
            }
            families.first.push(families.parent.len() as u32);
            parent = at as u32;
            at += 1;
        }
        families.first.push(families.parent.len() as u32);
        families.labels = order.iter().map(|&label| part.labels[label as usize]).collect();
        families.weights = families.labels.iter().map(|&label| weights[label as usize]).collect();
        families
    }

    pub(in crate::reconcile) fn nodes(&self) -> usize {
        self.labels.len()
    }

    pub(in crate::reconcile) fn groups(&self) -> usize {
        self.parent.len()
    }

    /// The members of a group.
    #[inline(always)]
    pub(in crate::reconcile) fn members(&self, group: usize) -> std::ops::Range<usize> {
        self.start[group] as usize..self.start[group + 1] as usize
    }

    /// The groups below a node.
    #[inline(always)]
    pub(in crate::reconcile) fn below(&self, node: usize) -> std::ops::Range<usize> {
        self.first[node] as usize..self.first[node + 1] as usize
    }

    /// The groups of roots.
    pub(in crate::reconcile) fn roots(&self) -> std::ops::Range<usize> {
        0..self.first.first().map_or(0, |&first| first as usize)
    }

    /// Whether the group is a root that nothing limits.
    #[inline(always)]
    pub(in crate::reconcile) fn is_free(&self, group: usize) -> bool {
        self.parent[group] == NONE && !self.equal[group] && self.members(group).len() == 1
    }
}

/// A number for each label: labels with the same number are siblings that exclude each other.
/// `None` when the exclusions among siblings are not groups.
fn sibling_classes(part: &Component, above: &[u32]) -> Option<Vec<u32>> {
    let n = part.labels.len();
    let mut class: Vec<u32> = (0..n as u32).collect();
    let mut pairs: HashSet<(u32, u32)> = HashSet::new();
    let mut cliques: Vec<Vec<u32>> = Vec::new();
    for set in &part.sets {
        let mut labels = set.labels.clone();
        labels.sort_by_key(|&label| (above[label as usize], label));
        let siblings = labels.chunk_by(|&a, &b| above[a as usize] == above[b as usize]);
        cliques.extend(siblings.filter(|clique| clique.len() > 1).map(<[u32]>::to_vec));
    }
    cliques.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    cliques.dedup();
    // Larger cliques come first, so a clique within one that is known adds nothing.
    let mut known: Vec<usize> = vec![0; n];
    for clique in &cliques {
        let first = class[clique[0] as usize];
        if known[first as usize] > 0 && clique.iter().all(|&label| class[label as usize] == first) {
            continue;
        }
        if clique.iter().all(|&label| class[label as usize] == label && known[label as usize] == 0)
        {
            clique.iter().for_each(|&label| class[label as usize] = clique[0]);
            known[clique[0] as usize] = clique.len();
            continue;
        }
        return merge_pairs(&cliques, n, &mut pairs);
    }
    Some(class)
}

/// Classes from overlapping cliques: the pairs must fill each class.
fn merge_pairs(
    cliques: &[Vec<u32>],
    n: usize,
    pairs: &mut HashSet<(u32, u32)>,
) -> Option<Vec<u32>> {
    let mut class: Vec<u32> = (0..n as u32).collect();
    fn find(class: &mut [u32], mut at: u32) -> u32 {
        while class[at as usize] != at {
            class[at as usize] = class[class[at as usize] as usize];
            at = class[at as usize];
        }
        at
    }
    for clique in cliques {
        for (at, &a) in clique.iter().enumerate() {
            for &b in &clique[at + 1..] {
                pairs.insert((a.min(b), a.max(b)));
                let (a, b) = (find(&mut class, a), find(&mut class, b));
                class[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut size = vec![0usize; n];
    for label in 0..n as u32 {
        class[label as usize] = find(&mut class, label);
        size[class[label as usize] as usize] += 1;
    }
    let needed: usize = size.iter().map(|k| k * k.saturating_sub(1) / 2).sum();
    (needed == pairs.len()).then_some(class)
}

/// The labels of a set and everything above them, if siblings make all pairs of the set exclusive.
fn implied(set: &[u32], above: &[u32], class: &[u32]) -> Option<Vec<u32>> {
    let mut visited: HashSet<u32> = HashSet::new();
    let mut branches: std::collections::HashMap<u32, u32> = Default::default();
    let members: HashSet<u32> = set.iter().copied().collect();
    let mut found = Vec::new();
    for &label in set {
        let mut at = label;
        while visited.insert(at) {
            found.push(at);
            let parent = above[at as usize];
            // All visited children of a label must be in one class, or two members would not
            // exclude each other. A member above another would make the other impossible.
            match branches.insert(parent, class[at as usize]) {
                Some(before) if before != class[at as usize] => return None,
                _ => {}
            }
            if parent == NONE {
                break;
            }
            if members.contains(&parent) {
                return None;
            }
            at = parent;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::relations::LiveRelations;
    use super::*;
    use crate::graph::{ExclusionRule, GraphBuilder};

    fn families(builder: &GraphBuilder) -> Option<Families> {
        let graph = builder.build().unwrap();
        let relations = LiveRelations::of(&graph).unwrap();
        Families::of(&relations.components[0], &vec![1.0; graph.len()])
    }

    #[test]
    fn one_of_leaves_make_the_rows_above_them_equations() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
        builder.hierarchy("plant", "oak", None).hierarchy("dog", "husky", None);
        builder.hierarchy("dog", "poodle", None);
        builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None);
        let open = families(&builder).unwrap();
        assert!(!open.plain && open.equal.iter().all(|equal| !equal));
        builder.one_of_leaves("leaf");
        let closed = families(&builder).unwrap();
        assert!(closed.equal.iter().all(|&equal| equal));
        assert_eq!((closed.nodes(), closed.groups()), (7, 4));
        // Without exclusions between siblings, two inner labels can be on together.
        let mut loose = GraphBuilder::new();
        loose.hierarchy("a", "b", None).hierarchy("a", "c", None).hierarchy("b", "d", None);
        loose.hierarchy("c", "e", None).one_of_leaves("leaf");
        assert!(families(&loose).is_none());
    }

    #[test]
    fn pairs_become_groups_where_they_fill_them() {
        let mut builder = GraphBuilder::new();
        for child in ["b", "c", "d", "e"] {
            builder.hierarchy("a", child, None);
        }
        builder.exclusion("b", "c", None).exclusion("c", "d", None);
        assert!(families(&builder).is_none());
        builder.exclusion("b", "d", None);
        let found = families(&builder).unwrap();
        let mut sizes: Vec<usize> = (0..found.groups()).map(|g| found.members(g).len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 1, 3]);
        // Labels that are not siblings make no group.
        builder.hierarchy("e", "f", None).exclusion("f", "b", None);
        assert!(families(&builder).is_none());
    }

    #[test]
    fn groups_of_every_node_stand_together() {
        for seed in 0..200 {
            let random = crate::testkit::RandomGraph {
                rule: Some(ExclusionRule::Siblings),
                ..crate::testkit::RandomGraph::new(12, seed)
            };
            let graph = random.draw();
            let Ok(relations) = LiveRelations::of(&graph) else { continue };
            for part in &relations.components {
                let found = Families::of(part, &[1.0; 12]).unwrap();
                for v in 0..found.nodes() {
                    assert!(found.members(found.group[v] as usize).contains(&v));
                    let parent = found.parent[found.group[v] as usize];
                    assert!(parent == NONE || (parent as usize) < v);
                    assert!(found.below(v).all(|g| found.parent[g] == v as u32));
                }
            }
        }
    }
}
