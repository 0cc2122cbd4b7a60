//! Loopy belief propagation: exact where the factor graph is a tree.

use phex::graph::LabelId;
use phex::infer::{
    Block, Engine, Evidence, GroupForm, MessageOptions, MessageOrder, Method, Options, RowStatus,
    Trust, Want,
};
use phex::model::{Model, OneOfGroup, Relation};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

type Random = Xoshiro256PlusPlus;

/// A random model whose factor graph is a tree: binary labels, one-of groups, pairs of every kind
/// and exclusion groups.
fn tree(random: &mut Random, soft: bool) -> Model {
    let mut nodes: Vec<Vec<usize>> = Vec::new();
    let mut labels = 0;
    let mut relations = Vec::new();
    let cost = |random: &mut Random| {
        if !soft && random.random_bool(0.2) { f64::INFINITY } else { random.random_range(0.0..4.0) }
    };
    while labels < 11 {
        let mut fresh = |random: &mut Random, nodes: &mut Vec<Vec<usize>>| {
            let size = if random.random_bool(0.3) { random.random_range(2..4) } else { 1 };
            nodes.push((labels..labels + size).collect());
            labels += size;
            nodes.len() - 1
        };
        let here = fresh(random, &mut nodes);
        if here == 0 {
            continue;
        }
        let other = random.random_range(0..here);
        let pick = |random: &mut Random, nodes: &[Vec<usize>], node: usize| {
            LabelId::from(nodes[node][random.random_range(0..nodes[node].len())])
        };
        if random.random_bool(0.25) {
            let third = fresh(random, &mut nodes);
            let members: Vec<LabelId> =
                [other, here, third].map(|node| pick(random, &nodes, node)).to_vec();
            relations.push(Relation::Group { labels: members, cost: cost(random) });
            continue;
        }
        for _ in 0..random.random_range(1..4) {
            let (a, b) = (pick(random, &nodes, other), pick(random, &nodes, here));
            relations.push(match random.random_range(0..4) {
                0 => Relation::Hierarchy { parent: a, child: b, cost: cost(random) },
                1 => Relation::Hierarchy { parent: b, child: a, cost: cost(random) },
                2 => Relation::Exclusion { a, b, cost: cost(random) },
                _ => {
                    let mut cell = || random.random_range(-2.0..2.0);
                    Relation::Pair { a, b, costs: [[cell(), cell()], [cell(), cell()]] }
                }
            });
        }
    }
    let groups = nodes.iter().filter(|node| node.len() > 1);
    let one_of = groups.enumerate().map(|(at, node)| OneOfGroup {
        name: format!("g{at}"),
        labels: node.iter().copied().map(LabelId::from).collect(),
    });
    let one_of = one_of.collect();
    let names = (0..labels).map(|label| format!("x{label}")).collect();
    let bias = (0..labels).map(|_| random.random_range(-1.0..1.0)).collect();
    Model::from_parts(names, bias, 0.5, relations, one_of)
}

fn rows(random: &mut Random, n: usize, count: usize) -> (Vec<f64>, Vec<Evidence>) {
    let scores = (0..n * count).map(|at| {
        let scale = [1.0, 3.0, 20.0][at / n % 3];
        (random.random::<f64>() - 0.5) * 3.4 * scale
    });
    let scores = scores.collect();
    let evidence = (0..n * count).map(|at| match random.random_range(0..12) {
        0 if at / n % 2 == 1 => Evidence::On,
        1 if at / n % 2 == 1 => Evidence::Off,
        _ => Evidence::Unknown,
    });
    (scores, evidence.collect())
}

fn compile(model: &Model, messages: MessageOptions) -> Engine {
    let options = Options { method: Method::Lbp, messages, ..Options::default() };
    Engine::compile(model.clone(), &options).unwrap()
}

fn settings() -> Vec<MessageOptions> {
    let base = MessageOptions { tolerance: 1e-13, iterations: 400, ..MessageOptions::default() };
    let schedules = [MessageOrder::InPlace, MessageOrder::Flooding];
    let both = |schedule| [0.0, 0.3].map(|damping| MessageOptions { schedule, damping, ..base });
    schedules.into_iter().flat_map(both).collect()
}

#[test]
fn trees_are_exact() {
    let mut compared = 0;
    for seed in 0..400 {
        let mut random = Random::seed_from_u64(seed);
        let model = tree(&mut random, seed % 2 == 0);
        let n = model.len();
        let (scores, evidence) = rows(&mut random, n, 6);
        let block = Block::new(n, &scores).with_evidence(&evidence);
        let want = Want { expectations: true, ..Want::default() };
        let brute = Options { method: Method::Brute, ..Options::default() };
        let exact = Engine::compile(model.clone(), &brute).unwrap().run(&block, want).unwrap();
        for messages in settings() {
            let found = compile(&model, messages).run(&block, want).unwrap();
            for row in 0..block.rows() {
                if exact.status[row] == RowStatus::Impossible {
                    continue;
                }
                let context = format!("seed {seed}, row {row}, {messages:?}, {model:?}");
                let Trust::Approximate(diagnosis) = found.trust[row] else { panic!("{context}") };
                assert!(diagnosis.converged, "{diagnosis:?} {context}");
                for (label, (p, e)) in found.row(row).iter().zip(exact.row(row)).enumerate() {
                    assert!((p - e).abs() < 1e-9, "label {label}: {p} {e}, {context}");
                }
                let (z, e) = (found.log_partition[row], exact.log_partition[row]);
                assert!((z - e).abs() < 1e-8, "log Z {z} {e}, {context}");
                let terms = model.terms();
                let range = row * terms..(row + 1) * terms;
                let found = &found.expectations.as_ref().unwrap()[range.clone()];
                let exact = &exact.expectations.as_ref().unwrap()[range];
                for (term, (v, e)) in found.iter().zip(exact).enumerate() {
                    assert!((v - e).abs() < 1e-8, "term {term}: {v} {e}, {context}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

/// Rows whose scores nearly cancel: each is a multiple of a large number and a little more.
fn cancelling_rows(random: &mut Random, n: usize, count: usize) -> Vec<f64> {
    let score = |at: usize| {
        let large = [30.0, 80.0, 160.0, 300.0, 700.0, 1e4][at / n % 6];
        let times = f64::from(random.random_range(-2..3)) / 2.0;
        times * large + 6.0 * (random.random::<f64>() - 0.5)
    };
    (0..n * count).map(score).collect()
}

/// On a tree, a row is right or does not pass for settled. So no child is likelier than its parent.
#[test]
fn cancelling_rows_of_trees_are_right_or_doubted() {
    let (mut compared, mut doubted) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::seed_from_u64(seed);
        let model = tree(&mut random, false);
        let n = model.len();
        let scores = cancelling_rows(&mut random, n, 12);
        let block = Block::new(n, &scores);
        let brute = Options { method: Method::Brute, ..Options::default() };
        let exact = Engine::compile(model.clone(), &brute).unwrap();
        let exact = exact.run(&block, Want::default()).unwrap();
        for damping in [0.0, 0.3, 0.6] {
            let messages = MessageOptions { damping, ..MessageOptions::default() };
            let found = compile(&model, messages).run(&block, Want::default()).unwrap();
            for row in 0..block.rows() {
                if exact.status[row] == RowStatus::Impossible {
                    continue;
                }
                compared += 1;
                if found.trust[row].doubt().is_some() {
                    doubted += 1;
                    continue;
                }
                let context = format!("seed {seed}, row {row}, damping {damping}, {model:?}");
                for (label, (p, e)) in found.row(row).iter().zip(exact.row(row)).enumerate() {
                    assert!((p - e).abs() < 1e-3, "label {label}: {p} {e}, {context}");
                }
                for relation in model.relations() {
                    if let Relation::Hierarchy { parent, child, cost: f64::INFINITY } = relation {
                        let p = |id: &LabelId| found.row(row)[id.index()];
                        assert!(p(child) <= p(parent) + 1e-3, "{parent:?} {child:?}, {context}");
                    }
                }
            }
        }
    }
    println!("{doubted} of {compared} rows are doubted");
    assert!(compared > 4000 && doubted * 2 < compared, "{doubted} of {compared}");
}

#[test]
fn a_star_around_one_group_is_exact() {
    let mut compared = 0;
    for seed in 0..20 {
        let mut random = Random::seed_from_u64(seed);
        let (classes, attributes) = (50, 85);
        let mut relations = Vec::new();
        for class in 0..classes {
            for attribute in 0..attributes {
                let (a, b) = (LabelId::from(class), LabelId::from(classes + attribute));
                let cost = random.random_range(0.1..6.0);
                relations.push(if random.random_bool(0.4) {
                    Relation::Hierarchy { parent: b, child: a, cost }
                } else {
                    Relation::Exclusion { a, b, cost }
                });
            }
        }
        let n = classes + attributes;
        let names = (0..n).map(|label| format!("x{label}")).collect();
        let labels = (0..classes).map(LabelId::from).collect();
        let one_of = vec![OneOfGroup { name: String::from("class"), labels }];
        let model = Model::from_parts(names, vec![0.0; n], 0.0, relations, one_of);
        let (scores, evidence) = rows(&mut random, n, 20);
        let block = Block::new(n, &scores);
        let block = if seed % 2 == 0 { block } else { block.with_evidence(&evidence) };
        let star = Options { method: Method::Star, ..Options::default() };
        let exact = Engine::compile(model.clone(), &star).unwrap();
        let exact = exact.run(&block, Want::default()).unwrap();
        for messages in settings().into_iter().filter(|m| m.damping == 0.0) {
            let found = compile(&model, messages).run(&block, Want::default()).unwrap();
            for row in 0..block.rows() {
                if exact.status[row] == RowStatus::Impossible {
                    assert_eq!(found.status[row], RowStatus::Impossible);
                    continue;
                }
                for (p, e) in found.row(row).iter().zip(exact.row(row)) {
                    assert!((p - e).abs() < 1e-9, "seed {seed} row {row}: {p} {e}");
                }
                let (z, e) = (found.log_partition[row], exact.log_partition[row]);
                assert!((z - e).abs() < 1e-8, "log Z {z} {e}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn rows_do_not_depend_on_the_block_and_singles_are_close() {
    let mut compared = 0;
    for seed in 0..60 {
        let graph = phex::testkit::RandomGraph::any(3 + (seed % 15) as usize, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        if model.dense().is_some() {
            continue;
        }
        let n = model.len();
        let mut random = Random::seed_from_u64(seed);
        let (scores, evidence) = rows(&mut random, n, 40);
        let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        for groups in [GroupForm::Cardinality, GroupForm::Pairs] {
            let engine = compile(&model, MessageOptions { groups, ..MessageOptions::default() });
            let block = Block::new(n, &narrow).with_evidence(&evidence);
            let all = engine.run(&block, Want::default()).unwrap();
            for size in [1, 7] {
                for first in (0..block.rows()).step_by(size) {
                    let part = block.slice(first..(first + size).min(block.rows()));
                    let some = engine.run(&part, Want::default()).unwrap();
                    let same = all.marginals[first * n..].iter().zip(&some.marginals);
                    let same = same.clone().all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "seed {seed}: rows from {first} depend on the block");
                }
            }
            let wide: Vec<f64> = narrow.iter().map(|&score| f64::from(score)).collect();
            let wide_block = Block::new(n, &wide).with_evidence(&evidence);
            let double = engine.run(&wide_block, Want::default()).unwrap();
            for row in 0..block.rows() {
                let Trust::Approximate(diagnosis) = double.trust[row] else { panic!() };
                if !diagnosis.converged || double.status[row] != RowStatus::Answered {
                    continue;
                }
                for (a, b) in all.row(row).iter().zip(double.row(row)) {
                    assert!((f64::from(*a) - b).abs() < 1e-3, "seed {seed} row {row}: {a} {b}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn evidence_that_contradicts_hard_relations_is_impossible() {
    // A loop: each of two parents has both children, and the children exclude each other.
    let id = LabelId::from;
    let hard = f64::INFINITY;
    let mut relations = vec![Relation::Exclusion { a: id(2), b: id(3), cost: hard }];
    for (parent, child) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        relations.push(Relation::Hierarchy { parent: id(parent), child: id(child), cost: hard });
    }
    let names = ["animal", "pet", "dog", "cat"].map(str::to_owned).to_vec();
    let model = Model::from_parts(names, vec![0.0; 4], 0.0, relations, Vec::new());
    use Evidence::{Off, On, Unknown};
    let evidence = [[Unknown, Unknown, On, On], [Unknown, Off, On, Unknown], [Unknown; 4]].concat();
    let scores = vec![0.5; evidence.len()];
    let block = Block::new(4, &scores).with_evidence(&evidence);
    for method in [Method::Lbp, Method::ForestBp, Method::Gibbs, Method::MeanField, Method::Trw] {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(model.clone(), &options).unwrap();
        let found = engine.run(&block, Want::default()).unwrap().status;
        let expected = [RowStatus::Impossible, RowStatus::Impossible, RowStatus::Answered];
        assert_eq!(found, expected, "{method}");
    }
}
