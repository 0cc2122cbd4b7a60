//! Losses and gradients against brute force and central differences.

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, RowStatus};
use phex::learn::{Gradients, Loss, Objective, Strengths, Tie, gradients};
use phex::model::Model;
use phex::testkit::{Oracle, Random, RandomGraph};

fn as_option(evidence: Evidence) -> Option<bool> {
    match evidence {
        Evidence::On => Some(true),
        Evidence::Off => Some(false),
        Evidence::Unknown => None,
    }
}

/// The loss of a row by enumeration of all states.
fn brute_loss(graph: &RelationGraph, scores: &[f64], observed: &[Evidence], loss: Loss) -> f64 {
    let oracle = Oracle::new(graph);
    let nothing = vec![None; graph.len()];
    let (free, _) = oracle.marginals(scores, &nothing);
    let seen: Vec<Option<bool>> = observed.iter().copied().map(as_option).collect();
    match loss {
        Loss::Joint => free - oracle.marginals(scores, &seen).0,
        Loss::Marginal => {
            let alone = |label: usize| {
                let mut one = nothing.clone();
                one[label] = seen[label];
                free - oracle.marginals(scores, &one).0
            };
            (0..graph.len()).filter(|&label| seen[label].is_some()).map(alone).sum()
        }
    }
}

/// Observed labels that agree with a legal state, so that every loss is finite.
fn observe(random: &mut Random, oracle: &Oracle, part: f64) -> Vec<Evidence> {
    let legal = oracle.legal_states();
    let state = legal[random.below(legal.len())];
    let entry = |label: usize| if state >> label & 1 == 1 { Evidence::On } else { Evidence::Off };
    let mut known = |label: usize| random.next() < part && label < 32;
    (0..oracle.len())
        .map(|label| if known(label) { entry(label) } else { Evidence::Unknown })
        .collect()
}

struct Case {
    graph: RelationGraph,
    scores: Vec<f64>,
    observed: Vec<Evidence>,
    weights: Vec<f64>,
}

const ROWS: usize = 6;

fn case(seed: u64) -> Option<Case> {
    let mut random = Random::new(seed + 1);
    let graph = RandomGraph::any(3 + seed as usize % 8, seed).draw();
    let oracle = Oracle::new(&graph);
    if oracle.legal_states().is_empty() {
        return None;
    }
    let n = graph.len();
    let scores = (0..ROWS * n).map(|_| 1.5 * random.normal()).collect();
    // Nothing known, a little, much, everything.
    let observed = [0.0, 0.2, 0.5, 0.5, 0.8, 1.0]
        .iter()
        .flat_map(|&part| observe(&mut random, &oracle, part))
        .collect();
    let weights = vec![1.0, 0.5, 2.0, 0.0, 1.0, 3.0];
    Some(Case { graph, scores, observed, weights })
}

impl Case {
    fn run(&self, method: Method, loss: Loss) -> Option<Gradients<f64>> {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(Model::new(&self.graph).unwrap(), &options).ok()?;
        let block = Block::new(self.graph.len(), &self.scores).with_evidence(&self.observed);
        let objective = Objective { loss, costs: true };
        Some(gradients(&engine, &block, Some(&self.weights), objective).unwrap())
    }

    /// The weighted loss, by enumeration.
    fn brute(&self, graph: &RelationGraph, scores: &[f64], loss: Loss) -> f64 {
        let n = graph.len();
        let row = |row: usize| {
            let range = row * n..(row + 1) * n;
            self.weights[row]
                * brute_loss(graph, &scores[range.clone()], &self.observed[range], loss)
        };
        (0..ROWS).filter(|&at| self.weights[at] != 0.0).map(row).sum()
    }
}

#[test]
fn gradients_are_central_differences() {
    let step = 1e-5;
    let (mut engines, mut strengths_seen) = (0, 0);
    for seed in 0..60 {
        let Some(case) = case(seed) else { continue };
        for (loss, method) in [Loss::Joint, Loss::Marginal]
            .into_iter()
            .flat_map(|loss| Method::exact().map(move |method| (loss, method)))
        {
            let Some(found) = case.run(method, loss) else { continue };
            engines += 1;
            let context = format!("{method} {loss:?} seed {seed}");
            let total = found.total(Some(&case.weights));
            let expected = case.brute(&case.graph, &case.scores, loss);
            assert!(
                (total - expected).abs() < 1e-8 * (1.0 + expected.abs()),
                "{context}: {total} {expected}"
            );
            for at in 0..case.scores.len() {
                let moved = |by: f64| {
                    let mut scores = case.scores.clone();
                    scores[at] += by;
                    case.brute(&case.graph, &scores, loss)
                };
                let slope = (moved(step) - moved(-step)) / (2.0 * step);
                let error = (found.logits[at] - slope).abs();
                assert!(error < 1e-6, "{context}: logit {at}: {} {slope}", found.logits[at]);
            }
            let Ok(strengths) = Strengths::new(case.graph.clone(), Tie::Relation) else { continue };
            let gradient = strengths.gradient(found.costs.as_ref().unwrap());
            for at in 0..gradient.len() {
                let moved = |by: f64| {
                    let mut values = strengths.values().to_vec();
                    values[at] += by;
                    let mut moved = strengths.clone();
                    moved.set(&values);
                    case.brute(&moved.graph().unwrap(), &case.scores, loss)
                };
                if strengths.values()[at] < step {
                    continue; // A cost cannot be below 0.
                }
                let slope = (moved(step) - moved(-step)) / (2.0 * step);
                strengths_seen += 1;
                let name = &strengths.names()[at];
                assert!(
                    (gradient[at] - slope).abs() < 1e-6,
                    "{context}: {name}: {} {slope}",
                    gradient[at]
                );
            }
        }
    }
    assert!(engines > 200 && strengths_seen > 500, "{engines} {strengths_seen}");
}

#[test]
fn tied_strengths_have_the_gradient_of_their_scale() {
    let step = 1e-5;
    let mut seen = 0;
    for seed in 0..40 {
        let Some(case) = case(seed) else { continue };
        for tie in [Tie::Scale, Tie::Kind] {
            let Ok(strengths) = Strengths::new(case.graph.clone(), tie) else { continue };
            let found = case.run(Method::Brute, Loss::Joint).unwrap();
            let gradient = strengths.gradient(found.costs.as_ref().unwrap());
            for (at, slope) in gradient.iter().enumerate() {
                let moved = |by: f64| {
                    let mut values = strengths.values().to_vec();
                    values[at] += by;
                    let mut moved = strengths.clone();
                    moved.set(&values);
                    case.brute(&moved.graph().unwrap(), &case.scores, Loss::Joint)
                };
                let expected = (moved(step) - moved(-step)) / (2.0 * step);
                assert!((slope - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{tie:?} {seed}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn singles_agree_with_doubles() {
    let mut cases = 0;
    for seed in 0..30 {
        let Some(case) = case(seed) else { continue };
        let engine =
            Engine::compile(Model::new(&case.graph).unwrap(), &Options::default()).unwrap();
        let scores: Vec<f32> = case.scores.iter().map(|&score| score as f32).collect();
        let block = Block::new(case.graph.len(), &scores).with_evidence(&case.observed);
        for loss in [Loss::Joint, Loss::Marginal] {
            let objective = Objective { loss, costs: true };
            let narrow = gradients(&engine, &block, Some(&case.weights), objective).unwrap();
            let wide = case.run(Method::Auto, loss).unwrap();
            for (a, b) in narrow.logits.iter().zip(&wide.logits) {
                assert!((f64::from(*a) - b).abs() < 2e-4, "{loss:?} {seed}: {a} {b}");
            }
        }
        cases += 1;
    }
    assert!(cases > 15, "{cases}");
}

#[test]
fn observations_that_hard_relations_forbid_are_named_and_harmless() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("dog", "puppy", None);
    let engine =
        Engine::compile(Model::new(&builder.build().unwrap()).unwrap(), &Options::default())
            .unwrap();
    use Evidence::{Off, On, Unknown};
    let known = [Off, On, On, Unknown];
    let scores = [0.3, -0.2, 0.1, 0.4];
    let block = Block::new(2, &scores).with_evidence(&known);
    let joint = gradients(&engine, &block, None, Objective::default()).unwrap();
    assert_eq!(joint.status, [RowStatus::Impossible, RowStatus::Answered]);
    assert_eq!(joint.losses[0], f64::INFINITY);
    assert_eq!(&joint.logits[..2], [0.0, 0.0]);
    assert!(joint.total(None).is_finite());
    // Label by label they are possible.
    let objective = Objective { loss: Loss::Marginal, costs: false };
    let marginal = gradients(&engine, &block, None, objective).unwrap();
    assert_eq!(marginal.status, [RowStatus::Answered; 2]);
    assert!(marginal.losses[0].is_finite() && marginal.logits[0] != 0.0);
    assert!(gradients(&engine, &block, Some(&[1.0]), objective).is_err());
}

/// By message passing on trees, where it is exact, and by sampling roughly.
#[test]
fn approximate_engines_give_the_same_gradients_on_trees() {
    let mut builder = GraphBuilder::new();
    let soft = Some(Strength::U(0.4));
    builder.hierarchy("a", "b", soft).hierarchy("a", "c", soft).hierarchy("b", "d", soft);
    let model = Model::new(&builder.build().unwrap()).unwrap();
    let mut random = Random::new(3);
    let scores: Vec<f64> = (0..8).map(|_| random.normal()).collect();
    use Evidence::{Off, On, Unknown};
    let known = [On, Unknown, Off, Unknown, Unknown, On, On, Unknown];
    let block = Block::new(4, &scores).with_evidence(&known);
    for (method, tolerance) in [(Method::Lbp, 1e-6), (Method::Gibbs, 0.05)] {
        for loss in [Loss::Joint, Loss::Marginal] {
            let run = |method| {
                let options = Options { method, ..Options::default() };
                let engine = Engine::compile(model.clone(), &options).unwrap();
                gradients(&engine, &block, None, Objective { loss, costs: true }).unwrap()
            };
            let (found, exact) = (run(method), run(Method::Exact));
            for (a, b) in found.logits.iter().zip(&exact.logits) {
                assert!((a - b).abs() < tolerance, "{method} {loss:?}: {a} {b}");
            }
            let (found, exact) = (found.costs.unwrap(), exact.costs.unwrap());
            for (a, b) in found.iter().zip(&exact) {
                assert!((a - b).abs() < 4.0 * tolerance, "{method} {loss:?}: {a} {b}");
            }
        }
    }
}

/// Data drawn from a known model give its strengths back, also where labels are missing.
#[test]
fn learned_strengths_recover_the_true_ones() {
    let (hierarchy, exclusion) = (1.6, 0.9);
    let build = |hierarchy: f64, exclusion: f64| {
        let mut builder = GraphBuilder::new();
        let (h, e) = (Some(Strength::W(hierarchy)), Some(Strength::W(exclusion)));
        for (parent, child) in [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "f")] {
            builder.hierarchy(parent, child, h);
        }
        builder.exclusion_rule(ExclusionRule::Siblings, e);
        builder.build().unwrap()
    };
    let truth =
        Engine::compile(Model::new(&build(hierarchy, exclusion)).unwrap(), &Options::default())
            .unwrap();
    let mut random = Random::new(11);
    let (n, rows) = (6, 6000);
    let scores: Vec<f64> = (0..rows * n).map(|_| 1.2 * random.normal()).collect();
    let block = Block::new(n, &scores);
    for part in [1.0, 0.7] {
        let mut known = Vec::with_capacity(rows * n);
        for row in 0..rows {
            let state = truth.sample(&block, row, 1, 5).unwrap().remove(0);
            known.extend(state.into_iter().map(|on| match (random.next() < part, on) {
                (false, _) => Evidence::Unknown,
                (true, true) => Evidence::On,
                (true, false) => Evidence::Off,
            }));
        }
        let block = block.with_evidence(&known);
        let mut strengths = Strengths::new(build(4.0, 4.0), Tie::Kind).unwrap();
        for _ in 0..120 {
            let model = Model::new(&strengths.graph().unwrap()).unwrap();
            let engine = Engine::compile(model, &Options::default()).unwrap();
            let objective = Objective { loss: Loss::Joint, costs: true };
            let found = gradients(&engine, &block, None, objective).unwrap();
            let gradient = strengths.gradient(&found.costs.unwrap());
            let step: Vec<f64> = gradient.iter().map(|g| -0.08 * g / rows as f64).collect();
            strengths.step(&step);
        }
        let found: Vec<f64> = strengths.values().iter().map(|factor| 4.0 * factor).collect();
        assert_eq!(strengths.names(), ["hierarchy", "exclusion"]);
        assert!((found[0] - hierarchy).abs() < 0.15, "{part}: {found:?}");
        assert!((found[1] - exclusion).abs() < 0.15, "{part}: {found:?}");
    }
}

/// With dense semantics the cost of a pair follows from several relations.
#[test]
fn strengths_of_dense_graphs_are_tied_by_one_scale() {
    let mut builder = GraphBuilder::new();
    builder.semantics(phex::graph::Semantics::Dense);
    let (hierarchy, exclusion) = (Some(Strength::W(2.0)), Some(Strength::W(1.0)));
    builder.hierarchy("a", "b", hierarchy).hierarchy("a", "c", hierarchy);
    builder.exclusion_rule(ExclusionRule::Siblings, exclusion);
    let graph = builder.build().unwrap();
    assert!(Strengths::new(graph.clone(), Tie::Kind).is_err());
    let mut strengths = Strengths::new(graph, Tie::Scale).unwrap();
    strengths.set(&[0.5]);
    let costs: Vec<f64> = strengths.graph().unwrap().strengths().map(Strength::cost).collect();
    assert_eq!(costs, [1.0, 1.0, 0.5]);
}
