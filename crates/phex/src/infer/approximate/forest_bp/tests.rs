//! Splits preserve the model, and answers are exact when no relation is left out.

use super::split::{Split, ViolationSource};
use crate::graph::{ExclusionRule, GraphBuilder, Strength};
use crate::infer::{Block, Engine, Method, Options, Trust, Want};
use crate::model::{Model, OneOfGroup, Relation};
use crate::testkit::RandomGraph;

/// The cost of a state according to the forest and the residual pairs.
fn cost(split: &Split, on: &[bool]) -> f64 {
    let bit = |label: usize| usize::from(on[label]);
    let forest = split.forest.relations().iter().map(|r| r.cost(|id| on[id.index()]));
    let residual = split.residual.iter().map(|pair| pair.costs[bit(pair.a)][bit(pair.b)]);
    forest.chain(residual).sum::<f64>()
        - split
            .forest
            .bias()
            .iter()
            .zip(on)
            .filter(|(_, on)| **on)
            .map(|(bias, _)| bias)
            .sum::<f64>()
}

#[test]
fn splits_assign_the_same_costs_as_the_model() {
    let mut states = 0;
    for seed in 0..400 {
        let graph = RandomGraph::any(2 + (seed % 8) as usize, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let Ok(split) = Split::new(&model) else { continue };
        for bits in 0u32..1 << model.len() {
            let on: Vec<bool> = (0..model.len()).map(|label| bits >> label & 1 == 1).collect();
            let one =
                |group: &OneOfGroup| group.labels.iter().filter(|id| on[id.index()]).count() == 1;
            if !model.one_of().iter().all(one) {
                continue;
            }
            let expected: f64 =
                model.relations().iter().map(|relation| relation.cost(|id| on[id.index()])).sum();
            let found = cost(&split, &on);
            let same = expected == found || (expected - found).abs() < 1e-9;
            assert!(same, "seed {seed} {on:?}: {expected} {found} {model:?} {split:?}");
            for (relation, sources) in model.relations().iter().zip(&split.sources) {
                let violated = |source: &ViolationSource| match *source {
                    ViolationSource::Forest(at) => {
                        split.forest.relations()[at].violations(|id| on[id.index()])
                    }
                    ViolationSource::Label(label) => f64::from(u8::from(on[label])),
                    ViolationSource::Residual { pair, child } => {
                        let pair = &split.residual[pair];
                        let both = f64::from(u8::from(on[pair.a] && on[pair.b]));
                        child.map_or(both, |child| f64::from(u8::from(on[child])) - both)
                    }
                };
                let found: f64 = sources.iter().map(violated).sum();
                let expected = relation.violations(|id| on[id.index()]);
                assert!((found - expected).abs() < 1e-9, "seed {seed}: {relation:?}");
            }
            states += 1;
        }
    }
    assert!(states > 5000, "{states}");
}

#[test]
fn bounds_hold_and_forests_are_exact() {
    let mut exact_rows = 0;
    for seed in 0..300u64 {
        let graph = RandomGraph::any(3 + (seed % 9) as usize, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let options = Options { method: Method::ForestBp, ..Options::default() };
        let Ok(engine) = Engine::compile(model.clone(), &options) else { continue };
        let brute = Options { method: Method::Brute, ..Options::default() };
        let brute = Engine::compile(model.clone(), &brute).expect("small");
        let n = model.len();
        let scores: Vec<f64> =
            (0..6 * n).map(|at| ((at * 37 + seed as usize * 11) % 17) as f64 / 4.0 - 2.0).collect();
        let block = Block::new(n, &scores);
        let want = Want { expectations: true, ..Want::default() };
        let (found, exact) =
            (engine.run(&block, want).expect("runs"), brute.run(&block, want).expect("runs"));
        let alone = !model.relations().iter().any(|r| matches!(r, Relation::Pair { .. }))
            && Split::new(&model).is_ok_and(|split| split.residual.is_empty());
        for row in 0..block.rows() {
            let Trust::Approximate(diagnosis) = found.trust[row] else { panic!("seed {seed}") };
            let z = exact.log_partition[row];
            let (low, high) = diagnosis.bounds.expect("bounds");
            assert!(low <= z + 1e-9 && z <= high + 1e-9, "seed {seed}: {low} {z} {high}");
            if alone {
                exact_rows += 1;
                assert!((found.log_partition[row] - z).abs() < 1e-9);
                for (p, e) in found.row(row).iter().zip(exact.row(row)) {
                    assert!((p - e).abs() < 1e-9, "seed {seed}: {p} {e}");
                }
            }
        }
    }
    assert!(exact_rows > 100, "{exact_rows}");
}

#[test]
fn a_loop_outside_the_forest_is_nearly_exact_when_weak() {
    let mut builder = GraphBuilder::new();
    let soft = Some(Strength::U(0.3));
    for (parent, child) in
        [("animal", "dog"), ("animal", "cat"), ("pet", "dog"), ("pet", "cat"), ("dog", "puppy")]
    {
        builder.hierarchy(parent, child, soft);
    }
    builder.exclusion_rule(ExclusionRule::Siblings, soft);
    let model = Model::new(&builder.build().expect("builds")).expect("model");
    let run = |method| {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(model.clone(), &options).expect("compiles");
        engine
            .run(&Block::<f64>::new(5, &[0.5, -1.0, 1.0, 0.2, 0.3]), Want::default())
            .expect("runs")
    };
    let (found, exact) = (run(Method::ForestBp), run(Method::Brute));
    for (p, e) in found.marginals.iter().zip(&exact.marginals) {
        assert!((p - e).abs() < 0.01, "{p} {e}");
    }
    assert!((found.log_partition[0] - exact.log_partition[0]).abs() < 0.02);
    let Trust::Approximate(diagnosis) = found.trust[0] else { panic!("approximate") };
    assert!(diagnosis.converged && diagnosis.effective_sample.is_some_and(|part| part > 0.5));
}
