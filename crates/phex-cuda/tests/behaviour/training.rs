//! Losses and gradients on the device compared with those of the CPU.

use phex::graph::{ExclusionRule, GraphBuilder, Strength};
use phex::infer::{Accelerator, Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::learn::{Loss, Objective, gradients};
use phex::model::Model;
use phex::testkit::{Random, RandomGraph, RandomStrengths};
use phex_cuda::{CudaEngine, DeviceNumber};

use crate::devices::device;

#[test]
fn losses_and_gradients_agree() {
    let Some(device) = device() else { return };
    let mut compared = 0;
    for seed in 0..12u64 {
        let strengths = [RandomStrengths::Soft, RandomStrengths::Mixed, RandomStrengths::Hard]
            [seed as usize % 3];
        let one_of = seed as usize % 2;
        let graph = RandomGraph { strengths, one_of, ..RandomGraph::new(9, seed) };
        let model = Model::new(&graph.draw()).unwrap();
        let options = Options { method: Method::Family, ..Options::default() };
        let Ok(engine) = Engine::compile(model, &options) else { continue };
        let gpu = CudaEngine::new(&device, &engine).unwrap();
        let (labels, rows) = (9, 21);
        let mut random = Random::new(seed + 5);
        let scores: Vec<f32> = random.normals(labels * rows).iter().map(|&x| x as f32).collect();
        let draw = |x: f64| {
            if x < 0.15 {
                Evidence::On
            } else if x < 0.3 {
                Evidence::Off
            } else {
                Evidence::Unknown
            }
        };
        let evidence: Vec<Evidence> = (0..labels * rows).map(|_| draw(random.next())).collect();
        let block = Block::new(labels, &scores).with_evidence(&evidence);
        for loss in [Loss::Joint, Loss::Marginal] {
            let objective = Objective { loss, costs: false };
            let theirs = gradients(&engine, &block, None, objective).unwrap();
            let ours = gpu.gradients(&block, None, loss).unwrap();
            // The losses of the CPU from passes on the device, as in training.
            let passes = gradients(&gpu, &block, None, objective).unwrap();
            assert_eq!(passes.status, theirs.status, "{loss:?}, graph {seed}");
            let pairs = passes.logits.iter().zip(&theirs.logits);
            let most = pairs.fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
            assert!(most < 2e-4, "{loss:?}, graph {seed}: {most}");
            for row in 0..rows {
                let context = format!("{loss:?}, graph {seed}, row {row}");
                let has_evidence = evidence[row * labels..(row + 1) * labels]
                    .iter()
                    .any(|&e| e != Evidence::Unknown);
                if theirs.status[row] != RowStatus::Answered || !has_evidence {
                    continue;
                }
                compared += 1;
                let (a, b) = (ours.losses[row], theirs.losses[row]);
                assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{context}: {a} for {b}");
                for label in 0..labels {
                    let (a, b) =
                        (ours.logits[row * labels + label], theirs.logits[row * labels + label]);
                    assert!((a - b).abs() < 2e-4, "{context}, label {label}: {a} for {b}");
                }
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn an_engine_is_refused_before_any_row_comes() {
    let Some(device) = device() else { return };
    let model = Model::new(&RandomGraph::new(9, 0).draw()).unwrap();
    let compile =
        |method| Engine::compile(model.clone(), &Options { method, ..Options::default() });
    let move_engine = |method, want| {
        let refused = device.move_engine(&compile(method).unwrap(), want).map(|_| ());
        refused.map_err(|error| error.to_string())
    };
    assert_eq!(move_engine(Method::States, Want::default()), Ok(()));
    let expectations = Want { expectations: true, ..Want::default() };
    for (method, want, expected) in [
        (Method::Junction, Want::default(), "has no CUDA kernel"),
        (Method::States, expectations, "strengths are learned; use the CPU"),
    ] {
        let refused = move_engine(method, want).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}

/// Models for each exact engine that has kernels: a soft tree, one with a one-of group, a hard tree, classes with attributes.
fn exact_models() -> Vec<(Method, Model)> {
    let mut models = Vec::new();
    for (method, strength, one_of) in [
        (Method::Family, Some(Strength::U(0.5)), false),
        (Method::Family, Some(Strength::U(0.5)), true),
        (Method::States, None, false),
    ] {
        let mut builder = GraphBuilder::new();
        for parent in ["a", "b", "c"] {
            builder.hierarchy("root", parent, strength);
            for child in 0..4 {
                builder.hierarchy(parent, &format!("{parent}{child}"), strength);
            }
        }
        builder.exclusion_rule(ExclusionRule::Siblings, strength);
        if one_of {
            builder.one_of_leaves("leaves");
        }
        models.push((method, Model::new(&builder.build().unwrap()).unwrap()));
    }
    let mut builder = GraphBuilder::new();
    let classes: Vec<String> = (0..6).map(|class| format!("c{class}")).collect();
    for attribute in 0..9 {
        builder.label(&format!("a{attribute}"));
        for (at, class) in classes.iter().enumerate().filter(|(at, _)| (at + attribute) % 3 > 0) {
            let strength = Some(Strength::U(0.2 + 0.1 * at as f64));
            builder.hierarchy(&format!("a{attribute}"), class, strength);
        }
    }
    builder.one_of("class", classes.iter().map(String::as_str), None);
    models.push((Method::Star, Model::new(&builder.build().unwrap()).unwrap()));
    models
}

/// Rows whose evidence contradicts their scores in `improbable` labels, which then have a probability of about e^-`depth`, and
/// agrees with them in `likely` other labels.
fn contradicted(labels: usize, depth: f64, counts: &[[usize; 2]]) -> (Vec<f64>, Vec<Evidence>) {
    let mut random = Random::new(11);
    let (mut scores, mut evidence) = (Vec::new(), Vec::new());
    for [improbable, likely] in counts {
        let mut row: Vec<f64> = random.normals(labels);
        let mut codes = vec![Evidence::Unknown; labels];
        for at in 0..improbable + likely {
            // The first label is a root, which hard relations would turn on with any other.
            let label = 1 + (7 * at + improbable) % (labels - 1);
            let is_on = at % 3 == 0;
            let size = if at < *improbable { -depth } else { 1.0 };
            row[label] = if is_on { size } else { -size };
            codes[label] = Evidence::known(is_on);
        }
        scores.extend(row);
        evidence.extend(codes);
    }
    (scores, evidence)
}

/// Compares losses and gradients with those of the CPU in doubles.
fn compare_losses<T: DeviceNumber>(
    gpu: &CudaEngine,
    (scores, evidence): &(Vec<f64>, Vec<Evidence>),
    loss: Loss,
    [loss_tolerance, gradient_tolerance]: [f64; 2],
    context: &str,
) -> usize {
    let labels = gpu.labels();
    let scores: Vec<T> = scores.iter().map(|&score| T::from_f64(score)).collect();
    let wide: Vec<f64> = scores.iter().map(|score| score.to_f64()).collect();
    let weights: Vec<f64> =
        (0..scores.len() / labels).map(|row| [1.0, 0.5, 2.0][row % 3]).collect();
    let few: Vec<T> = weights.iter().map(|&weight| T::from_f64(weight)).collect();
    let objective = Objective { loss, costs: false };
    let block = Block::new(labels, &wide).with_evidence(evidence);
    let theirs = gradients(gpu.engine(), &block, Some(&weights), objective).unwrap();
    let block = Block::new(labels, &scores).with_evidence(evidence);
    let ours = gpu.gradients(&block, Some(&few), loss).unwrap();
    assert_eq!(ours.status, theirs.status, "{context}");
    let mut answered = 0;
    for (row, weight) in weights.iter().enumerate() {
        if theirs.status[row] != RowStatus::Answered {
            assert_eq!(ours.losses[row], weight * theirs.losses[row], "{context}, row {row}");
            continue;
        }
        answered += 1;
        let (a, b) = (ours.losses[row], weight * theirs.losses[row]);
        let limit = loss_tolerance * (1.0 + b.abs());
        assert!((a - b).abs() <= limit, "{context}, row {row}: loss {a} for {b}");
        for label in row * labels..(row + 1) * labels {
            let (a, b) = (ours.logits[label].to_f64(), theirs.logits[label]);
            let context = format!("{context}, row {row}, label {}", label % labels);
            assert!((a - b).abs() <= gradient_tolerance, "{context}: {a} for {b}");
        }
    }
    answered
}

/// Labels with a probability from 1e-2 to 1e-12 lose no digits: they are clamped alone, as on the CPU.
#[test]
fn improbable_labels_lose_no_digits() {
    let Some(device) = device() else { return };
    let counts = [[1, 0], [1, 2], [1, 3], [2, 5], [4, 4], [6, 0], [0, 1], [0, 2], [0, 3], [0, 6]];
    let mut answered = 0;
    for (method, model) in exact_models() {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(model, &options).unwrap();
        let gpu = CudaEngine::new(&device, &engine).unwrap();
        for probability in [1e-2, 1e-6, 1e-9, 1e-12f64] {
            let rows = contradicted(gpu.labels(), -probability.ln(), &counts);
            for loss in [Loss::Joint, Loss::Marginal] {
                let context = format!("{loss:?} by {method}, probability {probability}");
                answered += compare_losses::<f64>(&gpu, &rows, loss, [1e-13, 1e-9], &context);
                answered += compare_losses::<f32>(&gpu, &rows, loss, [1e-6, 1e-5], &context);
            }
        }
    }
    assert!(answered > 300, "{answered} rows");
}
