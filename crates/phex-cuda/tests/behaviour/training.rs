//! Losses and gradients on the device compared with those of the CPU.

use phex::infer::{Accelerator, Block, Engine, Evidence, Method, Options, RowStatus, Want};
use phex::learn::{Loss, Objective, gradients};
use phex::model::Model;
use phex::testkit::{Random, RandomGraph, Strengths};
use phex_cuda::CudaEngine;

use crate::devices::device;

#[test]
fn losses_and_gradients_agree() {
    let Some(device) = device() else { return };
    for seed in 0..12u64 {
        let strengths = [Strengths::Soft, Strengths::Mixed, Strengths::Hard][seed as usize % 3];
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
