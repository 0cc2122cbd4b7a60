//! The loss of the targets, under relations whose strengths are learned.
//!
//! The parameters `φ ≥ 0` of [`Strengths`] are a variable of the caller, a second input of the loss.
//! `∂L/∂w_r = E[v_r | targets] − E[v_r]` for the cost of a relation, summed over the relations that share
//! a parameter. Cost: a model is compiled whenever the parameters have changed, then
//! [`phex::learn::gradients`] with costs.

use std::sync::{Mutex, PoisonError};

use candle_core::{DType, Device, Tensor, Var};
use phex::graph::RelationGraph;
use phex::infer::{Engine, Options};
use phex::learn::{Loss, Objective, Strengths};
use phex::model::Model;

use crate::loss::{LossInputs, mean};
use crate::tape::Scalar;
use crate::{Error, tensors};

/// A [`RelationLoss`](crate::RelationLoss) with strengths to learn. Safe to share between threads.
///
/// ```
/// use candle_core::{DType, Device, Tensor, Var};
/// use candle_nn::{Optimizer, SGD};
/// use phex::graph::{GraphBuilder, Strength};
/// use phex::infer::Options;
/// use phex::learn::{Loss, Strengths, Tie};
/// use phex_candle::LearnedRelationLoss;
///
/// let mut builder = GraphBuilder::new();
/// builder.exclusion("dog", "cat", Some(Strength::W(3.0)));
/// let strengths = Strengths::new(builder.build()?, Tie::Relation)?;
/// let loss = LearnedRelationLoss::new(strengths, Options::default(), Loss::Joint)?;
/// let parameters = loss.start(DType::F32, &Device::Cpu)?;
/// let logits = Var::zeros((1, 2), DType::F32, &Device::Cpu)?;
/// // A photograph of both: they exclude each other less than the graph says.
/// let targets = Tensor::new(&[[1u8, 1]], &Device::Cpu)?;
/// let mut optimiser = SGD::new(vec![logits.clone(), parameters.clone()], 0.5)?;
/// for _ in 0..3 {
///     optimiser.backward_step(&loss.forward(&logits, &targets, None, &parameters)?)?;
///     loss.project(&parameters)?;
/// }
/// assert!(parameters.to_vec1::<f32>()?[0] < 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LearnedRelationLoss {
    strengths: Strengths,
    options: Options,
    loss: Loss,
    labels: usize,
    /// The engine of the last parameters.
    compiled: Mutex<(Vec<f64>, Engine)>,
}

impl LearnedRelationLoss {
    /// A loss whose parameters start at the values of `strengths`. `options` say how models are
    /// compiled.
    ///
    /// # Errors
    /// [`Error::Core`] when the model cannot be made or compiled.
    pub fn new(
        strengths: Strengths,
        options: Options,
        loss: Loss,
    ) -> Result<LearnedRelationLoss, Error> {
        let engine = Engine::compile(Model::new(&strengths.graph()?)?, &options)?;
        let labels = engine.model().len();
        let compiled = Mutex::new((strengths.values().to_vec(), engine));
        Ok(LearnedRelationLoss { strengths, options, loss, labels, compiled })
    }

    /// The name of each parameter: `scale`, `hierarchy`, `exclusion`, or the relation.
    pub fn names(&self) -> &[String] {
        self.strengths.names()
    }

    /// The initial parameters, for an optimiser.
    ///
    /// # Errors
    /// [`Error::Candle`] when the device or the type does not allow it.
    pub fn start(&self, precision: DType, device: &Device) -> Result<Var, Error> {
        let start = Tensor::new(self.strengths.values(), device)?.to_dtype(precision)?;
        Ok(Var::from_tensor(&start)?)
    }

    /// Sets negative parameters to 0; call it after each step of the optimiser.
    ///
    /// # Errors
    /// [`Error::Parameter`] when a parameter is NaN or infinite; [`Error::Shape`] when there is not
    /// one per name.
    pub fn project(&self, parameters: &Var) -> Result<(), Error> {
        let values = self.read(parameters)?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(self.bad(at, values[at]));
        }
        if values.iter().any(|&value| value < 0.0) {
            parameters.set(&parameters.as_detached_tensor().relu()?)?;
        }
        Ok(())
    }

    /// The compiled model with these parameters, for prediction. Compiled again only when they have
    /// changed.
    ///
    /// # Errors
    /// [`Error::Shape`] when there is not one parameter per name; [`Error::Parameter`] when one
    /// is negative or not finite; [`Error::Core`] when the model cannot be compiled.
    pub fn engine(&self, parameters: &Tensor) -> Result<Engine, Error> {
        let values = self.checked(parameters)?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.0 != values {
            let model = Model::new(&self.at(&values).graph()?)?;
            let engine = Engine::compile(model, &self.options)?;
            *compiled = (values, engine);
        }
        Ok(compiled.1.clone())
    }

    /// The graph with these parameters as its strengths.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Parameter`] as [`LearnedRelationLoss::engine`].
    pub fn graph(&self, parameters: &Tensor) -> Result<RelationGraph, Error> {
        Ok(self.at(&self.checked(parameters)?).graph()?)
    }

    /// The mean of the rows' losses under relations with these parameters. Logits, targets and
    /// weights as for [`RelationLoss::forward`](crate::RelationLoss::forward); the gradient goes to
    /// the logits and to the parameters.
    ///
    /// # Errors
    /// Those of [`RelationLoss::forward`](crate::RelationLoss::forward) and of
    /// [`LearnedRelationLoss::engine`].
    pub fn forward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
        parameters: &Tensor,
    ) -> Result<Tensor, Error> {
        let engine = self.engine(parameters)?;
        let rows = LossInputs::read(self.labels, logits, targets, weights)?;
        let objective = Objective { loss: self.loss, costs: true };
        let found = mean(&engine, &rows, objective)?;
        let by_costs = found.by_costs.unwrap_or_default();
        let slope = self.strengths.gradient(&by_costs);
        let slope = Tensor::new(slope, &Device::Cpu)?.to_dtype(parameters.dtype())?;
        let scalar = Scalar::new(found.value, found.by_logits, Some(slope));
        let parameters = parameters.to_device(&Device::Cpu)?;
        Ok(rows.logits.apply_op2(&parameters, scalar)?.to_device(logits.device())?)
    }

    fn at(&self, values: &[f64]) -> Strengths {
        let mut strengths = self.strengths.clone();
        strengths.set(values);
        strengths
    }

    fn read(&self, parameters: &Tensor) -> Result<Vec<f64>, Error> {
        let needed = self.names().len();
        if parameters.dims() != [needed] {
            let expected = format!("[{needed}], one number per name");
            let found = parameters.dims().to_vec();
            return Err(Error::Shape { what: "the strength parameters", expected, found });
        }
        tensors::doubles(parameters)
    }

    fn checked(&self, parameters: &Tensor) -> Result<Vec<f64>, Error> {
        let values = self.read(parameters)?;
        match values.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
            None => Ok(values),
            Some(at) => Err(self.bad(at, values[at])),
        }
    }

    fn bad(&self, at: usize, value: f64) -> Error {
        Error::Parameter { name: self.names()[at].clone(), value }
    }
}
