//! The layer and its derivative, against enumeration and central differences.

use candle_core::{DType, Device, Module, Tensor, Var};
use phex::infer::{Engine, Method, Options};
use phex::model::Model;
use phex::testkit::{Oracle, RandomGraph};
use phex_candle::{Error, RelationLayer};

use crate::common::*;

/// A function of marginals without symmetries.
fn function(marginals: &Tensor) -> Tensor {
    let weights = matrix(&Random::new(21).normals(4 * LABELS), 4);
    let curved = (marginals.sqr().unwrap() + marginals.exp().unwrap()).unwrap();
    (curved * weights).unwrap().sum_all().unwrap().sqr().unwrap()
}

#[test]
fn marginals_are_those_of_enumeration() {
    let mut layers = 0;
    for seed in 0..12 {
        let graph = RandomGraph::any(6, seed).draw();
        let oracle = Oracle::new(&graph);
        if oracle.legal_states().is_empty() {
            continue;
        }
        let layer = RelationLayer::new(engine(&graph)).unwrap();
        let scores = Random::new(seed).normals(4 * LABELS);
        let found = numbers(&layer.forward(&matrix(&scores, 4)).unwrap());
        for row in 0..4 {
            let range = row * LABELS..(row + 1) * LABELS;
            let (_, expected) = oracle.marginals(&scores[range.clone()], &[None; LABELS]);
            assert_close(&found[range], &expected, 1e-12);
        }
        layers += 1;
    }
    assert!(layers >= 6, "{layers}");
}

#[test]
fn the_derivative_is_a_central_difference() {
    let mut layers = 0;
    for seed in 0..12 {
        let graph = RandomGraph::any(6, seed).draw();
        if Oracle::new(&graph).legal_states().is_empty() {
            continue;
        }
        layers += 1;
        let layer = RelationLayer::new(engine(&graph)).unwrap();
        let logits = variable(&Random::new(seed + 30).normals(4 * LABELS), 4);
        let value = || function(&layer.forward(&logits).unwrap());
        let expected = differences(&logits, || value().to_scalar::<f64>().unwrap());
        assert_close(&slope(&value().backward().unwrap(), &logits), &expected, 1e-5);
    }
    assert!(layers > 8);
}

#[test]
fn strides_and_precision_make_no_difference() {
    let layer = RelationLayer::new(engine(&graph())).unwrap();
    let scores = Random::new(22).normals(4 * LABELS);
    let plain = variable(&scores, 4);
    let value = function(&layer.forward(&plain).unwrap());
    let expected = slope(&value.backward().unwrap(), &plain);
    // Label by label in memory; a sum of columns sends back a gradient without memory of its own.
    let turned = Var::from_tensor(&plain.t().unwrap().contiguous().unwrap()).unwrap();
    let value = function(&layer.forward(&turned.t().unwrap()).unwrap());
    let gradient = value.backward().unwrap();
    assert_eq!(numbers(&gradient.get(&turned).unwrap().t().unwrap()), expected);
    let sums = |logits: &Tensor| layer.forward(logits).unwrap().sum(1).unwrap().sum_all().unwrap();
    let ones = sums(&plain).backward().unwrap();
    let by_sum = differences(&plain, || sums(&plain).to_scalar::<f64>().unwrap());
    assert_close(&slope(&ones, &plain), &by_sum, 1e-8);

    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let logits = Var::from_tensor(&plain.to_dtype(dtype).unwrap()).unwrap();
        let marginals = layer.forward(&logits).unwrap();
        assert_eq!(marginals.dtype(), dtype);
        let wide = numbers(&layer.forward(&plain).unwrap());
        assert_close(&numbers(&marginals), &wide, tolerance);
        let gradient = sums(&logits).backward().unwrap();
        assert_eq!(gradient.get(&logits).unwrap().dtype(), dtype);
        assert_close(&slope(&gradient, &logits), &by_sum, 2.0 * tolerance);
    }
}

#[test]
fn it_is_a_module_of_a_network() {
    let layer = RelationLayer::new(engine(&graph())).unwrap();
    let weights = matrix(&Random::new(23).normals(LABELS * 3), LABELS);
    let network = candle_nn::seq().add(candle_nn::Linear::new(weights, None)).add(layer);
    let inputs = matrix(&Random::new(24).normals(2 * 3), 2);
    let found = network.forward(&inputs).unwrap();
    // The hard edge: `b` is never more probable than `a`.
    for row in found.to_vec2::<f64>().unwrap() {
        assert!(row[1] <= row[0] + 1e-12, "{row:?}");
    }
    let wrong = matrix(&Random::new(24).normals(2 * 4), 2);
    assert!(network.forward(&wrong).is_err());
}

#[test]
fn errors_name_the_row_and_the_label() {
    for method in [Method::Lbp, Method::Gibbs, Method::Anneal] {
        let options = Options { method, ..Options::default() };
        let engine = Engine::compile(Model::new(&graph()).unwrap(), &options).unwrap();
        let found = RelationLayer::new(engine);
        assert!(matches!(found, Err(Error::Core(phex::Error::NotExact { .. }))), "{method}");
    }
    let layer = RelationLayer::new(engine(&graph())).unwrap();
    let mut scores = [0.0; 2 * LABELS];
    scores[LABELS + 4] = f64::NAN;
    let found = layer.forward(&matrix(&scores, 2));
    let Err(Error::Core(phex::Error::BadScore { row: 1, label })) = &found else {
        panic!("{found:?}")
    };
    assert_eq!(label, "e");
    let integers = Tensor::zeros((1, LABELS), DType::U32, &Device::Cpu).unwrap();
    assert!(matches!(layer.forward(&integers), Err(Error::Precision { found: DType::U32 })));

    // A logarithm of 0 sends back an infinite gradient, and infinity times 0 is not a number.
    let logits = variable(&[0.0; 2 * LABELS], 2);
    let marginals = layer.forward(&logits).unwrap();
    let mut mask = [1.0; 2 * LABELS];
    mask[LABELS + 2] = 0.0;
    let value = (marginals * matrix(&mask, 2)).unwrap().sqrt().unwrap().sum_all().unwrap();
    let message = value.backward().unwrap_err().to_string();
    assert!(message.contains("row 1") && message.contains("`c`"), "{message}");
}
