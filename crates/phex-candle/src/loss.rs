//! The loss of what is observed, under relations of fixed strength.
//!
//! `L = (1/rows) Σ_row weight · loss(row)`, with the losses of [`phex::learn`]; its gradient by the
//! logits is clamped minus free marginals. Cost: that of [`phex::learn::gradients`], once; the
//! backward pass multiplies what the forward pass kept, a matrix of the logits' size.

use candle_core::{DType, Device, Tensor, WithDType};
use phex::infer::{Block, Engine, Evidence, Number, RowStatus};
use phex::learn::{Loss, Objective, gradients};

use crate::tape::Scalar;
use crate::{Error, tensors};

/// A loss of logits and partly known labels. Cheap to clone, safe to share between threads.
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
    /// `logits` are rows × labels. `targets` have the same shape and any type of numbers: 1 says
    /// that a label is on, 0 that it is off, and anything else, such as −1, 255 or NaN, that it is
    /// not known. `weights`, one for each row, multiply the rows' losses; the sum is divided by the
    /// number of rows, whatever their weights. Rows of which nothing is known, and those of weight
    /// 0, have a loss of 0 and no gradient. No gradient goes to targets and weights.
    ///
    /// The value is NaN with engines that know no log Z (`gibbs` with [`Loss::Joint`]); their
    /// gradient is one nevertheless.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Precision`] and [`Error::Weight`] on tensors that do not fit;
    /// [`Error::Core`] with [`phex::Error::BadScore`] on a logit that is NaN, infinite or beyond
    /// ±1e30; [`Error::Impossible`] on a row that hard relations do not allow.
    pub fn forward(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<Tensor, Error> {
        let rows = Rows::read(self.engine.model().len(), logits, targets, weights)?;
        let objective = Objective { loss: self.loss, costs: false };
        let found = mean(&self.engine, &rows, objective)?;
        let scalar = Scalar::new(found.value, found.by_logits, None);
        Ok(rows.logits.apply_op1(scalar)?.to_device(logits.device())?)
    }
}

/// The inputs of a loss.
pub(crate) struct Rows {
    /// In the processor's memory, still on the tape.
    pub(crate) logits: Tensor,
    targets: Vec<Evidence>,
    weights: Option<Vec<f64>>,
}

impl Rows {
    pub(crate) fn read(
        labels: usize,
        logits: &Tensor,
        targets: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<Rows, Error> {
        let logits = tensors::logits(logits, labels)?;
        let targets = tensors::targets(targets, &logits)?;
        let rows = logits.dims()[0];
        let weights = weights.map(|weights| tensors::weights(weights, rows)).transpose()?;
        Ok(Rows { logits, targets, weights })
    }
}

/// A mean loss and its gradients.
pub(crate) struct Mean {
    pub(crate) value: f64,
    pub(crate) by_logits: Tensor,
    /// By the cost of each term of the model, when asked for.
    pub(crate) by_costs: Option<Vec<f64>>,
}

pub(crate) fn mean(engine: &Engine, rows: &Rows, objective: Objective) -> Result<Mean, Error> {
    match rows.logits.dtype() {
        DType::F64 => mean_in::<f64>(engine, rows, objective),
        _ => mean_in::<f32>(engine, rows, objective),
    }
}

fn mean_in<T: Number + WithDType>(
    engine: &Engine,
    rows: &Rows,
    objective: Objective,
) -> Result<Mean, Error> {
    let (logits, weights) = (&rows.logits, rows.weights.as_deref());
    let scores: Vec<T> = tensors::scores(logits, engine.model())?;
    let block = Block::new(engine.model().len(), &scores).with_evidence(&rows.targets);
    let found = gradients(engine, &block, weights, objective)?;
    if let Some(row) = found.status.iter().position(|status| *status == RowStatus::Impossible) {
        return Err(Error::Impossible { row, observed: describe(engine, &block, row) });
    }
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let rows = found.losses.iter().enumerate().filter(|(row, _)| weight(*row) != 0.0);
    let total: f64 = rows.map(|(row, loss)| weight(row) * loss).sum();
    // No rows have a loss of 0, not of 0/0.
    let share = 1.0 / block.rows().max(1) as f64;
    let by_logits = Tensor::from_vec(found.logits, logits.shape(), &Device::Cpu)?;
    let by_costs = found.costs.map(|all| all.into_iter().map(|slope| share * slope).collect());
    Ok(Mean { value: share * total, by_logits: (by_logits * share)?, by_costs })
}

/// The observed labels of a row, in words.
fn describe<T: Number>(engine: &Engine, block: &Block<'_, T>, row: usize) -> String {
    const MOST: usize = 8;
    let state = |label: usize| match block.evidence(row, label) {
        Evidence::On => Some(format!("{} on", engine.model().names()[label])),
        Evidence::Off => Some(format!("{} off", engine.model().names()[label])),
        Evidence::Unknown => None,
    };
    let known: Vec<String> = (0..block.labels()).filter_map(state).collect();
    let shown = known.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if known.len() > MOST { format!("{shown} and {} more", known.len() - MOST) } else { shown }
}
