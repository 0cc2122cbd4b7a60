//! The loss of the targets, under relations of fixed strength.
//!
//! `L = (1/rows) Σ_row weight · loss(row)`, with the losses of [`phex::learn`]. Its gradient by the
//! logits is free minus clamped marginals. Cost: [`phex::learn::gradients`], once; the backward pass
//! multiplies what the forward pass kept, a matrix of the size of the logits.

use candle_core::{DType, Device, Tensor, WithDType};
use phex::infer::{Block, Engine, Evidence, Number, RowStatus};
use phex::learn::{Loss, Objective, gradients};

use crate::tape::Scalar;
use crate::{Error, tensors};

/// A loss of logits and targets, of which some may be unknown. Cheap to clone, safe to share between
/// threads.
///
/// The header of this crate has an example.
#[derive(Debug, Clone)]
pub struct RelationLoss {
    engine: Engine,
    loss: Loss,
}

impl RelationLoss {
    /// A loss under the relations of a compiled model. The columns of logits and targets are its
    /// labels, in the order of [`Model::names`](phex::model::Model::names).
    pub fn new(engine: Engine, loss: Loss) -> RelationLoss {
        RelationLoss { engine, loss }
    }

    /// The compiled model.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The mean of the rows' losses: a scalar to call `backward` on.
    ///
    /// `logits` are rows × labels. `targets` have the same shape and any numeric type: 1 is on, 0 is
    /// off, −1 is unknown. `weights`, one per row, multiply the losses of rows; the sum is divided by the
    /// number of rows, whatever their weights. Rows whose targets are all unknown, and rows of weight 0,
    /// have a loss of 0 and no gradient. Targets and weights receive no gradient.
    ///
    /// The value is NaN with engines that do not compute log Z (`gibbs` with [`Loss::Joint`]); the
    /// gradient is valid nevertheless.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Precision`], [`Error::Target`] and [`Error::Weight`] for tensors that
    /// cannot be used; [`Error::Core`] with [`phex::Error::BadScore`] for a logit that is NaN, infinite
    /// or beyond ±[`SCORE_LIMIT`](phex::numeric::SCORE_LIMIT), and with [`phex::Error::Contradiction`] for
    /// a row that contradicts hard relations.
    pub fn forward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<Tensor, Error> {
        let rows = LossInputs::read(self.engine.model().len(), logits, targets, weights)?;
        let objective = Objective { loss: self.loss, costs: false };
        let found = mean(&self.engine, &rows, objective)?;
        let scalar = Scalar::new(found.value, found.by_logits, None);
        Ok(rows.logits.apply_op1(scalar)?.to_device(logits.device())?)
    }
}

/// The inputs of a loss.
pub(crate) struct LossInputs {
    /// In CPU memory, still on the tape.
    pub(crate) logits: Tensor,
    targets: Vec<Evidence>,
    weights: Option<Vec<f64>>,
}

impl LossInputs {
    pub(crate) fn read(
        labels: usize,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<LossInputs, Error> {
        let logits = tensors::logits(logits, labels)?;
        let targets = tensors::targets(targets, &logits)?;
        let rows = logits.dims()[0];
        let weights = weights.map(|weights| tensors::weights(weights, rows)).transpose()?;
        Ok(LossInputs { logits, targets, weights })
    }
}

/// A mean loss and its gradients.
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) by_logits: Tensor,
    /// By the cost of each term of the model, if requested.
    pub(crate) by_costs: Option<Vec<f64>>,
}

pub(crate) fn mean(
    engine: &Engine,
    rows: &LossInputs,
    objective: Objective,
) -> Result<Mean, Error> {
    match rows.logits.dtype() {
        DType::F64 => mean_in::<f64>(engine, rows, objective),
        _ => mean_in::<f32>(engine, rows, objective),
    }
}

fn mean_in<T: Number + WithDType>(
    engine: &Engine,
    rows: &LossInputs,
    objective: Objective,
) -> Result<Mean, Error> {
    let (logits, weights) = (&rows.logits, rows.weights.as_deref());
    let scores: Vec<T> = tensors::scores(logits, engine.model())?;
    let block = Block::new(engine.model().len(), &scores).with_evidence(&rows.targets);
    let found = gradients(engine, &block, weights, objective)?;
    if let Some(row) = found.status.iter().position(|status| *status == RowStatus::Impossible) {
        let names = engine.model().names();
        let evidence = &rows.targets[row * names.len()..][..names.len()];
        let names = names.iter().map(String::as_str);
        return Err(phex::Error::contradiction(row, names, evidence).into());
    }
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let rows = found.losses.iter().enumerate().filter(|(row, _)| weight(*row) != 0.0);
    let total: f64 = rows.map(|(row, loss)| weight(row) * loss).sum();
    // Without rows the loss is 0, not 0/0.
    let share = 1.0 / block.rows().max(1) as f64;
    let by_logits = Tensor::from_vec(found.logits, logits.shape(), &Device::Cpu)?;
    let by_costs = found.costs.map(|all| all.into_iter().map(|slope| share * slope).collect());
    Ok(Mean { value: share * total, by_logits: (by_logits * share)?, by_costs })
}
