//! The theorem: for every legal truth the loss falls by at least the reported gain. `make
//! theorem` runs a million triples of a graph, a row and a truth; `PHEX_TRIPLES` says how many.

use std::collections::BTreeMap;

use phex::graph::RelationGraph;
use phex::infer::Number;
use phex::reconcile::{
    FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciled, Reconciler,
};
use rayon::prelude::*;

use super::problems::{Class, brier, log_loss, logits, truths, violation, wanted, weights};

const ROWS: usize = 16;

/// What the triples of some graphs showed.
#[derive(Debug, Default, Clone)]
struct Tally {
    triples: usize,
    rows: usize,
    unchanged: usize,
    gave_up: usize,
    /// The largest amount by which a loss exceeds what the gain promises, relative to 1 + loss.
    excess: f64,
    /// The smallest gain, and how many gains are below 0.
    least: f64,
    negative: usize,
    /// The largest violation of an inequality, and of an equation.
    violation: [f64; 2],
    passes: u32,
    wrong: Vec<String>,
}

impl Tally {
    fn and(mut self, other: Tally) -> Tally {
        self.triples += other.triples;
        self.rows += other.rows;
        self.unchanged += other.unchanged;
        self.gave_up += other.gave_up;
        self.excess = self.excess.max(other.excess);
        self.least = self.least.min(other.least);
        self.negative += other.negative;
        for (most, other) in self.violation.iter_mut().zip(other.violation) {
            *most = most.max(other);
        }
        self.passes = self.passes.max(other.passes);
        self.wrong.extend(other.wrong);
        self
    }
}

fn wide<T: Number>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}

/// Every row against every legal truth.
fn check<T: Number>(
    graph: &RelationGraph,
    truths: &[Vec<bool>],
    input: &[T],
    output: &Reconciled<T>,
    options: &ReconcileOptions,
    epsilon: f64,
) -> Tally {
    let n = graph.len();
    let weights = options.weights.as_deref();
    let loss = |truth: &[bool], p: &[f64]| match options.loss {
        ReconcileLoss::Brier => brier(truth, p, weights),
        _ => log_loss(truth, p, weights),
    };
    let mut tally = Tally::default();
    for row in 0..output.rows() {
        let (p, q) = (wide(&input[row * n..(row + 1) * n]), wide(output.row(row)));
        let gain = output.gain[row];
        tally.rows += 1;
        tally.least = tally.least.min(gain);
        tally.negative += usize::from(gain < 0.0);
        tally.passes = tally.passes.max(output.passes[row]);
        tally.unchanged += usize::from(output.is_unchanged(row));
        let gave_up = matches!(output.trust[row], phex::infer::Trust::Approximate(_));
        tally.gave_up += usize::from(gave_up);
        // Probabilities of logits are within rounding; other tests compare bits.
        let moved = p.iter().zip(&q).any(|(p, q)| (p - q).abs() > 1e-15);
        if output.is_unchanged(row) && moved {
            tally.wrong.push(format!("row {row} is changed, but says it is not"));
        }
        if !gave_up {
            let found = violation(graph, truths, &q);
            // Inequalities hold to the last bit, in single precision too.
            let rounding = if epsilon > 1e-6 { 1e-5 } else { 1e-13 };
            if found[0] > 1e-13 || found[1] > rounding {
                tally.wrong.push(format!("{graph:?}\n  row {row} {p:?}\n  -> {q:?}: {found:?}"));
            }
            for (most, off) in tally.violation.iter_mut().zip(found) {
                *most = most.max(off);
            }
        }
        for truth in truths {
            let (before, after) = (loss(truth, &p), loss(truth, &q));
            tally.triples += 1;
            let excess = (after - (before - gain)) / (1.0 + before);
            tally.excess = tally.excess.max(excess);
            if excess.is_nan() || excess > 1e-9 {
                tally.wrong.push(format!(
                    "{graph:?}\n  row {row} {p:?}\n  -> {q:?}\n  truth {truth:?}: {before} -> {after}, gain {gain}"
                ));
            }
        }
        if gain < -epsilon {
            tally.wrong.push(format!("{graph:?}\n  row {row} {p:?}\n  -> {q:?}: gain {gain}"));
        }
    }
    tally
}

/// One graph in both number types, complete and stopped.
fn graph_of(case: Case, seed: u64) -> [Tally; 2] {
    let Case { class, weighted, loss, engine } = case;
    let graph = class.draw(seed);
    let truths = truths(&graph);
    let n = graph.len();
    let scores = logits(n, ROWS, seed);
    let double: Vec<f64> = scores.iter().map(|&score| phex::numeric::sigmoid(score)).collect();
    let single: Vec<f32> = double.iter().map(|&p| p as f32).collect();
    let weights = weighted.then(|| weights(n, seed, true));
    let mut tallies = [Tally::default(), Tally::default()];
    for passes in [200, 1, 2, 3] {
        let weights = weights.clone();
        let options =
            ReconcileOptions { passes, weights, loss, engine, ..ReconcileOptions::default() };
        let reconciler = match Reconciler::compile(&graph, &options) {
            // Every exclusion may be implied by a label that is never on.
            Err(phex::Error::NoRelations) => continue,
            other => other.unwrap(),
        };
        let parts = &reconciler.plan().parts;
        assert!(parts.iter().all(|part| engine.is_none_or(|engine| engine == part.engine)));
        let got = reconciler.run(FinishedRows::Probabilities(&double)).unwrap();
        let narrow = reconciler.run(FinishedRows::Probabilities(&single)).unwrap();
        let mut wide = check(&graph, &truths, &double, &got, &options, 1e-9);
        if loss == ReconcileLoss::Log {
            let got = reconciler.run(FinishedRows::Logits(&scores)).unwrap();
            wide = wide.and(check(&graph, &truths, &double, &got, &options, 1e-9));
        }
        let [a, b] = tallies;
        tallies = [a.and(wide), b.and(check(&graph, &truths, &single, &narrow, &options, 2e-5))];
    }
    tallies
}

/// What is checked: a class of graphs, with label weights or without, and a loss.
#[derive(Debug, Clone, Copy)]
struct Case {
    class: Class,
    weighted: bool,
    loss: ReconcileLoss,
    /// The engine, or the one that the graph gets.
    engine: Option<ReconcileEngine>,
}

impl Case {
    const fn new(class: Class) -> Case {
        Case { class, weighted: false, loss: ReconcileLoss::Log, engine: None }
    }

    const fn weighted(self) -> Case {
        Case { weighted: true, ..self }
    }

    const fn brier(self) -> Case {
        Case { loss: ReconcileLoss::Brier, ..self }
    }

    const fn by(self, engine: ReconcileEngine) -> Case {
        Case { engine: Some(engine), ..self }
    }
}

fn run(cases: &[Case]) {
    // Small graphs have many states, so that a few of them would fill the count.
    let (triples, graphs) = (wanted() / 10, wanted() as u64 / 2000);
    for &case in cases {
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        let mut seed = 0;
        while tallies.values().map(|tally| tally.triples).sum::<usize>() < triples || seed < graphs
        {
            let found: Vec<[Tally; 2]> =
                (seed..seed + 50).into_par_iter().map(|s| graph_of(case, s)).collect();
            seed += 50;
            for [double, single] in found {
                for (name, tally) in [("f64", double), ("f32", single)] {
                    let before = tallies.remove(name).unwrap_or_default();
                    tallies.insert(name, before.and(tally));
                }
            }
        }
        for (name, tally) in &tallies {
            println!(
                "{case:?} {name}: {} graphs, {} triples, {} rows ({} unchanged, {} given up), \
                 excess {:.1e}, least gain {:.1e} ({} below 0), violation {:.1e} and {:.1e}, passes {}, wrong {}",
                seed,
                tally.triples,
                tally.rows,
                tally.unchanged,
                tally.gave_up,
                tally.excess,
                tally.least,
                tally.negative,
                tally.violation[0],
                tally.violation[1],
                tally.passes,
                tally.wrong.len()
            );
        }
        for (name, tally) in &tallies {
            let first: Vec<&str> = tally.wrong.iter().take(3).map(String::as_str).collect();
            assert!(tally.wrong.is_empty(), "{case:?} {name}: {}", first.join("\n"));
            assert_eq!(tally.gave_up, 0, "{case:?} {name}");
        }
    }
}

#[test]
fn no_forest_row_is_worse_for_any_legal_truth() {
    let forest = Case::new(Class::Forest);
    run(&Class::FORESTS.map(Case::new));
    run(&[forest.weighted(), forest.brier(), forest.brier().weighted()]);
}

#[test]
fn no_row_of_an_order_is_worse_for_any_legal_truth() {
    let (dag, pairs) = (Case::new(Class::Dag), Case::new(Class::Opposites));
    run(&[dag, dag.weighted(), dag.brier(), dag.brier().weighted(), pairs, pairs.weighted()]);
    run(&[Case::new(Class::Pairs).by(ReconcileEngine::Closure)]);
}

#[test]
fn no_row_of_any_hard_relations_is_worse_for_any_legal_truth() {
    let general = Case::new(Class::General);
    run(&[general, general.weighted()]);
    // Weights, and what `family` does otherwise.
    for class in [Class::Groups, Class::Leaves, Class::Mixed] {
        run(&[Case::new(class).weighted(), Case::new(class).by(ReconcileEngine::Newton)]);
    }
}
