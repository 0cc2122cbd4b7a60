//! Golden tests for the places where the paper's printed formulas are wrong (Ding et al. 2015). Each
//! shows that our form is equivalent to the definition, and that the printed one is not.

use phex::graph::{ExclusionRule, FindingKind, GraphBuilder, RelationGraph, Strength};
use phex::infer::{Block, Engine, Evidence, Options, Want};
use phex::model::{Ising, Model};

fn graph(build: impl Fn(&mut GraphBuilder)) -> RelationGraph {
    let mut builder = GraphBuilder::new();
    build(&mut builder);
    builder.build().unwrap()
}

fn states(n: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1u32 << n).map(move |bits| (0..n).map(|label| bits >> label & 1 == 1).collect())
}

/// How far `E + log-weight` is from constant over all states: 0 for an equivalent Ising model.
fn spread(model: &Model, ising: &Ising, scores: &[f64]) -> f64 {
    let sums: Vec<f64> = states(model.len())
        .map(|state| ising.energy(&state) + model.log_weight(scores, &state))
        .collect();
    let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - sums.iter().copied().fold(f64::INFINITY, f64::min)
}

fn marginals(model: &Model, scores: &[f64]) -> Vec<f64> {
    let engine = Engine::compile(model.clone(), &Options::default()).unwrap();
    engine.run(&Block::new(scores.len(), scores), Want::default()).unwrap().marginals
}

#[test]
fn erratum_1_the_parent_gets_minus_u_and_the_child_plus_u() {
    let model = Model::new(&graph(|b| {
        b.hierarchy("parent", "child", Some(Strength::U(1.0)));
        b.hierarchy("child", "grandchild", Some(Strength::U(1.0)));
    }))
    .unwrap();
    let scores = [0.3, -0.7, 1.1];
    let ising = model.to_ising(&scores, None).unwrap();
    let h = [-1.0 - 0.15, 1.0 - 1.0 + 0.35, 1.0 - 0.55];
    for (got, expected) in ising.h.iter().zip(h) {
        assert!((got - expected).abs() < 1e-12, "{:?}", ising.h);
    }
    assert_eq!(ising.j, [(0, 1, -1.0), (1, 2, -1.0)]);
    assert!(spread(&model, &ising, &scores) < 1e-12);
    // As printed, the signs of the two sums are swapped: it punishes a dog that is not a puppy.
    let mut printed = ising.clone();
    printed.h = vec![1.0 - 0.15, -1.0 + 1.0 + 0.35, -1.0 - 0.55];
    assert!((spread(&model, &printed, &scores) - 8.0).abs() < 1e-12);
}

#[test]
fn erratum_2_both_labels_of_an_exclusion_get_their_share() {
    let model =
        Model::new(&graph(|b| _ = b.exclusion("cat", "dog", Some(Strength::U(0.5))))).unwrap();
    let ising = model.to_ising(&[0.0, 0.0], None).unwrap();
    assert_eq!((ising.h.clone(), ising.j.clone()), (vec![0.5, 0.5], vec![(0, 1, 0.5)]));
    assert!(spread(&model, &ising, &[0.0, 0.0]) < 1e-12);
    let printed = Ising { h: vec![0.5, 0.0], ..ising };
    assert!(spread(&model, &printed, &[0.0, 0.0]) > 0.5);
}

#[test]
fn erratum_3_a_message_uses_the_belief_of_its_sender() {
    // On two spins one round of messages is exact. `m[j → i](y_i) = Σ_{y_j} ψ(y_i, y_j) b_j / m[i → j]`,
    // where before the first message b_j is the field of j and every message is 1.
    let model =
        Model::new(&graph(|b| _ = b.hierarchy("dog", "puppy", Some(Strength::U(0.5))))).unwrap();
    let scores = [0.4, 1.3];
    let ising = model.to_ising(&scores, None).unwrap();
    let coupling = ising.j[0].2;
    let field = |i: usize, y: f64| (-ising.h[i] * y).exp();
    let belief = |i: usize, sender: usize| {
        let weight = |y: f64| {
            let message: f64 = [-1.0, 1.0]
                .iter()
                .map(|&other| (-coupling * y * other).exp() * field(sender, other))
                .sum();
            field(i, y) * message
        };
        weight(1.0) / (weight(1.0) + weight(-1.0))
    };
    let exact = marginals(&model, &scores);
    assert!((belief(0, 1) - exact[0]).abs() < 1e-12);
    assert!((belief(1, 0) - exact[1]).abs() < 1e-12);
    // As printed, the message into i carries the belief of i itself.
    assert!((belief(0, 0) - exact[0]).abs() > 0.05);
}

#[test]
fn erratum_4_a_multinomial_node_has_twice_the_field() {
    let model = Model::new(&graph(|b| _ = b.one_of("class", ["a", "b", "c"], None))).unwrap();
    let scores = [0.2, 1.5, -0.4];
    let exact = marginals(&model, &scores);
    let node = |factor: f64| {
        // The field of each leaf is h = −ℓ/2.
        let weights: Vec<f64> = scores.iter().map(|l| (-factor * (-l / 2.0)).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(move |weight| weight / total).collect::<Vec<f64>>()
    };
    let distance = |p: &[f64]| exact.iter().zip(p).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(distance(&node(2.0)) < 1e-12, "the softmax of the logits");
    assert!(distance(&node(1.0)) > 0.1, "as printed");
}

#[test]
fn erratum_5_labels_that_do_not_subsume_each_other_are_not_all_exclusive() {
    let dog = |rule| {
        let mut builder = GraphBuilder::new();
        for (parent, child) in [
            ("animal", "canine"),
            ("animal", "domestic animal"),
            ("canine", "dog"),
            ("domestic animal", "dog"),
            ("dog", "husky"),
            ("canine", "wolf"),
        ] {
            builder.hierarchy(parent, child, None);
        }
        builder.exclusion_rule(rule, None);
        let report = builder.check();
        let dead: Vec<String> =
            report.of_kind(FindingKind::DeadLabel).map(|f| f.labels[0].clone()).collect();
        dead
    };
    assert_eq!(dog(ExclusionRule::NotSubsumed), ["dog", "husky"]);
    assert!(dog(ExclusionRule::NoCommonDescendant).is_empty());
}

#[test]
fn erratum_6_the_sum_of_log_marginals_is_not_the_joint() {
    let model = Model::new(&graph(|b| _ = b.hierarchy("dog", "puppy", None))).unwrap();
    let engine = Engine::compile(model.clone(), &Options::default()).unwrap();
    let scores = [0.1, -0.3];
    let log_z = |evidence: [Evidence; 2]| {
        let block = Block::new(2, &scores).with_evidence(&evidence);
        engine.run(&block, Want::default()).unwrap().log_partition[0]
    };
    let free = log_z([Evidence::Unknown; 2]);
    let joint = log_z([Evidence::On; 2]) - free;
    let p = marginals(&model, &scores);
    // The implied parent adds nothing to the joint; the paper's sum counts it again.
    assert!((joint - p[1].ln()).abs() < 1e-12);
    assert!((p[0].ln() + p[1].ln()) < joint - 0.1);
}

#[test]
fn ising_and_back_keeps_every_energy() {
    let model = Model::new(&graph(|b| {
        b.hierarchy("a", "b", Some(Strength::U(0.3)));
        b.exclusion_group(None, ["b", "c", "d"], Some(Strength::Q(0.2)));
    }))
    .unwrap();
    let scores = [0.5, -1.0, 2.0, 0.0];
    let ising = model.to_ising(&scores, None).unwrap();
    let back = ising.to_model();
    for state in states(4) {
        let expected = model.log_weight(&scores, &state);
        assert!((ising.energy(&state) + expected).abs() < 1e-12);
        assert!((back.log_weight(&[0.0; 4], &state) - expected).abs() < 1e-12);
    }
    let hard = Model::new(&graph(|b| _ = b.hierarchy("a", "b", None))).unwrap();
    assert!(hard.to_ising(&[0.0, 0.0], None).is_err(), "hard constraints need a finite cost");
    assert_eq!(hard.to_ising(&[0.0, 0.0], Some(8.0)).unwrap().j, [(0, 1, -2.0)]);
}
