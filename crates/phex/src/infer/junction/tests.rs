//! Against brute force, and on shapes too large for it.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::brute::Brute;
use super::super::{Answers, Block, Budget, Evidence, Scalar, Unfit};
use super::Junction;
use crate::graph::LabelId;
use crate::model::{Model, OneOfGroup, Relation};
use crate::testkit::RandomGraph;

type Random = Xoshiro256PlusPlus;

struct Output<T> {
    marginals: Vec<T>,
    log_partition: Vec<f64>,
    expectations: Vec<T>,
}

fn output<T: Scalar>(
    model: &Model,
    block: &Block<'_, T>,
    run: impl FnOnce(&Block<'_, T>, &mut Answers<'_, T>),
) -> Output<T> {
    let rows = block.rows();
    let mut output = Output {
        marginals: vec![T::NAN; rows * model.len()],
        log_partition: vec![f64::NAN; rows],
        expectations: vec![T::NAN; rows * model.relations().len()],
    };
    let mut error = vec![f64::NAN; rows];
    let mut answers = Answers {
        marginals: &mut output.marginals,
        log_partition: &mut output.log_partition,
        expectations: Some(&mut output.expectations),
        error: &mut error,
    };
    run(block, &mut answers);
    assert!(error.iter().all(|&error| error == 0.0));
    output
}

fn scores(random: &mut Random, count: usize, spread: f64) -> Vec<f64> {
    (0..count).map(|_| random.random_range(-spread..spread)).collect()
}

fn evidence(random: &mut Random, count: usize) -> Vec<Evidence> {
    let draw = |_| match random.random_range(0..10) {
        0 => Evidence::On,
        1 => Evidence::Off,
        _ => Evidence::Unknown,
    };
    (0..count).map(draw).collect()
}

fn compile(model: &Model, seed: u64) -> Junction {
    Junction::compile(model, &Budget::default(), 2, seed).expect("small models fit")
}

fn compare<T: Scalar>(
    model: &Model,
    junction: &Junction,
    brute: &Brute,
    block: &Block<'_, T>,
    tolerance: f64,
    what: &str,
) {
    let ours = output(model, block, |block, answers| junction.run(block, answers));
    let truth = output(model, block, |block, answers| brute.run(block, answers));
    let close = |a: f64, b: f64| (a - b).abs() <= tolerance * (1.0 + b.abs());
    for row in 0..block.rows() {
        let (a, b) = (ours.log_partition[row], truth.log_partition[row]);
        assert!(a == b || close(a, b), "{what}, row {row}: log Z {a} for {b}");
        if b == f64::NEG_INFINITY {
            continue;
        }
        let n = model.len();
        for label in 0..n {
            let at = row * n + label;
            let (a, b) = (ours.marginals[at].to_f64(), truth.marginals[at].to_f64());
            assert!(close(a, b), "{what}, row {row}: marginal of {label} is {a} for {b}");
        }
        let count = model.relations().len();
        for (relation, at) in (row * count..(row + 1) * count).enumerate() {
            let (a, b) = (ours.expectations[at].to_f64(), truth.expectations[at].to_f64());
            let relation = &model.relations()[relation];
            assert!(close(a, b), "{what}, row {row}: {relation:?} is {a} for {b}");
        }
    }
}

fn check(model: &Model, seed: u64) {
    let mut random = Random::seed_from_u64(seed);
    let brute = Brute::compile(model).expect("small");
    let junction = compile(model, seed);
    let spread = [1.0, 3.0, 10.0, 50.0, 1e4][(seed % 5) as usize];
    let n = model.len();
    let rows = 5;
    let values = scores(&mut random, rows * n, spread);
    let known = evidence(&mut random, rows * n);
    let what = format!("seed {seed}");
    let block = Block::new(n, &values);
    compare(model, &junction, &brute, &block, 1e-9, &what);
    compare(model, &junction, &brute, &block.with_evidence(&known), 1e-9, &what);
    let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let block = Block::new(n, &single);
    compare(model, &junction, &brute, &block, 1e-5, &what);
    compare(model, &junction, &brute, &block.with_evidence(&known), 1e-5, &what);
    best(model, &junction, &brute, &Block::new(n, &values).with_evidence(&known), &what);
}

fn best(model: &Model, junction: &Junction, brute: &Brute, block: &Block<'_, f64>, what: &str) {
    for row in 0..block.rows() {
        let ours = junction.best(block, row, 8);
        let truth = brute.best(block, row, 9);
        assert_eq!(ours.len(), truth.len().min(8), "{what}, row {row}");
        for (rank, (a, b)) in ours.iter().zip(&truth).enumerate() {
            let close = |c: f64| (b.log_weight - c).abs() < 1e-9 * (1.0 + c.abs());
            assert!(close(a.log_weight), "{what}, row {row}: {a:?} for {b:?}");
            let weight = model.log_weight(block.row(row), &a.on);
            assert!(close(weight), "{what}, row {row}: {a:?} weighs {weight}");
            let tied = |other: usize| truth.get(other).is_some_and(|t| close(t.log_weight));
            if !tied(rank + 1) && !(rank > 0 && tied(rank - 1)) {
                assert_eq!(a.on, b.on, "{what}, row {row}");
            }
        }
        let mut sets: Vec<&Vec<bool>> = ours.iter().map(|set| &set.on).collect();
        sets.sort();
        sets.dedup();
        assert_eq!(sets.len(), ours.len(), "{what}: distinct");
    }
}

#[test]
fn random_graphs_agree_with_brute_force() {
    let mut seen = 0;
    for seed in 0..3500 {
        let labels = 1 + (seed % 12) as usize;
        if let Ok(model) = Model::new(&RandomGraph::any(labels, seed).draw()) {
            if model.dense().is_none() {
                check(&model, seed);
                seen += 1;
            }
        }
    }
    assert!(seen >= 3000, "{seen} models");
}

/// A model of pairs with any costs, groups, and one-of groups that may overlap.
fn random_model(random: &mut Random, n: usize) -> Model {
    let cost = |random: &mut Random| match random.random_range(0..6) {
        0 => f64::INFINITY,
        1 | 2 => 0.0,
        3 => 1.5,
        _ => random.random_range(-3.0..3.0),
    };
    let mut relations = Vec::new();
    for _ in 0..random.random_range(0..2 * n) {
        let mut label = || LabelId::from(random.random_range(0..n));
        let (a, b) = (label(), label());
        let relation = match random.random_range(0..4) {
            0 => Relation::Exclusion { a, b, cost: [1.5, 2.5, 0.0][random.random_range(0..3)] },
            1 => Relation::Hierarchy { parent: a, child: b, cost: cost(random).abs() },
            2 => {
                let mut labels: Vec<LabelId> = (0..n).map(LabelId::from).collect();
                labels.retain(|_| random.random_bool(0.5));
                if labels.len() < 3 {
                    continue;
                }
                Relation::Group { labels, cost: cost(random).abs() }
            }
            _ => Relation::Pair {
                a,
                b,
                costs: [[cost(random), cost(random)], [cost(random), cost(random)]],
            },
        };
        relations.push(relation);
    }
    let mut one_of = Vec::new();
    for group in 0..random.random_range(0..3) {
        let mut labels: Vec<LabelId> = (0..n).map(LabelId::from).collect();
        labels.retain(|_| random.random_bool(0.4));
        if !labels.is_empty() {
            one_of.push(OneOfGroup { name: format!("group {group}"), labels });
        }
    }
    let names = (0..n).map(|label| format!("l{label}")).collect();
    let bias = scores(random, n, 2.0);
    Model::from_parts(names, bias, random.random_range(-5.0..5.0), relations, one_of)
}

#[test]
fn random_models_of_pairs_agree_with_brute_force() {
    for seed in 0..1500 {
        let mut random = Random::seed_from_u64(seed);
        let n = random.random_range(1..=10);
        check(&random_model(&mut random, n), seed);
    }
}
