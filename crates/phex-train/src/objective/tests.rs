//! Checks baselines against central differences and against the models that they are equal to.

use phex::graph::{ExclusionRule, GraphBuilder};
use phex::infer::Evidence::{Off, On, Unknown};

use super::*;

fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", None).hierarchy("a", "c", None).hierarchy("b", "d", None);
    builder.hierarchy("b", "e", None);
    builder.build().unwrap()
}

#[test]
fn gradients_are_central_differences() {
    let graph = graph();
    let logits = [0.3f32, -0.4, 0.9, 1.1, -0.7, 0.2, 0.1, -1.2, 0.5, 0.8];
    let evidence = [On, On, Unknown, Unknown, Off, On, Off, On, Off, Unknown];
    let weights = [1.0, 0.5];
    for config in [
        ObjectiveConfig::Independent,
        ObjectiveConfig::Softmax { coarse: true },
        ObjectiveConfig::MaxConstraint,
        ObjectiveConfig::Relations { loss: Loss::Joint },
        ObjectiveConfig::Relations { loss: Loss::Marginal },
    ] {
        let objective = Objective::new(config, &graph, &Options::default()).unwrap();
        let total =
            |logits: &[f32]| objective.loss(logits, &evidence, &weights, false).unwrap().total;
        let found = objective.loss(&logits, &evidence, &weights, false).unwrap();
        assert_eq!(found.impossible, None);
        for at in 0..logits.len() {
            let moved = |by: f32| {
                let mut logits = logits;
                logits[at] += by;
                total(&logits)
            };
            let slope = (moved(2e-3) - moved(-2e-3)) / 4e-3;
            let error = (f64::from(found.by_logit[at]) - slope).abs();
            assert!(error < 2e-3, "{config:?} {at}: {} {slope}", found.by_logit[at]);
        }
    }
}

/// What the loss needed anyway are the probabilities of prediction; not where a row was left out.
#[test]
fn the_loss_knows_the_probabilities() {
    let relations = ObjectiveConfig::Relations { loss: Loss::Joint };
    let objective = Objective::new(relations, &graph(), &Options::default()).unwrap();
    let logits = [0.3f32, -0.4, 0.9, 1.1, -0.7, 0.2, 0.1, -1.2, 0.5, 0.8];
    let mut evidence = [On, On, Unknown, Unknown, Off, On, Off, On, Off, Unknown];
    let known = |evidence: &[Evidence], weights: &[f64]| {
        objective.loss(&logits, evidence, weights, false).unwrap().probabilities
    };
    assert_eq!(known(&evidence, &[1.0, 0.5]), Some(objective.probabilities(&logits).unwrap()));
    assert_eq!(known(&evidence, &[1.0, 0.0]), None);
    evidence[5..].fill(Unknown);
    assert_eq!(known(&evidence, &[1.0, 0.5]), None);
}

/// One leaf on, the rest excluded: HEX whose inner labels have no score of their own.
#[test]
fn the_softmax_is_hex_over_leaves() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", None).hierarchy("a", "c", None).hierarchy("b", "d", None);
    builder.hierarchy("b", "e", None);
    builder.exclusion_rule(ExclusionRule::Siblings, None).one_of_leaves("leaf");
    let hex = builder.build().unwrap();
    let make = |config| Objective::new(config, &hex, &Options::default()).unwrap();
    let softmax = make(ObjectiveConfig::Softmax { coarse: true });
    let relations = make(ObjectiveConfig::Relations { loss: Loss::Joint });
    // a, b, c, d, e: only leaves have scores.
    let logits = [0.0f32, 0.0, 0.4, 1.0, -0.3];
    let (p, q) =
        (softmax.probabilities(&logits).unwrap(), relations.probabilities(&logits).unwrap());
    p.iter().zip(&q).for_each(|(p, q)| assert!((p - q).abs() < 1e-6, "{p} {q}"));
    let evidence = [Unknown, On, Unknown, Unknown, Unknown];
    let loss =
        |objective: &Objective| objective.loss(&logits, &evidence, &[1.0], false).unwrap().total;
    assert!((loss(&softmax) - loss(&relations)).abs() < 1e-5);
    // Without coarse rows it says nothing of a row without a leaf.
    let fine = make(ObjectiveConfig::Softmax { coarse: false });
    assert_eq!(loss(&fine), 0.0);
}

#[test]
fn the_largest_sigmoid_keeps_the_hierarchy() {
    let graph = graph();
    let objective =
        Objective::new(ObjectiveConfig::MaxConstraint, &graph, &Options::default()).unwrap();
    let p = objective.probabilities(&[-2.0, -1.0, 0.5, 1.0, 0.0]).unwrap();
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let expected = [1.0, 1.0, 0.5, 1.0, 0.0].map(sigmoid);
    p.iter().zip(&expected).for_each(|(p, q)| assert!((p - q).abs() < 1e-6));
}
