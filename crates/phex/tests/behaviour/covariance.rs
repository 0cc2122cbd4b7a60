//! The covariance of labels times a vector, against enumeration of all states.

use phex::graph::GraphBuilder;
use phex::infer::{Block, Engine, Evidence, Method, Options};
use phex::learn::covariance_product;
use phex::model::Model;
use phex::testkit::{Oracle, Random, RandomGraph};
use phex::{Error, graph::RelationGraph};

/// `Cov(x) g` of a row over the states that agree with the evidence; NaN if there is none.
fn brute(graph: &RelationGraph, scores: &[f64], known: &[Evidence], vector: &[f64]) -> Vec<f64> {
    let (oracle, n) = (Oracle::new(graph), graph.len());
    let on = |state: u32, label: usize| state >> label & 1 == 1;
    let agrees = |state: u32| {
        (0..n).all(|label| match known[label] {
            Evidence::Unknown => true,
            entry => on(state, label) == (entry == Evidence::On),
        })
    };
    let states: Vec<u32> = oracle.legal_states().into_iter().filter(|&s| agrees(s)).collect();
    let weights: Vec<f64> = states.iter().map(|&s| oracle.log_weight(s, scores).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mean = |value: &dyn Fn(u32) -> f64| -> f64 {
        states.iter().zip(&weights).map(|(&state, weight)| weight / total * value(state)).sum()
    };
    let along = |state: u32| -> f64 {
        (0..n).filter(|&label| on(state, label)).map(|label| vector[label]).sum()
    };
    let indicator = |state: u32, label: usize| f64::from(u8::from(on(state, label)));
    let mean_along = mean(&along);
    (0..n)
        .map(|label| {
            let product = mean(&|state| indicator(state, label) * along(state));
            let value = product - mean(&|state| indicator(state, label)) * mean_along;
            if total > 0.0 { value } else { f64::NAN }
        })
        .collect()
}

#[test]
fn every_exact_engine_agrees_with_enumeration() {
    let rows = 5;
    let (mut engines, mut clamped) = (0, 0);
    for seed in 0..60 {
        let graph = RandomGraph::any(3 + seed as usize % 8, seed).draw();
        let legal = Oracle::new(&graph).legal_states();
        if legal.is_empty() {
            continue;
        }
        let n = graph.len();
        let mut random = Random::new(seed + 7);
        let scores: Vec<f64> = (0..rows * n).map(|_| 1.5 * random.normal()).collect();
        // The last row has a vector of zeros, the one before it a large one.
        let size = [1.0, 1e-6, 1.0, 1e7, 0.0];
        let vectors: Vec<f64> = (0..rows * n).map(|at| size[at / n] * random.normal()).collect();
        // The first two rows know nothing, the others a little of a legal state.
        let known: Vec<Evidence> = (0..rows * n)
            .map(|at| {
                let state = legal[(at / n) % legal.len()];
                match (at / n >= 2 && random.next() < 0.25, state >> (at % n) & 1 == 1) {
                    (false, _) => Evidence::Unknown,
                    (true, true) => Evidence::On,
                    (true, false) => Evidence::Off,
                }
            })
            .collect();
        clamped += known.iter().filter(|&&entry| entry != Evidence::Unknown).count();
        for method in Method::exact() {
            let options = Options { method, ..Options::default() };
            let Ok(engine) = Engine::compile(Model::new(&graph).unwrap(), &options) else {
                continue;
            };
            if !engine.plan().exact {
                continue;
            }
            engines += 1;
            for evidence in [false, true] {
                let nothing = vec![Evidence::Unknown; rows * n];
                let known = if evidence { &known } else { &nothing };
                let block = Block::new(n, &scores);
                let block = if evidence { block.with_evidence(known) } else { block };
                let found = covariance_product(&engine, &block, &vectors).unwrap();
                for row in 0..rows {
                    let range = row * n..(row + 1) * n;
                    let vector = &vectors[range.clone()];
                    let expected = brute(&graph, block.row(row), &known[range.clone()], vector);
                    let most = vector.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
                    for (a, b) in found[range].iter().zip(&expected) {
                        let close = (a - b).abs() <= 2e-9 * most;
                        assert!(close, "{method} seed {seed} row {row}: {a} {b} of {most}");
                    }
                }
            }
        }
    }
    assert!(engines > 100 && clamped > 100, "{engines} {clamped}");
}

#[test]
fn singles_are_computed_in_doubles() {
    let graph = RandomGraph::any(7, 4).draw();
    let engine = Engine::compile(Model::new(&graph).unwrap(), &Options::default()).unwrap();
    let mut random = Random::new(2);
    // More rows than are moved at a time.
    let scores: Vec<f32> = (0..300 * 7).map(|_| random.normal() as f32).collect();
    let vectors: Vec<f32> = (0..300 * 7).map(|_| random.normal() as f32).collect();
    let narrow = covariance_product(&engine, &Block::new(7, &scores), &vectors).unwrap();
    let wide = |all: &[f32]| all.iter().copied().map(f64::from).collect::<Vec<f64>>();
    let (scores, vectors) = (wide(&scores), wide(&vectors));
    let expected = covariance_product(&engine, &Block::new(7, &scores), &vectors).unwrap();
    let rounded: Vec<f32> = expected.iter().map(|&value| value as f32).collect();
    assert_eq!(narrow, rounded);
}

#[test]
fn what_cannot_be_answered_is_an_error_or_not_a_number() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("dog", "puppy", None);
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let engine = Engine::compile(model.clone(), &Options::default()).unwrap();
    let run = |scores: &[f64], vectors: &[f64]| {
        covariance_product(&engine, &Block::new(2, scores), vectors)
    };
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    // A bad score, a bad vector, and a row that both leave alone.
    let found = run(&[nan, 0.0, 0.0, 0.0, 0.0, 0.0], &[1.0, 0.0, infinite, 0.0, 1.0, 0.0]).unwrap();
    assert!(found[..4].iter().all(|value| value.is_nan()), "{found:?}");
    // Nothing, a dog, a puppy: P(dog) = 2/3, so its variance is 2/9.
    assert!((found[4] - 2.0 / 9.0).abs() < 1e-9, "{found:?}");
    assert_eq!(run(&[nan, 0.0], &[0.0, 0.0]).unwrap(), [0.0, 0.0]);
    assert!(run(&[], &[]).unwrap().is_empty());
    let known = [Evidence::Off, Evidence::On];
    let impossible = Block::new(2, &[0.0, 0.0]).with_evidence(&known);
    let found = covariance_product(&engine, &impossible, &[1.0, 1.0]).unwrap();
    assert!(found.iter().all(|value: &f64| value.is_nan()), "{found:?}");

    assert!(matches!(run(&[0.0, 0.0], &[1.0]), Err(Error::Shape { expected: 2, found: 1, .. })));
    let columns = covariance_product(&engine, &Block::new(1, &[0.0]), &[0.0]);
    assert!(matches!(columns, Err(Error::Columns { expected: 2, found: 1 })));
    for method in [Method::Lbp, Method::Gibbs, Method::Anneal] {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(model.clone(), &options).unwrap();
        let refused = covariance_product(&engine, &Block::new(2, &[0.0, 0.0]), &[1.0, 1.0]);
        assert!(matches!(refused, Err(Error::NotExact { .. })), "{method}");
    }
}
