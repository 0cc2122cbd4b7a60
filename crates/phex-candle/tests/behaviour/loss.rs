//! The loss and its gradient, against central differences and the core.

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use phex::graph::GraphBuilder;
use phex::infer::{Block, Engine, Method, Options};
use phex::learn::{Loss, Objective, gradients};
use phex::model::Model;
use phex_candle::{Error, RelationLoss};

use crate::common::*;

const LOSSES: [Loss; 2] = [Loss::Joint, Loss::Marginal];

/// Two layers, from three inputs to a logit for each label.
struct TwoLayers {
    variables: [Var; 4],
}

impl TwoLayers {
    fn new(random: &mut Random) -> TwoLayers {
        let variables = [
            variable(&random.normals(3 * 5), 3),
            variable(&random.normals(5), 1),
            variable(&random.normals(5 * LABELS), 5),
            variable(&random.normals(LABELS), 1),
        ];
        TwoLayers { variables }
    }

    fn forward(&self, inputs: &Tensor) -> Tensor {
        let [weights, bias, out_weights, out_bias] = &self.variables;
        let hidden = inputs.matmul(weights).unwrap().broadcast_add(bias).unwrap().tanh().unwrap();
        hidden.matmul(out_weights).unwrap().broadcast_add(out_bias).unwrap()
    }
}

#[test]
fn the_gradient_through_a_network_is_a_central_difference() {
    let mut random = Random::new(1);
    let (network, inputs) = (TwoLayers::new(&mut random), matrix(&random.normals(4 * 3), 4));
    let targets = matrix(&targets(), 4);
    let weights = Tensor::new(&[1.0, 0.5, 1.0, 2.0], &Device::Cpu).unwrap();
    for kind in LOSSES {
        let loss = RelationLoss::new(engine(&graph()), kind);
        let value = || loss.forward(&network.forward(&inputs), &targets, Some(&weights)).unwrap();
        // A loss of which it is a part: the incoming gradient is not 1.
        let total = |loss: Tensor| (loss.sqr().unwrap() * 3.0).unwrap();
        let found = total(value()).backward().unwrap();
        for variable in &network.variables {
            let expected = differences(variable, || total(value()).to_scalar::<f64>().unwrap());
            assert!(expected.iter().any(|slope| slope.abs() > 1e-3));
            assert_close(&slope(&found, variable), &expected, 1e-6);
        }
    }
}

#[test]
fn it_is_the_mean_of_the_core() {
    let (engine, known) = (engine(&graph()), evidence(&targets()));
    let scores = Random::new(2).normals(4 * LABELS);
    let weights = [1.0, 0.5, 3.0, 0.0];
    for kind in LOSSES {
        for weighted in [false, true] {
            let block = Block::new(LABELS, &scores).with_evidence(&known);
            let weights = weighted.then_some(&weights[..]);
            let objective = Objective { loss: kind, costs: false };
            let core = gradients(&engine, &block, weights, objective).unwrap();
            let expected: Vec<f64> = core.logits.iter().map(|slope| slope / 4.0).collect();
            for (dtype, tolerance) in
                [(DType::F64, 1e-15), (DType::F32, 1e-5), (DType::BF16, 0.02), (DType::F16, 3e-3)]
            {
                let logits = matrix(&scores, 4).to_dtype(dtype).unwrap();
                let logits = Var::from_tensor(&logits).unwrap();
                let weights = weights.map(|all| Tensor::new(all, &Device::Cpu).unwrap());
                let loss = RelationLoss::new(engine.clone(), kind);
                let value =
                    loss.forward(&logits, &matrix(&targets(), 4), weights.as_ref()).unwrap();
                let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
                assert_eq!((value.dtype(), value.rank()), (wide, 0));
                let total = core.total(weighted.then_some(&[1.0, 0.5, 3.0, 0.0][..]));
                assert_close(&numbers(&value), &[total / 4.0], 4.0 * tolerance);
                let found = value.backward().unwrap();
                assert_eq!(found.get(&logits).unwrap().dtype(), dtype);
                assert_close(&slope(&found, &logits), &expected, tolerance);
            }
        }
    }
}

#[test]
fn strides_and_types_of_tensors_make_no_difference() {
    let loss = RelationLoss::new(engine(&graph()), Loss::Joint);
    let scores = Random::new(3).normals(4 * LABELS);
    let (plain, known) = (variable(&scores, 4), matrix(&targets(), 4));
    let value = loss.forward(&plain, &known, None).unwrap();
    let expected = (numbers(&value), slope(&value.backward().unwrap(), &plain));

    // Columns of a transposed part of a larger matrix, in memory label by label.
    let mut larger = Random::new(4).normals(9 * 7);
    for row in 0..4 {
        for label in 0..LABELS {
            larger[(label + 2) * 7 + row + 1] = scores[row * LABELS + label];
        }
    }
    let larger = variable(&larger, 9);
    let part = |of: &Tensor| of.narrow(0, 2, 6).unwrap().narrow(1, 1, 4).unwrap().t().unwrap();
    let logits = part(&larger);
    assert!(!logits.is_contiguous());
    let strided = known.t().unwrap().contiguous().unwrap().t().unwrap();
    let value = loss.forward(&logits, &strided, None).unwrap();
    assert_eq!(numbers(&value), expected.0);
    let gradient = value.backward().unwrap();
    assert_eq!(numbers(&part(gradient.get(&larger).unwrap())), expected.1);
    let others = slope(&gradient, &larger).iter().filter(|slope| **slope != 0.0).count();
    assert_eq!(others, expected.1.iter().filter(|slope| **slope != 0.0).count());

    let entry = |value: &f64| if value.is_nan() { -1.0 } else { *value }; // Integers have no NaN.
    let known = matrix(&targets().iter().map(entry).collect::<Vec<f64>>(), 4);
    for dtype in [DType::I64, DType::I32, DType::F32, DType::F16] {
        let value = loss.forward(&plain, &known.to_dtype(dtype).unwrap(), None).unwrap();
        assert_eq!(numbers(&value), expected.0, "{dtype:?}");
    }
    // Types without a sign have no −1: they serve where everything is known.
    let complete: Vec<f64> = targets().iter().map(|value| value.max(0.0)).collect();
    let loss = RelationLoss::new(loss.engine().clone(), Loss::Marginal);
    let signed = loss.forward(&plain, &matrix(&complete, 4), None).unwrap();
    for dtype in [DType::U8, DType::U32] {
        let known = matrix(&complete, 4).to_dtype(dtype).unwrap();
        let value = loss.forward(&plain, &known, None).unwrap();
        assert_eq!(numbers(&value), numbers(&signed), "{dtype:?}");
    }
}

#[test]
fn targets_other_than_on_off_and_unknown_are_refused() {
    let loss = RelationLoss::new(engine(&graph()), Loss::Joint);
    for bad in [0.3, 255.0, -2.0] {
        let mut values = targets();
        values[LABELS + 2] = bad;
        let found = loss.forward(&matrix(&[0.0; 24], 4), &matrix(&values, 4), None);
        assert!(matches!(found, Err(Error::Target { row: 1, column: 2, .. })), "{found:?}");
    }
}

#[test]
fn nothing_known_costs_nothing() {
    for kind in LOSSES {
        let loss = RelationLoss::new(engine(&graph()), kind);
        let logits = variable(&Random::new(5).normals(2 * LABELS), 2);
        let unknown = matrix(&[-1.0; 2 * LABELS], 2);
        let value = loss.forward(&logits, &unknown, None).unwrap();
        assert_eq!(numbers(&value), [0.0]);
        assert_eq!(slope(&value.backward().unwrap(), &logits), [0.0; 2 * LABELS]);
        // Nor do no rows.
        let none = Tensor::zeros((0, LABELS), DType::F32, &Device::Cpu).unwrap();
        assert_eq!(numbers(&loss.forward(&none, &none, None).unwrap()), [0.0]);
    }
}

#[test]
fn errors_name_the_row_and_the_label() {
    let loss = RelationLoss::new(engine(&graph()), Loss::Joint);
    let (scores, known) = (matrix(&[0.0; 24], 4), matrix(&targets(), 4));
    let message = |result: Result<Tensor, Error>| result.unwrap_err().to_string();

    for bad in [f64::NAN, f64::INFINITY, 1e31] {
        let mut values = [0.0; 24];
        values[2 * LABELS + 3] = bad; // In the row of which nothing is known.
        let found = loss.forward(&matrix(&values, 4), &known, None);
        let Err(Error::Core(phex::Error::BadScore { row: 2, label })) = &found else {
            panic!("{found:?}")
        };
        assert_eq!(label, "d");
        // The same in words for functions that return candle's errors.
        let candle = candle_core::Error::from(found.unwrap_err()).to_string();
        assert!(candle.contains("row 2") && candle.contains("`d`"), "{candle}");
    }

    let narrow = message(loss.forward(&matrix(&[0.0; 20], 4), &known, None));
    assert_eq!(narrow, "the logits have the shape [4, 5] instead of rows × 6 labels");
    let flat = scores.flatten_all().unwrap();
    assert!(message(loss.forward(&flat, &known, None)).contains("[24]"));
    let few = message(loss.forward(&scores, &known.narrow(0, 0, 3).unwrap(), None));
    assert!(few.contains("the targets have the shape [3, 6]") && few.contains("[4, 6]"), "{few}");
    let integers = scores.to_dtype(DType::I64).unwrap();
    let found = loss.forward(&integers, &known, None);
    assert!(matches!(found, Err(Error::Precision { found: DType::I64 })));

    let weights = |all: &[f32]| Tensor::new(all, &Device::Cpu).unwrap();
    let short = loss.forward(&scores, &known, Some(&weights(&[1.0, 1.0])));
    assert!(matches!(short, Err(Error::Shape { what: "the row weights", .. })));
    for bad in [-1.0, f32::NAN, f32::INFINITY] {
        let found = loss.forward(&scores, &known, Some(&weights(&[1.0, 1.0, bad, 1.0])));
        assert!(matches!(found, Err(Error::Weight { row: 2, .. })), "{found:?}");
    }
}

#[test]
fn contradictions_are_named_and_can_be_left_out() {
    let loss = RelationLoss::new(engine(&graph()), Loss::Joint);
    let mut values = targets();
    values[3 * LABELS] = 0.0; // A `b` that is no `a`, which is a hard relation.
    let (scores, known) = (matrix(&[0.0; 24], 4), matrix(&values, 4));
    let found = loss.forward(&scores, &known, None);
    let Err(Error::Core(phex::Error::Contradiction { row: 3, labels })) = &found else {
        panic!("{found:?}")
    };
    assert_eq!(labels, &["b", "f", "not a"]);
    let weights = Tensor::new(&[1.0, 1.0, 1.0, 0.0], &Device::Cpu).unwrap();
    assert!(loss.forward(&scores, &known, Some(&weights)).is_ok());
    let marginal = RelationLoss::new(loss.engine().clone(), Loss::Marginal);
    let value = marginal.forward(&scores, &known, None).unwrap();
    assert!(value.to_scalar::<f64>().unwrap().is_finite());
}

/// Samples know no log Z, but their gradient is one.
#[test]
fn a_loss_that_is_not_known_is_not_a_number() {
    let options = Options { method: Method::Gibbs, ..Options::default() };
    let sampled = Engine::compile(Model::new(&graph()).unwrap(), &options).unwrap();
    let logits = variable(&Random::new(6).normals(4 * LABELS), 4);
    let known = matrix(&targets(), 4);
    let run = |engine: Engine| {
        RelationLoss::new(engine, Loss::Joint).forward(&logits, &known, None).unwrap()
    };
    let (found, exact) = (run(sampled), run(engine(&graph())));
    assert!(found.to_scalar::<f64>().unwrap().is_nan());
    let (found, exact) = (found.backward().unwrap(), exact.backward().unwrap());
    assert_close(&slope(&found, &logits), &slope(&exact, &logits), 0.02);
}

#[test]
fn threads_share_a_loss() {
    let loss = RelationLoss::new(engine(&graph()), Loss::Marginal);
    let run = |seed: u64| {
        let logits = variable(&Random::new(seed).normals(4 * LABELS), 4);
        let value = loss.forward(&logits, &matrix(&targets(), 4), None).unwrap();
        slope(&value.backward().unwrap(), &logits)
    };
    let alone: Vec<Vec<f64>> = (1..5).map(run).collect();
    let together: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..5).map(|seed| scope.spawn(move || run(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

/// A label of which nothing was ever said is learned from what it is exclusive with.
#[test]
fn an_optimiser_learns_by_it() {
    let mut builder = GraphBuilder::new();
    builder.exclusion("dog", "cat", None);
    let loss = RelationLoss::new(engine(&builder.build().unwrap()), Loss::Joint);
    let logits = Var::zeros((1, 2), DType::F32, &Device::Cpu).unwrap();
    let known = Tensor::new(&[[1i64, -1]], &Device::Cpu).unwrap();
    let rate = ParamsAdamW { lr: 0.1, ..ParamsAdamW::default() };
    let mut optimiser = AdamW::new(vec![logits.clone()], rate).unwrap();
    for _ in 0..100 {
        optimiser.backward_step(&loss.forward(&logits, &known, None).unwrap()).unwrap();
    }
    let found = numbers(&logits);
    assert!(found[0] > 2.0 && found[1] < -2.0, "{found:?}");
}
