//! How good probabilities are: means over rows of sums over labels, and what thresholds at one half make of them.

use phex::graph::RelationGraph;
use phex::infer::Evidence;
use phex::metrics::{Binning, LabelTable as ScoredRows, Ranking, Reliability};
use phex::reconcile::ReconcileLoss;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The scores of a method on the test rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct MethodScores {
    pub(super) log_loss: f64,
    pub(super) brier: f64,
    pub(super) au_prc: f64,
    pub(super) f1: f64,
    /// The share of rows with every label right.
    pub(super) exact: f64,
    /// Expected calibration error, 15 bins of equal width.
    pub(super) ece: f64,
    /// The share of rows whose loss is above that of the raw probabilities.
    pub(super) worse: f64,
    /// Parameters, if there are any.
    pub(super) note: String,
}

/// Probabilities below this count as this.
const LEAST: f64 = 1e-13;

/// The loss of each row: summed over labels, or over softmax heads.
pub(super) fn row_losses(
    graph: &RelationGraph,
    loss: ReconcileLoss,
    truths: &[Evidence],
    p: &[f64],
) -> Vec<f64> {
    let n = graph.len();
    let label = |(truth, &p): (&Evidence, &f64)| match (truth, loss) {
        (Evidence::On, _) => -p.max(LEAST).ln(),
        (Evidence::Off, ReconcileLoss::Log) => -(1.0 - p).max(LEAST).ln(),
        _ => 0.0,
    };
    truths.chunks(n).zip(p.chunks(n)).map(|(y, p)| y.iter().zip(p).map(label).sum()).collect()
}

impl MethodScores {
    pub(super) fn of(
        graph: &RelationGraph,
        loss: ReconcileLoss,
        truths: &[Evidence],
        p: &[f64],
        raw: &[f64],
        note: String,
    ) -> Result<MethodScores, Error> {
        let n = graph.len();
        let losses = row_losses(graph, loss, truths, p);
        let rows = losses.len() as f64;
        let worse =
            losses.iter().zip(raw).filter(|(now, raw)| **now > **raw + 1e-9 * (1.0 + **raw));
        let on = |truth: &Evidence| *truth == Evidence::On;
        let brier: f64 =
            truths.iter().zip(p).map(|(y, p)| (p - f64::from(u8::from(on(y)))).powi(2)).sum();
        let (mut right, mut said, mut true_ones) = (0.0, 0.0, 0.0);
        for (y, &p) in truths.iter().zip(p) {
            right += f64::from(u8::from(on(y) && p > 0.5));
            said += f64::from(u8::from(p > 0.5));
            true_ones += f64::from(u8::from(on(y)));
        }
        let exact = truths
            .chunks(n)
            .zip(p.chunks(n))
            .filter(|(y, p)| y.iter().zip(*p).all(|(y, &p)| on(y) == (p > 0.5)))
            .count();
        let table = ScoredRows::new(n, p, truths)?;
        let reliability = Reliability::new(table.entries(), Binning::EqualWidth, 15)?;
        Ok(MethodScores {
            log_loss: losses.iter().sum::<f64>() / rows,
            brier: brier / rows,
            au_prc: Ranking::pooled(&table).average_precision().unwrap_or(f64::NAN),
            f1: 2.0 * right / (said + true_ones),
            exact: exact as f64 / rows,
            ece: reliability.expected_error().unwrap_or(f64::NAN),
            worse: worse.count() as f64 / rows,
            note,
        })
    }
}
