//! Finds spanning trees that together cover every edge.
//!
//! Each tree takes the edges that the trees before it used least, with ties broken at random, until
//! every edge is in some tree. The fraction of the trees that contain an edge is its appearance
//! `ρ`. Bridges have 1. A tree costs O(edges).

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// At least this many trees, for even appearances.
const LEAST: usize = 12;

/// A step of a pass from the leaves of a tree to its root.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeStep {
    pub(super) edge: u32,
    /// Whether the second node of the edge is the child.
    pub(super) turned: bool,
}

/// Spanning trees, or forests if the graph is not connected.
#[derive(Debug)]
pub(super) struct Trees {
    /// The steps of each tree, children first.
    pub(super) steps: Vec<Vec<TreeStep>>,
    /// One node of each component, which is its root in every tree.
    pub(super) roots: Vec<usize>,
    /// The fraction of the trees that contain each edge.
    pub(super) appearance: Vec<f64>,
    /// The nodes in the order of the first tree, root first.
    pub(super) order: Vec<usize>,
}

impl Trees {
    pub(super) fn new(nodes: usize, edges: &[[usize; 2]], seed: u64) -> Trees {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7472_6565);
        let mut used = vec![0usize; edges.len()];
        let mut trees = Trees {
            steps: Vec::new(),
            roots: Vec::new(),
            appearance: Vec::new(),
            order: Vec::new(),
        };
        loop {
            let chosen = least_used(nodes, edges, &used, &mut random);
            chosen.iter().for_each(|&edge| used[edge] += 1);
            let all = chosen.len() == edges.len();
            trees.plant(nodes, edges, &chosen);
            let covered = used.iter().all(|&count| count > 0);
            if all || (covered && trees.steps.len() >= LEAST) {
                break;
            }
        }
        let count = trees.steps.len() as f64;
        trees.appearance = used.iter().map(|&used| used as f64 / count).collect();
        trees
    }

    /// Adds the tree of these edges.
    fn plant(&mut self, nodes: usize, edges: &[[usize; 2]], chosen: &[usize]) {
        let mut around = vec![Vec::new(); nodes];
        for &edge in chosen {
            edges[edge].iter().for_each(|&node| around[node].push(edge));
        }
        let is_first = self.steps.is_empty();
        let mut seen = vec![false; nodes];
        let mut order = Vec::with_capacity(nodes);
        let mut steps = Vec::with_capacity(chosen.len());
        for root in 0..nodes {
            if seen[root] {
                continue;
            }
            if is_first {
                self.roots.push(root);
            }
            seen[root] = true;
            let mut next = order.len();
            order.push(root);
            while let Some(&node) = order.get(next) {
                next += 1;
                for &edge in &around[node] {
                    let turned = edges[edge][0] == node;
                    let child = edges[edge][usize::from(turned)];
                    if !std::mem::replace(&mut seen[child], true) {
                        order.push(child);
                        steps.push(TreeStep { edge: edge as u32, turned });
                    }
                }
            }
        }
        steps.reverse();
        self.steps.push(steps);
        if is_first {
            self.order = order;
        }
    }
}

/// The edges of a spanning tree, least used first.
fn least_used(
    nodes: usize,
    edges: &[[usize; 2]],
    used: &[usize],
    random: &mut impl Rng,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.shuffle(random);
    order.sort_by_key(|&edge| used[edge]);
    let mut parent: Vec<usize> = (0..nodes).collect();
    let mut chosen = Vec::new();
    for edge in order {
        let [a, b] = edges[edge].map(|node| find(&mut parent, node));
        if a != b {
            parent[a] = b;
            chosen.push(edge);
        }
    }
    chosen
}

fn find(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}
