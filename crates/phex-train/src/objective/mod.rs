//! What is minimised: the loss of the targets under the relations, or a baseline.
//!
//! Every objective turns a batch of logits and evidence into a loss and its gradient, and logits into a
//! probability for each label. The baselines are what people use without phex, so that they can be
//! compared under the same trainer.

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
    /// Its derivative by the cost of each term, if requested.
    pub(crate) by_cost: Option<Vec<f64>>,
    /// The first row whose evidence contradicts hard relations.
    pub(crate) impossible: Option<usize>,
    /// The probability of each label without the evidence, if the loss needed them in every row.
    pub(crate) probabilities: Option<Vec<f32>>,
}

/// An objective, made for one graph.
#[derive(Debug, Clone)]
pub(crate) enum Objective {
    Relations { backend: Arc<dyn Backend>, loss: Loss },
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
                Objective::Relations { backend: Arc::new(engine), loss }
            }
            ObjectiveConfig::Independent => Objective::Independent { labels: graph.len() },
            ObjectiveConfig::Softmax { coarse } => Objective::Softmax(Softmax::new(graph, coarse)),
            ObjectiveConfig::MaxConstraint => Objective::MaxConstraint(MaxConstraint::new(graph)),
        })
    }

    /// The same objective on a device, which must support what is wanted.
    pub(crate) fn on(self, accelerator: &dyn Accelerator, want: Want) -> Result<Objective, Error> {
        match self {
            Objective::Relations { backend, loss } => {
                let backend = accelerator.move_engine(backend.engine(), want)?;
                Ok(Objective::Relations { backend, loss })
            }
            _ => Err(Error::NothingToAccelerate),
        }
    }

    /// The engine, if the objective has relations.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match self {
            Objective::Relations { backend, .. } => Some(backend.engine()),
            _ => None,
        }
    }

    pub(crate) fn loss(
        &self,
        logits: &[f32],
        evidence: &[Evidence],
        weights: &[f64],
        costs: bool,
    ) -> Result<BatchLoss, Error> {
        match self {
            Objective::Relations { backend, loss } => {
                let labels = backend.engine().model().len();
                let block = Block::new(labels, logits).with_evidence(evidence);
                let objective = learn::Objective { loss: *loss, costs };
                let found = learn::gradients(&**backend, &block, Some(weights), objective)?;
                let is_impossible = |status: &RowStatus| *status == RowStatus::Impossible;
                // Rows without evidence or weight were left out.
                let has_evidence = |row: &[Evidence]| row.iter().any(|&e| e != Evidence::Unknown);
                let all = weights.iter().all(|weight| *weight != 0.0)
                    && evidence.chunks_exact(labels).all(has_evidence);
                Ok(BatchLoss {
                    total: found.total(Some(weights)),
                    impossible: found.status.iter().position(is_impossible),
                    by_logit: found.logits,
                    by_cost: found.costs,
                    probabilities: all.then_some(found.marginals),
                })
            }
            Objective::Independent { labels } => {
                Ok(by_row(*labels, logits, evidence, weights, |logits, evidence, by_logit| {
                    Some(independent::loss(logits, evidence, by_logit))
                }))
            }
            Objective::Softmax(softmax) => {
                Ok(by_row(softmax.labels(), logits, evidence, weights, |logits, evidence, out| {
                    softmax.loss(logits, evidence, out)
                }))
            }
            Objective::MaxConstraint(constraint) => Ok(by_row(
                constraint.labels(),
                logits,
                evidence,
                weights,
                |logits, evidence, out| Some(constraint.loss(logits, evidence, out)),
            )),
        }
    }

    /// The probability of each label.
    pub(crate) fn probabilities(&self, logits: &[f32]) -> Result<Vec<f32>, Error> {
        match self {
            Objective::Relations { backend, .. } => {
                let block = Block::new(backend.engine().model().len(), logits);
                Ok(backend.run(&block, Want::default())?.marginals)
            }
            Objective::Independent { .. } => {
                Ok(logits.iter().map(|&logit| phex::numeric::sigmoid(logit)).collect())
            }
            Objective::Softmax(softmax) => Ok(softmax.probabilities(logits)),
            Objective::MaxConstraint(constraint) => Ok(constraint.probabilities(logits)),
        }
    }
}

/// Objectives whose rows are independent. `None` from `loss` means that no state agrees with the evidence.
fn by_row(
    labels: usize,
    logits: &[f32],
    evidence: &[Evidence],
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
        match loss(&logits[range.clone()], &evidence[range], out) {
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
