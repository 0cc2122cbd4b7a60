//! Engines against each other and against a conic solver. `make theorem` runs 500 problems of each
//! class; `PHEX_THEOREM` says how many.

use phex::graph::RelationGraph;
use phex::reconcile::{
    FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciler, SumLimit,
};
use rayon::prelude::*;

use super::problems::{Class, logits, priced_truths, truths, weights};
use super::solver::{Distance, Polytope, Target, constants, project, project_into};

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
        let everywhere = reconciler.plan().parts.iter().all(|part| part.engine == engine);
        if !everywhere || reconciler.plan().is_hull() != hull {
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
        let solved = project(&states, Target { input: &input, weights: &weights, distance });
        found.solver = solved.map(|solved| apart(&auto, &solved));
    }
    Some(found)
}

/// The polytope of inequalities, with an unknown for each violation of a soft one.
fn polytope(labels: usize, limits: &[SumLimit]) -> Polytope {
    let mut polytope = Polytope::default();
    for limit in limits {
        let members = limit.members.iter().map(|label| (label.index(), 1.0));
        let above = limit.above.iter().map(|label| (label.index(), -1.0));
        let terms: Vec<(usize, f64)> = members.chain(above).collect();
        let base = if limit.above.is_none() { 1.0 } else { 0.0 };
        if limit.equal {
            polytope.equations.push((terms, base));
        } else if limit.cost == f64::INFINITY {
            polytope.inequalities.push((terms, base));
        } else {
            let segments = if limit.above.is_none() { limit.members.len() - 1 } else { 1 };
            for segment in 0..segments {
                let violation = labels + polytope.costs.len();
                polytope.costs.push(limit.cost);
                let terms = terms.iter().copied().chain([(violation, -1.0)]).collect();
                polytope.inequalities.push((terms, base + segment as f64));
            }
        }
    }
    polytope
}

/// An engine against the solver, with the engine's own inequalities.
fn relaxed(
    class: Class,
    weighted: bool,
    engine: Option<ReconcileEngine>,
    seed: u64,
) -> Option<Distances> {
    let graph = class.draw(seed);
    let n = graph.len();
    let input = logits(n, 1, seed);
    let weights = weights(n, seed, weighted);
    let options = ReconcileOptions {
        weights: weighted.then(|| weights.clone()),
        tolerance: 1e-11,
        engine,
        ..ReconcileOptions::default()
    };
    let reconciler = match Reconciler::compile(&graph, &options) {
        Err(phex::Error::NoRelations) => return None,
        other => other.unwrap(),
    };
    let answer = reconciler.run(FinishedRows::Logits(&input)).unwrap();
    let states: Vec<Vec<bool>> =
        priced_truths(&graph).into_iter().map(|(state, _)| state).collect();
    let constant = constants(&states);
    let target = Target { input: &input, weights: &weights, distance: Distance::Bernoulli };
    let solved = project_into(&polytope(n, &reconciler.limits()), &constant, target);
    let solver = solved.map(|solved| {
        let labels = (0..n).filter(|&label| constant[label].is_none());
        labels.map(|label| (solved[label] - answer.row(0)[label]).abs()).fold(0.0, f64::max)
    });
    // Probabilities near 1 have few digits of what is missing to 1, and a truth without the label pays for them.
    let costs = answer.row(0).iter().zip(&weights).filter(|(q, _)| **q < 1.0);
    let rounding: f64 = costs.map(|(q, w)| w * 2.0 * f64::EPSILON / (1.0 - q)).sum();
    let gap = answer.gap[0] - rounding;
    Some(Distances { solver, count: 1, gap, ..Distances::default() })
}

/// Problems until the solver has vouched for as many as wanted.
///
/// Newton's method stops where rounding keeps the residual from falling, and large multipliers scale what is left in
/// the gap. So the gap is bounded less tightly than the distance from the solver.
fn compare(what: &str, problem: impl Fn(u64) -> Option<Distances> + Sync) {
    let wanted = problems();
    let (mut solved, mut unsolved, mut engines) = (0, 0, 0);
    let (mut worst, mut between, mut gap): (f64, f64, f64) = (0.0, 0.0, 0.0);
    let (mut seed, mut widest) = (0, 0);
    while solved < wanted {
        assert!(seed < 40 * wanted as u64 + 400, "{what}: the solver solves too few problems");
        let found: Vec<(u64, Option<Distances>)> =
            (seed..seed + 20).into_par_iter().map(|seed| (seed, problem(seed))).collect();
        seed += 20;
        for (seed, distances) in found {
            let Some(distances) = distances else { continue };
            engines = engines.max(distances.count);
            between = between.max(distances.engines);
            if distances.gap > gap {
                (gap, widest) = (distances.gap, seed);
            }
            match distances.solver {
                None => unsolved += 1,
                Some(distance) => {
                    solved += 1;
                    worst = worst.max(distance);
                    assert!(distance < 1e-6, "{what}, seed {seed}: {distance:e}");
                }
            }
        }
    }
    println!(
        "{what}: {solved} problems solved ({unsolved} not), {worst:.1e} from the solver; up to \
         {engines} engines, {between:.1e} apart; gap {gap:.1e}"
    );
    assert!(gap < 1e-6, "{what}, seed {widest}: gap {gap:e}");
}

/// All engines that describe the hull, against each other and the solver.
fn compare_hull(class: Class, weighted: bool, loss: ReconcileLoss) {
    let weights = if weighted { ", weights" } else { "" };
    compare(&format!("{class:?}{weights}, {loss:?}"), |seed| problem(class, weighted, loss, seed));
}

/// An engine against the solver, with the engine's own inequalities.
fn compare_relaxed(class: Class, weighted: bool, engine: Option<ReconcileEngine>) {
    let weights = if weighted { ", weights" } else { "" };
    compare(&format!("{class:?}{weights}, {engine:?} and its inequalities"), |seed| {
        relaxed(class, weighted, engine, seed)
    });
}

#[test]
fn forests_agree_with_a_conic_solver() {
    for class in Class::FORESTS {
        compare_hull(class, false, ReconcileLoss::Log);
    }
    compare_hull(Class::Forest, true, ReconcileLoss::Log);
}

#[test]
fn orders_agree_with_a_conic_solver() {
    for weighted in [false, true] {
        compare_hull(Class::Dag, weighted, ReconcileLoss::Log);
        compare_hull(Class::Opposites, weighted, ReconcileLoss::Log);
    }
}

#[test]
fn brier_projections_agree_with_a_conic_solver() {
    for weighted in [false, true] {
        compare_hull(Class::Forest, weighted, ReconcileLoss::Brier);
        compare_hull(Class::Dag, weighted, ReconcileLoss::Brier);
    }
}

#[test]
fn any_relations_agree_with_a_conic_solver() {
    for weighted in [false, true] {
        compare_relaxed(Class::General, weighted, None);
        compare_relaxed(Class::Soft, weighted, None);
        compare_relaxed(Class::Groups, weighted, Some(ReconcileEngine::Newton));
        compare_relaxed(Class::Mixed, weighted, Some(ReconcileEngine::Newton));
        compare_relaxed(Class::Pairs, weighted, Some(ReconcileEngine::Closure));
    }
}
