//! Engines against each other and against a conic solver. `make theorem` runs 500 problems of each
//! class; `PHEX_THEOREM` says how many.

use phex::graph::RelationGraph;
use phex::reconcile::{FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciler};
use rayon::prelude::*;

use super::problems::{Class, logits, truths, weights};
use super::solver::{Distance, project};

/// How many problems of each class.
pub(super) fn problems() -> usize {
    std::env::var("PHEX_THEOREM").map_or(40, |text| text.parse().unwrap())
}

/// The solver gets slow with the number of states.
const STATES: usize = 300;

/// What one problem showed.
#[derive(Debug, Clone, Copy, Default)]
struct Distances {
    /// From the solver, if it vouches for its answer.
    solver: Option<f64>,
    /// The largest distance between two engines, and how many engines there were.
    engines: f64,
    count: usize,
    /// The largest gap that an engine reports.
    gap: f64,
}

fn run(graph: &RelationGraph, options: &ReconcileOptions, p: &[f64]) -> Option<(Vec<f64>, f64)> {
    let reconciler = Reconciler::compile(graph, options).ok()?;
    let rows = match options.loss {
        ReconcileLoss::Brier => FinishedRows::Probabilities(p),
        _ => FinishedRows::Logits(p),
    };
    let answer = reconciler.run(rows).unwrap();
    Some((answer.probabilities, answer.gap[0]))
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn problem(class: Class, weighted: bool, loss: ReconcileLoss, seed: u64) -> Option<Distances> {
    let graph = class.draw(seed);
    let states = truths(&graph);
    if states.len() > STATES {
        return None;
    }
    let n = graph.len();
    let scores = logits(n, 1, seed);
    let brier = loss == ReconcileLoss::Brier;
    let input: Vec<f64> = if brier {
        scores.iter().map(|&score| phex::numeric::sigmoid(score)).collect()
    } else {
        scores
    };
    let weights = weights(n, seed, weighted);
    let mut options = ReconcileOptions {
        loss,
        weights: weighted.then(|| weights.clone()),
        tolerance: 1e-11,
        ..ReconcileOptions::default()
    };
    let (auto, gap) = run(&graph, &options, &input)?;
    let mut found = Distances { gap, ..Distances::default() };
    let hull = Reconciler::compile(&graph, &options).unwrap().plan().is_hull();
    for engine in [
        ReconcileEngine::Pool,
        ReconcileEngine::Closure,
        ReconcileEngine::Family,
        ReconcileEngine::Newton,
    ] {
        options.engine = Some(engine);
        let Ok(reconciler) = Reconciler::compile(&graph, &options) else { continue };
        if reconciler.plan().is_hull() != hull {
            continue;
        }
        let Some((other, gap)) = run(&graph, &options, &input) else { continue };
        let distance = apart(&auto, &other);
        assert!(
            distance < 1e-8,
            "{class:?} seed {seed}, {engine}: {distance:e}\n{graph:?}\n{input:?}\n{auto:?}\n{other:?}"
        );
        found.engines = found.engines.max(distance);
        found.count += 1;
        found.gap = found.gap.max(gap);
    }
    if hull {
        let distance = if brier { Distance::Euclidean } else { Distance::Bernoulli };
        let solved = project(&states, &input, &weights, distance);
        found.solver = solved.map(|solved| apart(&auto, &solved));
    }
    Some(found)
}

/// Problems until the solver has vouched for as many as wanted.
fn compare(class: Class, weighted: bool, loss: ReconcileLoss) {
    let wanted = problems();
    let (mut solved, mut unsolved, mut engines) = (0, 0, 0);
    let (mut worst, mut between, mut gap): (f64, f64, f64) = (0.0, 0.0, 0.0);
    let mut seed = 0;
    while solved < wanted {
        assert!(seed < 40 * wanted as u64 + 400, "{class:?}: the solver solves too few problems");
        let found: Vec<(u64, Option<Distances>)> = (seed..seed + 20)
            .into_par_iter()
            .map(|seed| (seed, problem(class, weighted, loss, seed)))
            .collect();
        seed += 20;
        for (seed, distances) in found {
            let Some(distances) = distances else { continue };
            engines = engines.max(distances.count);
            between = between.max(distances.engines);
            gap = gap.max(distances.gap);
            match distances.solver {
                None => unsolved += 1,
                Some(distance) => {
                    solved += 1;
                    worst = worst.max(distance);
                    assert!(distance < 1e-6, "{class:?}, seed {seed}: {distance:e}");
                }
            }
        }
    }
    println!(
        "{class:?}{}, {loss:?}: {solved} problems solved ({unsolved} not), {worst:.1e} from the solver; \
         up to {engines} engines, {between:.1e} apart; gap {gap:.1e}",
        if weighted { ", weights" } else { "" }
    );
    assert!(gap < 1e-8, "{class:?}: {gap:e}");
}

#[test]
fn forests_agree_with_a_conic_solver() {
    for class in Class::FORESTS {
        compare(class, false, ReconcileLoss::Log);
    }
    compare(Class::Forest, true, ReconcileLoss::Log);
}

#[test]
fn orders_agree_with_a_conic_solver() {
    for weighted in [false, true] {
        compare(Class::Dag, weighted, ReconcileLoss::Log);
        compare(Class::Opposites, weighted, ReconcileLoss::Log);
    }
}

#[test]
fn brier_projections_agree_with_a_conic_solver() {
    for weighted in [false, true] {
        compare(Class::Forest, weighted, ReconcileLoss::Brier);
        compare(Class::Dag, weighted, ReconcileLoss::Brier);
    }
}
