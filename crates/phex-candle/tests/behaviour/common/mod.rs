//! What several test files share.

#![allow(dead_code)] // Each test file uses a part.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::infer::{Engine, Evidence, Options};
use phex::model::Model;
pub use phex::testkit::Random;

pub const LABELS: usize = 6;

/// Six labels with soft relations, but for one edge.
pub fn graph() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    let (hierarchy, exclusion) = (Some(Strength::W(1.3)), Some(Strength::W(0.8)));
    builder.hierarchy("a", "b", None).hierarchy("a", "c", hierarchy);
    builder.hierarchy("b", "d", hierarchy).hierarchy("b", "e", hierarchy);
    builder.hierarchy("c", "f", hierarchy);
    builder.exclusion_rule(ExclusionRule::Siblings, exclusion);
    builder.build().unwrap()
}

pub fn engine(graph: &RelationGraph) -> Engine {
    Engine::compile(Model::new(graph).unwrap(), &Options::default()).unwrap()
}

/// On, off and unknown labels that the hard edge allows.
pub fn targets() -> Vec<f64> {
    vec![
        1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0, // A label.
        1.0,
        1.0,
        0.0,
        1.0,
        0.0,
        0.0, // All.
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0,
        -1.0, // None.
        -1.0,
        1.0,
        -1.0,
        -1.0,
        f64::NAN,
        1.0, // Two.
    ]
}

pub fn evidence(targets: &[f64]) -> Vec<Evidence> {
    let entry = |target: &f64| match *target {
        1.0 => Evidence::On,
        0.0 => Evidence::Off,
        _ => Evidence::Unknown,
    };
    targets.iter().map(entry).collect()
}

pub fn matrix(values: &[f64], rows: usize) -> Tensor {
    Tensor::from_slice(values, (rows, values.len() / rows), &Device::Cpu).unwrap()
}

pub fn variable(values: &[f64], rows: usize) -> Var {
    Var::from_tensor(&matrix(values, rows)).unwrap()
}

/// All numbers of a tensor.
pub fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

pub fn slope(gradients: &GradStore, of: &Tensor) -> Vec<f64> {
    numbers(gradients.get(of).unwrap())
}

/// The derivative of `value` by each number of a variable, by central differences.
pub fn differences(of: &Var, value: impl Fn() -> f64) -> Vec<f64> {
    let step = 1e-5;
    let (start, shape) = (numbers(of), of.shape().clone());
    let put = |values: &[f64]| {
        of.set(&Tensor::from_slice(values, shape.clone(), &Device::Cpu).unwrap()).unwrap();
    };
    let found = (0..start.len())
        .map(|at| {
            let side = |by: f64| {
                let mut moved = start.clone();
                moved[at] += by;
                put(&moved);
                value()
            };
            (side(step) - side(-step)) / (2.0 * step)
        })
        .collect();
    put(&start);
    found
}

pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance, "entry {at}: {a} {b}");
    }
}
