//! Tests on the ImageNet graph: 1860 labels, 74 of which have several parents.

use super::Junction;
use crate::graph::{ExclusionRule, GraphBuilder, Strength};
use crate::infer::{Answers, Block, Budget};
use crate::model::{Model, Relation};
use crate::numeric::Scalar;
use crate::testkit::imagenet_edges;

/// The model, or `None` where the data is missing.
fn model(hierarchy: Strength, rule: ExclusionRule, soft: Strength, one_of: bool) -> Option<Model> {
    let edges = imagenet_edges()?;
    let mut builder = GraphBuilder::new();
    for (parent, child) in &edges {
        builder.hierarchy(parent, child, Some(hierarchy));
    }
    builder.exclusion_rule(rule, Some(soft));
    if one_of {
        builder.one_of_leaves("leaves");
    }
    Some(Model::new(&builder.build().expect("a graph")).expect("a model"))
}

fn compile(model: &Model) -> Junction {
    Junction::compile(model, &Budget::default(), 7, 1).expect("the model fits the budget")
}

fn run<T: Scalar>(junction: &Junction, model: &Model, scores: &[T]) -> (f64, Vec<T>, Vec<T>) {
    let mut marginals = vec![T::NAN; model.len()];
    let (mut log_partition, mut error) = ([0.0], [0.0]);
    let mut expectations = vec![T::NAN; model.relations().len()];
    let mut answers = Answers {
        marginals: &mut marginals,
        log_partition: &mut log_partition,
        expectations: Some(&mut expectations),
        error: &mut error,
        diagnosis: &mut [],
        standard_errors: None,
    };
    junction.run(&Block::new(model.len(), scores), &mut answers);
    (log_partition[0], marginals, expectations)
}

/// Checks `d log Z / d score = marginal` and `d log Z / d cost = −violations` by finite
/// differences.
fn check_gradient(junction: &Junction, model: &Model) {
    let score = |at: usize| ((at as f64 * 0.754_877_666).fract() - 0.5) * 4.0;
    let mut scores: Vec<f64> = (0..model.len()).map(score).collect();
    let (_, marginals, expectations) = run(junction, model, &scores);
    for label in (0..model.len()).step_by(371) {
        let step = 1e-4;
        scores[label] += step;
        let more = run(junction, model, &scores).0;
        scores[label] -= 2.0 * step;
        let less = run(junction, model, &scores).0;
        scores[label] += step;
        let slope = (more - less) / (2.0 * step);
        assert!((slope - marginals[label]).abs() < 1e-6, "{slope}, not {}", marginals[label]);
    }
    assert!(expectations.iter().all(|value| value.is_finite() && *value >= 0.0));
    // Single precision agrees.
    let single: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let ours = run(junction, model, &single).1;
    for (ours, truth) in ours.iter().zip(&marginals) {
        assert!((f64::from(*ours) - truth).abs() < 1e-5, "{ours}, not {truth}");
    }
}

const NO_COMMON: ExclusionRule = ExclusionRule::NoCommonDescendant;
const SOFT: Strength = Strength::U(0.5);

#[test]
fn hard() {
    for (one_of, count) in [(true, 1000.0), (false, 2515.0)] {
        let Some(model) = model(Strength::Hard, NO_COMMON, Strength::Hard, one_of) else { return };
        let junction = compile(&model);
        let zeros = vec![0.0; model.len()];
        let (log_partition, _, expectations) = run(&junction, &model, &zeros);
        assert!((log_partition - f64::ln(count)).abs() < 1e-9, "{}", log_partition.exp());
        assert!(expectations.iter().all(|&value| value == 0.0));
        assert!(junction.states() < 12_000, "{}", junction.states());
        check_gradient(&junction, &model);
        assert_eq!(junction.best(&Block::new(model.len(), &zeros), 0, 5).len(), 5);
    }
}

#[test]
fn soft_hierarchy_with_hard_exclusion() {
    for one_of in [true, false] {
        let Some(model) = model(SOFT, NO_COMMON, Strength::Hard, one_of) else { return };
        let junction = compile(&model);
        assert!(junction.states() < 60_000, "{}", junction.states());
        check_gradient(&junction, &model);
        let zeros = vec![0.0; model.len()];
        let block = Block::new(model.len(), &zeros);
        let best = junction.best(&block, 0, 1);
        let sample = junction.sampler(&block, 0).expect("possible").draw(&mut || 0.5);
        assert!(model.log_weight(&zeros, &sample) <= best[0].log_weight + 1e-9);
    }
}

/// Checks that `d log Z / d cost` of all exclusions together is minus their expected violations.
/// Most of these are pairs without a common bag.
#[test]
fn soft_siblings() {
    let rule = ExclusionRule::Siblings;
    let at = |u: f64| model(SOFT, rule, Strength::U(u), true);
    let (Some(middle), Some(more), Some(less)) = (at(0.5), at(0.5 + 1e-4), at(0.5 - 1e-4)) else {
        return;
    };
    let compile = |model: &Model| {
        Junction::compile(model, &Budget::default(), 0, 1).expect("the model fits the budget")
    };
    let junction = compile(&middle);
    assert!(junction.states() < 6_000_000, "{}", junction.states());
    let score = |at: usize| ((at as f64 * 0.754_877_666).fract() - 0.5) * 4.0;
    let scores: Vec<f64> = (0..middle.len()).map(score).collect();
    let (_, marginals, expectations) = run(&junction, &middle, &scores);
    let leaves = middle.one_of()[0].labels.iter().map(|label| marginals[label.index()]);
    assert!((leaves.sum::<f64>() - 1.0).abs() < 1e-9);
    let violations: f64 = middle
        .relations()
        .iter()
        .zip(&expectations)
        .filter(|(relation, _)| !matches!(relation, Relation::Hierarchy { .. }))
        .map(|(_, expectation)| expectation)
        .sum();
    let log_partition = |model: &Model| {
        let junction = compile(model);
        let mut answer = ([0.0], [0.0], vec![0.0; model.len()]);
        let mut answers = Answers {
            marginals: &mut answer.2,
            log_partition: &mut answer.0,
            expectations: None,
            error: &mut answer.1,
            diagnosis: &mut [],
            standard_errors: None,
        };
        junction.run(&Block::new(model.len(), &scores), &mut answers);
        answer.0[0]
    };
    // A step of 1e-4 in u is a step of 4e-4 in the cost.
    let slope = (log_partition(&more) - log_partition(&less)) / 8e-4;
    assert!((slope + violations).abs() < 1e-5 * violations, "{slope}, not {violations}");
}
