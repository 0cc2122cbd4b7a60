//! Decisions against what they promise, on random graphs.

use phex::decide::{Classes, Decision, decide, decide_scores};
use phex::graph::{GraphBuilder, LabelId};
use phex::infer::{Block, Engine, Evidence, Options, Want};
use phex::model::Model;
use phex::testkit::{Oracle, Random, RandomGraph, RandomStrengths};
use proptest::prelude::*;

const ROWS: usize = 4;

fn scores(seed: u64, labels: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..ROWS * labels).map(|_| random.normal() * 2.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn half_as_threshold_on_a_hard_graph_breaks_no_hierarchy_and_no_exclusion(
        labels in 1usize..9, seed in any::<u64>()
    ) {
        let hard = RandomGraph { strengths: RandomStrengths::Hard, ..RandomGraph::any(labels, seed) };
        let graph = hard.draw();
        let Ok(model) = Model::new(&graph) else { return Ok(()) };
        let engine = Engine::compile(model, &Options::default()).unwrap();
        let scores = scores(seed, labels);
        let block = Block::new(labels, &scores);
        let marginals = engine.run(&block, Want::default()).unwrap().marginals;
        let sets = decide_scores(&Decision::default(), &graph, &engine, &block).unwrap();
        for row in 0..ROWS {
            let p = &marginals[row * labels..][..labels];
            // On the edge itself rounding decides.
            if p.iter().any(|p| (p - 0.5).abs() < 1e-9) {
                continue;
            }
            let on = sets.row(row);
            for edge in graph.hierarchy() {
                prop_assert!(!on[edge.child.index()] || on[edge.parent.index()]);
            }
            for exclusion in graph.exclusions() {
                prop_assert!(exclusion.labels.iter().filter(|id| on[id.index()]).count() <= 1);
            }
        }
    }

    #[test]
    fn back_off_is_confident_and_nothing_deeper_is(
        labels in 1usize..9, seed in any::<u64>(), confidence in 0.0f64..=1.0
    ) {
        let graph = RandomGraph::any(labels, seed).draw();
        let mut random = Random::new(seed);
        let marginals: Vec<f64> = (0..ROWS * labels).map(|_| random.below(11) as f64 / 10.0).collect();
        let sets = decide(&Decision::BackOff { confidence }, &graph, &marginals).unwrap();
        for row in 0..ROWS {
            let p = |id: LabelId| marginals[row * labels + id.index()];
            let depth = |id: LabelId| graph.topology().depth(id);
            let confident = || graph.ids().filter(|&id| p(id) >= confidence);
            let Some(chosen) = sets.chosen(row) else {
                prop_assert_eq!(confident().count(), 0);
                prop_assert!(sets.row(row).iter().all(|on| !on));
                continue;
            };
            prop_assert!(p(chosen) >= confidence);
            for other in confident() {
                prop_assert!(depth(other) <= depth(chosen));
                prop_assert!(depth(other) < depth(chosen) || p(other) <= p(chosen));
            }
            for id in graph.ids() {
                let above = graph.topology().subsumes(id, chosen);
                prop_assert_eq!(sets.row(row)[id.index()], above);
            }
        }
    }

    #[test]
    fn best_is_the_most_probable_class(labels in 1usize..9, seed in any::<u64>()) {
        let graph = RandomGraph::any(labels, seed).draw();
        let mut random = Random::new(seed);
        let marginals: Vec<f32> = (0..ROWS * labels).map(|_| random.next() as f32).collect();
        for among in [Classes::Leaves, Classes::All] {
            let classes = among.resolve(&graph).unwrap();
            let sets = decide(&Decision::Best { among }, &graph, &marginals).unwrap();
            for row in 0..ROWS {
                let p = |id: &LabelId| marginals[row * labels + id.index()];
                let chosen = sets.chosen(row).unwrap();
                prop_assert!(classes.contains(&chosen));
                prop_assert!(classes.iter().all(|class| p(class) <= p(&chosen)));
                prop_assert!(sets.row(row)[chosen.index()]);
            }
        }
    }

    #[test]
    fn consistent_is_the_best_state_of_all(labels in 1usize..9, seed in any::<u64>()) {
        let graph = RandomGraph::any(labels, seed).draw();
        let Ok(model) = Model::new(&graph) else { return Ok(()) };
        let engine = Engine::compile(model, &Options::default()).unwrap();
        let scores = scores(seed, labels);
        let block = Block::new(labels, &scores);
        let sets = decide_scores(&Decision::Consistent, &graph, &engine, &block).unwrap();
        let oracle = Oracle::new(&graph);
        for row in 0..ROWS {
            let logits = block.row(row);
            let weight = |state: u32| oracle.log_weight(state, logits);
            let best = (0..1u32 << labels).map(weight).fold(f64::NEG_INFINITY, f64::max);
            let on = sets.row(row).iter().enumerate();
            let state = on.fold(0u32, |state, (label, on)| state | u32::from(*on) << label);
            prop_assert!(sets.is_answered(row));
            prop_assert!((weight(state) - best).abs() < 1e-9);
        }
    }
}

#[test]
fn rows_that_cannot_be_decided() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None);
    let graph = builder.build().unwrap();
    let engine = Engine::compile(Model::new(&graph).unwrap(), &Options::default()).unwrap();
    // A score that is not a number; evidence of a dog that is not an animal; a plain row.
    let scores = [f64::NAN, 0.0, 1.0, 1.0, 1.0, -3.0];
    let mut evidence = [Evidence::Unknown; 6];
    (evidence[2], evidence[3]) = (Evidence::Off, Evidence::On);
    let block = Block::new(2, &scores).with_evidence(&evidence);
    for decision in [Decision::Consistent, Decision::default()] {
        let sets = decide_scores(&decision, &graph, &engine, &block).unwrap();
        let answered: Vec<bool> = (0..3).map(|row| sets.is_answered(row)).collect();
        assert_eq!(answered, [false, false, true]);
        assert_eq!(sets.row(2), [true, false]);
    }
    let narrow = Block::new(1, &scores);
    assert!(decide_scores(&Decision::Consistent, &graph, &engine, &narrow).is_err());
    let other = RandomGraph::new(3, 1).draw();
    assert!(decide_scores(&Decision::Consistent, &other, &engine, &block).is_err());
}
