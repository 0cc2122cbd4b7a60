//! The 1860 labels of ILSVRC2012: engines that can handle the same model agree.

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Engine, Method, Options, Want};
use phex::model::Model;
use phex::testkit::imagenet_edges;

fn model(
    edges: &[(String, String)],
    rule: ExclusionRule,
    hierarchy: Strength,
    exclusion: Strength,
    leaves: bool,
) -> Model {
    let mut builder = GraphBuilder::new();
    for (parent, child) in edges {
        builder.hierarchy(parent, child, Some(hierarchy));
    }
    builder.exclusion_rule(rule, Some(exclusion));
    if leaves {
        builder.one_of_leaves("leaf");
    }
    Model::new(&builder.build().unwrap()).unwrap()
}

/// Scores that look like those of a classifier: noise below zero, one path above.
fn scores(n: usize, rows: usize) -> Vec<f64> {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..n * rows).map(|_| 6.0 * next() - 4.0).collect()
}

/// The largest difference of the marginals of two engines.
fn difference(model: &Model, one: Method, other: Method) -> f64 {
    let n = model.len();
    let data = scores(n, 3);
    let block = Block::new(n, &data);
    let run = |method| {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(model.clone(), &options).unwrap();
        engine.run(&block, Want::default()).unwrap()
    };
    let (a, b) = (run(one), run(other));
    for (x, y) in a.log_partition.iter().zip(&b.log_partition) {
        assert!((x - y).abs() < 1e-11 * x.abs().max(1.0), "log Z {x} {y}");
    }
    let pairs = a.marginals.iter().zip(&b.marginals);
    pairs.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[test]
fn family_agrees_with_junction_on_the_single_parent_tree() {
    let Some(edges) = imagenet_edges() else { return };
    let mut seen = std::collections::HashSet::new();
    let tree: Vec<(String, String)> =
        edges.into_iter().filter(|(_, child)| seen.insert(child.clone())).collect();
    for leaves in [false, true] {
        let soft = Strength::U(0.5);
        let model = model(&tree, ExclusionRule::Siblings, soft, soft, leaves);
        let difference = difference(&model, Method::Family, Method::Junction);
        assert!(difference < 1e-12, "{difference}");
    }
}

#[test]
fn junction_agrees_with_states_when_all_is_hard() {
    let Some(edges) = imagenet_edges() else { return };
    for leaves in [false, true] {
        let hard = Strength::Hard;
        let model = model(&edges, ExclusionRule::NoCommonDescendant, hard, hard, leaves);
        let difference = difference(&model, Method::States, Method::Junction);
        assert!(difference < 1e-12, "{difference}");
    }
}

#[test]
fn soft_and_hard_mixed_is_answered_with_consistent_groups() {
    let Some(edges) = imagenet_edges() else { return };
    let (soft, hard) = (Strength::U(0.5), Strength::Hard);
    let model = model(&edges, ExclusionRule::NoCommonDescendant, soft, hard, true);
    let engine = Engine::compile(model, &Options::default()).unwrap();
    assert_eq!(engine.plan().method, Method::Junction);
    assert!(engine.plan().states < Some(100_000), "{:?}", engine.plan());
    let n = engine.model().len();
    let data = scores(n, 2);
    let posterior = engine.run(&Block::new(n, &data), Want::default()).unwrap();
    for row in 0..2 {
        let sum: f64 = posterior.group(row, &engine.model().one_of()[0]).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
