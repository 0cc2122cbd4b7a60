//! Logits to marginals, differentiably.
//!
//! `P = E[x]` under the relations; `∂L/∂ℓ = Cov(x) ∂L/∂P` for whatever loss follows, by
//! [`covariance_product`]. Cost: one forward pass in the precision of the logits, and two backward passes
//! in double precision.

use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Module, Shape, Tensor, WithDType};
use phex::infer::{Block, Engine, Number, Want};
use phex::learn::covariance_product;

use crate::tape::PendingValues;
use crate::{Error, tensors};

/// A layer from logits to the probability of each label. Cheap to clone, safe to share.
///
/// ```
/// use candle_core::{DType, Device, Var};
/// use phex::graph::GraphBuilder;
/// use phex::infer::{Engine, Options};
/// use phex::model::Model;
/// use phex_candle::RelationLayer;
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("dog", "puppy", None);
/// let engine = Engine::compile(Model::new(&builder.build()?)?, &Options::default())?;
/// let layer = RelationLayer::new(engine)?;
/// let logits = Var::zeros((1, 2), DType::F64, &Device::Cpu)?;
/// // Nothing, a dog, or a dog that is a puppy.
/// let marginals = layer.forward(&logits)?;
/// assert!((marginals.to_vec2::<f64>()?[0][0] - 2.0 / 3.0).abs() < 1e-12);
/// // More of a puppy makes more of a dog: Cov = 1/3 − 2/3 · 1/3.
/// let gradient = marginals.narrow(1, 0, 1)?.sum_all()?.backward()?;
/// let slope = gradient.get(&logits).map(|slope| slope.to_vec2::<f64>()).transpose()?;
/// assert!(slope.is_some_and(|slope| (slope[0][1] - 1.0 / 9.0).abs() < 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RelationLayer {
    engine: Engine,
}

impl RelationLayer {
    /// A layer under the relations of a compiled model.
    ///
    /// # Errors
    /// [`Error::Core`] with [`phex::Error::NotExact`] when the engine is approximate, because differences
    /// of its answers are not derivatives.
    pub fn new(engine: Engine) -> Result<RelationLayer, Error> {
        let plan = engine.plan();
        if !plan.exact {
            return Err(phex::Error::NotExact { method: plan.method }.into());
        }
        Ok(RelationLayer { engine })
    }

    /// The compiled model.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The marginals of rows × labels logits: the same shape, precision and device.
    ///
    /// The error of the gradient is at most 1e-9 of the largest incoming gradient of a row. A logarithm of
    /// tiny marginals has a huge gradient; [`RelationLoss`](crate::RelationLoss) has no such limit. The
    /// backward pass fails with [`Error::Gradient`], as candle's error, if the incoming gradient is NaN
    /// or infinite.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Precision`] for logits that cannot be used; [`Error::Core`] with
    /// [`phex::Error::BadScore`] for a logit that is NaN, infinite or beyond
    /// ±[`SCORE_LIMIT`](phex::numeric::SCORE_LIMIT).
    pub fn forward(&self, logits: &Tensor) -> Result<Tensor, Error> {
        let rows = tensors::logits(logits, self.engine.model().len())?;
        let values = match rows.dtype() {
            DType::F64 => self.marginals::<f64>(&rows)?,
            _ => self.marginals::<f32>(&rows)?,
        };
        let marginals = rows.apply_op1(Marginals { engine: self.engine.clone(), values })?;
        Ok(marginals.to_dtype(logits.dtype())?.to_device(logits.device())?)
    }

    fn marginals<T: Number + WithDType>(&self, logits: &Tensor) -> Result<PendingValues, Error> {
        let scores: Vec<T> = tensors::scores(logits, self.engine.model())?;
        let block = Block::new(self.engine.model().len(), &scores);
        let posterior = self.engine.run(&block, Want::default())?;
        // Without evidence, a row is impossible only if the model is.
        if posterior.log_partition.contains(&f64::NEG_INFINITY) {
            return Err(phex::Error::NoLegalState.into());
        }
        Ok(PendingValues::new(posterior.marginals, logits.shape()))
    }
}

impl Module for RelationLayer {
    fn forward(&self, logits: &Tensor) -> candle_core::Result<Tensor> {
        Ok(RelationLayer::forward(self, logits)?)
    }
}

/// The operation on the tape.
struct Marginals {
    engine: Engine,
    values: PendingValues,
}

impl CustomOp1 for Marginals {
    fn name(&self) -> &'static str {
        "relation-marginals"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        self.values.take()
    }

    fn bwd(
        &self,
        logits: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        let slope = match logits.dtype() {
            DType::F64 => self.pull_back::<f64>(logits, gradient)?,
            _ => self.pull_back::<f32>(logits, gradient)?,
        };
        Ok(Some(slope))
    }
}

impl Marginals {
    /// From the gradient by the marginals to the gradient by the logits.
    fn pull_back<T: Number + WithDType>(
        &self,
        logits: &Tensor,
        gradient: &Tensor,
    ) -> Result<Tensor, Error> {
        let model = self.engine.model();
        let scores: Vec<T> = tensors::scores(logits, model)?;
        let vectors: Vec<T> = gradient.flatten_all()?.to_vec1()?;
        let value = |entry: T| phex::numeric::Scalar::to_f64(entry);
        if let Some(at) = vectors.iter().position(|&entry| !value(entry).is_finite()) {
            let (row, label) = (at / model.len(), model.names()[at % model.len()].clone());
            return Err(Error::Gradient { row, label, value: value(vectors[at]) });
        }
        let slope = covariance_product(&self.engine, &Block::new(model.len(), &scores), &vectors)?;
        Ok(Tensor::from_vec(slope, logits.shape(), &Device::Cpu)?)
    }
}
