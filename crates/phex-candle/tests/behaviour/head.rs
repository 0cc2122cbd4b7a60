//! The head: its formula, its start, and training through it.

use candle_core::{Device, Module, Tensor};
use candle_nn::{Optimizer, SGD};
use phex::graph::{GraphBuilder, RelationGraph};
use phex::learn::Loss;
use phex_candle::{RelationHead, RelationLoss};

use crate::common::*;

/// Dogs and cats under animals, cars under vehicles.
fn taxonomy() -> RelationGraph {
    let mut builder = GraphBuilder::new();
    builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    builder.hierarchy("vehicle", "car", None).single_label();
    builder.build().unwrap()
}

#[test]
fn logits_are_scaled_where_labels_have_children() {
    let head = RelationHead::scaled(2, &taxonomy(), 0.25, &Device::Cpu).unwrap();
    let [weight, bias] = <[_; 2]>::try_from(head.variables()).unwrap();
    assert_eq!((weight.dims(), bias.dims()), (&[5, 2][..], &[5][..]));
    let weights: Vec<f32> = (0..10).map(|at| at as f32).collect();
    weight.set(&Tensor::from_vec(weights, (5, 2), &Device::Cpu).unwrap()).unwrap();
    bias.set(&Tensor::new(&[1f32, 2.0, 3.0, 4.0, 5.0], &Device::Cpu).unwrap()).unwrap();
    let features = Tensor::new(&[[1f32, -1.0], [2.0, 0.5]], &Device::Cpu).unwrap();
    let found = head.forward(&features).unwrap().to_vec2::<f32>().unwrap();
    // Animal and vehicle are labels 0 and 3: a quarter of `w · x + b`.
    assert_eq!(found, [[0.0, 1.0, 2.0, 0.75, 4.0], [0.375, 7.5, 13.5, 4.875, 25.5]]);
}

#[test]
fn training_through_it_separates_leaves_that_only_coarse_rows_do_not() {
    let graph = taxonomy();
    let head = RelationHead::new(2, &graph, &Device::Cpu).unwrap();
    let loss = RelationLoss::new(engine(&graph), Loss::Joint);
    // A dog, a cat, a car, and an animal that looks like a dog.
    let inputs = [[1f32, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.9, 0.1]];
    let inputs = Tensor::new(&inputs, &Device::Cpu).unwrap();
    let mut targets = [[-1i64; 5]; 4];
    for (row, label) in [(0, "dog"), (1, "cat"), (2, "car"), (3, "animal")] {
        targets[row][graph.id(label).unwrap().index()] = 1;
    }
    let targets = Tensor::new(&targets, &Device::Cpu).unwrap();
    let value = || loss.forward(&head.forward(&inputs).unwrap(), &targets, None).unwrap();
    let before = value().to_scalar::<f32>().unwrap();
    // Zero logits give each of the three leaves a third: three rows know the leaf, one two of them.
    let expected = (3.0 * 3f32.ln() + 1.5f32.ln()) / 4.0;
    assert!((before - expected).abs() < 1e-6, "{before} {expected}");
    let mut optimiser = SGD::new(head.variables(), 0.5).unwrap();
    (0..100).for_each(|_| optimiser.backward_step(&value()).unwrap());
    let after = value().to_scalar::<f32>().unwrap();
    assert!(after < 0.1 * before, "{before} {after}");
    // The scale is not trained.
    let scale = head.scale().to_vec1::<f32>().unwrap();
    assert_eq!(scale, [0.1, 1.0, 1.0, 0.1, 1.0]);
}
