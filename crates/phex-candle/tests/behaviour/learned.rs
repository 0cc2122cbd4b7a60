//! Learned strengths, against central differences.

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{Optimizer, SGD};
use phex::graph::Strength;
use phex::infer::Options;
use phex::learn::{Loss, Strengths, Tie};
use phex_candle::{Error, LearnedRelationLoss, RelationLoss};

use crate::common::*;

fn learned(tie: Tie, loss: Loss) -> LearnedRelationLoss {
    let strengths = Strengths::new(graph(), tie).unwrap();
    LearnedRelationLoss::new(strengths, Options::default(), loss).unwrap()
}

fn parameters(values: &[f64]) -> Var {
    Var::new(values, &Device::Cpu).unwrap()
}

#[test]
fn both_gradients_are_central_differences() {
    let logits = variable(&Random::new(11).normals(4 * LABELS), 4);
    let known = matrix(&targets(), 4);
    let weights = Tensor::new(&[1.0, 2.0, 1.0, 0.5], &Device::Cpu).unwrap();
    for kind in [Loss::Joint, Loss::Marginal] {
        for (tie, count) in [(Tie::Scale, 1), (Tie::Kind, 2), (Tie::Relation, 6)] {
            let loss = learned(tie, kind);
            assert_eq!(loss.names().len(), count);
            let start = loss.start(DType::F64, &Device::Cpu).unwrap();
            // Away from where it starts, so that the model is another than the first.
            let parameters = parameters(&numbers(&(start.as_tensor() * 0.7).unwrap()));
            let value = || {
                loss.forward(&logits, &known, Some(&weights), &parameters).unwrap().sqr().unwrap()
            };
            let found = value().backward().unwrap();
            let scalar = || value().to_scalar::<f64>().unwrap();
            let expected = differences(&parameters, scalar);
            assert!(expected.iter().all(|slope| slope.abs() > 1e-5), "{expected:?}");
            assert_close(&slope(&found, &parameters), &expected, 1e-6);
            assert_close(&slope(&found, &logits), &differences(&logits, scalar), 1e-6);
        }
    }
}

#[test]
fn the_value_is_that_of_the_graph_with_these_strengths() {
    let logits = variable(&Random::new(12).normals(4 * LABELS), 4);
    let known = matrix(&targets(), 4);
    let loss = learned(Tie::Kind, Loss::Joint);
    for values in [[1.0, 1.0], [0.25, 2.0], [0.0, 3.0], [1.0, 0.0], [1.0, 1.0]] {
        let parameters = parameters(&values);
        let graph = loss.graph(&parameters).unwrap();
        assert_eq!(graph.hierarchy()[1].strength, Strength::W(1.3 * values[0]));
        assert_eq!(graph.hierarchy()[0].strength, Strength::Hard);
        let fixed = RelationLoss::new(engine(&graph), Loss::Joint);
        let expected = fixed.forward(&logits, &known, None).unwrap();
        let found = loss.forward(&logits, &known, None, &parameters).unwrap();
        assert_close(&numbers(&found), &numbers(&expected), 1e-14);
        let (found, expected) = (found.backward().unwrap(), expected.backward().unwrap());
        assert_close(&slope(&found, &logits), &slope(&expected, &logits), 1e-14);
        assert_eq!(slope(&found, &parameters).len(), 2);
        let kept = loss.engine(&parameters).unwrap();
        assert_eq!(kept.model().relations(), fixed.engine().model().relations());
    }
}

/// Relations that the data contradict end at 0 and stay there.
#[test]
fn an_optimiser_learns_strengths_and_projects_them() {
    let loss = learned(Tie::Kind, Loss::Joint);
    let parameters = loss.start(DType::F32, &Device::Cpu).unwrap();
    assert_eq!(numbers(&parameters), [1.0, 1.0]);
    let logits = Tensor::zeros((1, LABELS), DType::F32, &Device::Cpu).unwrap();
    // Both children of `a`, and no child without its parent.
    let known = Tensor::new(&[[1u8, 1, 1, 1, 1, 1]], &Device::Cpu).unwrap();
    let value = |parameters: &Var| loss.forward(&logits, &known, None, parameters).unwrap();
    let first = numbers(&value(&parameters))[0];
    let mut optimiser = SGD::new(vec![parameters.clone()], 0.5).unwrap();
    for _ in 0..20 {
        optimiser.backward_step(&value(&parameters)).unwrap();
        loss.project(&parameters).unwrap();
    }
    let (found, last) = (numbers(&parameters), numbers(&value(&parameters))[0]);
    assert_eq!(loss.names(), ["hierarchy", "exclusion"]);
    assert!(found[0] > 1.5 && found[1] == 0.0, "{found:?}");
    assert!(last < first);
}

#[test]
fn parameters_out_of_range_are_named() {
    let loss = learned(Tie::Kind, Loss::Joint);
    let (logits, known) = (matrix(&[0.0; 24], 4), matrix(&targets(), 4));
    for bad in [-0.5, f64::NAN, f64::INFINITY] {
        let parameters = parameters(&[1.0, bad]);
        let found = loss.forward(&logits, &known, None, &parameters);
        let Err(Error::Parameter { name, .. }) = &found else { panic!("{found:?}") };
        assert_eq!(name, "exclusion");
        assert_eq!(loss.project(&parameters).is_ok(), bad < 0.0);
        assert_eq!(loss.graph(&parameters).is_ok(), bad < 0.0);
    }
    let short = parameters(&[1.0]);
    assert!(matches!(loss.project(&short), Err(Error::Shape { .. })));
    let message = loss.engine(&short).unwrap_err().to_string();
    assert!(message.contains("[1]") && message.contains("[2]"), "{message}");
}
