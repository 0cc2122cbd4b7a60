//! Areas under precision–recall and ROC curves, per label and averaged.
//!
//! - *micro*: all entries of all labels are ranked against each other. With average precision this
//!   is the AU(PRC) of the hierarchical multi-label literature as it is mostly computed. With the
//!   interpolated area it is the pooled one of the work on Clus (see [`Ranking`]). Leave the root
//!   out of the table.
//! - *macro*: the mean over the labels with at least one positive.
//! - *weighted*: the same mean, weighted by the number of positives.

use rayon::prelude::*;
use serde::Serialize;

use super::{LabelTable, Ranking};
use crate::numeric::Scalar;

/// Three ways to average a score over labels. `None` when there is nothing to average.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Averages {
    /// Over all entries together.
    pub micro: Option<f64>,
    /// Over the labels with at least one positive.
    #[serde(rename = "macro")]
    pub macro_mean: Option<f64>,
    /// Over the same labels, each weighted by its positives.
    #[serde(rename = "weighted")]
    pub weighted_mean: Option<f64>,
}

impl Averages {
    /// Averages the score of all entries and the `(positives, score)` of each label. Labels without
    /// positives or without a score are left out.
    pub(super) fn new(
        micro: Option<f64>,
        labels: impl Iterator<Item = (u64, Option<f64>)>,
    ) -> Averages {
        let (mut count, mut sum, mut weight, mut weighted) = (0.0, 0.0, 0.0, 0.0);
        for (positives, score) in labels.filter(|(positives, _)| *positives > 0) {
            let Some(score) = score else { continue };
            count += 1.0;
            sum += score;
            weight += positives as f64;
            weighted += positives as f64 * score;
        }
        let any = count > 0.0;
        Averages {
            micro,
            macro_mean: any.then(|| sum / count),
            weighted_mean: any.then(|| weighted / weight),
        }
    }
}

/// The areas of one label.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LabelAreas {
    /// Entries that are on.
    pub positives: u64,
    /// Entries that are off.
    pub negatives: u64,
    /// Average precision.
    pub average_precision: Option<f64>,
    /// The interpolated area under the precision–recall curve.
    pub interpolated: Option<f64>,
    /// The area under the ROC curve.
    pub roc: Option<f64>,
}

impl LabelAreas {
    fn of(ranking: &Ranking) -> LabelAreas {
        LabelAreas {
            positives: ranking.positives(),
            negatives: ranking.negatives(),
            average_precision: ranking.average_precision(),
            interpolated: ranking.interpolated_area(),
            roc: ranking.roc_area(),
        }
    }
}

/// Areas under curves, per label and averaged.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Areas {
    /// Average precision; its micro-average is AU(PRC).
    pub average_precision: Averages,
    /// The interpolated area under the precision–recall curve.
    pub interpolated: Averages,
    /// The area under the ROC curve.
    pub roc: Averages,
    /// One entry per label. Labels that are left out have no entries.
    pub labels: Vec<LabelAreas>,
}

/// The areas under the curves of a table. Costs O(N log P) time for N entries of which P are on,
/// and O(P) memory.
///
/// ```
/// use phex::infer::Evidence::{Off, On};
/// use phex::metrics::{LabelTable, areas};
/// let table = LabelTable::new(2, &[0.9, 0.1, 0.6, 0.3], &[On, Off, Off, On])?;
/// let areas = areas(&table);
/// // Pooled: + − + −. Per label: 1 and 1.
/// assert_eq!(areas.average_precision.micro, Some((1.0 + 2.0 / 3.0) / 2.0));
/// assert_eq!(areas.average_precision.macro_mean, Some(1.0));
/// # Ok::<(), phex::Error>(())
/// ```
pub fn areas<T: Scalar>(table: &LabelTable<'_, T>) -> Areas {
    let pooled = LabelAreas::of(&Ranking::pooled(table));
    let label = |label: usize| LabelAreas::of(&Ranking::new(table.column(label)));
    let labels: Vec<LabelAreas> = (0..table.labels()).into_par_iter().map(label).collect();
    let average = |score: fn(&LabelAreas) -> Option<f64>| {
        Averages::new(score(&pooled), labels.iter().map(|label| (label.positives, score(label))))
    };
    Areas {
        average_precision: average(|label| label.average_precision),
        interpolated: average(|label| label.interpolated),
        roc: average(|label| label.roc),
        labels,
    }
}
