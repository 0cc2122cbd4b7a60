//! Finds cycles in the hierarchy.
//!
//! A depth-first walk without recursion reports every edge that closes a cycle, together with the
//! cycle. These edges are left out of the graph, so that the other checks can continue. The cost is
//! O(n + e).

use std::collections::HashSet;

/// An edge that closes a cycle, and the cycle: each label is a child of the next.
pub(super) struct Cycle {
    /// Index of the closing edge.
    pub(super) edge: usize,
    /// The labels of the cycle, child before parent. The parent of the last label is the first.
    pub(super) labels: Vec<u32>,
}

/// Finds the edges that close cycles. `edges` are `(parent, child)`.
pub(super) fn closing_edges(n: usize, edges: &[(u32, u32)]) -> Vec<Cycle> {
    let mut start = vec![0usize; n + 1];
    for &(_, child) in edges {
        start[child as usize + 1] += 1;
    }
    for label in 0..n {
        start[label + 1] += start[label];
    }
    let mut next = start.clone();
    let mut upward = vec![0usize; edges.len()];
    for (edge, &(_, child)) in edges.iter().enumerate() {
        upward[next[child as usize]] = edge;
        next[child as usize] += 1;
    }

    let mut cycles = Vec::new();
    let mut position: Vec<Option<u32>> = vec![None; n];
    let mut done = vec![false; n];
    for root in 0..n {
        if done[root] {
            continue;
        }
        // The path upwards from `root`. Each label is stored with the next edge to follow.
        let mut path: Vec<(u32, usize)> = vec![(root as u32, start[root])];
        position[root] = Some(0);
        while let Some(top) = path.last_mut() {
            let label = top.0 as usize;
            if top.1 == start[label + 1] {
                done[label] = true;
                position[label] = None;
                path.pop();
                continue;
            }
            let edge = upward[top.1];
            top.1 += 1;
            let parent = edges[edge].0;
            if let Some(at) = position[parent as usize] {
                let labels = path[at as usize..].iter().map(|&(label, _)| label).collect();
                cycles.push(Cycle { edge, labels });
            } else if !done[parent as usize] {
                position[parent as usize] = Some(path.len() as u32);
                path.push((parent, start[parent as usize]));
            }
        }
    }
    cycles
}

/// The edges without those that close cycles.
pub(super) fn without<T: Clone>(edges: &[T], cycles: &[Cycle]) -> Vec<T> {
    let closing: HashSet<usize> = cycles.iter().map(|cycle| cycle.edge).collect();
    let kept = edges.iter().enumerate().filter(|(at, _)| !closing.contains(at));
    kept.map(|(_, edge)| edge.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_found_once_and_cutting_it_leaves_none() {
        // 0 > 1 > 2 > 0, and 2 > 3.
        let edges = [(0, 1), (1, 2), (2, 0), (2, 3)];
        let cycles = closing_edges(4, &edges);
        assert_eq!(cycles.len(), 1);
        let mut labels = cycles[0].labels.clone();
        labels.sort_unstable();
        assert_eq!(labels, [0, 1, 2]);
        let rest = without(&edges, &cycles);
        assert_eq!(rest.len(), 3);
        assert!(closing_edges(4, &rest).is_empty());
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let n = 1_000_000;
        let edges: Vec<(u32, u32)> = (1..n as u32).map(|label| (label - 1, label)).collect();
        assert!(closing_edges(n, &edges).is_empty());
    }
}
