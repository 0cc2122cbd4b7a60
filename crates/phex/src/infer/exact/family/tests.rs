//! Compares `family` with brute force on random forests.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Family;
use super::rows::{LanePass, infer_16};
use crate::graph::LabelId;
use crate::infer::exact::brute::Brute;
use crate::infer::pool::Pool;
use crate::infer::{Answers, Block, Budget, Evidence, Unfit};
use crate::model::{Model, OneOfGroup, Relation};
use crate::numeric::Scalar;

type Random = Xoshiro256PlusPlus;

/// Everything that an engine writes.
#[derive(Debug, Clone, PartialEq)]
struct Answered<T> {
    marginals: Vec<T>,
    log_partition: Vec<f64>,
    expectations: Vec<T>,
    error: Vec<f64>,
}

fn ask<T: Scalar>(
    block: &Block<'_, T>,
    relations: usize,
    wanted: bool,
    run: impl FnOnce(&Block<'_, T>, &mut Answers<'_, T>),
) -> Answered<T> {
    let rows = block.rows();
    let mut answered = Answered {
        marginals: vec![T::NAN; rows * block.labels()],
        log_partition: vec![f64::NAN; rows],
        expectations: vec![T::NAN; rows * relations],
        error: vec![f64::NAN; rows],
    };
    let mut answers = Answers {
        marginals: &mut answered.marginals,
        log_partition: &mut answered.log_partition,
        expectations: wanted.then_some(&mut answered.expectations),
        error: &mut answered.error,
        diagnosis: &mut [],
        standard_errors: None,
    };
    run(block, &mut answers);
    answered
}

fn cost(random: &mut Random, kind: usize) -> f64 {
    match (kind, random.random_range(0..6)) {
        (0, _) => f64::INFINITY,
        (1, 0) | (2, 0) => 0.0,
        (2, 1 | 2) => f64::INFINITY,
        (3, 0) => 150.0,
        (3, 1) => 2000.0,
        _ => random.random_range(0.0..6.0),
    }
}

/// A forest with counted sets among siblings, and one-of groups anywhere.
fn forest(random: &mut Random, n: usize, groups: usize) -> Model {
    let kind = random.random_range(0..4);
    let id = |label: usize| LabelId(label as u32);
    let mut order: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|at| order.swap(at, random.random_range(0..=at)));
    let mut relations = Vec::new();
    let mut families = vec![Vec::new(); n + 1];
    let uniform = random.random_bool(0.4).then(|| cost(random, kind));
    for at in 0..n {
        // Few parents, so that families are large.
        let parent = random.random_range(0..=at.min(4));
        if parent == at || random.random_bool(0.1) {
            families[n].push(order[at]);
        } else {
            let cost = uniform.unwrap_or_else(|| cost(random, kind));
            families[order[parent]].push(order[at]);
            let (parent, child) = (id(order[parent]), id(order[at]));
            relations.push(Relation::Hierarchy { parent, child, cost });
        }
    }
    for family in families {
        let mut rest: &[usize] = &family;
        while rest.len() >= 2 && random.random_bool(0.8) {
            let (set, others) = rest.split_at(random.random_range(2..=rest.len()));
            rest = others;
            let cost = cost(random, kind);
            let labels: Vec<LabelId> = set.iter().map(|&label| id(label)).collect();
            if let [a, b] = labels[..] {
                relations.push(Relation::Exclusion { a, b, cost });
            } else if random.random_bool(0.3) {
                for (at, &a) in labels.iter().enumerate() {
                    let pairs = labels[at + 1..].iter();
                    relations.extend(pairs.map(|&b| Relation::Exclusion { a, b, cost }));
                }
            } else {
                relations.push(Relation::Group { labels, cost });
            }
        }
    }
    let mut free: Vec<usize> = (0..n).collect();
    (1..n).rev().for_each(|at| free.swap(at, random.random_range(0..=at)));
    let mut one_of = Vec::new();
    for group in 0..groups {
        let size = random.random_range(1..=6).min(free.len());
        let mut labels: Vec<LabelId> = free.drain(..size).map(id).collect();
        labels.sort_unstable();
        if !labels.is_empty() {
            one_of.push(OneOfGroup { name: format!("group {group}"), labels });
        }
    }
    if one_of.len() == 2 && random.random_bool(0.1) {
        // A label in two groups.
        let shared = one_of[0].labels[0];
        one_of[1].labels.push(shared);
        one_of[1].labels.sort_unstable();
    }
    let names = (0..n).map(|label| format!("l{label}")).collect();
    let bias = (0..n).map(|_| f64::from(random.random_range(-2..=2))).collect();
    Model::from_parts(names, bias, 0.75, relations, one_of)
}

fn scores(random: &mut Random, many: usize) -> Vec<f64> {
    let scale = [1.0, 3.0, 50.0, 1e4][random.random_range(0..4)];
    (0..many).map(|_| f64::from(random.random_range(-scale..scale) as f32)).collect()
}

fn evidence(random: &mut Random, many: usize) -> Vec<Evidence> {
    let share = [0.0, 0.1, 0.5][random.random_range(0..3)];
    let draw = |random: &mut Random| match random.random_bool(share) {
        false => Evidence::Unknown,
        true if random.random_bool(0.5) => Evidence::On,
        true => Evidence::Off,
    };
    (0..many).map(|_| draw(random)).collect()
}

fn close<T: Scalar>(found: &[T], exact: &[T], tolerance: f64, what: &str) {
    for (at, (found, exact)) in found.iter().zip(exact).enumerate() {
        let (found, exact) = (found.to_f64(), exact.to_f64());
        let fine = found == exact || (found - exact).abs() <= tolerance * exact.abs().max(1.0);
        assert!(fine, "{what}: entry {at} is {found}, not {exact}");
    }
}

fn compare<T: Scalar>(model: &Model, scores: &[f64], known: &[Evidence], tolerance: f64, at: u64) {
    let scores: Vec<T> = scores.iter().map(|&score| T::from_f64(score)).collect();
    let block = Block::new(model.len(), &scores).with_evidence(known);
    let relations = model.relations().len();
    let family = Family::compile(model, None, &Budget::default()).expect("a forest");
    let exact = ask(&block, relations, true, |block, answers| {
        Brute::compile(model).expect("small").run(block, answers);
    });
    let mut found = ask(&block, relations, true, |b, answers| family.run(b, answers));
    let marginals = ask(&block, relations, false, |b, answers| family.run(b, answers));
    let what = format!("seed {at}");
    close(&marginals.marginals, &exact.marginals, tolerance, &format!("{what}, marginals"));
    close(&found.marginals, &exact.marginals, tolerance, &format!("{what}, marginals"));
    close(&found.expectations, &exact.expectations, tolerance, &format!("{what}, expectations"));
    found.log_partition.extend(marginals.log_partition);
    let twice = exact.log_partition.repeat(2);
    close(&found.log_partition, &twice, tolerance, &format!("{what}, log Z"));
    assert_eq!(found.error, vec![0.0; block.rows()]);
}

fn random_forests(seeds: std::ops::Range<u64>, groups: std::ops::RangeInclusive<usize>) {
    for seed in seeds {
        let mut random = Random::seed_from_u64(seed);
        let n = random.random_range(1..=12);
        let groups = random.random_range(groups.clone());
        let model = forest(&mut random, n, groups);
        let rows = random.random_range(1..4);
        let scores = scores(&mut random, rows * n);
        let known = evidence(&mut random, rows * n);
        compare::<f64>(&model, &scores, &known, 1e-9, seed);
        compare::<f32>(&model, &scores, &known, 1e-5, seed);
    }
}

#[test]
fn forests_agree_with_brute_force() {
    random_forests(0..1500, 0..=0);
}

#[test]
fn one_of_groups_agree_with_brute_force() {
    random_forests(10_000..11_000, 1..=1);
    random_forests(20_000..21_500, 2..=3);
}

#[test]
fn rows_do_not_depend_on_their_block() {
    let mut models = 0;
    for seed in 0..20 {
        let mut random = Random::seed_from_u64(seed);
        let model = forest(&mut random, 30, (seed % 3) as usize);
        let Ok(family) = Family::compile(&model, None, &Budget::default()) else { continue };
        let rows = 200;
        // Some rows leave the range of the fast recursion.
        let scores: Vec<f32> =
            (0..rows).flat_map(|_| scores(&mut random, 30)).map(|x| x as f32).collect();
        let relations = model.relations().len();
        let run = |scores: &[f32]| {
            let block = Block::new(30, scores);
            ask(&block, relations, true, |b, answers| family.run(b, answers))
        };
        let whole = run(&scores);
        for size in [1, 7] {
            let mut parts = Answered {
                marginals: vec![],
                log_partition: vec![],
                expectations: vec![],
                error: vec![],
            };
            for part in scores.chunks(size * 30) {
                let part = run(part);
                parts.marginals.extend(part.marginals);
                parts.log_partition.extend(part.log_partition);
                parts.expectations.extend(part.expectations);
                parts.error.extend(part.error);
            }
            assert_eq!(parts, whole, "seed {seed}, rows by {size}");
        }
        models += 1;
    }
    assert!(models > 10, "{models}");
}

/// A tree of the size of ImageNet: internal labels come first, and siblings exclude each other.
fn large(cost: f64, one_of: bool) -> Model {
    let mut random = Random::seed_from_u64(3);
    let (n, internal) = (1860, 860);
    let id = |label: usize| LabelId(label as u32);
    let mut families = vec![Vec::new(); n];
    let mut relations = Vec::new();
    for child in 1..n {
        let parent = random.random_range(0..child.min(internal));
        families[parent].push(id(child));
        relations.push(Relation::Hierarchy { parent: id(parent), child: id(child), cost });
    }
    let leaves = (0..n).filter(|&label| families[label].is_empty()).map(id).collect();
    let families = families.into_iter().filter(|family| family.len() > 1);
    relations.extend(families.map(|labels| match labels[..] {
        [a, b] => Relation::Exclusion { a, b, cost },
        _ => Relation::Group { labels, cost },
    }));
    let names = (0..n).map(|label| format!("l{label}")).collect();
    let group = OneOfGroup { name: "leaves".to_owned(), labels: leaves };
    let one_of = if one_of { vec![group] } else { vec![] };
    Model::from_parts(names, vec![0.0; n], 0.0, relations, one_of)
}

#[test]
fn large_trees_stay_in_the_linear_domain() {
    for (cost, one_of) in [(0.4, false), (2.0, true), (12.0, false), (f64::INFINITY, true)] {
        let model = large(cost, one_of);
        let n = model.len();
        let family = Family::compile(&model, None, &Budget::default()).expect("a forest");
        let mut random = Random::seed_from_u64(5);
        let scores: Vec<f64> = (0..8 * n).map(|_| random.random_range(-6.0..6.0)).collect();
        let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        let wide: Vec<f64> = narrow.iter().map(|&score| f64::from(score)).collect();
        let relations = model.relations().len();
        let block = Block::new(n, &wide);
        let exact = ask(&block, relations, true, |b, answers| family.run_log(b, answers, 0..8));
        let double = ask(&block, relations, true, |b, answers| family.run(b, answers));
        close(&double.marginals, &exact.marginals, 1e-11, "marginals in double precision");
        close(&double.expectations, &exact.expectations, 1e-11, "expectations");
        close(&double.log_partition, &exact.log_partition, 1e-12, "log Z");
        let plan = &family.main.plan;
        let weights = family.main.single.as_ref().expect("moderate weights");
        let mut kernel =
            LanePass::new(&family.scores, (plan, weights), None, false, &Pool::default());
        kernel.load(&Block::new(n, &narrow));
        infer_16(&mut kernel);
        let mut marginals = vec![0.0; 8 * n];
        kernel.store(&mut marginals);
        close(&marginals, &exact.marginals, 2e-6, "marginals in single precision");
        // Without the vector instructions of this machine, the result is the same to the bit.
        kernel.load(&Block::new(n, &narrow));
        kernel.infer();
        let mut plain = vec![0.0; 8 * n];
        kernel.store(&mut plain);
        assert_eq!(plain, marginals);
        for row in 0..8 {
            let (log_partition, _) =
                kernel.log_partition(row).expect("the log domain is not needed");
            close(&[log_partition], &exact.log_partition[row..=row], 1e-6, "log Z");
        }
    }
}

#[test]
fn a_cap_is_certified() {
    let mut certified = 0;
    for seed in 0..600 {
        let mut random = Random::seed_from_u64(seed);
        let n = random.random_range(4..=11);
        let groups = random.random_range(0..=2);
        let model = forest(&mut random, n, groups);
        let scores = scores(&mut random, 2 * n);
        let known = evidence(&mut random, 2 * n);
        let block = Block::new(n, &scores).with_evidence(&known);
        let relations = model.relations().len();
        let cap = random.random_range(1..=4);
        let family = Family::compile(&model, Some(cap), &Budget::default()).expect("a forest");
        let exact = ask(&block, relations, true, |block, answers| {
            Brute::compile(&model).expect("small").run(block, answers);
        });
        let found = ask(&block, relations, true, |b, answers| family.run(b, answers));
        for row in 0..2 {
            let error = found.error[row];
            assert!((0.0..=1.0).contains(&error), "seed {seed}: {error}");
            certified += usize::from(error > 0.0);
            let of_row = row * n..(row + 1) * n;
            for (a, b) in found.marginals[of_row.clone()].iter().zip(&exact.marginals[of_row]) {
                assert!((a - b).abs() <= error + 1e-9, "seed {seed}: {a}, not {b} by {error}");
            }
            let gap = exact.log_partition[row] - found.log_partition[row];
            let impossible = exact.log_partition[row] == f64::NEG_INFINITY;
            assert_eq!(found.log_partition[row] == f64::NEG_INFINITY, impossible, "seed {seed}");
            let slack = 1e-9 * exact.log_partition[row].abs().max(1.0);
            let held = gap >= -1e-7 && (gap <= slack - (-error).ln_1p() || error > 1.0 - 1e-9);
            assert!(impossible || held, "seed {seed}: gap {gap}, error {error}");
        }
    }
    assert!(certified > 100, "only {certified} rows were affected by a cap");
}

#[test]
fn groups_are_refused_only_when_many_are_open_at_once() {
    let pairs = |stride: usize| -> Model {
        // Groups {i, i + stride} of roots, either side by side or all interleaved.
        let n = 16;
        let first = (0..n).filter(|label| (label / stride).is_multiple_of(2));
        let labels = |label| vec![LabelId(label as u32), LabelId((label + stride) as u32)];
        let group = |label| OneOfGroup { name: format!("group {label}"), labels: labels(label) };
        let relations =
            vec![Relation::Group { labels: (0..n as u32).map(LabelId).collect(), cost: 1.0 }];
        let names = (0..n).map(|label| format!("l{label}")).collect();
        Model::from_parts(names, vec![0.0; n], 0.0, relations, first.map(group).collect())
    };
    let mut random = Random::seed_from_u64(0);
    for stride in [1, 2, 4, 8] {
        let model = pairs(stride);
        let scores: Vec<f64> = (0..16).map(|_| random.random_range(-2.0..2.0)).collect();
        compare::<f64>(&model, &scores, &[Evidence::Unknown; 16], 1e-10, stride as u64);
    }
    // Two chains of twelve labels. Each label is in a group with one of the other chain, so all
    // groups are open at the roots.
    let n = 24;
    let edge = |label: u32| Relation::Hierarchy {
        parent: LabelId(label - 1),
        child: LabelId(label),
        cost: 1.0,
    };
    let relations = (1..n).filter(|label| label % 12 != 0).map(edge).collect();
    let group = |label: u32| OneOfGroup {
        name: format!("group {label}"),
        labels: vec![LabelId(label), LabelId(label + 12)],
    };
    let names = (0..n).map(|label| format!("l{label}")).collect();
    let one_of = (0..12).map(group).collect();
    let model = Model::from_parts(names, vec![0.0; n as usize], 0.0, relations, one_of);
    let refused = Family::compile(&model, None, &Budget::default());
    assert!(matches!(refused, Err(Unfit::Budget { .. })), "{refused:?}");
}

#[test]
fn impossible_evidence_is_minus_infinity() {
    let id = LabelId;
    let labels = vec![id(0), id(1), id(2)];
    let relations = vec![Relation::Group { labels, cost: f64::INFINITY }];
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let model = Model::from_parts(names, vec![0.0; 3], 0.0, relations, vec![]);
    let family = Family::compile(&model, None, &Budget::default()).expect("a forest");
    let known = [Evidence::On, Evidence::On, Evidence::Unknown].repeat(2);
    let scores = [0.5f32, 0.0, 1.0, 3.0, -1e4, 2.0];
    let block = Block::new(3, &scores).with_evidence(&known);
    let found = ask(&block, 1, true, |b, answers| family.run(b, answers));
    assert_eq!(found.log_partition, vec![f64::NEG_INFINITY; 2]);
    assert!(found.marginals.iter().chain(&found.expectations).all(|x| x.is_finite()));
}

#[test]
fn refusals_name_the_labels_that_do_not_fit() {
    let id = LabelId;
    let edge =
        |parent, child| Relation::Hierarchy { parent: id(parent), child: id(child), cost: 1. };
    let pair = |a, b, cost| Relation::Exclusion { a: id(a), b: id(b), cost };
    let refusal = |relations: Vec<Relation>| {
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let model = Model::from_parts(names, vec![0.0; 4], 0.0, relations, vec![]);
        match Family::compile(&model, None, &Budget::default()) {
            Err(Unfit::Shape(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal(vec![edge(0, 2), edge(1, 2)]), "c has two parents, a and b");
    assert_eq!(refusal(vec![edge(0, 1), edge(1, 0)]), "a is on a cycle");
    let reason = refusal(vec![edge(0, 1), pair(1, 2, 1.0)]);
    assert_eq!(reason, "b excludes c, which has a different parent");
    let reason = refusal(vec![pair(0, 1, 1.0), pair(1, 2, 1.0)]);
    assert_eq!(reason, "a does not exclude c, unlike their siblings");
    let reason = refusal(vec![pair(0, 1, 1.0), pair(1, 2, 1.0), pair(0, 2, 2.0)]);
    assert_eq!(reason, "a excludes c at a different cost, unlike their siblings");
    let group = Relation::Group { labels: vec![id(1), id(2), id(3)], cost: 1.0 };
    let reason = refusal(vec![group, pair(0, 1, 1.0)]);
    assert_eq!(reason, "exclusion sets overlap among a, b, c, d");
}
