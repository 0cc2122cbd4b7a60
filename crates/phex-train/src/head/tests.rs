//! Checks the backward pass against central differences.

use super::*;

/// `Σ c · logits` with fixed `c`, in training.
fn probe(head: &mut Head, features: &[f32], by_logit: &[f32]) -> f64 {
    let (logits, _) = head.forward(features.to_vec(), 7);
    logits.iter().zip(by_logit).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

#[test]
fn gradients_are_central_differences() {
    for (hidden, norm) in [
        (vec![], Norm::None),
        (vec![5], Norm::None),
        (vec![6, 4], Norm::Batch),
        (vec![6, 4], Norm::Layer),
    ] {
        let config = HeadConfig {
            hidden,
            norm,
            dropout: 0.25,
            input_dropout: 0.25,
            start: Start::Normal(0.5),
            ..HeadConfig::default()
        };
        let mut head = Head::new(&config, 3, 4, 1);
        head.scale = Some(vec![1.0, 0.3, 0.5, 1.0]);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut draw =
            |count: usize| -> Vec<f32> { (0..count).map(|_| normal(&mut random) as f32).collect() };
        let (features, by_logit) = (draw(9 * 3), draw(9 * 4));
        let averages = head.averages.clone();
        let (_, tape) = head.forward(features.clone(), 7);
        let gradient = head.backward(&tape, by_logit.clone());
        let mut smooth = 0;
        for (at, found) in gradient.iter().enumerate() {
            let mut slope = |step: f32| {
                let old = head.weights[at];
                head.weights[at] = old + step;
                let value = probe(&mut head, &features, &by_logit);
                head.weights[at] = old;
                value
            };
            let step = 1e-2;
            // A second step shows where the activation has a corner, and where singles are rough.
            let wide = (slope(step) - slope(-step)) / (2.0 * f64::from(step));
            let narrow = (slope(step / 2.0) - slope(-step / 2.0)) / f64::from(step);
            if (wide - narrow).abs() > 2e-3 {
                continue;
            }
            let found = f64::from(*found);
            assert!((found - narrow).abs() < 8e-3, "{config:?} {at}: {found} {narrow}");
            smooth += 1;
        }
        assert!(2 * smooth > gradient.len(), "{config:?}: {smooth} of {}", gradient.len());
        assert_eq!(head.averages == averages, norm != Norm::Batch);
    }
}

#[test]
fn products_have_the_same_bits_on_any_number_of_threads() {
    let config = HeadConfig {
        hidden: vec![300, 700],
        dropout: 0.5,
        start: Start::Uniform,
        ..HeadConfig::default()
    };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut head = Head::new(&config, 40, 600, 3);
            let features: Vec<f32> =
                (0..200 * 40).map(|at| ((at * 37 % 101) as f32) / 50.0 - 1.0).collect();
            let (logits, tape) = head.forward(features, 5);
            (head.backward(&tape, logits.clone()), logits)
        })
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one.1, three.1);
    assert_eq!(one.0, three.0);
}

#[test]
fn a_linear_head_that_starts_at_zero_says_nothing() {
    let head = Head::new(&HeadConfig::default(), 3, 2, 1);
    assert_eq!(head.logits(&[1.0, 2.0, 3.0]), [0.0, 0.0]);
    assert_eq!(head.len(), 8);
}

#[test]
fn weights_of_another_scale_keep_their_scores() {
    let mut builder = phex::graph::GraphBuilder::new();
    builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
    let graph = builder.build().unwrap();
    let head = |inner_scale| {
        let config = HeadConfig { inner_scale, start: Start::Uniform, ..HeadConfig::default() };
        Head::of_graph(&config, 2, &graph, 1)
    };
    let (trained, mut other) = (head(1.0), head(0.5));
    let features = [1.0, -2.0];
    assert_ne!(other.logits(&features), trained.logits(&features));
    other.copy_weights(&trained);
    assert_eq!(other.logits(&features), trained.logits(&features));
}
