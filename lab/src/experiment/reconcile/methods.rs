//! Ways to make probabilities consistent.

use phex::graph::{LabelId, RelationGraph};
use phex::infer::{Block, Engine, Options, Want};
use phex::model::Model;
use phex::numeric::sigmoid;
use phex::reconcile::{
    FinishedRows, FitOptions, FittedReconciler, ReconcileLoss, ReconcileOptions, Reconciler, fit,
};
use serde::{Deserialize, Serialize};

use super::heads::{HeadRows, SetRelations, TrainedHeads};
use super::scores::row_losses;
use crate::Error;

/// A way to make probabilities consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Consistency {
    Raw,
    Infer,
    InferTemperature,
    Max,
    Min,
    SumOfFine,
    Calibrated,
    Reconciled,
    Fitted,
}

impl Consistency {
    pub(super) const ALL: [Consistency; 9] = [
        Consistency::Raw,
        Consistency::Infer,
        Consistency::InferTemperature,
        Consistency::Max,
        Consistency::Min,
        Consistency::SumOfFine,
        Consistency::Calibrated,
        Consistency::Reconciled,
        Consistency::Fitted,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Consistency::Raw => "raw",
            Consistency::Infer => "CRF (infer)",
            Consistency::InferTemperature => "CRF with temperature",
            Consistency::Max => "max closure",
            Consistency::Min => "min closure",
            Consistency::SumOfFine => "coarse := sum of fine",
            Consistency::Calibrated => "calibrated, not reconciled",
            Consistency::Reconciled => "reconcile",
            Consistency::Fitted => "reconcile with fit",
        }
    }
}

/// A classifier, and what its methods share.
pub(super) struct MethodBench<'a> {
    heads: &'a TrainedHeads,
    relations: SetRelations,
    pub(super) loss: ReconcileLoss,
    pub(super) fitted: FittedReconciler,
}

/// Rows that choose the temperature of the conditional random field, at most: of exact and of approximate inference.
const TEMPERATURE_ROWS: [usize; 2] = [2000, 100];

impl<'a> MethodBench<'a> {
    /// Fits the parameters of reconciling.
    pub(super) fn new(
        heads: &'a TrainedHeads,
        relations: SetRelations,
        loss: ReconcileLoss,
    ) -> Result<MethodBench<'a>, Error> {
        let reconcile = ReconcileOptions { loss, ..ReconcileOptions::default() };
        let options = FitOptions { reconcile, ..FitOptions::default() };
        let rows = FinishedRows::Logits(&heads.held_out.logits);
        let fitted = fit(&heads.graph, rows, &heads.held_out.truths, &options)?;
        Ok(MethodBench { heads, relations, loss, fitted })
    }

    /// The probabilities of the test rows, and a note. `None` where a method makes no sense.
    pub(super) fn answer(&self, way: Consistency) -> Result<Option<(Vec<f64>, String)>, Error> {
        let TrainedHeads { graph, test, .. } = self.heads;
        let rows = FinishedRows::Logits(&test.logits);
        let mut note = String::new();
        let p = match way {
            Consistency::Raw => self.raw(),
            Consistency::Infer => self.field()?.marginals(graph, test, 1.0)?,
            Consistency::InferTemperature => {
                let field = self.field()?;
                let temperature = self.temperature(&field)?;
                note = format!("T = {temperature:.2}");
                field.marginals(graph, test, temperature)?
            }
            // A closure of heads is no distribution.
            Consistency::Max | Consistency::Min if self.is_heads() => return Ok(None),
            Consistency::Max => closed(graph, self.raw(), true),
            Consistency::Min => closed(graph, self.raw(), false),
            Consistency::SumOfFine => match self.relations {
                SetRelations::Hierarchy | SetRelations::Siblings => return Ok(None),
                _ => sums(graph, self.raw()),
            },
            Consistency::Calibrated => self.read(&self.fitted.calibrate(rows)?),
            Consistency::Reconciled => {
                let options = ReconcileOptions { loss: self.loss, ..ReconcileOptions::default() };
                Reconciler::compile(graph, &options)?.run(rows)?.probabilities
            }
            Consistency::Fitted => {
                note = self.fitted.parameters().form.to_string();
                self.fitted.run(rows)?.probabilities
            }
        };
        Ok(Some((p, note)))
    }

    fn is_heads(&self) -> bool {
        self.relations == SetRelations::Heads
    }

    /// The probabilities that logits stand for.
    fn read(&self, logits: &[f64]) -> Vec<f64> {
        let of = if self.is_heads() { f64::exp } else { sigmoid };
        logits.iter().map(|&logit| of(logit)).collect()
    }

    /// The probabilities of the test rows as they come.
    pub(super) fn raw(&self) -> Vec<f64> {
        self.read(&self.heads.test.logits)
    }

    fn field(&self) -> Result<RandomField, Error> {
        Ok(RandomField(Engine::compile(Model::new(&self.heads.graph)?, &Options::default())?))
    }

    /// The temperature with the lowest loss on held-out rows, to one percent: golden sections of its logarithm.
    fn temperature(&self, field: &RandomField) -> Result<f64, Error> {
        let TrainedHeads { graph, held_out, .. } = self.heads;
        let n = graph.len();
        let most = TEMPERATURE_ROWS[usize::from(field.0.plan().approximate)];
        let rows = (held_out.logits.len() / n).min(most);
        let some = HeadRows {
            logits: held_out.logits[..rows * n].to_vec(),
            truths: held_out.truths[..rows * n].to_vec(),
        };
        let at = |log: f64| -> Result<f64, Error> {
            let p = field.marginals(graph, &some, log.exp())?;
            Ok(row_losses(graph, self.loss, &some.truths, &p).iter().sum())
        };
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let (mut low, mut high) = (-1.0, 3.0);
        let mut inner = [high - golden * (high - low), low + golden * (high - low)];
        let mut found = [at(inner[0])?, at(inner[1])?];
        while high - low > 0.01 {
            if found[0] < found[1] {
                high = inner[1];
                inner = [high - golden * (high - low), inner[0]];
                found = [at(inner[0])?, found[0]];
            } else {
                low = inner[0];
                inner = [inner[1], low + golden * (high - low)];
                found = [found[1], at(inner[1])?];
            }
        }
        Ok((0.5 * (low + high)).exp())
    }
}

/// The conditional random field of the graph. Logits divided by a temperature are its scores.
struct RandomField(Engine);

impl RandomField {
    fn marginals(
        &self,
        graph: &RelationGraph,
        rows: &HeadRows,
        temperature: f64,
    ) -> Result<Vec<f64>, Error> {
        let scores: Vec<f64> = rows.logits.iter().map(|logit| logit / temperature).collect();
        Ok(self.0.run(&Block::new(graph.len(), &scores), Want::default())?.marginals)
    }
}

/// Parents raised to the largest of their descendants, or children lowered to the smallest of their ancestors.
fn closed(graph: &RelationGraph, mut p: Vec<f64>, up: bool) -> Vec<f64> {
    let topology = graph.topology();
    let down: Vec<LabelId> = topology.order().to_vec();
    for row in p.chunks_mut(graph.len()) {
        if up {
            for &label in down.iter().rev() {
                for parent in topology.parents(label) {
                    row[parent.index()] = row[parent.index()].max(row[label.index()]);
                }
            }
        } else {
            for &label in &down {
                for parent in topology.parents(label) {
                    row[label.index()] = row[label.index()].min(row[parent.index()]);
                }
            }
        }
    }
    p
}

/// Leaves that sum to 1, and other labels as sums of their leaves.
fn sums(graph: &RelationGraph, mut p: Vec<f64>) -> Vec<f64> {
    let topology = graph.topology();
    let leaves: Vec<LabelId> = graph.leaves().collect();
    let below: Vec<Vec<usize>> = graph
        .ids()
        .map(|id| {
            let is_below = |leaf: &&LabelId| **leaf == id || topology.subsumes(id, **leaf);
            leaves.iter().filter(is_below).map(|leaf| leaf.index()).collect()
        })
        .collect();
    for row in p.chunks_mut(graph.len()) {
        let total: f64 = leaves.iter().map(|leaf| row[leaf.index()]).sum();
        let share: Vec<f64> = row.iter().map(|p| p / total).collect();
        for (label, below) in below.iter().enumerate() {
            row[label] = below.iter().map(|&leaf| share[leaf]).sum();
        }
    }
    p
}
