//! Graphs of real size: the ImageNet hierarchy, and a long chain.

use phex::graph::{GraphBuilder, LabelId, RelationGraph};
use phex::infer::{Number, Trust};
use phex::numeric::sigmoid;
use phex::reconcile::{FinishedRows, ReconcileEngine, ReconcileOptions, Reconciled, Reconciler};
use phex::testkit::{Random, imagenet_edges};

use super::problems::{log_loss, worst_violation};

const ROWS: usize = 16;

/// Rows in which a random leaf and all above it have logits around 2, and the others around −4.
fn rows(graph: &RelationGraph, seed: u64) -> (Vec<f64>, Vec<Vec<bool>>) {
    let mut random = Random::new(seed);
    let leaves: Vec<LabelId> = graph.leaves().collect();
    let (mut logits, mut truths) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let mut truth = vec![false; graph.len()];
        let mut path = vec![leaves[random.below(leaves.len())]];
        while let Some(label) = path.pop() {
            truth[label.index()] = true;
            path.extend(graph.topology().parents(label).iter().copied());
        }
        logits.extend(truth.iter().map(|&on| if on { 2.0 } else { -4.0 } + 2.0 * random.normal()));
        truths.push(truth);
    }
    (logits, truths)
}

fn check<T: Number>(graph: &RelationGraph, p: &[f64], truths: &[Vec<bool>], q: &Reconciled<T>) {
    let n = graph.len();
    for (row, truth) in truths.iter().enumerate() {
        let answer: Vec<f64> = q.row(row).iter().map(|q| q.to_f64()).collect();
        assert_eq!(worst_violation(graph, &answer), 0.0);
        assert_eq!((q.violation[row], q.trust[row]), (0.0, Trust::Exact));
        let before = log_loss(truth, &p[row * n..][..n], None);
        let after = log_loss(truth, &answer, None);
        assert!(q.gain[row] > 1.0 && after <= before - q.gain[row] + 1e-9 * (1.0 + before));
        assert!(q.gap[row] < 1e-3, "{}", q.gap[row]);
    }
}

#[test]
fn the_imagenet_hierarchy_is_reconciled_exactly() {
    let Some(edges) = imagenet_edges() else { return };
    let mut builder = GraphBuilder::new();
    for (parent, child) in &edges {
        builder.hierarchy(parent, child, None);
    }
    let graph = builder.build().unwrap();
    let reconciler = Reconciler::compile(&graph, &ReconcileOptions::default()).unwrap();
    assert_eq!(reconciler.plan().parts[0].engine, ReconcileEngine::Closure);
    assert!(reconciler.plan().is_hull());
    let (logits, truths) = rows(&graph, 5);
    let p: Vec<f64> = logits.iter().map(|&z| sigmoid(z)).collect();
    let answer = reconciler.run(FinishedRows::Logits(&logits)).unwrap();
    check(&graph, &p, &truths, &answer);
    // The multipliers prove that no other answer gains more.
    assert!(answer.gap.iter().all(|gap| *gap < 1e-8), "{:?}", answer.gap);
    let narrow: Vec<f32> = p.iter().map(|&p| p as f32).collect();
    let wide: Vec<f64> = narrow.iter().map(|&p| f64::from(p)).collect();
    let single = reconciler.run(FinishedRows::Probabilities(&narrow)).unwrap();
    check(&graph, &wide, &truths, &single);
    let again = reconciler.run(FinishedRows::Probabilities(&single.probabilities)).unwrap();
    assert_eq!(again.probabilities, single.probabilities);
}

#[test]
fn a_long_chain_agrees_with_pooling() {
    let mut builder = GraphBuilder::new();
    let names: Vec<String> = (0..3000).map(|at| format!("c{at}")).collect();
    for pair in names.windows(2) {
        builder.hierarchy(&pair[0], &pair[1], None);
    }
    let graph = builder.build().unwrap();
    let logits: Vec<f64> = Random::new(1).normals(3000).iter().map(|z| 3.0 * z).collect();
    let by = |engine| {
        let options = ReconcileOptions { engine: Some(engine), ..Default::default() };
        let reconciler = Reconciler::compile(&graph, &options).unwrap();
        reconciler.run(FinishedRows::Logits(&logits)).unwrap()
    };
    let (pool, closure) = (by(ReconcileEngine::Pool), by(ReconcileEngine::Closure));
    for (a, b) in pool.probabilities.iter().zip(&closure.probabilities) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    assert!((pool.gain[0] - closure.gain[0]).abs() < 1e-8 * pool.gain[0]);
}
