//! Compares `junction` with brute force, and tests shapes that are too large for brute force.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Junction;
use crate::graph::LabelId;
use crate::infer::exact::brute::Brute;
use crate::infer::{Answers, Block, Budget, Evidence, Kernel, Unfit};
use crate::model::{Model, OneOfGroup, Relation};
use crate::numeric::{Scalar, log_add};
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
        diagnosis: &mut [],
        standard_errors: None,
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
        assert!(a == b || close(a, b), "{what}, row {row}: log Z is {a}, not {b}");
        if b == f64::NEG_INFINITY {
            continue;
        }
        let n = model.len();
        for label in 0..n {
            let at = row * n + label;
            let (a, b) = (ours.marginals[at].to_f64(), truth.marginals[at].to_f64());
            assert!(close(a, b), "{what}, row {row}: marginal of {label} is {a}, not {b}");
        }
        let count = model.relations().len();
        for (relation, at) in (row * count..(row + 1) * count).enumerate() {
            let (a, b) = (ours.expectations[at].to_f64(), truth.expectations[at].to_f64());
            let relation = &model.relations()[relation];
            assert!(close(a, b), "{what}, row {row}: {relation:?} is {a}, not {b}");
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
        // Requests more sets than exist: the memory must depend on how many exist.
        if model.len() < 6 {
            let all = junction.best(block, row, usize::MAX).len();
            assert_eq!(all, brute.best(block, row, usize::MAX).len(), "{what}, row {row}");
        }
        assert_eq!(ours.len(), truth.len().min(8), "{what}, row {row}");
        for (rank, (a, b)) in ours.iter().zip(&truth).enumerate() {
            let close = |c: f64| (b.log_weight - c).abs() < 1e-9 * (1.0 + c.abs());
            assert!(close(a.log_weight), "{what}, row {row}: {a:?}, not {b:?}");
            let weight = model.log_weight(block.row(row), &a.on);
            assert!(close(weight), "{what}, row {row}: {a:?} weighs {weight}");
            let tied = |other: usize| truth.get(other).is_some_and(|t| close(t.log_weight));
            let alone = !tied(rank + 1) && (rank == 0 || !tied(rank - 1));
            if alone {
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
        if let Ok(model) = Model::new(&RandomGraph::any(labels, seed).draw())
            && model.dense().is_none()
        {
            check(&model, seed);
            seen += 1;
        }
    }
    assert!(seen >= 3000, "{seen} models");
}

/// A model with arbitrary pairs, groups, and one-of groups that may overlap.
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

/// Hierarchy edges `(parent, child)` and groups of labels, all with the same cost.
pub(super) fn plain(n: usize, edges: &[(usize, usize)], groups: &[Vec<usize>], cost: f64) -> Model {
    let id = |label: &usize| LabelId::from(*label);
    let edges = edges.iter().map(|(parent, child)| Relation::Hierarchy {
        parent: id(parent),
        child: id(child),
        cost,
    });
    let groups = groups
        .iter()
        .map(|labels| Relation::Group { labels: labels.iter().map(id).collect(), cost });
    let names = (0..n).map(|label| format!("l{label}")).collect();
    Model::from_parts(names, vec![0.0; n], 0.0, edges.chain(groups).collect(), Vec::new())
}

#[test]
fn samples_follow_the_distribution() {
    let mut random = Random::seed_from_u64(7);
    let mut sampled = 0;
    for seed in 0..20 {
        let model = random_model(&mut Random::seed_from_u64(seed), 5);
        let values = scores(&mut random, 5, 2.0);
        let block = Block::new(5, &values);
        let junction = compile(&model, seed);
        let Some(sampler) = junction.sampler(&block, 0) else {
            assert!(Brute::compile(&model).expect("small").best(&block, 0, 1).is_empty());
            continue;
        };
        let draws = 20_000;
        let mut counts = std::collections::HashMap::new();
        for _ in 0..draws {
            *counts.entry(sampler.draw(&mut || random.random::<f64>())).or_insert(0u32) += 1;
        }
        let mut log_partition = f64::NEG_INFINITY;
        let brute = Brute::compile(&model).expect("small");
        let all = brute.best(&block, 0, 32);
        for set in &all {
            log_partition = log_add(log_partition, set.log_weight);
        }
        for set in &all {
            let expected = (set.log_weight - log_partition).exp();
            let seen = f64::from(counts.remove(&set.on).unwrap_or(0)) / f64::from(draws);
            let noise = 5.0 * (expected / f64::from(draws)).sqrt() + 1e-3;
            assert!((seen - expected).abs() < noise, "{seen}, not {expected}");
        }
        assert!(counts.is_empty(), "only legal states are drawn");
        sampled += 1;
    }
    assert!(sampled >= 10, "{sampled}");
}

#[test]
fn rows_do_not_depend_on_their_batch() {
    let model = Model::new(&RandomGraph::any(12, 17).draw()).expect("a model");
    let junction = compile(&model, 0);
    let values: Vec<f32> = scores(&mut Random::seed_from_u64(3), 100 * 12, 30.0)
        .into_iter()
        .map(|value| value as f32)
        .collect();
    let all = Block::new(12, &values);
    let whole = output(&model, &all, |block, answers| junction.run(block, answers));
    for size in [1, 7] {
        for start in (0..100).step_by(size) {
            let part = all.slice(start..(start + size).min(100));
            let part_rows = part.rows();
            let ours = output(&model, &part, |block, answers| junction.run(block, answers));
            assert_eq!(ours.marginals, whole.marginals[start * 12..(start + part_rows) * 12]);
            assert_eq!(ours.log_partition, whole.log_partition[start..start + part_rows]);
            let count = model.relations().len();
            let part = &whole.expectations[start * count..(start + part_rows) * count];
            assert_eq!(ours.expectations, part);
        }
    }
}

#[test]
fn models_over_the_budget_are_refused() {
    // A grid of 40 × 40 soft pairs has width 40, which gives far too many states.
    let mut relations = Vec::new();
    for at in 0..1600usize {
        let costs = [[0.0, 1.0], [1.0, 0.0]];
        let a = LabelId::from(at);
        if at % 40 < 39 {
            relations.push(Relation::Pair { a, b: LabelId::from(at + 1), costs });
        }
        if at < 1560 {
            relations.push(Relation::Pair { a, b: LabelId::from(at + 40), costs });
        }
    }
    let names = (0..1600).map(|label| format!("l{label}")).collect();
    let model = Model::from_parts(names, vec![0.0; 1600], 0.0, relations, Vec::new());
    let budget = Budget { operations: 1e7, bytes: 1e8, ..Budget::default() };
    let refused = Junction::compile(&model, &budget, 2, 0);
    assert!(matches!(refused, Err(Unfit::Budget { .. })), "{refused:?}");
}

/// Fewer steps try fewer trees, all of which are exact, until they are too few for any.
#[test]
fn a_bounded_search_keeps_the_best_tree_so_far_and_says_so() {
    let (mut random, mut cut, mut refused) = (Random::seed_from_u64(9), 0, 0);
    for _ in 0..20 {
        let model = random_model(&mut random, 12);
        let at = |search: f64| {
            let budget = Budget { search, ..Budget::default() };
            Junction::compile(&model, &budget, 4, 0)
        };
        let values = scores(&mut random, model.len(), 2.0);
        let block = Block::new(model.len(), &values);
        let log_partition = |junction: &Junction| {
            output(&model, &block, |block, answers| junction.run(block, answers)).log_partition[0]
        };
        let whole = at(f64::INFINITY).expect("small models fit");
        assert_eq!(whole.detail(), None);
        let truth = log_partition(&whole);
        for search in [1e5, 3e4, 1e4, 3e3, 1e3] {
            match at(search) {
                Ok(part) => {
                    let found = log_partition(&part);
                    assert!(found == truth || (found - truth).abs() < 1e-9, "{found}, not {truth}");
                    match part.detail() {
                        None => assert_eq!(part.states(), whole.states()),
                        Some(words) => {
                            assert!(words.contains("ended after"), "{words}");
                            cut += 1;
                        }
                    }
                }
                Err(Unfit::Budget { needs }) => {
                    assert!(needs.contains("ended after"), "{needs}");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(cut > 0 && refused > 0, "{cut} cut short, {refused} refused");
}

/// Computes one pass over a chain by hand. `cost` is for a child that is on below a parent that is
/// off.
fn chain_log_partition(values: &[f64], cost: f64) -> f64 {
    // From the last label up: the log-weight of everything below, for this label off and on.
    let below = values.iter().rev().fold([0.0, 0.0], |[off, on], &score| {
        let child_on = on + score;
        [log_add(off, child_on - cost), log_add(off, child_on)]
    });
    below[1]
}

#[test]
fn long_chains_agree_with_a_recursion_by_hand() {
    let n = 2000;
    let edges: Vec<(usize, usize)> = (1..n).map(|label| (label - 1, label)).collect();
    let mut random = Random::seed_from_u64(5);
    for cost in [f64::INFINITY, 2.0] {
        let model = plain(n, &edges, &[], cost);
        let junction = compile(&model, 0);
        for spread in [1.0, 100.0] {
            let mut values = scores(&mut random, n, spread);
            // The score of the root forces it on. The chain below it is as computed by hand.
            values[0] = 1e5;
            let truth = chain_log_partition(&values[1..], cost) + 1e5;
            let block = Block::new(n, &values);
            let ours = output(&model, &block, |block, answers| junction.run(block, answers));
            let found = ours.log_partition[0];
            assert!((found - truth).abs() < 1e-9 * truth.abs(), "{found}, not {truth}");
            // The same in single precision, where products underflow first.
            let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            let back: Vec<f64> = single.iter().map(|&value| f64::from(value)).collect();
            let block = Block::new(n, &back);
            let truth = output(&model, &block, |block, answers| junction.run(block, answers));
            let block = Block::new(n, &single);
            let ours = output(&model, &block, |block, answers| junction.run(block, answers));
            for (a, b) in ours.marginals.iter().zip(&truth.marginals) {
                assert!((f64::from(*a) - b).abs() < 2e-4, "{a}, not {b}");
            }
        }
    }
}

#[test]
fn stars_and_large_families_agree_with_a_polynomial_by_hand() {
    let n = 301;
    let edges: Vec<(usize, usize)> = (1..n).map(|label| (0, label)).collect();
    let mut random = Random::seed_from_u64(6);
    let values = scores(&mut random, n, 20.0);
    let block = Block::new(n, &values);
    let family = vec![(1..n).collect::<Vec<usize>>()];
    for cost in [0.7, f64::INFINITY] {
        for groups in [&[][..], &family] {
            let model = plain(n, &edges, groups, cost);
            let junction = compile(&model, 0);
            let ours = output(&model, &block, |block, answers| junction.run(block, answers));
            // By hand: a polynomial in the number of children that are on, in logarithms.
            let pay = |times: f64, cost: f64| if times == 0.0 { 0.0 } else { times * cost };
            let inner = |off: f64| {
                let mut count = vec![f64::NEG_INFINITY; n];
                count[0] = 0.0;
                for &score in &values[1..] {
                    for m in (1..n).rev() {
                        let each = if groups.is_empty() { 0.0 } else { pay((m - 1) as f64, cost) };
                        count[m] = log_add(count[m], count[m - 1] + score - each - pay(off, cost));
                    }
                }
                count.into_iter().fold(f64::NEG_INFINITY, log_add)
            };
            let truth = log_add(inner(1.0), values[0] + inner(0.0));
            let found = ours.log_partition[0];
            assert!((found - truth).abs() < 1e-9 * truth.abs(), "{found}, not {truth}");
            let best = junction.best(&block, 0, 3);
            assert!(best[0].log_weight <= found && best[0].log_weight >= best[1].log_weight);
        }
    }
}
