//! The hierarchy as flat arrays: parents and children of each label (compressed rows), a
//! topological order, and reachability.
//!
//! Memory is O(n + e). `subsumes(a, b)` costs O(1) where the labels above `b` form a tree.
//! Otherwise it walks over the labels above `b` and stops at the depth of `a`.

use crate::lists::Lists;
use fixedbitset::FixedBitSet;

use super::LabelId;

/// Parents, children and order of an acyclic hierarchy.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    parents: Lists<LabelId>,
    /// For each entry of `parents`, the index of its edge in the list from which the topology was
    /// built.
    parent_edges: Lists<u32>,
    children: Lists<LabelId>,
    /// Parents before children.
    order: Vec<LabelId>,
    /// The longest path from a root.
    depth: Vec<u32>,
    /// Entry and exit times of a walk along first parents.
    enter: Vec<u32>,
    leave: Vec<u32>,
    /// Whether this label or one above it has several parents.
    branches_above: FixedBitSet,
}

impl Topology {
    /// Builds the topology from `(parent, child)` pairs without cycles. With a cycle, `len` is less
    /// than `n`.
    pub(crate) fn new(
        n: usize,
        edges: impl Iterator<Item = (LabelId, LabelId)> + Clone,
    ) -> Topology {
        let children =
            Lists::by_key(n, edges.clone().map(|(parent, child)| (parent.index(), child)));
        let parents =
            Lists::by_key(n, edges.clone().map(|(parent, child)| (child.index(), parent)));
        let numbered = (0u32..).zip(edges.clone()).map(|(edge, (_, child))| (child.index(), edge));
        let parent_edges = Lists::by_key(n, numbered);
        let mut missing: Vec<u32> = (0..n).map(|label| parents.of(label).len() as u32).collect();
        let mut order: Vec<LabelId> =
            (0..n).filter(|&label| missing[label] == 0).map(LabelId::from).collect();
        let mut depth = vec![0u32; n];
        let mut branches_above = FixedBitSet::with_capacity(n);
        let mut at = 0;
        while at < order.len() {
            let label = order[at];
            at += 1;
            if parents.of(label.index()).len() > 1 {
                branches_above.insert(label.index());
            }
            for &child in children.of(label.index()) {
                depth[child.index()] = depth[child.index()].max(depth[label.index()] + 1);
                if branches_above.contains(label.index()) {
                    branches_above.insert(child.index());
                }
                missing[child.index()] -= 1;
                if missing[child.index()] == 0 {
                    order.push(child);
                }
            }
        }
        if order.len() != n {
            // There is a cycle. Callers that cannot rule this out compare the lengths.
            return Topology { order, ..Topology::default() };
        }
        let mut topology = Topology {
            parents,
            parent_edges,
            children,
            order,
            depth,
            branches_above,
            ..Topology::default()
        };
        topology.number();
        topology
    }

    /// Numbers the forest of first parents so that each subtree is an interval.
    fn number(&mut self) {
        let n = self.order.len();
        (self.enter, self.leave) = (vec![0; n], vec![0; n]);
        let mut size = vec![1u32; n];
        for &label in self.order.iter().rev() {
            if let Some(parent) = self.parents(label).first() {
                size[parent.index()] += size[label.index()];
            }
        }
        let mut next_root = 0;
        let mut next_child = vec![0u32; n];
        for at in 0..n {
            let label = self.order[at];
            let enter = match self.parents(label).first().copied() {
                Some(parent) => {
                    let enter = next_child[parent.index()];
                    next_child[parent.index()] += size[label.index()];
                    enter
                }
                None => {
                    let enter = next_root;
                    next_root += size[label.index()];
                    enter
                }
            };
            self.enter[label.index()] = enter;
            self.leave[label.index()] = enter + size[label.index()];
            next_child[label.index()] = enter + 1;
        }
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The direct parents of a label.
    pub fn parents(&self, id: LabelId) -> &[LabelId] {
        self.parents.of(id.index())
    }

    /// The direct children of a label.
    pub fn children(&self, id: LabelId) -> &[LabelId] {
        self.children.of(id.index())
    }

    /// The index of an edge in the list from which the topology was built.
    pub fn edge(&self, parent: LabelId, child: LabelId) -> Option<usize> {
        let at = self.parents(child).iter().position(|&id| id == parent)?;
        Some(self.parent_edges.of(child.index())[at] as usize)
    }

    /// All labels, parents before children.
    pub fn order(&self) -> &[LabelId] {
        &self.order
    }

    /// The length of the longest path from a root.
    pub fn depth(&self, id: LabelId) -> usize {
        self.depth[id.index()] as usize
    }

    /// Whether no label has several parents.
    pub fn is_forest(&self) -> bool {
        self.branches_above.is_clear()
    }

    /// Whether no path upwards from this label meets a label with several parents.
    pub fn is_tree_above(&self, id: LabelId) -> bool {
        !self.branches_above.contains(id.index())
    }

    /// Whether `above` is `below` or one of its ancestors.
    pub fn subsumes(&self, above: LabelId, below: LabelId) -> bool {
        if self.in_interval(above, below) {
            return true;
        }
        if !self.branches_above.contains(below.index()) {
            return false;
        }
        let limit = self.depth[above.index()];
        let mut stack = vec![below];
        let mut seen = std::collections::HashSet::new();
        while let Some(label) = stack.pop() {
            for &parent in self.parents(label) {
                if self.in_interval(above, parent) {
                    return true;
                }
                let deeper = self.depth[parent.index()] > limit;
                if deeper && self.branches_above.contains(parent.index()) && seen.insert(parent) {
                    stack.push(parent);
                }
            }
        }
        false
    }

    /// The labels above a label, each once, nearest first.
    pub fn ancestors(&self, id: LabelId) -> Vec<LabelId> {
        let mut found = self.parents(id).to_vec();
        let mut seen: std::collections::HashSet<LabelId> = found.iter().copied().collect();
        let mut at = 0;
        while at < found.len() {
            let parents = self.parents(found[at]);
            found.extend(parents.iter().filter(|&&parent| seen.insert(parent)));
            at += 1;
        }
        found
    }

    /// Whether one of the two subsumes the other.
    pub fn comparable(&self, a: LabelId, b: LabelId) -> bool {
        self.subsumes(a, b) || self.subsumes(b, a)
    }

    /// Whether `below` is in the first-parent subtree of `above`.
    fn in_interval(&self, above: LabelId, below: LabelId) -> bool {
        let enter = self.enter[below.index()];
        self.enter[above.index()] <= enter && enter < self.leave[above.index()]
    }
}

/// Scratch memory for walks over a topology that each visit few labels.
#[derive(Debug, Clone, Default)]
pub(super) struct Walk {
    stamp: Vec<u32>,
    now: u32,
    found: Vec<LabelId>,
}

impl Walk {
    pub(super) fn new(n: usize) -> Walk {
        Walk { stamp: vec![0; n], now: 0, found: Vec::new() }
    }

    /// The given labels and everything that `next` reaches from them, breadth first.
    pub(super) fn reach<'t, N, I>(
        &mut self,
        from: impl IntoIterator<Item = LabelId>,
        next: N,
    ) -> &[LabelId]
    where
        N: Fn(LabelId) -> I,
        I: IntoIterator<Item = &'t LabelId>,
    {
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.stamp.fill(0);
            self.now = 1;
        }
        self.found.clear();
        for label in from {
            if std::mem::replace(&mut self.stamp[label.index()], self.now) != self.now {
                self.found.push(label);
            }
        }
        let mut at = 0;
        while at < self.found.len() {
            for &label in next(self.found[at]) {
                if std::mem::replace(&mut self.stamp[label.index()], self.now) != self.now {
                    self.found.push(label);
                }
            }
            at += 1;
        }
        &self.found
    }
}
