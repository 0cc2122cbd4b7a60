//! Fitting: what is known of the data is found, nothing is chosen that held-out rows speak against.

use phex::Error;
use phex::graph::{GraphBuilder, RelationGraph};
use phex::infer::Evidence::{self, Off, On, Unknown};
use phex::numeric::{logit, sigmoid};
use phex::reconcile::{
    FinishedRows, FitForm, FitOptions, FittedParameters, FittedReconciler, ReconcileOptions,
    Reconciler, fit,
};
use phex::testkit::Random;

use super::problems::{Class, log_loss, truths};

const PARENTS: usize = 3;
const CHILDREN: usize = 3;

/// Three parents with three children each. Parents are on level 0.
fn two_levels() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    for parent in 0..PARENTS {
        for child in 0..CHILDREN {
            builder.hierarchy(&format!("p{parent}"), &format!("p{parent}c{child}"), None);
        }
    }
    builder.build().unwrap()
}

/// Rows with their true marginals as logits, and truths drawn from them.
fn calibrated_rows(graph: &RelationGraph, rows: usize, seed: u64) -> (Vec<f64>, Vec<Evidence>) {
    let mut random = Random::new(seed);
    let n = graph.len();
    let (mut logits, mut states) = (vec![0.0; rows * n], vec![Off; rows * n]);
    for row in 0..rows {
        for &label in graph.topology().order() {
            let share = sigmoid(1.5 * random.normal());
            let at = row * n + label.index();
            let (above, open) = match graph.topology().parents(label).first() {
                None => (1.0, true),
                Some(parent) => {
                    let parent = row * n + parent.index();
                    (sigmoid(logits[parent]), states[parent] == On)
                }
            };
            logits[at] = logit(above * share);
            states[at] = Evidence::known(open && random.next() < share);
        }
    }
    (logits, states)
}

fn level(graph: &RelationGraph, label: usize) -> usize {
    graph.topology().depth(phex::graph::LabelId::from(label))
}

/// Changes the logits of a level.
fn change(graph: &RelationGraph, logits: &mut [f64], at: usize, mut to: impl FnMut(f64) -> f64) {
    for (entry, logit) in logits.iter_mut().enumerate() {
        if level(graph, entry % graph.len()) == at {
            *logit = to(*logit);
        }
    }
}

fn losses(graph: &RelationGraph, probabilities: &[f64], states: &[Evidence]) -> f64 {
    let n = graph.len();
    let rows = states.chunks(n).zip(probabilities.chunks(n));
    let total: f64 = rows
        .map(|(truth, p)| {
            let truth: Vec<bool> = truth.iter().map(|truth| *truth == On).collect();
            log_loss(&truth, p, None)
        })
        .sum();
    total / (states.len() / n) as f64
}

fn only(form: FitForm) -> FitOptions {
    FitOptions { forms: vec![form], noise: 0.0, ..FitOptions::default() }
}

#[test]
fn an_inflated_head_gets_a_temperature() {
    let graph = two_levels();
    let (mut logits, states) = calibrated_rows(&graph, 2000, 1);
    change(&graph, &mut logits, 1, |logit| 3.0 * logit);
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &only(FitForm::Levels));
    let levels = fitted.unwrap().parameters().levels.clone();
    assert!((levels[0].temperature - 1.0).abs() < 0.15, "{levels:?}");
    assert!((levels[1].temperature - 3.0).abs() < 0.3, "{levels:?}");
    // A shift is found as well.
    let (mut logits, states) = calibrated_rows(&graph, 2000, 2);
    change(&graph, &mut logits, 0, |logit| logit - 1.0);
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &only(FitForm::LevelsBias));
    let levels = fitted.unwrap().parameters().levels.clone();
    assert!((levels[0].bias - 1.0).abs() < 0.25, "{levels:?}");
    assert!(levels[1].bias.abs() < 0.25, "{levels:?}");
}

#[test]
fn calibrated_rows_are_left_alone() {
    let graph = two_levels();
    let (logits, states) = calibrated_rows(&graph, 1000, 3);
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &FitOptions::default());
    let fitted = fitted.unwrap();
    assert_eq!(fitted.parameters().form, FitForm::Identity);
    let p: Vec<f64> = logits.iter().map(|&logit| sigmoid(logit)).collect();
    let plain = Reconciler::compile(&graph, &ReconcileOptions::default()).unwrap();
    let rows = FinishedRows::Probabilities(&p);
    assert_eq!(fitted.run(rows).unwrap(), plain.run(rows).unwrap());
}

#[test]
fn a_poor_coarse_head_is_trusted_less() {
    let graph = two_levels();
    let mut random = Random::new(9);
    let mut spoil = |seed: u64| {
        let (mut logits, states) = calibrated_rows(&graph, 1500, seed);
        // The coarse head knows nothing.
        change(&graph, &mut logits, 0, |_| 2.0 * random.normal() - 2.0);
        (logits, states)
    };
    let (logits, states) = spoil(4);
    let options = FitOptions::default();
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &options).unwrap();
    let levels = &fitted.parameters().levels;
    let trusted = |at: usize| levels[at].weight / levels[at].temperature;
    assert!(trusted(0) < 0.2 * trusted(1), "{levels:?}");
    let trust = fit(&graph, FinishedRows::Logits(&logits), &states, &only(FitForm::Trust)).unwrap();
    let levels = &trust.parameters().levels;
    assert!(levels[0].weight < 0.5 * levels[1].weight, "{levels:?}");
    // Rows that the fit has not seen agree.
    let (logits, states) = spoil(5);
    let rows = FinishedRows::Logits(&logits);
    let plain = Reconciler::compile(&graph, &ReconcileOptions::default()).unwrap();
    let loss = |p: &[f64]| losses(&graph, p, &states);
    let before = loss(&plain.run(rows).unwrap().probabilities);
    let after = loss(&fitted.run(rows).unwrap().probabilities);
    let weighted = loss(&trust.run(rows).unwrap().probabilities);
    assert!(after < before - 0.1, "{after} {before}");
    assert!(weighted < before, "{weighted} {before}");
}

/// Four classes of two kinds each, a head for the kinds and one for the classes, and a truth per row.
fn softmax_heads(rows: usize, seed: u64) -> (RelationGraph, Vec<f64>, Vec<Evidence>) {
    let mut builder = GraphBuilder::new();
    for class in 0..4 {
        builder.hierarchy(&format!("kind {}", class / 2), &format!("class {class}"), None);
    }
    builder.single_label();
    let graph = builder.build().unwrap();
    let id = |name: String| graph.id(&name).unwrap().index();
    let mut random = Random::new(seed);
    let (mut p, mut states) = (vec![0.0; rows * 6], vec![Off; rows * 6]);
    for row in 0..rows {
        let (p, states) = (&mut p[row * 6..(row + 1) * 6], &mut states[row * 6..(row + 1) * 6]);
        let scores: Vec<f64> = (0..4).map(|_| (1.5 * random.normal()).exp()).collect();
        let total: f64 = scores.iter().sum();
        let drawn = random.next() * total;
        let mut below = 0.0;
        let class = scores
            .iter()
            .take_while(|score| {
                below += **score;
                below < drawn
            })
            .count();
        (0..4).for_each(|at| p[id(format!("class {at}"))] = scores[at] / total);
        // The head of the kinds knows nothing and is certain of it.
        let kind = sigmoid(3.0 * random.normal());
        (p[id(String::from("kind 0"))], p[id(String::from("kind 1"))]) = (kind, 1.0 - kind);
        states[id(format!("class {class}"))] = On;
        states[id(format!("kind {}", class / 2))] = On;
    }
    (graph, p, states)
}

#[test]
fn a_poor_head_comes_down_to_the_sum_of_the_fine_ones() {
    let (graph, p, states) = softmax_heads(1500, 1);
    let loss = phex::reconcile::ReconcileLoss::Categorical;
    let reconcile = ReconcileOptions { loss, ..ReconcileOptions::default() };
    let options = FitOptions { reconcile: reconcile.clone(), ..only(FitForm::Trust) };
    let rows = FinishedRows::Probabilities(&p);
    let fitted = fit(&graph, rows, &states, &options).unwrap();
    assert_eq!(fitted.parameters().form, FitForm::Trust, "{}", fitted.report().unwrap());
    let answer = fitted.run(rows).unwrap();
    for (q, p) in answer.probabilities.chunks(6).zip(p.chunks(6)) {
        for label in graph.leaves() {
            assert!((q[label.index()] - p[label.index()]).abs() < 0.02, "{q:?} {p:?}");
        }
    }
    // Logits of softmax heads are the same input.
    let logits: Vec<f64> = p.iter().map(|p| p.ln() + 0.7).collect();
    let all = FitOptions { reconcile, ..FitOptions::default() };
    let [a, b] =
        [rows, FinishedRows::Logits(&logits)].map(|rows| fit(&graph, rows, &states, &all).unwrap());
    assert_eq!(a.parameters(), b.parameters());
    let report = a.report().unwrap();
    let loss = |form: FitForm| {
        report.candidates.iter().find(|one| one.form == form).and_then(|one| one.loss).unwrap()
    };
    assert!(loss(report.chosen) < loss(FitForm::Identity) - 0.1, "{report}");
}

#[test]
fn nothing_worse_than_plain_reconciling_is_chosen() {
    for seed in 0..30 {
        let class = if seed % 2 == 0 { Class::Forest } else { Class::Groups };
        let graph = class.draw(seed);
        let legal = truths(&graph);
        let n = graph.len();
        let mut random = Random::new(seed);
        let rows = 60;
        let logits: Vec<f64> = (0..rows * n).map(|_| 2.0 * random.normal()).collect();
        let states: Vec<Evidence> = (0..rows)
            .flat_map(|_| legal[random.below(legal.len())].clone())
            .map(Evidence::known)
            .collect();
        let noise = if seed % 3 == 0 { 0.0 } else { 1.0 };
        let options = FitOptions { noise, ..FitOptions::default() };
        let Ok(fitted) = fit(&graph, FinishedRows::Logits(&logits), &states, &options) else {
            continue;
        };
        let report = fitted.report().unwrap();
        let loss = |form: FitForm| {
            report.candidates.iter().find(|one| one.form == form).and_then(|one| one.loss).unwrap()
        };
        assert!(loss(report.chosen) <= loss(FitForm::Identity), "seed {seed}\n{report}");
        // Plain reconciling is never worse than the input.
        assert!(loss(FitForm::Identity) <= report.input_loss + 1e-9, "seed {seed}\n{report}");
    }
}

#[test]
fn the_guarantee_holds_against_the_calibrated_input() {
    let graph = two_levels();
    let (mut logits, states) = calibrated_rows(&graph, 400, 6);
    change(&graph, &mut logits, 0, |logit| 2.0 * logit + 1.0);
    let options = only(FitForm::LevelsBiasTrust);
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &options).unwrap();
    let n = graph.len();
    let rows = FinishedRows::Logits(&logits[..40 * n]);
    let calibrated = fitted.calibrate(rows).unwrap();
    let answer = fitted.run(rows).unwrap();
    let of = |label| fitted.parameters().levels[level(&graph, label)].weight;
    let weights: Vec<f64> = (0..n).map(of).collect();
    assert!((weights.iter().sum::<f64>() / n as f64 - 1.0).abs() < 1e-12, "{weights:?}");
    let legal = truths(&graph);
    for row in 0..40 {
        let p: Vec<f64> = calibrated[row * n..(row + 1) * n].iter().map(|&z| sigmoid(z)).collect();
        for truth in &legal {
            let [before, after] =
                [&p[..], answer.row(row)].map(|p| log_loss(truth, p, Some(&weights)));
            assert!(after <= before - answer.gain[row] + 1e-8 * (1.0 + before), "row {row}");
        }
    }
}

#[test]
fn the_same_rows_give_the_same_parameters() {
    let graph = two_levels();
    let (mut logits, states) = calibrated_rows(&graph, 300, 7);
    change(&graph, &mut logits, 1, |logit| 1.7 * logit - 0.3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let rows = FinishedRows::Logits(&logits);
            let fitted = fit(&graph, rows, &states, &FitOptions::default()).unwrap();
            (fitted.parameters().clone(), fitted.report().unwrap().clone())
        })
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_eq!(first, run(3));
}

#[test]
fn illegal_truths_are_counted_by_relation_and_left_out() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    builder.hierarchy("thing", "animal", None).exclusion("dog", "cat", None);
    let graph = builder.build().unwrap();
    let id = |name: &str| graph.id(name).unwrap().index();
    let n = graph.len();
    let row = |on: &[&str], off: &[&str]| {
        let mut row = vec![Unknown; n];
        on.iter().for_each(|name| row[id(name)] = On);
        off.iter().for_each(|name| row[id(name)] = Off);
        row
    };
    let legal =
        [row(&["dog"], &[]), row(&[], &["animal"]), row(&["cat"], &[]), row(&["thing"], &[])];
    let mut states: Vec<Evidence> = (0..40).flat_map(|at| legal[at % 4].clone()).collect();
    states.extend(row(&["dog"], &["animal"]));
    states.extend(row(&["dog"], &["animal"]));
    states.extend(row(&["dog", "cat"], &[]));
    // Breaks two relations together, neither by itself.
    states.extend(row(&["cat"], &["thing"]));
    states.extend(row(&[], &[]));
    let rows = states.len() / n;
    let logits: Vec<f64> = Random::new(1).normals(rows * n);
    let fitted = fit(&graph, FinishedRows::Logits(&logits), &states, &FitOptions::default());
    let fitted = fitted.unwrap();
    let report = fitted.report().unwrap();
    assert_eq!((report.rows, report.used, report.unknown, report.illegal.rows), (45, 40, 1, 4));
    let broken = |relation: &str| {
        report.illegal.relations.iter().find(|one| one.relation == relation).map(|one| one.rows)
    };
    assert_eq!(broken("dog is below animal"), Some(2), "{report}");
    let pair = broken("dog excludes cat").or(broken("cat excludes dog"));
    assert_eq!(pair, Some(1), "{report}");
    let chain = broken("cat is below animal").or(broken("animal is below thing"));
    assert_eq!(chain, Some(1), "{report}");
    assert!(report.to_string().contains("4 rows left out"), "{report}");
}

#[test]
fn parameters_survive_a_file() {
    let graph = two_levels();
    let (mut logits, states) = calibrated_rows(&graph, 300, 8);
    change(&graph, &mut logits, 1, |logit| 3.0 * logit);
    let rows = FinishedRows::Logits(&logits);
    for form in [FitForm::LevelsBiasTrust, FitForm::InferLevels] {
        let fitted = fit(&graph, rows, &states, &only(form)).unwrap();
        assert_eq!(fitted.parameters().form, form);
        let text = serde_json::to_string(fitted.parameters()).unwrap();
        let parameters: FittedParameters = serde_json::from_str(&text).unwrap();
        let options = ReconcileOptions::default();
        let again = FittedReconciler::from_parameters(&graph, &parameters, &options).unwrap();
        assert_eq!(again.run(rows).unwrap(), fitted.run(rows).unwrap());
        assert!(again.report().is_none());
    }
}

#[test]
fn what_cannot_be_fitted_is_said() {
    let graph = two_levels();
    let (logits, states) = calibrated_rows(&graph, 30, 1);
    let rows = FinishedRows::Logits(&logits);
    let n = graph.len();
    let reason = |found: Result<FittedReconciler, Error>| found.unwrap_err().to_string();
    let few = fit(
        &graph,
        FinishedRows::Logits(&logits[..5 * n]),
        &states[..5 * n],
        &FitOptions::default(),
    );
    assert!(reason(few).contains("5 of 5 rows can be used, but 5 folds need at least 10"));
    // Rows that break relations are counted, relation by relation.
    let mut illegal = states.clone();
    let at = |name: &str| graph.id(name).unwrap().index();
    for row in 0..25 {
        illegal[row * n + at("p0c1")] = On;
        illegal[row * n + at("p0")] = Off;
    }
    let broken = reason(fit(&graph, rows, &illegal, &FitOptions::default()));
    assert!(broken.contains("5 of 30 rows can be used"), "{broken}");
    assert!(
        broken.contains("25 rows break hard relations: p0c1 is below p0 (25 rows)"),
        "{broken}"
    );
    // One softmax over labels of a hierarchy is recognised.
    let one: Vec<f64> =
        (0..30 * n).map(|at| if at % n == at / n % n { 0.5 } else { 0.5 / 11.0 }).collect();
    let softmax = fit(&graph, FinishedRows::Probabilities(&one), &states, &FitOptions::default());
    assert!(matches!(softmax, Err(Error::OneSoftmax { .. })), "{softmax:?}");
    let short = fit(&graph, rows, &states[1..], &FitOptions::default());
    assert!(matches!(short, Err(Error::Shape { .. })));
    let weights = Some(vec![1.0; n]);
    let reconcile = ReconcileOptions { weights, ..ReconcileOptions::default() };
    let weighted = fit(&graph, rows, &states, &FitOptions { reconcile, ..FitOptions::default() });
    assert!(reason(weighted).contains("the weights of labels are fitted"));
    let folds = fit(&graph, rows, &states, &FitOptions { folds: 1, ..FitOptions::default() });
    assert!(matches!(folds, Err(Error::OutOfRange { option: "folds", .. })));
    let fitted = fit(&graph, rows, &states, &FitOptions::default()).unwrap();
    let other = Class::Forest.draw(1);
    let options = ReconcileOptions::default();
    let strange = FittedReconciler::from_parameters(&other, fitted.parameters(), &options);
    assert!(reason(strange).contains("a graph with other levels"));
}
