//! Bounds on log Z: mean field below, tree-reweighted messages above.

use phex::graph::{ExclusionRule, LabelId};
use phex::infer::{
    Block, Engine, Evidence, MessageOptions, Method, Options, Posterior, RowStatus, Trust, Want,
};
use phex::model::{Model, OneOfGroup, Relation};
use phex::testkit::{HierarchyShape, Random, RandomGraph, RandomStrengths};

const EVERYTHING: Want =
    Want { expectations: true, entropy: false, standard_errors: false, bounds: true };

fn compile(model: &Model, method: Method, messages: MessageOptions) -> Option<Engine> {
    let options = Options { method, messages, ..Options::default() };
    Engine::compile(model.clone(), &options).ok()
}

/// Rows of scores of several sizes, every second with evidence on some labels.
fn rows(random: &mut Random, n: usize, count: usize) -> (Vec<f64>, Vec<Evidence>) {
    let mut scores = Vec::new();
    let mut evidence = Vec::new();
    for row in 0..count {
        let scale = [0.5, 2.0, 6.0, 40.0, 1e4][(row / 2) % 5];
        for _ in 0..n {
            scores.push(random.normal() * scale);
            let known = [Evidence::On, Evidence::Off][random.below(2)];
            let given = row % 2 == 1 && random.next() < 0.2;
            evidence.push(if given { known } else { Evidence::Unknown });
        }
    }
    (scores, evidence)
}

/// Whether marginals are probabilities, and of one-of groups add up to 1.
fn are_probabilities(model: &Model, marginals: &[f64]) -> bool {
    let sum = |group: &OneOfGroup| group.labels.iter().map(|id| marginals[id.index()]).sum::<f64>();
    marginals.iter().all(|p| (0.0..=1.0 + 1e-12).contains(p))
        && model.one_of().iter().all(|group| (sum(group) - 1.0).abs() < 1e-9)
}

/// What became of the rows of many models.
#[derive(Debug, Default)]
struct Tally {
    models: usize,
    rows: usize,
    unbounded: usize,
    impossible: usize,
    undetected: usize,
}

/// Holds both bounds of a model against brute force, after this many sweeps.
fn enclose(model: &Model, seed: u64, iterations: u32, tally: &mut Tally) {
    let messages = MessageOptions { iterations, ..MessageOptions::default() };
    let n = model.len();
    let mut random = Random::new(seed);
    let (scores, evidence) = rows(&mut random, n, 10);
    let block = Block::new(n, &scores).with_evidence(&evidence);
    let Some(lower) = compile(model, Method::MeanField, messages) else { return };
    let upper = compile(model, Method::Trw, messages).unwrap();
    let exact = compile(model, Method::Brute, messages).unwrap();
    let exact = exact.run(&block, Want::default()).unwrap();
    let (lower, upper) =
        (lower.run(&block, EVERYTHING).unwrap(), upper.run(&block, EVERYTHING).unwrap());
    tally.models += 1;
    for row in 0..block.rows() {
        let context = || format!("seed {seed}, row {row}, {iterations} sweeps: {model:?}");
        let scale = block.row(row).iter().map(|s| s.abs()).fold(10.0, f64::max);
        let slack = 1e-9 * scale;
        let log_z = exact.log_partition[row];
        tally.rows += 1;
        if exact.status[row] == RowStatus::Impossible {
            tally.impossible += 1;
            tally.undetected += usize::from(upper.status[row] != RowStatus::Impossible);
            assert_eq!(lower.log_partition[row], f64::NEG_INFINITY, "{}", context());
            continue;
        }
        let (low, high) = (lower.log_partition[row], upper.log_partition[row]);
        assert!(low <= log_z + slack, "{low} is above {log_z}: {}", context());
        assert!(high >= log_z - slack, "{high} is below {log_z}: {}", context());
        assert!(high < f64::INFINITY, "{}", context());
        for posterior in [&lower, &upper] {
            assert_eq!(posterior.status[row], RowStatus::Answered);
            assert!(are_probabilities(model, posterior.row(row)), "{}", context());
            let terms = model.terms();
            let expectations = &posterior.expectations.as_ref().unwrap()[row * terms..][..terms];
            assert!(expectations.iter().all(|e| *e >= -1e-12 && e.is_finite()), "{}", context());
            let Trust::Approximate(diagnosis) = posterior.trust[row] else { panic!("not exact") };
            assert_eq!(diagnosis.bounds, Some((low, high.max(low))), "{}", context());
        }
        if low == f64::NEG_INFINITY {
            tally.unbounded += 1;
            let Trust::Approximate(diagnosis) = lower.trust[row] else { panic!("not exact") };
            assert!(!diagnosis.converged);
        }
    }
}

/// A pairwise model with tables of any sign, some hard, over binary labels and two one-of groups.
fn pairwise(seed: u64, hard: f64) -> Model {
    let mut random = Random::new(seed);
    let n = 2 + random.below(9);
    let mut relations = Vec::new();
    for _ in 0..random.below(2 * n) {
        let (a, b) = (random.below(n), random.below(n));
        if a != b {
            let mut cost = || if random.next() < hard { f64::INFINITY } else { random.normal() };
            let costs = [[cost(), cost()], [cost(), cost()]];
            relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
        }
    }
    let names = (0..n).map(|at| format!("x{at}")).collect();
    let bias = (0..n).map(|_| random.normal()).collect();
    let group = |name: &str, labels: std::ops::Range<usize>| OneOfGroup {
        name: name.to_owned(),
        labels: labels.map(LabelId::from).collect(),
    };
    let groups = match seed % 3 {
        1 if n >= 4 => vec![group("g", 0..3)],
        2 if n >= 7 => vec![group("g", 0..3), group("h", 3..6)],
        _ => Vec::new(),
    };
    Model::from_parts(names, bias, random.normal(), relations, groups)
}

#[test]
fn bounds_enclose_log_z_on_random_graphs() {
    let mut tally = Tally::default();
    for seed in 0..1500u64 {
        let graph = RandomGraph::any(2 + seed as usize % 9, seed).draw();
        let Ok(model) = Model::new(&graph) else { continue };
        enclose(&model, seed, [1, 3, 200, 200][seed as usize % 4], &mut tally);
    }
    assert!(tally.models >= 800, "{tally:?}");
    assert!(tally.unbounded * 20 < tally.rows, "{tally:?}");
    assert!(tally.undetected * 2 < tally.impossible, "{tally:?}");
}

#[test]
fn bounds_enclose_log_z_on_pairwise_models() {
    let mut tally = Tally::default();
    for seed in 0..900u64 {
        let model = pairwise(seed, [0.0, 0.1, 0.2][seed as usize / 3 % 3]);
        enclose(&model, seed, [1, 3, 200, 200][seed as usize % 4], &mut tally);
    }
    assert!(tally.models >= 800, "{tally:?}");
    assert!(tally.unbounded * 10 < tally.rows, "{tally:?}");
}

/// Tight enough that a forest is exact to rounding.
const TIGHT: MessageOptions = MessageOptions {
    schedule: phex::infer::MessageOrder::InPlace,
    groups: phex::infer::GroupForm::Cardinality,
    damping: 0.0,
    iterations: 500,
    tolerance: 1e-14,
};

/// Compares with brute force, rows that have an answer.
fn is_exact(model: &Model, method: Method, seed: u64) -> Posterior<f64> {
    let mut random = Random::new(seed);
    let (scores, evidence) = rows(&mut random, model.len(), 10);
    let block = Block::new(model.len(), &scores).with_evidence(&evidence);
    let want = Want { bounds: false, ..EVERYTHING };
    let got = compile(model, method, TIGHT).unwrap().run(&block, want).unwrap();
    let exact = compile(model, Method::Brute, TIGHT).unwrap().run(&block, want).unwrap();
    assert_eq!(got.status, exact.status, "{method} {seed} {model:?}");
    for row in (0..block.rows()).filter(|&row| exact.status[row] == RowStatus::Answered) {
        let scale = block.row(row).iter().map(|s| s.abs()).fold(10.0, f64::max);
        let (g, e) = (got.log_partition[row], exact.log_partition[row]);
        assert!((g - e).abs() < 1e-9 * scale, "{method} {seed} row {row}: {g} {e} {model:?}");
        for (g, e) in got.row(row).iter().zip(exact.row(row)) {
            assert!((g - e).abs() < 1e-9, "{method} {seed} row {row}: {g} {e} {model:?}");
        }
        let terms = model.terms();
        let [g, e] =
            [&got, &exact].map(|p| &p.expectations.as_ref().unwrap()[row * terms..][..terms]);
        for (g, e) in g.iter().zip(e) {
            assert!((g - e).abs() < 1e-8, "{method} {seed} row {row}: {g} {e} {model:?}");
        }
    }
    got
}

#[test]
fn trees_are_exact() {
    let mut models = 0;
    for seed in 0..300u64 {
        let graph = RandomGraph {
            shape: HierarchyShape::Tree,
            exclusions: 0,
            groups: 0,
            one_of: 0,
            rule: None,
            strengths: [RandomStrengths::Soft, RandomStrengths::Mixed, RandomStrengths::Hard]
                [seed as usize % 3],
            ..RandomGraph::any(2 + seed as usize % 9, seed)
        };
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        is_exact(&model, Method::Trw, seed);
        models += 1;
    }
    assert!(models > 200);
}

/// Every node is joined to one before it: labels 0–2 and 3–5 are one-of groups, the rest binary.
#[test]
fn trees_with_groups_are_exact() {
    for seed in 0..300u64 {
        let mut random = Random::new(seed);
        let labels_of =
            |node: usize| if node < 2 { 3 * node..3 * node + 3 } else { node + 4..node + 5 };
        let nodes = 3 + random.below(4);
        let mut relations = Vec::new();
        for node in 1..nodes {
            let other = random.below(node);
            for _ in 0..1 + random.below(4) {
                let mut one = |labels: std::ops::Range<usize>| {
                    LabelId::from(labels.start + random.below(labels.len()))
                };
                let (a, b) = (one(labels_of(node)), one(labels_of(other)));
                let mut cost = || if random.next() < 0.1 { f64::INFINITY } else { random.normal() };
                relations.push(Relation::Pair {
                    a,
                    b,
                    costs: [[cost(), cost()], [cost(), cost()]],
                });
            }
        }
        let n = nodes + 4;
        let names = (0..n).map(|at| format!("x{at}")).collect();
        let group = |name: &str, labels: std::ops::Range<usize>| OneOfGroup {
            name: name.to_owned(),
            labels: labels.map(LabelId::from).collect(),
        };
        let groups = vec![group("g", 0..3), group("h", 3..6)];
        let model = Model::from_parts(names, vec![0.1; n], 0.5, relations, groups);
        is_exact(&model, Method::Trw, seed);
    }
}

#[test]
fn without_relations_both_are_exact() {
    for seed in 0..60u64 {
        let mut model = pairwise(seed, 0.0);
        let names = model.names().to_vec();
        let groups = model.one_of().to_vec();
        model = Model::from_parts(names, vec![0.3; model.len()], 1.5, Vec::new(), groups);
        for method in [Method::MeanField, Method::Trw] {
            is_exact(&model, method, seed);
        }
    }
}

#[test]
fn answers_depend_on_no_other_row() {
    let mut engines = 0;
    for seed in 0..24u64 {
        let graph = RandomGraph {
            rule: (seed % 2 == 0).then_some(ExclusionRule::Siblings),
            one_of: (seed % 4) as usize,
            ..RandomGraph::any(9, seed)
        };
        let Ok(model) = Model::new(&graph.draw()) else { continue };
        let n = model.len();
        let (scores, evidence) = rows(&mut Random::new(seed), n, 64);
        let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        let block = Block::new(n, &narrow).with_evidence(&evidence);
        for method in [Method::MeanField, Method::Trw] {
            let Some(engine) = compile(&model, method, MessageOptions::default()) else { continue };
            engines += 1;
            let all = engine.run(&block, EVERYTHING).unwrap();
            for size in [1, 7] {
                for first in (0..64).step_by(size) {
                    let part = block.slice(first..(first + size).min(64));
                    let part = engine.run(&part, EVERYTHING).unwrap();
                    for row in 0..part.rows() {
                        let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
                        let (here, there) = (part.row(row), all.row(first + row));
                        let pairs = here.iter().zip(there);
                        assert!(pairs.clone().all(|(a, b)| same((*a).into(), (*b).into())));
                        assert!(same(part.log_partition[row], all.log_partition[first + row]));
                        if part.status[row] == RowStatus::Answered {
                            assert_eq!(part.trust[row], all.trust[first + row]);
                        }
                    }
                }
            }
        }
    }
    assert!(engines > 30, "{engines}");
}

#[test]
fn impossible_evidence_is_found() {
    let pair = Relation::Exclusion { a: LabelId(3), b: LabelId(4), cost: f64::INFINITY };
    let names = (0..5).map(|at| format!("x{at}")).collect();
    let group = OneOfGroup { name: String::from("g"), labels: (0..3).map(LabelId).collect() };
    let model = Model::from_parts(names, vec![0.0; 5], 0.0, vec![pair], vec![group]);
    let (on, off, open) = (Evidence::On, Evidence::Off, Evidence::Unknown);
    let evidence = [
        on, on, open, open, open, off, off, off, open, open, open, open, open, on, on, on, off,
        open, on, off,
    ];
    let scores = [0.5; 20];
    let block = Block::new(5, &scores).with_evidence(&evidence);
    for method in [Method::MeanField, Method::Trw] {
        let engine = compile(&model, method, MessageOptions::default()).unwrap();
        let status = engine.run(&block, EVERYTHING).unwrap().status;
        assert_eq!(status[..3], [RowStatus::Impossible; 3], "{method}");
        assert_eq!(status[3], RowStatus::Answered, "{method}");
    }
}
