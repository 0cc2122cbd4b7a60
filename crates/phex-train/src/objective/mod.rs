//! What is minimised: the loss of the observed labels under the relations, or a baseline.
//!
//! Every objective turns a batch of logits and what is observed into a loss and its gradient, and
//! logits into a probability for each label. The baselines are what people use without phex, so
//! that they can be compared under the same trainer.

mod independent;
mod max_constraint;
mod softmax;

use std::sync::Arc;

use phex::graph::RelationGraph;
use phex::infer::{Accelerator, Backend, Block, Engine, Evidence, Options, RowStatus, Want};
use phex::learn::{self, Loss};
use phex::model::Model;

use crate::Error;
use crate::config::ObjectiveConfig;
use max_constraint::MaxConstraint;
use softmax::Softmax;

/// The loss of a batch and its gradient.
#[derive(Debug)]
pub(crate) struct BatchLoss {
    /// The weighted sum over the rows that have a loss.
    pub(crate) total: f64,
    /// Its derivative by each logit.
    pub(crate) by_logit: Vec<f32>,
    /// Its derivative by the cost of each term, where asked for.
    pub(crate) by_cost: Option<Vec<f64>>,
    /// The first row whose observed labels hard relations forbid.
    pub(crate) impossible: Option<usize>,
    /// The probability of each label before its labels are seen, where the loss needed them in every
    /// row.
    pub(crate) probabilities: Option<Vec<f32>>,
}

/// An objective, made for one graph.
#[derive(Debug, Clone)]
pub(crate) enum Objective {
    Relations { runner: Arc<dyn Backend>, loss: Loss },
    Independent { labels: usize },
    Softmax(Softmax),
    MaxConstraint(MaxConstraint),
}

impl Objective {
    pub(crate) fn new(
        config: ObjectiveConfig,
        graph: &RelationGraph,
        options: &Options,
    ) -> Result<Objective, Error> {
        Ok(match config {
            ObjectiveConfig::Relations { loss } => {
                let engine = crate::engine::compile(Model::new(graph)?, options)?;
                Objective::Relations { runner: Arc::new(engine), loss }
            }
            ObjectiveConfig::Independent => Objective::Independent { labels: graph.len() },
            ObjectiveConfig::Softmax { coarse } => Objective::Softmax(Softmax::new(graph, coarse)),
            ObjectiveConfig::MaxConstraint => Objective::MaxConstraint(MaxConstraint::new(graph)),
        })
    }

    /// The same on a device, to be asked for this.
    pub(crate) fn on(self, accelerator: &dyn Accelerator, want: Want) -> Result<Objective, Error> {
        match self {
            Objective::Relations { runner, loss } => {
                let runner = accelerator.move_engine(runner.engine(), want)?;
                Ok(Objective::Relations { runner, loss })
            }
            _ => Err(Error::NothingToAccelerate),
        }
    }

    /// The engine, where relations take part.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match self {
            Objective::Relations { runner, .. } => Some(runner.engine()),
            _ => None,
        }
    }

    pub(crate) fn loss(
        &self,
        logits: &[f32],
        observed: &[Evidence],
        weights: &[f64],
        costs: bool,
    ) -> Result<BatchLoss, Error> {
        match self {
            Objective::Relations { runner, loss } => {
                let labels = runner.engine().model().len();
                let block = Block::new(labels, logits).with_evidence(observed);
                let objective = learn::Objective { loss: *loss, costs };
                let found = learn::gradients(&**runner, &block, Some(weights), objective)?;
                let is_impossible = |status: &RowStatus| *status == RowStatus::Impossible;
                // Rows of which nothing is observed, or without weight, were left out.
                let is_seen = |row: &[Evidence]| row.iter().any(|&e| e != Evidence::Unknown);
                let all = weights.iter().all(|weight| *weight != 0.0)
                    && observed.chunks_exact(labels).all(is_seen);
                Ok(BatchLoss {
                    total: found.total(Some(weights)),
                    impossible: found.status.iter().position(is_impossible),
                    by_logit: found.logits,
                    by_cost: found.costs,
                    probabilities: all.then_some(found.marginals),
                })
            }
            Objective::Independent { labels } => {
                Ok(by_row(*labels, logits, observed, weights, |logits, observed, by_logit| {
                    Some(independent::loss(logits, observed, by_logit))
                }))
            }
            Objective::Softmax(softmax) => {
                Ok(by_row(softmax.labels(), logits, observed, weights, |logits, observed, out| {
                    softmax.loss(logits, observed, out)
                }))
            }
            Objective::MaxConstraint(constraint) => {
                Ok(by_row(constraint.labels(), logits, observed, weights, |logits, seen, out| {
                    Some(constraint.loss(logits, seen, out))
                }))
            }
        }
    }

    /// The probability of each label.
    pub(crate) fn probabilities(&self, logits: &[f32]) -> Result<Vec<f32>, Error> {
        match self {
            Objective::Relations { runner, .. } => {
                let block = Block::new(runner.engine().model().len(), logits);
                Ok(runner.run(&block, Want::default())?.marginals)
            }
            Objective::Independent { .. } => {
                Ok(logits.iter().map(|&logit| independent::sigmoid(logit)).collect())
            }
            Objective::Softmax(softmax) => Ok(softmax.probabilities(logits)),
            Objective::MaxConstraint(constraint) => Ok(constraint.probabilities(logits)),
        }
    }
}

/// Objectives whose rows have nothing to do with each other. `None` from `loss`: no state agrees.
fn by_row(
    labels: usize,
    logits: &[f32],
    observed: &[Evidence],
    weights: &[f64],
    loss: impl Fn(&[f32], &[Evidence], &mut [f32]) -> Option<f64>,
) -> BatchLoss {
    let mut found = BatchLoss {
        total: 0.0,
        by_logit: vec![0.0; logits.len()],
        by_cost: None,
        impossible: None,
        probabilities: None,
    };
    let rows = found.by_logit.chunks_exact_mut(labels).enumerate();
    for (row, out) in rows {
        let range = row * labels..(row + 1) * labels;
        let weight = weights[row];
        if weight == 0.0 {
            continue;
        }
        match loss(&logits[range.clone()], &observed[range], out) {
            Some(loss) => {
                found.total += weight * loss;
                out.iter_mut().for_each(|slope| *slope *= weight as f32);
            }
            None => {
                out.fill(0.0);
                found.impossible.get_or_insert(row);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
