//! Answers that were once wrong without a word, each as it was found.

use phex::graph::{ExclusionRule, GraphBuilder, Semantics, Strength};
use phex::infer::{
    Block, Engine, GroupForm, MessageOptions, Method, Options, Posterior, RowStatus, Trust, Want,
};
use phex::model::Model;

fn run(builder: &GraphBuilder, method: Method, scores: &[f64]) -> Option<Posterior<f64>> {
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let engine = Engine::compile(model, &Options { method, ..Options::default() }).ok()?;
    let block = Block::new(scores.len(), scores);
    Some(engine.run(&block, Want::default()).unwrap())
}

fn close(found: &[f64], right: &[f64]) -> bool {
    found.iter().zip(right).all(|(found, right)| (found - right).abs() < 6e-4)
}

/// A label `a` beside a tree; `c` and `d` nearly cancel. The columns are a, b, c, d, e.
fn cancelling() -> GraphBuilder {
    let mut builder = GraphBuilder::new();
    ["a", "b", "c", "d", "e"].into_iter().for_each(|label| {
        builder.label(label);
    });
    builder.hierarchy("c", "d", Some(Strength::Hard));
    builder.exclusion("a", "c", Some(Strength::Hard));
    builder.exclusion("b", "c", Some(Strength::Hard));
    builder.exclusion("d", "e", Some(Strength::W(1.0)));
    builder
}

/// The state that weighs most underflowed in two messages, so that no sum missed it.
#[test]
fn junction_finds_states_that_underflow_everywhere() {
    let scores = [0.0, 70.0, -632.5, 700.5, 0.0];
    let right = run(&cancelling(), Method::Brute, &scores).unwrap();
    assert!(close(&right.marginals, &[0.478, 0.956, 0.044, 0.044]), "{:?}", right.marginals);
    let mut engines = 0;
    for method in Method::exact() {
        let Some(found) = run(&cancelling(), method, &scores) else { continue };
        assert!(close(&found.marginals, &right.marginals), "{method}: {:?}", found.marginals);
        engines += 1;
    }
    assert!(engines > 1, "{engines}");
}

/// Damped messages to labels that were all but certain went on moving, and passed for settled.
#[test]
fn messages_that_still_move_have_not_converged() {
    let scores = [0.0, 30.0, -53.0, 81.0, 0.0];
    let right = run(&cancelling(), Method::Brute, &scores).unwrap();
    for damping in [0.0, 0.3, 0.5] {
        for groups in [GroupForm::Cardinality, GroupForm::Pairs] {
            let messages = MessageOptions { damping, groups, ..MessageOptions::default() };
            let found = messages_of(&cancelling(), messages, &scores);
            // The factors are a tree.
            assert!(close(&found.marginals, &right.marginals), "{:?}", found.marginals);
            assert_eq!(found.trust[0].doubt(), None, "{:?}", found.trust[0]);
        }
    }
    // Messages end at odds of 2²⁵⁰. What larger scores would cancel is lost, and said to be.
    let lost = [0.0, 70.0, -632.5, 700.5, 0.0];
    let right = run(&cancelling(), Method::Brute, &lost).unwrap();
    let found = messages_of(&cancelling(), MessageOptions::default(), &lost);
    let good = close(&found.marginals, &right.marginals);
    assert!(good || found.trust[0].doubt().is_some(), "{:?}", found.marginals);
}

fn messages_of(builder: &GraphBuilder, messages: MessageOptions, scores: &[f64]) -> Posterior<f64> {
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let options = Options { method: Method::Lbp, messages, ..Options::default() };
    let engine = Engine::compile(model, &options).unwrap();
    engine.run(&Block::new(scores.len(), scores), Want::default()).unwrap()
}

fn family() -> GraphBuilder {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", Some(Strength::U(0.7)));
    builder.hierarchy("a", "c", Some(Strength::U(0.7)));
    builder
}

/// Scores of one beside a score of 10¹⁶, and beyond.
#[test]
fn large_scores_leave_small_ones_their_weight() {
    let mut builder = family();
    builder.exclusion("b", "c", Some(Strength::U(0.5)));
    for large in [1e9, 1e16, 1e20, 1e30] {
        let mut engines = 0;
        for method in Method::exact() {
            let Some(found) = run(&builder, method, &[0.0, large, 1.0]) else { continue };
            let right = [0.9565, 1.0, 0.2582];
            assert!(close(&found.marginals, &right), "{method}, {large}: {:?}", found.marginals);
            engines += 1;
        }
        assert!(engines > 2, "{large}: {engines}");
    }
}

/// "No legal label set agrees with the evidence" was said of a row without evidence.
#[test]
fn an_imprecise_sum_is_not_an_impossible_row() {
    let mut builder = family();
    builder.semantics(Semantics::Dense);
    builder.exclusion_rule(ExclusionRule::Siblings, Some(Strength::U(0.5)));
    for large in [1e5, 9e5, 1e10, -1e10] {
        let right = run(&builder, Method::Brute, &[0.0, large, 1.0]).unwrap();
        let found = run(&builder, Method::Count, &[0.0, large, 1.0]).unwrap();
        assert_eq!(found.status[0], RowStatus::Answered, "{large}");
        assert!(close(&found.marginals, &right.marginals), "{large}: {:?}", found.marginals);
    }
}

/// Masks of −10⁹ on many labels, and large scores of labels that exclude each other.
#[test]
fn many_large_scores_decide_together() {
    let mut builder = GraphBuilder::new();
    for label in 0..12 {
        builder.label(&format!("l{label}"));
    }
    builder.exclusion_group(None, ["l0", "l1", "l2"], Some(Strength::Hard));
    let mut scores = vec![-1e9; 12];
    scores[11] = 0.3;
    let odds = |score: f64| 1.0 / (1.0 + (-score).exp());
    let mut engines = 0;
    for method in Method::exact() {
        let Some(found) = run(&builder, method, &scores) else { continue };
        engines += 1;
        let mut right = vec![0.0; 12];
        right[11] = odds(0.3);
        assert!(close(&found.marginals, &right), "{method}: {:?}", found.marginals);
    }
    assert!(engines > 3, "{engines}");
    // l1 wins by 10¹⁵, and nothing is left to round.
    (scores[0], scores[1], scores[2]) = (9e15, 1e16, 8.9e15);
    let mut engines = 0;
    for method in Method::exact() {
        let Some(found) = run(&builder, method, &scores) else { continue };
        engines += 1;
        let mut right = vec![0.0; 12];
        (right[1], right[11]) = (1.0, odds(0.3));
        assert!(close(&found.marginals, &right), "{method}: {:?}", found.marginals);
        assert_eq!(found.trust[0], Trust::Exact, "{method}");
    }
    assert!(engines > 3, "{engines}");
    // A tie that rounding decides is certified with the bound that it leaves.
    (scores[0], scores[1]) = (1e16, 1e16);
    let mut engines = 0;
    for method in Method::exact() {
        let Some(found) = run(&builder, method, &scores) else { continue };
        engines += 1;
        let certified = matches!(found.trust[0], Trust::Certified(bound) if bound > 0.5);
        assert!(certified, "{method}: {:?}", found.trust[0]);
    }
    assert!(engines > 3, "{engines}");
}
