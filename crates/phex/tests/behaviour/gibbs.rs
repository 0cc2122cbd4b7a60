//! Gibbs sampling against exact answers, through the public interface.

use phex::graph::{ExclusionRule, GraphBuilder, LabelId, Strength};
use phex::infer::{
    Block, Diagnosis, Engine, Evidence, GroupForm, Method, Options, Posterior, RowStatus,
    SamplingOptions, Trust, Want,
};
use phex::model::{Model, OneOfGroup, Relation};
use phex::testkit::{HierarchyShape, Random, RandomGraph, RandomStrengths};

const WANT: Want =
    Want { expectations: true, entropy: false, standard_errors: true, bounds: false };

fn options() -> Options {
    Options { method: Method::Gibbs, ..Options::default() }
}

fn compile(model: &Model, options: &Options) -> Engine {
    Engine::compile(model.clone(), options).unwrap()
}

fn brute(model: &Model) -> Engine {
    compile(model, &Options { method: Method::Brute, ..Options::default() })
}

fn diagnosis(posterior: &Posterior<f64>, row: usize) -> Diagnosis {
    let Trust::Approximate(diagnosis) = posterior.trust[row] else { panic!("not approximate") };
    diagnosis
}

fn rows(random: &mut Random, n: usize, count: usize) -> (Vec<f64>, Vec<Evidence>) {
    let mut scores = Vec::new();
    let mut evidence = Vec::new();
    for row in 0..count {
        let scale = [0.5, 2.0][row / 2 % 2];
        for _ in 0..n {
            scores.push(random.normal() * scale);
            let known = random.next() < 0.2 && row % 2 == 1;
            let states = [Evidence::On, Evidence::Off];
            evidence.push(if known { states[random.below(2)] } else { Evidence::Unknown });
        }
    }
    (scores, evidence)
}

/// How far answers were off.
#[derive(Debug, Default)]
struct Errors {
    labels: usize,
    /// Within two standard errors, beyond five and more, and the largest.
    within_two: usize,
    beyond_five: usize,
    largest: f64,
    /// Largest error of expected violations.
    violations: f64,
    converged: usize,
    rows: usize,
}

impl Errors {
    /// Compares on random rows with evidence.
    fn add(&mut self, model: &Model, options: &Options, seed: u64) {
        let n = model.len();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (scores, evidence) = rows(&mut random, n, 4);
        let block = Block::new(n, &scores).with_evidence(&evidence);
        let got = compile(model, options).run(&block, WANT).unwrap();
        let exact = brute(model).run(&block, WANT).unwrap();
        let errors = got.standard_errors.as_ref().unwrap();
        for row in 0..block.rows() {
            assert_eq!(got.status[row], exact.status[row], "seed {seed}, row {row}: {model:?}");
            if got.status[row] == RowStatus::Impossible {
                continue;
            }
            self.rows += 1;
            self.converged += usize::from(diagnosis(&got, row).converged);
            for label in 0..n {
                let (p, e) = (got.row(row)[label], exact.row(row)[label]);
                let (error, standard) = ((p - e).abs(), errors[row * n + label]);
                assert!(error < 0.25, "seed {seed}: {p}, not {e}, ± {standard}: {model:?}");
                self.largest = self.largest.max(error);
                if e > 1e-6 && e < 1.0 - 1e-6 {
                    self.labels += 1;
                    self.within_two += usize::from(error < 2.0 * standard + 1e-5);
                    self.beyond_five += usize::from(error > 5.0 * standard + 0.005);
                }
            }
            for group in model.one_of() {
                let total: f64 = got.group(row, group).iter().sum();
                assert!((total - 1.0).abs() < 1e-9, "a one-of group sums to {total}");
            }
            let terms = model.terms();
            let pair =
                got.expectations.as_ref().unwrap().iter().zip(exact.expectations.as_ref().unwrap());
            for (g, e) in pair.skip(row * terms).take(terms) {
                self.violations = self.violations.max((g - e).abs() / (1.0 + e));
            }
        }
    }

    fn assert_fine(&self) {
        assert!(self.labels > 300, "{self:?}");
        assert!(self.within_two as f64 > 0.85 * self.labels as f64, "{self:?}");
        assert!(self.beyond_five as f64 <= 0.002 * self.labels as f64, "{self:?}");
        assert!(self.violations < 0.1, "{self:?}");
        assert!(self.converged as f64 > 0.9 * self.rows as f64, "{self:?}");
    }
}

#[test]
fn soft_graphs_are_within_their_standard_errors() {
    let mut errors = Errors::default();
    for seed in 0..120u64 {
        let labels = 3 + seed as usize % 8;
        let graph =
            RandomGraph { strengths: RandomStrengths::Soft, ..RandomGraph::any(labels, seed) }
                .draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let mut options = options();
        if seed % 2 == 0 {
            options.messages.groups = GroupForm::Pairs;
        }
        errors.add(&model, &options, seed);
    }
    println!("{errors:?}");
    errors.assert_fine();
}

/// Any pairwise model, with two one-of groups: links, tables and counters over them.
#[test]
fn pairwise_models_with_groups_are_within_their_standard_errors() {
    let mut errors = Errors::default();
    for seed in 0..60u64 {
        let mut random = Random(seed * 104_729 + 1);
        let n = 9;
        let mut relations = Vec::new();
        for _ in 0..12 {
            let (a, b) = (random.below(n), random.below(n));
            if a != b {
                let costs = [0; 2].map(|_| [0; 2].map(|_| random.normal()));
                relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
            }
        }
        let labels = [0, 1, 4, 6, 7].map(|label: usize| LabelId::from(label)).to_vec();
        relations.push(Relation::Group { labels, cost: 0.7 });
        let group = |name: &str, labels: std::ops::Range<usize>| OneOfGroup {
            name: name.to_owned(),
            labels: labels.map(LabelId::from).collect(),
        };
        let groups = vec![group("g", 0..3), group("h", 3..6)];
        let names = (0..n).map(|label| format!("x{label}")).collect();
        let bias = (0..n).map(|_| random.normal()).collect();
        let model = Model::from_parts(names, bias, 0.5, relations, groups);
        errors.add(&model, &options(), seed);
    }
    println!("{errors:?}");
    errors.assert_fine();
}

#[test]
fn hard_trees_are_right() {
    let mut errors = Errors::default();
    for seed in 0..60u64 {
        let rules = [None, Some(ExclusionRule::Siblings)];
        let graph = RandomGraph {
            shape: HierarchyShape::Tree,
            rule: rules[seed as usize % 2],
            ..RandomGraph::new(4 + seed as usize % 7, seed)
        }
        .draw();
        let Ok(model) = Model::new(&graph) else { continue };
        let mut options = options();
        options.sampling.sweeps = 400;
        errors.add(&model, &options, seed);
    }
    println!("{errors:?}");
    errors.assert_fine();
}

/// Eight labels that want to be equal: all on or all off.
fn two_modes() -> Model {
    let mut relations = Vec::new();
    for a in 0..8usize {
        for b in 0..a {
            let costs = [[0.0, 2.0], [2.0, 0.0]];
            relations.push(Relation::Pair { a: LabelId::from(a), b: LabelId::from(b), costs });
        }
    }
    let names = (0..8).map(|label| format!("x{label}")).collect();
    Model::from_parts(names, vec![0.0; 8], 0.0, relations, Vec::new())
}

#[test]
fn chains_that_do_not_mix_are_seen_and_tempering_mixes_them() {
    let model = two_modes();
    // The mode of all on is e times the other.
    let scores = [0.125; 8];
    let block = Block::new(8, &scores);
    let exact = brute(&model).run(&block, Want::default()).unwrap();
    let first: f64 = exact.row(0)[0];
    assert!((first - 0.73).abs() < 0.01, "{first}");
    let plain = compile(&model, &options()).run(&block, WANT).unwrap();
    assert!(!diagnosis(&plain, 0).converged, "{plain:?}");
    assert!(plain.trust[0].doubt().is_some());
    let mut options = options();
    options.sampling = SamplingOptions { temperatures: 6, sweeps: 2000, ..options.sampling };
    let tempered = compile(&model, &options).run(&block, WANT).unwrap();
    let found = diagnosis(&tempered, 0);
    assert!(found.converged, "{tempered:?}");
    let standard = tempered.standard_errors.as_ref().unwrap()[0];
    assert!(standard < 0.02, "{tempered:?}");
    for label in 0..8 {
        let error = (tempered.row(0)[label] - exact.row(0)[label]).abs();
        assert!(error < 5.0 * standard, "{tempered:?}, not {exact:?}");
    }
}

/// A hard hierarchy with one leaf on: the leaf cannot change alone.
#[test]
fn tempering_crosses_a_hard_hierarchy_with_a_group_of_leaves() {
    let mut builder = GraphBuilder::new();
    for (parent, child) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")] {
        builder.hierarchy(parent, child, Some(Strength::Hard));
    }
    builder.exclusion("a", "b", Some(Strength::Hard));
    builder.one_of("leaf", ["a1", "a2", "b1", "b2"], None);
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let scores: Vec<f64> = (0..6).map(|label| f64::from(label) * 0.3 - 1.0).collect();
    let block = Block::new(6, &scores);
    let exact = brute(&model).run(&block, Want::default()).unwrap();
    let plain = compile(&model, &options()).run(&block, WANT).unwrap();
    assert!(!diagnosis(&plain, 0).converged, "{plain:?}");
    let mut options = options();
    options.sampling =
        SamplingOptions { temperatures: 10, hottest: 0.05, sweeps: 2000, ..options.sampling };
    let tempered = compile(&model, &options).run(&block, WANT).unwrap();
    assert!(diagnosis(&tempered, 0).converged, "{tempered:?}");
    for (p, e) in tempered.row(0).iter().zip(exact.row(0)) {
        assert!((p - e).abs() < 0.03, "{tempered:?}, not {exact:?}");
    }
    assert!(tempered.expectations.unwrap().iter().all(|&violations| violations < 1e-3));
}

#[test]
fn rows_depend_on_nothing_else() {
    let graph = RandomGraph {
        strengths: RandomStrengths::Soft,
        one_of: 1,
        groups: 1,
        ..RandomGraph::any(9, 8)
    }
    .draw();
    let model = Model::new(&graph).unwrap();
    let mut options = options();
    options.sampling.sweeps = 30;
    let engine = compile(&model, &options);
    let mut random = Random(5);
    let (mut scores, mut evidence) = rows(&mut random, 9, 80);
    // The last row is the first again.
    scores.extend_from_within(..9);
    evidence.extend_from_within(..9);
    let block = Block::new(9, &scores).with_evidence(&evidence);
    let all = engine.run(&block, WANT).unwrap();
    let bits = |row: &[f64]| row.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(all.row(0)), bits(all.row(80)));
    for size in [1, 7] {
        for first in (0..81).step_by(size) {
            let part = block.slice(first..(first + size).min(81));
            let got = engine.run(&part, WANT).unwrap();
            for row in 0..part.rows() {
                assert_eq!(bits(got.row(row)), bits(all.row(first + row)));
            }
        }
    }
    let other = compile(&model, &Options { seed: 1, ..options }).run(&block, WANT).unwrap();
    assert_ne!(other.marginals, all.marginals);
    // Single precision samples as well.
    let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let narrow = Block::new(9, &narrow).with_evidence(&evidence);
    let narrow = engine.run(&narrow, WANT).unwrap();
    for (a, b) in narrow.marginals.iter().zip(&all.marginals) {
        assert!(b.is_nan() || (f64::from(*a) - b).abs() < 0.1);
    }
}

#[test]
fn large_scores_do_not_break_hard_relations() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("parent", "child", Some(Strength::Hard));
    builder.exclusion("child", "other", Some(Strength::Hard));
    let model = Model::new(&builder.build().unwrap()).unwrap();
    for scale in [10.0f64, 1e3, 1e6, 1e30] {
        let scores = [-scale, 0.5 * scale, 0.25 * scale];
        let block = Block::new(3, &scores);
        let got = compile(&model, &options()).run(&block, WANT).unwrap();
        let exact = brute(&model).run(&block, Want::default()).unwrap();
        for (p, e) in got.row(0).iter().zip(exact.row(0)) {
            assert!((p - e).abs() < 0.05, "{scale}: {got:?}, not {exact:?}");
        }
        assert_eq!(got.expectations.as_deref(), Some(&[0.0, 0.0][..]), "{scale}");
    }
}

#[test]
fn log_partition_is_unknown_and_bad_ladders_are_refused() {
    let model = two_modes();
    let got = compile(&model, &options()).run(&Block::new(8, &[0.0; 8]), WANT).unwrap();
    assert!(got.log_partition[0].is_nan());
    assert_eq!(got.status[0], RowStatus::Answered);
    let mut options = options();
    options.sampling.temperatures = 3;
    options.sampling.hottest = 1.5;
    assert!(Engine::compile(model, &options).is_err());
}
