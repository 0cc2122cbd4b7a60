//! Gradients by finite differences.

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph};
use phex::reconcile::{
    FinishedRows, FitForm, FittedParameters, FittedReconciler, LevelParameters, ReconcileEngine,
    ReconcileLoss, ReconcileOptions, Reconciler,
};
use phex::testkit::Random;

use super::problems::{Class, logits};

const ROWS: usize = 8;

/// Compares a gradient with central differences of two widths. Where they disagree with each other,
/// a relation begins to bind in between, and the label does not count.
fn check(class: Class, seed: u64, options: &ReconcileOptions, form: Form) -> (usize, usize) {
    check_graph(&class.draw(seed), seed, options, form)
}

fn check_graph(
    graph: &RelationGraph,
    seed: u64,
    options: &ReconcileOptions,
    form: Form,
) -> (usize, usize) {
    let n = graph.len();
    let reconciler = Reconciler::compile(graph, options).unwrap();
    // Within ±6, and no two alike.
    let scores = logits(n, ROWS, seed).into_iter().enumerate();
    let values: Vec<f64> =
        scores.map(|(at, score)| form.of(6.0 * (score / 6.0 + 1e-3 * at as f64).tanh())).collect();
    let weights = Random::new(seed).normals(n * ROWS);
    let answer = reconciler.run(form.rows(&values)).unwrap();
    let gradient =
        reconciler.gradient(form.rows(&values), &answer.probabilities, &weights).unwrap();
    let loss = |values: &[f64], row: usize| -> f64 {
        let answer = reconciler.run(form.rows(&values[row * n..(row + 1) * n])).unwrap();
        let weights = &weights[row * n..(row + 1) * n];
        answer.probabilities.iter().zip(weights).map(|(q, w)| q * w).sum()
    };
    let (mut seen, mut smooth) = (0, 0);
    for at in 0..n * ROWS {
        if answer.is_unchanged(at / n) && graph.one_of().is_empty() {
            let expected = form.slope(values[at]) * weights[at];
            assert!((gradient[at] - expected).abs() < 1e-14, "{} {expected}", gradient[at]);
            continue;
        }
        let difference = |width: f64| {
            let side = |step: f64| {
                let mut moved = values.clone();
                moved[at] += step * form.slope_back(values[at]);
                loss(&moved, at / n)
            };
            (side(width) - side(-width)) / (2.0 * width * form.slope_back(values[at]))
        };
        let (narrow, wide) = (difference(1e-5), difference(3e-5));
        seen += 1;
        if (narrow - wide).abs() > 1e-5 * (1.0 + narrow.abs()) {
            continue;
        }
        smooth += 1;
        let off = (gradient[at] - narrow).abs();
        assert!(
            off < 2e-4 * (1.0 + narrow.abs()),
            "{seed} {form:?} {graph:?}\n{:?}\n-> {:?}\nlabel {}: {} or {narrow}, {wide}",
            &values[at / n * n..at / n * n + n],
            answer.row(at / n),
            at % n,
            gradient[at]
        );
    }
    (seen, smooth)
}

/// Whether rows are probabilities or logits.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Probabilities,
    Logits,
}

impl Form {
    fn of(self, score: f64) -> f64 {
        if self == Form::Logits { score } else { phex::numeric::sigmoid(score) }
    }

    fn rows(self, values: &[f64]) -> FinishedRows<'_, f64> {
        match self {
            Form::Probabilities => FinishedRows::Probabilities(values),
            Form::Logits => FinishedRows::Logits(values),
        }
    }

    /// The derivative of a probability with respect to its value.
    fn slope(self, value: f64) -> f64 {
        let q = phex::numeric::sigmoid(value);
        if self == Form::Logits { q * (1.0 - q) } else { 1.0 }
    }

    /// The width of a step, such that probabilities stay in [0, 1].
    fn slope_back(self, value: f64) -> f64 {
        if self == Form::Logits { 1.0 } else { value * (1.0 - value) }
    }
}

fn check_all(classes: &[Class], seeds: u64, options: &ReconcileOptions) {
    let (mut seen, mut smooth) = (0, 0);
    for &class in classes {
        for seed in 0..seeds {
            for form in [Form::Probabilities, Form::Logits] {
                let counts = check(class, seed, options, form);
                (seen, smooth) = (seen + counts.0, smooth + counts.1);
            }
        }
    }
    println!("{smooth} of {seen} derivatives");
    assert!(smooth > seen * 9 / 10 && seen > 100, "{smooth} of {seen} derivatives");
}

fn tight() -> ReconcileOptions {
    ReconcileOptions { tolerance: 1e-13, passes: 2000, ..ReconcileOptions::default() }
}

#[test]
fn gradients_agree_with_differences_on_forests() {
    check_all(&[Class::Forest, Class::Groups, Class::Leaves, Class::Mixed], 25, &tight());
    let brier = ReconcileOptions { loss: ReconcileLoss::Brier, ..tight() };
    check_all(&[Class::Forest], 25, &brier);
}

#[test]
fn gradients_agree_with_differences_on_any_relations() {
    let newton = ReconcileOptions { engine: Some(ReconcileEngine::Newton), ..tight() };
    check_all(&[Class::General, Class::Dag, Class::Groups], 25, &newton);
    check_all(&[Class::Soft], 25, &newton);
}

#[test]
fn gradients_agree_with_differences_on_orders_and_heads() {
    check_all(&[Class::Dag, Class::Opposites], 25, &tight());
    check_all(&[Class::Dag], 15, &ReconcileOptions { loss: ReconcileLoss::Brier, ..tight() });
    let mut builder = GraphBuilder::new();
    for (parent, child) in [("a", "b"), ("a", "c"), ("d", "e"), ("d", "f"), ("d", "g")] {
        builder.hierarchy(parent, child, None);
    }
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None);
    builder.one_of_leaves("leaf");
    let graph = builder.build().unwrap();
    let weights = Some(vec![2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    let heads = ReconcileOptions { loss: ReconcileLoss::Categorical, weights, ..tight() };
    let (seen, smooth) = check_graph(&graph, 1, &heads, Form::Logits);
    assert!(seen == ROWS * graph.len() && smooth == seen);
}

#[test]
fn gradients_of_single_precision_are_close() {
    for (class, seed) in (0..30).flat_map(|seed| [(Class::Groups, seed), (Class::Forest, seed)]) {
        let graph = class.draw(seed);
        let n = graph.len();
        let reconciler = Reconciler::compile(&graph, &ReconcileOptions::default()).unwrap();
        let scores: Vec<f64> =
            logits(n, ROWS, seed).into_iter().map(|score| score.clamp(-4.0, 4.0)).collect();
        let weights = Random::new(seed).normals(n * ROWS);
        let narrow = |values: &[f64]| -> Vec<f32> { values.iter().map(|&x| x as f32).collect() };
        let (scores_32, weights_32) = (narrow(&scores), narrow(&weights));
        let rows = FinishedRows::Logits(scores.as_slice());
        let rows_32 = FinishedRows::Logits(scores_32.as_slice());
        let answer = reconciler.run(rows).unwrap();
        let answer_32 = reconciler.run(rows_32).unwrap();
        let wide = reconciler.gradient(rows, &answer.probabilities, &weights).unwrap();
        let single = reconciler.gradient(rows_32, &answer_32.probabilities, &weights_32).unwrap();
        for (a, b) in wide.iter().zip(&single) {
            assert!((a - f64::from(*b)).abs() < 1e-3, "{class:?} {seed}: {a} {b}");
        }
    }
}

#[test]
fn gradients_need_rows_of_the_answer() {
    let graph = Class::Forest.draw(1);
    let n = graph.len();
    let reconciler = Reconciler::compile(&graph, &ReconcileOptions::default()).unwrap();
    let values = vec![0.5; 2 * n];
    let rows = FinishedRows::Probabilities(values.as_slice());
    let answer = reconciler.run(rows).unwrap().probabilities;
    assert!(reconciler.gradient(rows, &answer, &vec![1.0; n]).is_err());
    let fewer = FinishedRows::Probabilities(&values[..n]);
    assert!(reconciler.gradient(fewer, &answer, &vec![1.0; n]).is_err());
    assert_eq!(reconciler.gradient(rows, &answer, &vec![1.0; 2 * n]).unwrap(), vec![1.0; 2 * n]);
}

/// Fitted parameters with a temperature, a bias and a weight for each level.
fn parameters(form: FitForm, loss: ReconcileLoss, labels: [usize; 2]) -> FittedParameters {
    let level = |at: usize| LevelParameters {
        name: format!("level {at}"),
        labels: labels[at],
        temperature: [1.7, 0.6][at],
        bias: if loss == ReconcileLoss::Log { [0.3, -0.2][at] } else { 0.0 },
        weight: [0.5, 1.2][at],
    };
    FittedParameters { form, loss, levels: vec![level(0), level(1)] }
}

#[test]
fn gradients_of_fitted_reconcilers_go_through_the_calibration() {
    let mut builder = GraphBuilder::new();
    for (parent, child) in [("a", "b"), ("a", "c"), ("d", "e"), ("d", "f"), ("d", "g")] {
        builder.hierarchy(parent, child, None);
    }
    let taxonomy = builder.clone().single_label().build().unwrap();
    let loose = builder.exclusion_rule(ExclusionRule::Siblings, None).build().unwrap();
    let (mut seen, mut smooth) = (0, 0);
    for (graph, loss) in [(loose, ReconcileLoss::Log), (taxonomy, ReconcileLoss::Categorical)] {
        let parameters = parameters(FitForm::LevelsBiasTrust, loss, [2, 5]);
        let fitted = FittedReconciler::from_parameters(&graph, &parameters, &tight()).unwrap();
        let n = graph.len();
        let heads = loss == ReconcileLoss::Categorical;
        let upstream = Random::new(5).normals(n * ROWS);
        let scores = logits(n, ROWS, 3).into_iter().enumerate();
        let scores: Vec<f64> =
            scores.map(|(at, z)| 4.0 * (z / 4.0 + 1e-3 * at as f64).tanh()).collect();
        for form in [Form::Logits, Form::Probabilities] {
            let mut values: Vec<f64> = scores.iter().map(|&score| form.of(score)).collect();
            if heads && form == Form::Probabilities {
                for row in values.chunks_mut(n) {
                    for depth in 0..2 {
                        let level = graph.ids().filter(|&l| graph.topology().depth(l) == depth);
                        let level: Vec<usize> = level.map(|label| label.index()).collect();
                        let sum: f64 = level.iter().map(|&label| row[label]).sum();
                        level.iter().for_each(|&label| row[label] /= sum);
                    }
                }
            }
            let value = |values: &[f64], row: usize| -> f64 {
                let answer = fitted.run(form.rows(&values[row * n..(row + 1) * n])).unwrap();
                let upstream = &upstream[row * n..(row + 1) * n];
                answer.probabilities.iter().zip(upstream).map(|(q, u)| q * u).sum()
            };
            let answer = fitted.run(form.rows(&values)).unwrap().probabilities;
            let gradient = fitted.gradient(form.rows(&values), &answer, &upstream).unwrap();
            for at in 0..n * ROWS {
                let difference = |step: f64| {
                    let side = |step: f64| {
                        let mut moved = values.clone();
                        moved[at] += step;
                        value(&moved, at / n)
                    };
                    (side(step) - side(-step)) / (2.0 * step)
                };
                let (narrow, wide) = (difference(1e-6), difference(3e-6));
                seen += 1;
                if (narrow - wide).abs() > 1e-5 * (1.0 + narrow.abs()) {
                    continue;
                }
                smooth += 1;
                let off = (gradient[at] - narrow).abs();
                assert!(
                    off < 1e-3 * (1.0 + narrow.abs()),
                    "{form:?} {loss:?}: {} {narrow}",
                    gradient[at]
                );
            }
        }
        // Clipped values do not move.
        let far = vec![40.0; n];
        let answer = fitted.run(FinishedRows::Logits(&far)).unwrap().probabilities;
        let gradient = fitted.gradient(FinishedRows::Logits(&far), &answer, &vec![1.0; n]).unwrap();
        assert!(heads || gradient.iter().all(|g| *g == 0.0), "{gradient:?}");
    }
    assert!(smooth > seen * 9 / 10, "{smooth} of {seen}");
}

#[test]
fn forms_that_infer_have_no_gradient() {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("a", "b", None);
    let graph = builder.build().unwrap();
    let parameters = parameters(FitForm::InferLevels, ReconcileLoss::Log, [1, 1]);
    let fitted = FittedReconciler::from_parameters(&graph, &parameters, &tight()).unwrap();
    let rows = FinishedRows::Probabilities(&[0.2, 0.7]);
    let answer = fitted.run(rows).unwrap().probabilities;
    let error = fitted.gradient(rows, &answer, &[1.0, 1.0]).unwrap_err().to_string();
    assert!(error.contains("no gradient: the fitted form `infer-levels`"), "{error}");
}
