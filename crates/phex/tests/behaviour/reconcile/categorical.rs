//! Softmax heads on the levels of a taxonomy.

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph};
use phex::infer::Number;
use phex::reconcile::{
    FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciled, Reconciler,
};
use phex::testkit::Random;

use super::oracle::problems;
use super::problems::{truths, wanted};
use super::solver::{Distance, Target, project};

const ROWS: usize = 6;

/// A taxonomy and the level of each label.
struct Taxonomy {
    graph: RelationGraph,
    levels: Vec<Vec<usize>>,
}

/// A random taxonomy whose leaves are all on the last level.
fn draw(seed: u64) -> Taxonomy {
    let mut random = Random::new(seed);
    let mut builder = GraphBuilder::new();
    let depth = 2 + random.below(3);
    let mut names: Vec<Vec<String>> = vec![(0..2).map(|k| format!("0 {k}")).collect()];
    for level in 1..depth {
        let mut below = Vec::new();
        for parent in &names[level - 1] {
            // The tests enumerate all states.
            let wide = names.iter().map(Vec::len).sum::<usize>() + below.len() < 9;
            for _ in 0..1 + random.below(if wide { 2 } else { 1 }) {
                let child = format!("{level} {}", below.len());
                builder.hierarchy(parent, &child, None);
                below.push(child);
            }
        }
        names.push(below);
    }
    if seed.is_multiple_of(2) {
        builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None);
        builder.one_of_leaves("leaf");
    } else {
        for (level, names) in names.iter().enumerate().filter(|(_, names)| names.len() > 1) {
            builder.one_of(&format!("level {level}"), names.iter().map(String::as_str), None);
        }
    }
    let graph = builder.build().unwrap();
    let id = |name: &String| graph.id(name).unwrap().index();
    let levels = names.iter().map(|level| level.iter().map(id).collect()).collect();
    Taxonomy { graph, levels }
}

impl Taxonomy {
    /// Heads from random logits, and the logits.
    fn heads(&self, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random::new(seed ^ 0xcafe);
        let n = self.graph.len();
        let scale = [0.5, 2.0, 5.0][random.below(3)];
        let logits: Vec<f64> = random.normals(n * ROWS).iter().map(|z| scale * z).collect();
        let mut p = vec![0.0; n * ROWS];
        for row in 0..ROWS {
            for level in &self.levels {
                let sum: f64 = level.iter().map(|&label| logits[row * n + label].exp()).sum();
                level.iter().for_each(|&label| {
                    p[row * n + label] = logits[row * n + label].exp() / sum;
                });
            }
        }
        (p, logits)
    }

    /// A weight for each label, the same on each level.
    fn weights(&self, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed ^ 0xbeef);
        let mut weights = vec![0.0; self.graph.len()];
        for level in &self.levels {
            let weight = 0.2 + 2.0 * random.next();
            level.iter().for_each(|&label| weights[label] = weight);
        }
        weights
    }
}

fn compile(graph: &RelationGraph, weights: &[f64]) -> Reconciler {
    let weights = Some(weights.to_vec());
    let loss = ReconcileLoss::Categorical;
    Reconciler::compile(graph, &ReconcileOptions { loss, weights, ..Default::default() }).unwrap()
}

/// The loss of heads: each charges for its label that is on.
fn loss<T: Number>(truth: &[bool], p: &[T], weights: &[f64]) -> f64 {
    let on = truth.iter().zip(p).zip(weights).filter(|((on, _), _)| **on);
    on.map(|((_, p), w)| -w * p.to_f64().ln()).sum()
}

#[test]
fn two_levels_are_a_weighted_geometric_mean() {
    // Coarse a and b, fine 0, 1 below a and 2 below b.
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "0", None).hierarchy("a", "1", None).hierarchy("b", "2", None);
    builder.one_of("fine", ["0", "1", "2"], None).one_of("coarse", ["a", "b"], None);
    let graph = builder.build().unwrap();
    let at = |name: &str| graph.id(name).unwrap().index();
    let [a, b, x, y, z] = ["a", "b", "0", "1", "2"].map(at);
    let mut p = [0.0; 5];
    (p[a], p[b], p[x], p[y], p[z]) = (0.3, 0.7, 0.5, 0.1, 0.4);
    for (fine, coarse) in [(1.0, 1.0), (2.0, 0.5)] {
        let mut weights = [coarse; 5];
        [x, y, z].into_iter().for_each(|label| weights[label] = fine);
        let reconciler = compile(&graph, &weights);
        assert_eq!(reconciler.plan().parts[0].engine, ReconcileEngine::Categorical);
        let answer = reconciler.run(FinishedRows::Probabilities(&p)).unwrap();
        let q = answer.row(0);
        let share = fine / (fine + coarse);
        let pool = |sum: f64, head: f64| sum.powf(share) * head.powf(1.0 - share);
        let (ra, rb) = (pool(0.6_f64, 0.3), pool(0.4, 0.7));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(q[a], ra / (ra + rb));
        close(q[b], rb / (ra + rb));
        close(q[x], q[a] * 0.5 / 0.6);
        close(q[y], q[a] * 0.1 / 0.6);
        close(q[z], q[b]);
        close(answer.gain[0], -(fine + coarse) * (ra + rb).ln());
    }
}

/// All truths of a block of heads.
fn check<T: Number>(
    taxonomy: &Taxonomy,
    weights: &[f64],
    input: &[T],
    answer: &Reconciled<T>,
    tolerance: f64,
) -> usize {
    let n = taxonomy.graph.len();
    let mut triples = 0;
    for row in 0..ROWS {
        let (p, q) = (&input[row * n..][..n], answer.row(row));
        let gain = answer.gain[row];
        assert!(gain >= -tolerance && answer.gap[row] < tolerance, "{gain}");
        for level in &taxonomy.levels {
            let sum: f64 = level.iter().map(|&label| q[label].to_f64()).sum();
            assert!((sum - 1.0).abs() < tolerance, "{sum}");
        }
        for edge in taxonomy.graph.hierarchy() {
            assert!(q[edge.child.index()] <= q[edge.parent.index()]);
        }
        for truth in truths(&taxonomy.graph) {
            let (before, after) = (loss(&truth, p, weights), loss(&truth, q, weights));
            assert!(after <= before - gain + 1e-9 * (1.0 + before), "{before} {after} {gain}");
            // Every truth gains the same.
            assert!((before - after - gain).abs() < tolerance * (1.0 + before));
            triples += 1;
        }
    }
    triples
}

#[test]
fn no_row_of_heads_is_worse_for_any_legal_truth() {
    let (mut triples, mut seed) = (0, 0);
    while triples < wanted() / 10 || seed < problems() as u64 {
        seed += 1;
        let taxonomy = draw(seed);
        let weights = taxonomy.weights(seed);
        let reconciler = compile(&taxonomy.graph, &weights);
        let (p, logits) = taxonomy.heads(seed);
        let answer = reconciler.run(FinishedRows::Probabilities(&p)).unwrap();
        triples += check(&taxonomy, &weights, &p, &answer, 1e-11);
        let narrow: Vec<f32> = p.iter().map(|&p| p as f32).collect();
        let single = reconciler.run(FinishedRows::Probabilities(&narrow)).unwrap();
        triples += check(&taxonomy, &weights, &narrow, &single, 2e-5);
        // Logits of heads may be shifted.
        let shifted: Vec<f64> = logits.iter().map(|z| z + 3.0).collect();
        let other = reconciler.run(FinishedRows::Logits(&shifted)).unwrap();
        for (a, b) in answer.probabilities.iter().zip(&other.probabilities) {
            assert!((a - b).abs() < 1e-12);
        }
        // What is consistent comes back bit for bit.
        let again = single.probabilities.clone();
        let twice = reconciler.run(FinishedRows::Probabilities(&again)).unwrap();
        assert_eq!(again, twice.probabilities);
        assert!((0..ROWS).all(|row| twice.is_unchanged(row)));
    }
    println!("categorical: {triples} triples of {seed} taxonomies");
}

#[test]
fn heads_agree_with_a_conic_solver() {
    let (mut solved, mut seed, mut worst) = (0, 0, 0.0_f64);
    while solved < problems() {
        let taxonomy = draw(seed);
        let weights = taxonomy.weights(seed);
        let n = taxonomy.graph.len();
        let (p, _) = taxonomy.heads(seed);
        let answer =
            compile(&taxonomy.graph, &weights).run(FinishedRows::Probabilities(&p)).unwrap();
        let logs: Vec<f64> = p[..n].iter().map(|p| p.ln()).collect();
        let states = truths(&taxonomy.graph);
        let target = Target { input: &logs, weights: &weights, distance: Distance::Categorical };
        let expected = project(&states, target);
        seed += 1;
        assert!(seed < 40 * problems() as u64, "the solver solves too few problems");
        let Some(expected) = expected else { continue };
        solved += 1;
        for (q, e) in answer.row(0).iter().zip(&expected) {
            worst = worst.max((q - e).abs());
        }
        assert!(worst < 1e-6, "seed {seed}: {worst:e}");
    }
    println!("categorical: {solved} of {seed} problems solved, {worst:.1e} from the solver");
}

#[test]
fn a_zero_stays_and_does_not_spoil_the_row() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "0", None).hierarchy("a", "1", None).hierarchy("b", "2", None);
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None).one_of_leaves("leaf");
    let graph = builder.build().unwrap();
    let at = |name: &str| graph.id(name).unwrap().index();
    let mut p = [0.0_f64; 5];
    [("a", 0.6), ("b", 0.4), ("0", 0.0), ("1", 0.5), ("2", 0.5)]
        .into_iter()
        .for_each(|(name, value)| p[at(name)] = value);
    let answer = compile(&graph, &[1.0; 5]).run(FinishedRows::Probabilities(&p)).unwrap();
    let q = answer.row(0);
    assert!(q[at("0")] < 1e-200 && answer.gain[0] > 0.0);
    assert!((q[at("1")] + q[at("2")] - 1.0).abs() < 1e-12);
}

#[test]
fn graphs_and_rows_that_are_no_heads_are_refused() {
    let refused = |builder: &GraphBuilder, weights: Option<Vec<f64>>| {
        let options =
            ReconcileOptions { loss: ReconcileLoss::Categorical, weights, ..Default::default() };
        Reconciler::compile(&builder.build().unwrap(), &options).unwrap_err().to_string()
    };
    let mut open = GraphBuilder::new();
    open.hierarchy("a", "0", None).hierarchy("a", "1", None).hierarchy("b", "2", None);
    open.exclusion_rule(ExclusionRule::NoCommonDescendant, None);
    assert!(refused(&open, None).contains("may all be off"));
    open.one_of_leaves("leaf");
    let names = |graph: &RelationGraph| -> Vec<f64> {
        graph.ids().map(|id| if graph.name(id) == "2" { 2.0 } else { 1.0 }).collect()
    };
    let weights = names(&open.build().unwrap());
    assert!(refused(&open, Some(weights)).contains("same weight"));
    let mut uneven = GraphBuilder::new();
    uneven.hierarchy("a", "0", None).hierarchy("a", "1", None).hierarchy("0", "00", None);
    uneven.label("b");
    uneven.exclusion_rule(ExclusionRule::NoCommonDescendant, None).one_of_leaves("leaf");
    assert!(refused(&uneven, None).contains("has no label on the level"));
    let mut free = open.clone();
    free.label("free");
    free.build().unwrap();
    let reconciler = compile(&open.build().unwrap(), &[1.0; 5]);
    let error = reconciler.run(FinishedRows::Probabilities(&[0.5; 5])).unwrap_err().to_string();
    assert!(error.contains("sum to 1.5"), "{error}");
}
