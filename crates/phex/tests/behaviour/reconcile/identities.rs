//! Identities that hold for every row, and closed forms of small graphs.

use std::collections::BTreeSet;

use phex::decide::{Decision, decide_scores};
use phex::graph::{GraphBuilder, RelationGraph, Strength};
use phex::infer::{Block, Engine, Options};
use phex::model::Model;
use phex::numeric::{logit, sigmoid};
use phex::reconcile::{
    FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciled, Reconciler,
};
use phex::testkit::Random;

use super::problems::{Class, log_loss, logits, truths, violation, worst_violation};

const ROWS: usize = 8;

const CLASSES: [Class; 6] =
    [Class::Forest, Class::Dag, Class::Opposites, Class::Groups, Class::Leaves, Class::Mixed];

fn compile(graph: &RelationGraph) -> Reconciler {
    let options = ReconcileOptions { tolerance: 1e-11, ..ReconcileOptions::default() };
    Reconciler::compile(graph, &options).unwrap()
}

/// With `closure`, which can handle all parts.
fn order_of(graph: &RelationGraph) -> Reconciler {
    let engine = Some(ReconcileEngine::Closure);
    let options = ReconcileOptions { engine, ..Default::default() };
    let reconciler = Reconciler::compile(graph, &options).unwrap();
    let parts = &reconciler.plan().parts;
    assert!(parts.iter().all(|part| part.engine == ReconcileEngine::Closure), "{parts:?}");
    reconciler
}

fn run(reconciler: &Reconciler, logits: &[f64]) -> Reconciled<f64> {
    reconciler.run(FinishedRows::Logits(logits)).unwrap()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A graph with the labels and relations of another, declared in another order.
fn permuted(graph: &RelationGraph, order: &[usize]) -> RelationGraph {
    let mut builder = GraphBuilder::new();
    builder.close_labels();
    let name = |id: phex::graph::LabelId| graph.name(id);
    let ids: Vec<_> = graph.ids().collect();
    order.iter().for_each(|&label| {
        builder.label(name(ids[label]));
    });
    for edge in graph.hierarchy().iter().rev() {
        builder.hierarchy(name(edge.parent), name(edge.child), Some(edge.strength));
    }
    for exclusion in graph.exclusions().iter().rev() {
        let names = exclusion.labels.iter().map(|&id| name(id));
        builder.exclusion_group(None, names, Some(exclusion.strength));
    }
    if let Some(rule) = graph.rule() {
        builder.exclusion_rule(rule.rule, Some(rule.strength));
    }
    for group in graph.one_of() {
        builder.one_of(&group.name, group.labels.iter().map(|&id| name(id)), None);
    }
    builder.build().unwrap()
}

#[test]
fn a_second_run_changes_nothing() {
    for class in CLASSES {
        for seed in 0..60 {
            let graph = class.draw(seed);
            let reconciler = compile(&graph);
            let once = run(&reconciler, &logits(graph.len(), ROWS, seed));
            let input = FinishedRows::Probabilities(&once.probabilities);
            let twice = reconciler.run(input).unwrap();
            for row in 0..ROWS {
                if once.violation[row] == 0.0 {
                    assert!(twice.is_unchanged(row), "{class:?} {seed}");
                    assert_eq!(once.row(row), twice.row(row), "{class:?} {seed}");
                } else {
                    assert!(apart(once.row(row), twice.row(row)) < 1e-9, "{class:?} {seed}");
                }
            }
        }
    }
}

#[test]
fn mixtures_of_legal_states_come_back_bit_for_bit() {
    let mut unchanged = 0;
    for class in CLASSES {
        for seed in 0..60 {
            let graph = class.draw(seed);
            let states = truths(&graph);
            let mut random = Random::new(seed);
            // Shares in eighths, so that sums are exact.
            let mut row = vec![0.0; graph.len()];
            for _ in 0..8 {
                let state = &states[random.below(states.len())];
                row.iter_mut().zip(state).for_each(|(p, &on)| *p += if on { 0.125 } else { 0.0 });
            }
            let reconciler = compile(&graph);
            let answer = reconciler.run(FinishedRows::Probabilities(&row)).unwrap();
            assert_eq!(answer.probabilities, row, "{class:?} {seed}");
            assert_eq!((answer.gain[0], answer.gap[0], answer.passes[0]), (0.0, 0.0, 0));
            let narrow: Vec<f32> = row.iter().map(|&p| p as f32).collect();
            let answer = reconciler.run(FinishedRows::Probabilities(&narrow)).unwrap();
            assert_eq!(answer.probabilities, narrow, "{class:?} {seed}");
            unchanged += 1;
        }
    }
    assert_eq!(unchanged, 60 * CLASSES.len());
}

#[test]
fn the_gain_of_an_exact_answer_is_the_divergence() {
    for class in [Class::Forest, Class::Dag, Class::Opposites] {
        for seed in 0..100 {
            let graph = class.draw(seed);
            let n = graph.len();
            let scores = logits(n, ROWS, seed);
            let answer = run(&compile(&graph), &scores);
            for row in 0..ROWS {
                let p: Vec<f64> = scores[row * n..][..n].iter().map(|&z| sigmoid(z)).collect();
                let kl = |q: f64, p: f64| if q == 0.0 { 0.0 } else { q * (q / p).ln() };
                let divergence: f64 = answer
                    .row(row)
                    .iter()
                    .zip(&p)
                    .map(|(&q, &p)| kl(q, p) + kl(1.0 - q, 1.0 - p))
                    .sum();
                let gain = answer.gain[row];
                assert!(
                    (gain - divergence).abs() < 1e-9 * (1.0 + divergence),
                    "{gain} {divergence}"
                );
                assert!(answer.gap[row] < 1e-10, "{class:?} {seed}");
                // The bound is sharp: some legal truth gains no more than this.
                let improvement = |truth: &Vec<bool>| {
                    log_loss(truth, &p, None) - log_loss(truth, answer.row(row), None)
                };
                let least = truths(&graph).iter().map(improvement).fold(f64::INFINITY, f64::min);
                assert!(least - gain < 1e-9 * (1.0 + least), "{class:?} {seed}: {least} {gain}");
            }
        }
    }
}

#[test]
fn answers_commute_with_permutations_of_labels_and_rows() {
    for class in CLASSES {
        for seed in 0..40 {
            let graph = class.draw(seed);
            let n = graph.len();
            let scores = logits(n, ROWS, seed);
            let answer = run(&compile(&graph), &scores);
            let mut random = Random::new(seed);
            let mut order: Vec<usize> = (0..n).collect();
            (1..n).for_each(|at| order.swap(at, random.below(at + 1)));
            let turned: Vec<f64> = (0..ROWS)
                .flat_map(|row| order.iter().map(move |&label| (row, label)))
                .map(|(row, label)| scores[(ROWS - 1 - row) * n + label])
                .collect();
            let other = run(&compile(&permuted(&graph, &order)), &turned);
            for row in 0..ROWS {
                let q = answer.row(ROWS - 1 - row);
                let expected: Vec<f64> = order.iter().map(|&label| q[label]).collect();
                let distance = apart(&expected, other.row(row));
                assert!(distance < 1e-8, "{class:?} {seed}: {distance:e}");
            }
        }
    }
}

#[test]
fn the_bits_of_a_row_do_not_depend_on_its_block() {
    for class in CLASSES {
        let graph = class.draw(7);
        let n = graph.len();
        let reconciler = compile(&graph);
        let scores = logits(n, 600, 7);
        let narrow: Vec<f32> = scores.iter().map(|&z| z as f32).collect();
        let whole = run(&reconciler, &scores);
        let whole_narrow = reconciler.run(FinishedRows::Logits(&narrow)).unwrap();
        for size in [1, 7, 64] {
            for (at, (rows, few)) in
                scores.chunks(n * size).zip(narrow.chunks(n * size)).enumerate()
            {
                let part = run(&reconciler, rows);
                let (start, end) = (at * size * n, at * size * n + rows.len());
                assert_eq!(part.probabilities, whole.probabilities[start..end], "{class:?}");
                assert_eq!(part.gain, whole.gain[start / n..end / n], "{class:?}");
                let part = reconciler.run(FinishedRows::Logits(few)).unwrap();
                assert_eq!(part.probabilities, whole_narrow.probabilities[start..end], "{class:?}");
            }
        }
    }
}

#[test]
fn temperature_commutes_with_orders() {
    for class in [Class::Forest, Class::Dag, Class::Opposites, Class::Pairs] {
        for seed in 0..60 {
            let graph = class.draw(seed);
            let reconciler = order_of(&graph);
            // Small enough that no logit is clipped.
            let scores: Vec<f64> =
                logits(graph.len(), ROWS, seed).into_iter().map(|z| z / 4.0).collect();
            let warm = run(&reconciler, &scores);
            let scaled: Vec<f64> = scores.iter().map(|z| 2.5 * z).collect();
            let cold = run(&reconciler, &scaled);
            let expected: Vec<f64> =
                warm.probabilities.iter().map(|&q| sigmoid(2.5 * logit(q))).collect();
            assert!(apart(&expected, &cold.probabilities) < 1e-9, "{class:?} {seed}");
        }
    }
}

#[test]
fn labels_above_one_half_are_the_most_probable_legal_set_of_a_hierarchy() {
    let mut compared = 0;
    for class in [Class::Forest, Class::Dag] {
        for seed in 0..150 {
            let graph = class.draw(seed);
            let n = graph.len();
            let engine = Engine::compile(Model::new(&graph).unwrap(), &Options::default()).unwrap();
            let scores = logits(n, ROWS, seed);
            let answer = run(&compile(&graph), &scores);
            let block = Block::new(n, &scores);
            let decided = decide_scores(&Decision::Consistent, &graph, &engine, &block).unwrap();
            for row in 0..ROWS {
                let q = answer.row(row);
                if q.iter().any(|q| (q - 0.5).abs() < 1e-9) {
                    continue;
                }
                let above: Vec<bool> = q.iter().map(|&q| q > 0.5).collect();
                assert_eq!(engine.best(&block, row, 1).unwrap()[0].on, above, "{class:?} {seed}");
                assert_eq!(decided.row(row), above, "{class:?} {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "{compared}");
}

#[test]
fn decisions_on_reconciled_probabilities_are_the_best_legal_set() {
    for class in CLASSES {
        for seed in 0..40 {
            let graph = class.draw(seed);
            let n = graph.len();
            let answer = run(&compile(&graph), &logits(n, ROWS, seed));
            let engine = Engine::compile(Model::new(&graph).unwrap(), &Options::default()).unwrap();
            let scores = answer.logits();
            let block = Block::new(n, &scores);
            let decided = decide_scores(&Decision::Consistent, &graph, &engine, &block).unwrap();
            let legal = truths(&graph);
            for row in 0..ROWS {
                let value = |set: &[bool]| -> f64 {
                    let scores = scores[row * n..][..n].iter();
                    scores.zip(set).map(|(score, &on)| if on { *score } else { 0.0 }).sum()
                };
                let best = legal.iter().map(|set| value(set)).fold(f64::NEG_INFINITY, f64::max);
                assert!(legal.iter().any(|set| set == decided.row(row)), "{class:?} {seed}");
                assert!(value(decided.row(row)) > best - 1e-9, "{class:?} {seed}");
            }
        }
    }
}

#[test]
fn a_hierarchy_keeps_the_sum_of_the_logits() {
    for class in [Class::Forest, Class::Dag] {
        for seed in 0..60 {
            let graph = class.draw(seed);
            let n = graph.len();
            let scores = logits(n, 1, seed);
            let q = run(&compile(&graph), &scores).probabilities;
            let after: f64 = q.iter().map(|&q| logit(q)).sum();
            let before: f64 = scores.iter().sum();
            // A logit near ±14 has lost digits as a probability.
            assert!((before - after).abs() < 1e-8, "{class:?} {seed}: {before} {after}");
        }
    }
}

#[test]
fn the_brier_projection_is_not_worse_in_the_log_loss_either() {
    for class in [Class::Forest, Class::Dag] {
        for seed in 0..100 {
            let graph = class.draw(seed);
            let n = graph.len();
            let p: Vec<f64> = logits(n, ROWS, seed).into_iter().map(sigmoid).collect();
            let options = ReconcileOptions { loss: ReconcileLoss::Brier, ..Default::default() };
            let reconciler = Reconciler::compile(&graph, &options).unwrap();
            let answer = reconciler.run(FinishedRows::Probabilities(&p)).unwrap();
            for row in 0..ROWS {
                for truth in truths(&graph) {
                    let before = log_loss(&truth, &p[row * n..][..n], None);
                    let after = log_loss(&truth, answer.row(row), None);
                    assert!(after <= before + 1e-9 * (1.0 + before), "{class:?} {seed}");
                }
            }
        }
    }
}

#[test]
fn the_brier_score_is_refused_where_labels_exclude_each_other() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    builder.exclusion("dog", "cat", None);
    let options = ReconcileOptions { loss: ReconcileLoss::Brier, ..Default::default() };
    let error = Reconciler::compile(&builder.build().unwrap(), &options).unwrap_err();
    let part = "only for hierarchies, and `dog` and `cat` exclude each other";
    assert!(error.to_string().contains(part), "{error}");
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", Some(Strength::W(0.5)));
    let error = Reconciler::compile(&builder.build().unwrap(), &options).unwrap_err();
    let part = "the Brier score needs hard relations, and that of `animal` and `dog` is soft";
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn an_engine_is_used_where_it_fits_and_the_plan_says_where_not() {
    // A chain, a family, a hierarchy with several parents, and a soft relation.
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None);
    builder.hierarchy("plant", "rose", None).hierarchy("plant", "oak", None);
    builder.exclusion_group(None, ["rose", "oak"], None);
    builder.hierarchy("red", "wine", None).hierarchy("drink", "wine", None);
    builder.hierarchy("drink", "tea", None);
    builder.hierarchy("hot", "sun", Some(Strength::W(1.0)));
    let graph = builder.build().unwrap();
    use ReconcileEngine::{Categorical, Closure, Family, Newton, Pool};
    for (engine, expected) in [
        (None, vec![Pool, Closure, Family, Newton]),
        (Some(Pool), vec![Pool, Closure, Family, Newton]),
        (Some(Closure), vec![Closure, Newton]),
        (Some(Family), vec![Closure, Family, Newton]),
        (Some(Categorical), vec![Pool, Closure, Family, Newton]),
        (Some(Newton), vec![Newton]),
    ] {
        let options = ReconcileOptions { engine, tolerance: 1e-11, ..Default::default() };
        let reconciler = Reconciler::compile(&graph, &options).unwrap();
        let parts = &reconciler.plan().parts;
        let engines: BTreeSet<_> = parts.iter().map(|part| part.engine).collect();
        assert_eq!(engines, expected.into_iter().collect(), "{engine:?}");
        for part in parts {
            let fell_back = engine.is_some_and(|engine| engine != part.engine);
            let said =
                engine.is_some_and(|engine| part.why.contains(&format!("`{engine}` is only")));
            assert_eq!(fell_back, said, "{engine:?}: {}", part.why);
        }
        let scores = [0.5; 11].map(|score| -score);
        let rows: Vec<f64> = scores.iter().zip(1..).map(|(s, at)| s * f64::from(at % 5)).collect();
        let plain = compile(&graph).run(FinishedRows::Logits(&rows)).unwrap();
        let answer = reconciler.run(FinishedRows::Logits(&rows)).unwrap();
        // `closure` limits two exclusive labels by 1, and not by what is above them.
        let pairs = plain.probabilities.iter().zip(&answer.probabilities);
        for (a, b) in pairs.filter(|_| engine != Some(Closure)) {
            assert!((a - b).abs() < 1e-8, "{engine:?}: {a} {b}");
        }
    }
}

#[test]
fn small_graphs_have_closed_forms() {
    let mut random = Random::new(11);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let one_of = |names: &[&str]| {
        let mut builder = GraphBuilder::new();
        builder.one_of("group", names.iter().copied(), None);
        compile(&builder.build().unwrap())
    };
    let mut parent_child = GraphBuilder::new();
    parent_child.hierarchy("p", "c", None);
    let parent_child = compile(&parent_child.build().unwrap());
    let mut exclusive = GraphBuilder::new();
    exclusive.exclusion("a", "b", None);
    let graph = exclusive.build().unwrap();
    let group = one_of(&["a", "b", "c", "d"]);
    for _ in 0..200 {
        let z: Vec<f64> = random.normals(4).iter().map(|z| 3.0 * z).collect();
        // One-of: all logits move by the same amount.
        let q = run(&group, &z).probabilities;
        let lambda: Vec<f64> = z.iter().zip(&q).map(|(z, &q)| z - logit(q)).collect();
        lambda.iter().for_each(|&l| assert!((l - lambda[0]).abs() < 1e-7, "{lambda:?}"));
        close(q.iter().sum(), 1.0);
        // Parent and child: the mean logit, if the child is above.
        let q = run(&parent_child, &z[..2]).probabilities;
        let mean = 0.5 * (z[0] + z[1]);
        close(q[0], sigmoid(if z[1] > z[0] { mean } else { z[0] }));
        close(q[1], sigmoid(if z[1] > z[0] { mean } else { z[1] }));
        // Two exclusive labels: plus and minus half the difference, by each engine.
        for engine in [None, Some(ReconcileEngine::Closure), Some(ReconcileEngine::Family)] {
            let options = ReconcileOptions { engine, tolerance: 1e-11, ..Default::default() };
            let reconciler = Reconciler::compile(&graph, &options).unwrap();
            let q = run(&reconciler, &z[..2]).probabilities;
            let half = 0.5 * (z[0] - z[1]);
            let both = z[0] + z[1] > 0.0;
            close(q[0], sigmoid(if both { half } else { z[0] }));
            close(q[1], sigmoid(if both { -half } else { z[1] }));
        }
    }
}

#[test]
fn partial_truths_closed_under_implication_are_never_worse() {
    let mut scored = 0;
    for class in [Class::Forest, Class::Dag, Class::Opposites, Class::Groups] {
        for seed in 0..100 {
            let graph = class.draw(seed);
            let n = graph.len();
            let scores = logits(n, ROWS, seed);
            let answer = run(&compile(&graph), &scores);
            let mut random = Random::new(seed);
            let legal = truths(&graph);
            for row in 0..ROWS {
                let truth = &legal[random.below(legal.len())];
                let mut observed: Vec<bool> = (0..n).map(|_| random.next() < 0.5).collect();
                close_partial(&graph, truth, &mut observed);
                let p: Vec<f64> = scores[row * n..][..n].iter().map(|&z| sigmoid(z)).collect();
                let loss = |p: &[f64]| {
                    let weights: Vec<f64> =
                        observed.iter().map(|&seen| if seen { 1.0 } else { 0.0 }).collect();
                    log_loss(truth, p, Some(&weights))
                };
                let (before, after) = (loss(&p), loss(answer.row(row)));
                assert!(
                    after <= before + 1e-9 * (1.0 + before),
                    "{class:?} {seed} {before} {after}"
                );
                scored += usize::from(observed.iter().any(|&seen| !seen));
            }
        }
    }
    assert!(scored > 500, "{scored}");
}

/// Observes what the observed labels imply: all above a label that is on and all that it excludes,
/// and all below a label that is off.
fn close_partial(graph: &RelationGraph, truth: &[bool], observed: &mut [bool]) {
    loop {
        let before = observed.to_vec();
        for edge in graph.hierarchy() {
            let (parent, child) = (edge.parent.index(), edge.child.index());
            observed[parent] |= observed[child] && truth[child];
            observed[child] |= observed[parent] && !truth[parent];
        }
        for exclusion in graph.exclusions() {
            let labels = || exclusion.labels.iter().map(|id| id.index());
            if labels().any(|label| observed[label] && truth[label]) {
                labels().for_each(|label| observed[label] = true);
            }
        }
        if before == observed {
            return;
        }
    }
}

#[test]
fn partial_truths_that_are_not_closed_may_be_worse() {
    // Only "the child is on" is scored: parent .2, child .7.
    let mut builder = GraphBuilder::new();
    builder.hierarchy("p", "c", None);
    let z = [0.2, 0.7].map(logit);
    let q = run(&compile(&builder.build().unwrap()), &z).probabilities;
    assert!((-(0.7_f64.ln()) - 0.36).abs() < 0.01 && (-q[1].ln() - 0.84).abs() < 0.01);
    // Only "a is off" is scored, in a one-of group.
    let mut builder = GraphBuilder::new();
    builder.one_of("group", ["a", "b", "c"], None);
    let q = run(&compile(&builder.build().unwrap()), &[0.1, 0.1, 0.1].map(logit)).probabilities;
    assert!((-(0.9_f64.ln()) - 0.105).abs() < 1e-3 && (-(1.0 - q[0]).ln() - 0.405).abs() < 1e-3);
}

#[test]
fn zeros_and_ones_are_made_consistent_and_finite() {
    let mut compared = 0;
    for class in CLASSES {
        for seed in 0..60 {
            let graph = class.draw(seed);
            let n = graph.len();
            let mut random = Random::new(seed);
            let p: Vec<f64> =
                (0..n * ROWS).map(|_| [0.0, 0.0, 0.25, 0.5, 1.0][random.below(5)]).collect();
            let narrow: Vec<f32> = p.iter().map(|&p| p as f32).collect();
            let reconciler = compile(&graph);
            let answer = reconciler.run(FinishedRows::Probabilities(&p)).unwrap();
            let single = reconciler.run(FinishedRows::Probabilities(&narrow)).unwrap();
            for row in 0..ROWS {
                assert!(worst_violation(&graph, answer.row(row)) < 1e-13, "{class:?} {seed}");
                let wide: Vec<f64> = single.row(row).iter().map(|&q| f64::from(q)).collect();
                let [inequality, equation] = violation(&graph, &truths(&graph), &wide);
                assert!(inequality <= 1e-13 && equation < 1e-5, "{class:?} {seed}: {inequality}");
                // A row that changes counts as clipped.
                for (q, gain, limit) in
                    [(answer.row(row), answer.gain[row], 30.0), (&wide[..], single.gain[row], 15.0)]
                {
                    assert!(q.iter().all(|q| (0.0..=1.0).contains(q)) && gain.is_finite());
                    let clipped: Vec<f64> = p[row * n..][..n]
                        .iter()
                        .map(|&p| sigmoid((p.ln() - (-p).ln_1p()).clamp(-limit, limit)))
                        .collect();
                    for truth in truths(&graph) {
                        let before = log_loss(&truth, &p[row * n..][..n], None);
                        if before.is_infinite() {
                            continue;
                        }
                        let before = log_loss(&truth, &clipped, None);
                        let after = log_loss(&truth, q, None);
                        assert!(after <= before - gain + 1e-9 * (1.0 + before), "{class:?} {seed}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
