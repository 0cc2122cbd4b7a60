//! What a head under relations takes from its graph: the scale of inner scores, and the share of leaf rows.
//!
//! An inner score, of a label that has children, collects the gradients of all rows below it. Without a
//! scale it moves first and most, and the leaves learn little. A head multiplies it by `α / √a`, where a leaf
//! has `a` labels above it on average: a step moves the sum of the `a` scores above a leaf by the sum of
//! their squared scales, which the root keeps at `α²`. Where a row may be several things at once, inner
//! labels have something of their own to learn, and the scale is 1. Cost: `O(n)` and the labels above all
//! leaves.

use crate::graph::RelationGraph;

/// The factor α on inner scores, with one label above each leaf.
pub const INNER_SCALE: f64 = 0.1;

/// The share of a batch that is drawn from rows labelled with a leaf, for networks of which not all rows are.
pub const LEAF_SHARE: f64 = 0.25;

/// The factor on the scores of labels that have children: `α / √a` in a single-label graph, otherwise 1.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::learn::{INNER_SCALE, inner_scale, score_scales};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// assert_eq!(inner_scale(&builder.clone().build()?, INNER_SCALE), 1.0);
/// let graph = builder.single_label().build()?;
/// assert_eq!(score_scales(&graph, inner_scale(&graph, INNER_SCALE)), [0.1, 1.0, 1.0]);
/// # Ok::<(), phex::Error>(())
/// ```
pub fn inner_scale(graph: &RelationGraph, alpha: f64) -> f64 {
    if !graph.is_single_label() {
        return 1.0;
    }
    let (mut leaves, mut above) = (0, 0);
    for leaf in graph.leaves() {
        leaves += 1;
        above += graph.topology().ancestors(leaf).len();
    }
    alpha / (above as f64 / f64::from(leaves.max(1))).max(1.0).sqrt()
}

/// The factor on the score of each label of a graph: `inner_scale` for labels that have children, 1 for others.
pub fn score_scales(graph: &RelationGraph, inner_scale: f64) -> Vec<f32> {
    graph.ids().map(|id| if graph.is_leaf(id) { 1.0 } else { inner_scale as f32 }).collect()
}
