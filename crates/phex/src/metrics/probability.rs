//! Proper scores of single probabilities.
//!
//! The log-loss is `−log p` of the true state, in nats, with `p` clamped to `[10⁻¹⁵, 1 − 10⁻¹⁵]`,
//! because one certain mistake would be infinite. The Brier score is `(p − x)²`. Both are means
//! over the entries that count, at a cost of O(entries).

use serde::Serialize;

use super::{Averages, LabelTable};
use crate::numeric::Scalar;

/// The log-loss keeps probabilities this far from 0 and 1.
pub const LOG_LOSS_FLOOR: f64 = 1e-15;

/// The scores of one label.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LabelLoss {
    /// How many entries count.
    pub known: u64,
    /// Mean log-loss. `None` without entries.
    pub log_loss: Option<f64>,
    /// Mean Brier score.
    pub brier: Option<f64>,
}

/// Proper scores, per label and over all entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Losses {
    /// Mean log-loss over all entries. `None` without entries.
    pub log_loss: Option<f64>,
    /// Mean Brier score over all entries.
    pub brier: Option<f64>,
    /// One entry per label.
    pub labels: Vec<LabelLoss>,
}

impl Losses {
    /// The means, over labels with entries, of their mean log-loss and of their Brier score.
    pub fn macro_means(&self) -> (Option<f64>, Option<f64>) {
        let mean = |loss: fn(&LabelLoss) -> Option<f64>| {
            // Labels count by their entries here, not by their positives.
            let labels = self.labels.iter().map(|label| (label.known, loss(label)));
            Averages::new(None, labels).macro_mean
        };
        (mean(|label| label.log_loss), mean(|label| label.brier))
    }
}

/// Log-loss and Brier score of a table.
///
/// ```
/// use phex::infer::Evidence::{Off, On};
/// use phex::metrics::{LabelTable, losses};
/// let losses = losses(&LabelTable::new(1, &[0.5, 0.5], &[On, Off])?);
/// assert_eq!((losses.log_loss, losses.brier), (Some(2f64.ln()), Some(0.25)));
/// # Ok::<(), phex::Error>(())
/// ```
pub fn losses<T: Scalar>(table: &LabelTable<'_, T>) -> Losses {
    let mut sums = vec![(0u64, 0.0, 0.0); table.labels()];
    for row in 0..table.rows() {
        for (label, p, on) in table.row(row) {
            let p = p.to_f64();
            let right = if on { p } else { 1.0 - p };
            let (known, log_loss, brier) = &mut sums[label];
            *known += 1;
            *log_loss -= right.clamp(LOG_LOSS_FLOOR, 1.0 - LOG_LOSS_FLOOR).ln();
            *brier += (1.0 - right) * (1.0 - right);
        }
    }
    let mean = |known: u64, sum: f64| (known > 0).then(|| sum / known as f64);
    let label = |&(known, log_loss, brier): &(u64, f64, f64)| LabelLoss {
        known,
        log_loss: mean(known, log_loss),
        brier: mean(known, brier),
    };
    let known = sums.iter().map(|sum| sum.0).sum();
    Losses {
        log_loss: mean(known, sums.iter().map(|sum| sum.1).sum()),
        brier: mean(known, sums.iter().map(|sum| sum.2).sum()),
        labels: sums.iter().map(label).collect(),
    }
}
