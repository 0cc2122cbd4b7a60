//! The flat form of trees of which one path is on: what the passes walk.
//!
//! A *tree* has nodes, and each node has a label. At most one path of a tree is on, from its top to a
//! node that may end it, so its states are its ends and, where it may be empty, nothing. A tree may
//! hang below a node of another one, and then counts only while that node is on. The trees that hang
//! below the same node are a *bundle*; they are independent of each other.
//!
//! Nodes are laid out tree by tree, parents before children and siblings side by side, in an order
//! that keeps a family near its parent. Bundles come after the tree they hang from.

use std::ops::Range;

use crate::lists::Lists;

/// A node as it is described before the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutlineNode {
    pub(crate) label: u32,
    /// The parent within the same tree.
    pub(crate) parent: Option<u32>,
    /// The tree of a node without a parent.
    pub(crate) tree: u32,
    /// Whether a path may end here.
    pub(crate) is_end: bool,
}

/// A tree as it is described before the layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutlineTree {
    /// The node below which it hangs.
    pub(crate) above: Option<u32>,
    /// Whether no path may be on.
    pub(crate) may_be_empty: bool,
}

/// No node.
pub(super) const NO_NODE: u32 = u32::MAX;

/// Children of one node, or the top nodes of a tree. Those that need the same treatment are side by
/// side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Siblings {
    /// Their parent, or [`NO_NODE`].
    pub(super) parent: u32,
    /// Whether a path may end at the parent.
    pub(super) parent_is_end: bool,
    start: u32,
    /// Nodes without children at which a path may end come first.
    leaves: u32,
    /// Then the others at which a path may end.
    ends: u32,
    /// Then nodes that a path may only pass.
    passed: u32,
    /// Last, those that are never on.
    end: u32,
}

impl Siblings {
    pub(super) fn all(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// How many childless ends, ends, and nodes that may be on there are.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.leaves, self.ends, self.passed].map(|at| (at - self.start) as usize)
    }
}

/// A tree of which one path is on.
#[derive(Debug, Clone)]
pub(super) struct PathTree {
    pub(super) nodes: Range<usize>,
    /// Its families, that of the top nodes first.
    pub(super) families: Range<usize>,
    pub(super) may_be_empty: bool,
}

/// Trees that hang below the same node, or below none.
#[derive(Debug, Clone)]
pub(super) struct Bundle {
    pub(super) above: Option<usize>,
    pub(super) trees: Range<usize>,
}

/// The trees, laid out.
#[derive(Debug)]
pub(crate) struct PathProgram {
    pub(super) labels: usize,
    /// The label of each node.
    pub(super) label_of: Vec<u32>,
    /// The first node of each label.
    pub(super) node_of: Vec<u32>,
    /// Further nodes of a label: `[node, first node]`. Only a program of one tree has any.
    pub(super) repeats: Vec<[u32; 2]>,
    /// The parent of each node within its tree, or [`NO_NODE`].
    pub(super) parent: Vec<u32>,
    pub(super) is_end: Vec<bool>,
    pub(super) families: Vec<Siblings>,
    pub(super) trees: Vec<PathTree>,
    /// The first is not below any node.
    pub(super) bundles: Vec<Bundle>,
}

impl PathProgram {
    /// Lays out trees whose nodes cover all labels. Where a label has several nodes, there is one
    /// tree.
    pub(crate) fn new(labels: usize, nodes: &[OutlineNode], trees: &[OutlineTree]) -> PathProgram {
        let count = nodes.len();
        let inside = |(at, node): (usize, &OutlineNode)| Some((node.parent? as usize, at));
        let children = Lists::by_key(count, nodes.iter().enumerate().filter_map(inside));
        let top = |(at, node): (usize, &OutlineNode)| {
            node.parent.is_none().then_some((node.tree as usize, at))
        };
        let tops = Lists::by_key(trees.len(), nodes.iter().enumerate().filter_map(top));
        let hangs = trees.iter().enumerate();
        let hangs = hangs.map(|(at, tree)| (tree.above.map_or(count, |node| node as usize), at));
        let hanging = Lists::by_key(count + 1, hangs);
        let program = PathProgram {
            labels,
            label_of: Vec::with_capacity(count),
            node_of: vec![NO_NODE; labels],
            repeats: Vec::new(),
            parent: Vec::with_capacity(count),
            is_end: Vec::with_capacity(count),
            families: Vec::new(),
            trees: Vec::with_capacity(trees.len()),
            bundles: Vec::new(),
        };
        let mut layout = TreeLayout { program, nodes, children, order: Vec::with_capacity(count) };
        let mut bundles = vec![(count, None)];
        let mut next = 0;
        while let Some(&(outline, above)) = bundles.get(next) {
            next += 1;
            let first = layout.program.trees.len();
            for &tree in hanging.of(outline) {
                let range = layout.tree(tops.of(tree), trees[tree].may_be_empty);
                let carries = |&at: &usize| !hanging.of(layout.order[at]).is_empty();
                bundles.extend(range.filter(carries).map(|at| (layout.order[at], Some(at))));
            }
            let trees = first..layout.program.trees.len();
            layout.program.bundles.push(Bundle { above, trees });
        }
        debug_assert!(layout.program.repeats.is_empty() || trees.len() == 1);
        layout.program
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.label_of.len()
    }

    /// Whether the marginals of all nodes have the same denominator.
    pub(super) fn is_one_tree(&self) -> bool {
        self.trees.len() == 1
    }
}

struct TreeLayout<'a> {
    program: PathProgram,
    nodes: &'a [OutlineNode],
    children: Lists<usize>,
    /// The outline's node at each place.
    order: Vec<usize>,
}

impl TreeLayout<'_> {
    fn tree(&mut self, tops: &[usize], may_be_empty: bool) -> Range<usize> {
        let (first, first_family) = (self.order.len(), self.program.families.len());
        self.family(NO_NODE, tops);
        let mut open: Vec<usize> = (first..self.order.len()).rev().collect();
        while let Some(at) = open.pop() {
            let outline = self.order[at];
            if !self.children.of(outline).is_empty() {
                let from = self.order.len();
                let children = self.children.of(outline).to_vec();
                self.family(at as u32, &children);
                open.extend((from..self.order.len()).rev());
            }
        }
        let nodes = first..self.order.len();
        let families = first_family..self.program.families.len();
        self.program.trees.push(PathTree { nodes: nodes.clone(), families, may_be_empty });
        nodes
    }

    fn family(&mut self, parent: u32, siblings: &[usize]) {
        let treatment = |at: usize| {
            let has_children = !self.children.of(at).is_empty();
            match (self.nodes[at].is_end, has_children) {
                (true, false) => 0,
                (true, true) => 1,
                (false, true) => 2,
                (false, false) => 3,
            }
        };
        let mut sorted = siblings.to_vec();
        sorted.sort_by_key(|&at| treatment(at));
        let start = self.order.len() as u32;
        let up_to = |last: u8| start + sorted.partition_point(|&at| treatment(at) <= last) as u32;
        let (leaves, ends, passed, end) = (up_to(0), up_to(1), up_to(2), up_to(3));
        let parent_is_end = parent != NO_NODE && self.program.is_end[parent as usize];
        let family = Siblings { parent, parent_is_end, start, leaves, ends, passed, end };
        self.program.families.push(family);
        for at in sorted {
            let OutlineNode { label, is_end, .. } = self.nodes[at];
            let place = self.order.len() as u32;
            let first = &mut self.program.node_of[label as usize];
            if *first == NO_NODE {
                *first = place;
            } else {
                self.program.repeats.push([place, *first]);
            }
            self.program.label_of.push(label);
            self.program.parent.push(parent);
            self.program.is_end.push(is_end);
            self.order.push(at);
        }
    }
}
