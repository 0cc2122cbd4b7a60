//! `paths` on hard forests, against brute force and the other exact engines, and how `auto` chooses.

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::model::Model;
use phex::testkit::Random;

fn compile(model: &Model, method: Method) -> Engine {
    Engine::compile(model.clone(), &Options { method, ..Options::default() }).unwrap()
}

/// A random hard forest. The children of a label, and the roots, exclude each other in up to
/// `sets` sets; one leaf is on if `one_leaf`.
fn forest(random: &mut Random, labels: usize, sets: usize, one_leaf: bool) -> Model {
    let mut builder = GraphBuilder::new();
    let mut families: Vec<Vec<String>> = vec![Vec::new(); labels + 1];
    builder.label("l0");
    families[0].push("l0".to_owned());
    for label in 1..labels {
        let name = format!("l{label}");
        // The second is below the first, so that there are leaves.
        let above = if label == 1 { 1 } else { random.below(label + 1) };
        builder.label(&name);
        if above > 0 {
            builder.hierarchy(&format!("l{}", above - 1), &name, Some(Strength::Hard));
        }
        families[above].push(name);
    }
    for family in families {
        let mut parts = vec![Vec::new(); sets];
        family.iter().for_each(|name| parts[random.below(sets)].push(name.as_str()));
        for part in parts.into_iter().filter(|part| part.len() > 1) {
            builder.exclusion_group(None, part, Some(Strength::Hard));
        }
    }
    if one_leaf {
        builder.one_of_leaves("leaves");
    }
    Model::new(&builder.build().unwrap()).unwrap()
}

/// Scores of several sizes, some of which cancel along paths, and evidence in every second row.
fn rows(random: &mut Random, n: usize, count: usize) -> (Vec<f64>, Vec<Evidence>) {
    let known = [Evidence::On, Evidence::Off];
    let (mut scores, mut evidence) = (Vec::new(), Vec::new());
    for row in 0..count {
        let scale = [0.5, 3.0, 30.0, 1e4][row / 2 % 4];
        for _ in 0..n {
            let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
            scores.push(if scale > 1e3 { sign * scale } else { random.normal() * scale });
            let is_known = row % 2 == 1 && random.below(6) == 0;
            evidence.push(if is_known { known[random.below(2)] } else { Evidence::Unknown });
        }
    }
    (scores, evidence)
}

fn largest_difference(a: &Engine, b: &Engine, block: &Block<'_, f64>) -> f64 {
    let [a, b] = [a, b].map(|engine| engine.run(block, Want::default()).unwrap());
    assert_eq!(a.status, b.status);
    let mut largest = 0f64;
    for (row, status) in a.status.iter().enumerate() {
        if *status == RowStatus::Answered {
            let difference = (a.log_partition[row] - b.log_partition[row]).abs();
            largest = largest.max(difference / b.log_partition[row].abs().max(1.0));
            let pairs = a.row(row).iter().zip(b.row(row));
            largest = pairs.map(|(p, q)| (p - q).abs()).fold(largest, f64::max);
        }
    }
    largest
}

#[test]
fn paths_agree_with_brute_force_on_forests_of_exclusive_sets() {
    let mut impossible = 0;
    for seed in 0..400u64 {
        let mut random = Random::new(seed);
        let labels = 2 + random.below(10);
        // One-of leaves need one tree.
        let (sets, one_leaf) = (1 + random.below(3), random.below(3) == 0);
        let model = forest(&mut random, labels, if one_leaf { 1 } else { sets }, one_leaf);
        let [paths, brute] = [Method::Paths, Method::Brute].map(|method| compile(&model, method));
        assert_eq!(compile(&model, Method::Auto).plan().method, Method::Paths);
        let (scores, evidence) = rows(&mut random, labels, 16);
        let block = Block::new(labels, &scores).with_evidence(&evidence);
        let difference = largest_difference(&paths, &brute, &block);
        assert!(difference < 1e-9, "seed {seed}: {difference}");
        for row in 0..16 {
            let [found, right] = [&paths, &brute].map(|e| e.best(&block, row, 5).unwrap());
            impossible += usize::from(right.is_empty());
            assert_eq!(found.len(), right.len(), "seed {seed}, row {row}");
            for (found, right) in found.iter().zip(&right) {
                let difference = (found.log_weight - right.log_weight).abs();
                assert!(difference < 1e-8, "seed {seed}, row {row}: {difference}");
            }
        }
    }
    assert!(impossible > 50, "{impossible} rows without a legal state");
}

#[test]
fn paths_agree_with_family_and_junction_on_larger_forests() {
    for seed in 0..12u64 {
        let mut random = Random::new(seed + 1000);
        let (sets, one_leaf) = (1 + seed as usize % 3, seed % 3 == 0);
        let model = forest(&mut random, 700, sets, one_leaf);
        let paths = compile(&model, Method::Paths);
        let (scores, mut evidence) = rows(&mut random, 700, 24);
        // Little evidence, so that most rows have a legal state.
        evidence.iter_mut().for_each(|known| {
            *known = if random.below(60) == 0 { *known } else { Evidence::Unknown };
        });
        let block = Block::new(700, &scores).with_evidence(&evidence);
        for method in [Method::Family, Method::Junction] {
            let difference = largest_difference(&paths, &compile(&model, method), &block);
            assert!(difference < 1e-8, "seed {seed}, {method}: {difference}");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_block_and_on_any_number_of_threads() {
    let mut random = Random::new(5);
    for sets in [1, 2] {
        let model = forest(&mut random, 300, sets, false);
        let paths = compile(&model, Method::Paths);
        let (scores, evidence) = rows(&mut random, 300, 150);
        let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        for known in [false, true] {
            let block = Block::new(300, &narrow);
            let block = if known { block.with_evidence(&evidence) } else { block };
            let all = paths.run(&block, Want::default()).unwrap();
            let bits = |row: &[f32]| row.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
            for size in [1, 7, 16, 40] {
                for first in (0..150 - size).step_by(size) {
                    let part = block.slice(first..first + size);
                    let part = paths.run(&part, Want::default()).unwrap();
                    for row in 0..size {
                        assert_eq!(bits(part.row(row)), bits(all.row(first + row)));
                    }
                }
            }
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let again = pool.install(|| paths.run(&block, Want::default()).unwrap());
                assert_eq!(bits(&again.marginals), bits(&all.marginals));
            }
        }
    }
}

/// The weight of the empty path is beyond the range of numbers where one leaf must be on.
#[test]
fn improbable_leaves_are_answered() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", Some(Strength::Hard)).hierarchy("a", "c", Some(Strength::Hard));
    builder.one_of_leaves("leaves");
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let paths = compile(&model, Method::Paths);
    for score in (1..2000).map(|step| -f64::from(step)) {
        let row = [score / 2.0, score / 2.0, score / 2.0 - 1.0];
        let found = paths.run(&Block::new(3, &row), Want::default()).unwrap();
        let right = 1.0 / (1.0 + (-1f64).exp());
        assert!((found.marginals[1] - right).abs() < 1e-9, "{score}: {:?}", found.marginals);
        let narrow = row.map(|score| score as f32);
        let found = paths.run(&Block::new(3, &narrow), Want::default()).unwrap();
        assert!((f64::from(found.marginals[1]) - right).abs() < 1e-4, "{score}");
    }
}

/// A hard graph with far too many states to list: each diamond has 6 states beside the others.
#[test]
fn states_are_counted_before_they_are_listed() {
    let mut builder = GraphBuilder::new();
    for at in 0..40 {
        for (parent, child) in
            [("top", "left"), ("top", "right"), ("left", "low"), ("right", "low")]
        {
            builder.hierarchy(
                &format!("{parent}{at}"),
                &format!("{child}{at}"),
                Some(Strength::Hard),
            );
        }
    }
    builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::Hard));
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let plan = compile(&model, Method::Auto).plan().clone();
    assert_eq!(plan.method, Method::Junction);
    let states = plan.refused.iter().find(|refusal| refusal.method == Method::States).unwrap();
    // 6⁴⁰ states.
    assert!(states.why.starts_with("1.337e31 legal states"), "{}", states.why);
}
