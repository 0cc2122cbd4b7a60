//! The graphs and scores of the benchmark.

use phex::graph::{ExclusionRule, GraphBuilder, LabelId, RelationGraph};

use super::peers::ReconcilePeer;
use crate::bench::hmc;
use crate::harness::RandomStream;
use crate::harness::data::imagenet_edges;

/// Rows of scores.
pub(super) struct FinishedScores {
    pub(super) name: &'static str,
    /// Logits, or else probabilities.
    pub(super) logits: bool,
    pub(super) values: Vec<f64>,
}

/// A graph, rows for it, and who else can solve it.
pub(super) struct ReconcileCase {
    pub(super) name: String,
    pub(super) graph: RelationGraph,
    pub(super) scores: Vec<FinishedScores>,
    pub(super) peer: Option<ReconcilePeer>,
}

/// The logits of labels on a random path and of all others, in the mean; their standard deviation is 2.
const KINDS: [(&str, f64, f64); 3] =
    [("sharp", 3.0, -7.0), ("real", 2.0, -4.0), ("diffuse", 0.0, 0.0)];

/// All cases whose name is wanted. Those whose data are missing are left out with a word.
pub(super) fn all(
    rows: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<ReconcileCase>> {
    let mut cases = Vec::new();
    let chain: Vec<(String, String)> =
        (1..1860).map(|at| (format!("c{}", at - 1), format!("c{at}"))).collect();
    let edges = imagenet_edges().unwrap_or_else(|error| {
        eprintln!("skipped: the ImageNet hierarchy ({error})");
        Vec::new()
    });
    let mut seen = std::collections::HashSet::new();
    let tree: Vec<(String, String)> =
        edges.iter().filter(|(_, child)| seen.insert(child.clone())).cloned().collect();
    use ExclusionRule::{NoCommonDescendant, Siblings};
    let synthetic = [
        ("chain", &chain, None, false, Some(ReconcilePeer::Isotonic)),
        ("tree, hierarchy", &tree, None, false, Some(ReconcilePeer::Osqp)),
        ("tree, exclusive siblings", &tree, Some(Siblings), false, Some(ReconcilePeer::Clarabel)),
        ("tree, one of the leaves", &tree, Some(Siblings), true, Some(ReconcilePeer::Clarabel)),
        ("DAG, hierarchy", &edges, None, false, Some(ReconcilePeer::Osqp)),
        ("DAG, exclusions", &edges, Some(NoCommonDescendant), false, Some(ReconcilePeer::Clarabel)),
    ];
    for (name, edges, rule, leaves, peer) in synthetic {
        if !is_wanted(name) || edges.is_empty() {
            continue;
        }
        let graph = graph_of(edges, rule, leaves)?;
        let scores = |&(kind, on, off): &(&'static str, f64, f64)| FinishedScores {
            name: kind,
            logits: true,
            values: logits(&graph, rows, on, off),
        };
        let scores = KINDS.iter().map(scores).collect();
        cases.push(ReconcileCase { name: String::from(name), graph, scores, peer });
    }
    for set in ["gasch1_FUN", "cellcycle_FUN", "cellcycle_GO"] {
        let name = format!("{set}, trained");
        if !is_wanted(&name) {
            continue;
        }
        match hmc::finished_scores(set, rows) {
            Err(error) => eprintln!("skipped: {name} ({error})"),
            Ok((graph, values)) => {
                let scores = FinishedScores { name: "trained", logits: false, values };
                cases.push(ReconcileCase { name, graph, scores: vec![scores], peer: None });
            }
        }
    }
    Ok(cases)
}

fn graph_of(
    edges: &[(String, String)],
    rule: Option<ExclusionRule>,
    leaves: bool,
) -> anyhow::Result<RelationGraph> {
    let mut builder = GraphBuilder::new();
    for (parent, child) in edges {
        builder.hierarchy(parent, child, None);
    }
    if let Some(rule) = rule {
        builder.exclusion_rule(rule, None);
    }
    if leaves {
        builder.one_of_leaves("leaf");
    }
    Ok(builder.build()?)
}

/// Rows in which a random leaf and everything above it have the mean `on`, and all others `off`.
fn logits(graph: &RelationGraph, rows: usize, on: f64, off: f64) -> Vec<f64> {
    let mut random = RandomStream::new(0, "finished scores");
    let leaves: Vec<LabelId> =
        graph.ids().filter(|&label| graph.topology().children(label).is_empty()).collect();
    let mut values = Vec::with_capacity(rows * graph.len());
    for _ in 0..rows {
        let mut mean = vec![off; graph.len()];
        let mut path = vec![leaves[random.below(leaves.len())]];
        while let Some(label) = path.pop() {
            mean[label.index()] = on;
            path.extend(graph.topology().parents(label).iter().copied());
        }
        values.extend(mean.iter().map(|mean| mean + 2.0 * random.normal()));
    }
    values
}
