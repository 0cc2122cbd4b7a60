//! Ranks positives among negatives, and computes the areas under the resulting curves.
//!
//! With thresholds `t₁ > t₂ > …` at the distinct scores of the positives, `TPₖ` positives and `FPₖ`
//! negatives at or above `tₖ`, and `P` positives in all:
//!
//! - Average precision: `Σₖ (TPₖ − TPₖ₋₁) / P · TPₖ / (TPₖ + FPₖ)`. The curve is made of steps,
//!   without interpolation, and entries of equal score are one threshold. Thresholds with negatives
//!   only add nothing, so they are skipped.
//! - Interpolated area: the definition of Davis and Goadrich (2006), as in the work on Clus (Vens
//!   et al. 2008). Between two operating points the false positives grow in proportion to the true
//!   positives. The area is that of trapezoids one positive wide, and the first precision extends
//!   back to recall 0. Without ties it differs from average precision by O(log P / P).
//! - ROC area: the fraction of (positive, negative) pairs in the right order, where ties count
//!   half.
//!
//! Only the positives are copied and sorted. Each negative is placed among them by bisection. The
//! cost is O(P log P + N log P) time and O(P) memory for N entries.

use rayon::prelude::*;

use super::LabelTable;
use crate::numeric::Scalar;

/// At most this many threads count negatives, because each needs its own counters.
const MOST_SHARES: usize = 8;

/// The entries at one distinct score of a positive, and between it and the next higher one.
#[derive(Debug, Clone, Copy, Default)]
struct ScoreStep {
    positives: u64,
    /// Negatives strictly above this score and below that of the previous step.
    above: u64,
    /// Negatives with this score.
    tied: u64,
}

/// Positives ranked among negatives.
///
/// ```
/// use phex::metrics::Ranking;
/// // Best first: a positive, a negative, a positive.
/// let ranking = Ranking::new([(0.9, true), (0.2, true), (0.4, false)].into_iter());
/// assert_eq!(ranking.average_precision(), Some((1.0 + 2.0 / 3.0) / 2.0));
/// assert_eq!(ranking.roc_area(), Some(0.5));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Ranking {
    /// From the highest score down.
    steps: Vec<ScoreStep>,
    positives: u64,
    negatives: u64,
}

impl Ranking {
    /// Ranks `(score, on)` entries by their scores. Scores that are not finite are left out.
    pub fn new<T: Scalar>(entries: impl Iterator<Item = (T, bool)> + Clone) -> Ranking {
        let entries = entries.filter(|(score, _)| score.is_finite());
        let positives = entries.clone().filter(|(_, on)| *on).map(|(score, _)| score);
        let thresholds = Thresholds::new(positives.collect());
        let mut ranking = thresholds.ranking();
        thresholds.count(entries, &mut ranking);
        ranking
    }

    /// Ranks all entries of a table that count against each other.
    pub fn pooled<T: Scalar>(table: &LabelTable<'_, T>) -> Ranking {
        let positives = table.entries().filter(|(_, on)| *on).map(|(score, _)| score);
        let thresholds = Thresholds::new(positives.collect());
        let rows = table.rows();
        let shares = rayon::current_num_threads().clamp(1, MOST_SHARES);
        let share = |share: usize| {
            let mut ranking = thresholds.ranking();
            for row in rows * share / shares..rows * (share + 1) / shares {
                thresholds.count(table.row(row).map(|(_, p, on)| (p, on)), &mut ranking);
            }
            ranking
        };
        let counted = (0..shares).into_par_iter().map(share).reduce_with(Ranking::add);
        counted.unwrap_or_default()
    }

    /// How many positives there are.
    pub fn positives(&self) -> u64 {
        self.positives
    }

    /// How many negatives there are.
    pub fn negatives(&self) -> u64 {
        self.negatives
    }

    /// The mean of the precision at each positive. `None` without positives.
    pub fn average_precision(&self) -> Option<f64> {
        let (mut above, mut false_above, mut sum) = (0, 0, 0.0);
        for step in &self.steps {
            above += step.positives;
            false_above += step.above + step.tied;
            sum += step.positives as f64 * above as f64 / (above + false_above) as f64;
        }
        self.share(sum, self.positives)
    }

    /// The area under the interpolated precision–recall curve. `None` without positives.
    pub fn interpolated_area(&self) -> Option<f64> {
        let (mut above, mut false_above, mut sum) = (0.0, 0.0, 0.0);
        for step in &self.steps {
            false_above += step.above as f64;
            let slope = step.tied as f64 / step.positives as f64;
            let precision = |more: f64| {
                let (right, wrong) = (above + more, false_above + slope * more);
                // Before the first operating point, its precision is extended back.
                if right + wrong == 0.0 { 1.0 / (1.0 + slope) } else { right / (right + wrong) }
            };
            for more in 0..step.positives {
                sum += 0.5 * (precision(more as f64) + precision((more + 1) as f64));
            }
            above += step.positives as f64;
            false_above += step.tied as f64;
        }
        self.share(sum, self.positives)
    }

    /// The probability that a positive is ranked above a negative. `None` if either is missing.
    pub fn roc_area(&self) -> Option<f64> {
        let (mut below, mut sum) = (self.negatives, 0.0);
        for step in &self.steps {
            below -= step.above + step.tied;
            sum += step.positives as f64 * (below as f64 + 0.5 * step.tied as f64);
        }
        let pairs = self.positives as f64 * self.negatives as f64;
        (pairs > 0.0).then(|| sum / pairs)
    }

    fn share(&self, sum: f64, of: u64) -> Option<f64> {
        (of > 0).then(|| sum / of as f64)
    }

    /// Adds the negatives of another part of the same table.
    fn add(mut self, other: Ranking) -> Ranking {
        self.negatives += other.negatives;
        for (step, more) in self.steps.iter_mut().zip(other.steps) {
            step.above += more.above;
            step.tied += more.tied;
        }
        self
    }
}

/// The distinct scores of the positives, descending, and how many have each.
struct Thresholds<T> {
    at: Vec<T>,
    positives: Vec<u64>,
}

impl<T: Scalar> Thresholds<T> {
    fn new(mut scores: Vec<T>) -> Thresholds<T> {
        // Finite numbers always compare.
        scores.sort_unstable_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
        let positives = scores.chunk_by(|a, b| a == b).map(|equal| equal.len() as u64).collect();
        scores.dedup();
        Thresholds { at: scores, positives }
    }

    /// A ranking without negatives.
    fn ranking(&self) -> Ranking {
        let step = |&positives: &u64| ScoreStep { positives, ..ScoreStep::default() };
        Ranking {
            steps: self.positives.iter().map(step).collect(),
            positives: self.positives.iter().sum(),
            negatives: 0,
        }
    }

    /// Adds the negatives among the entries.
    fn count(&self, entries: impl Iterator<Item = (T, bool)>, ranking: &mut Ranking) {
        for (score, _) in entries.filter(|(_, on)| !*on) {
            ranking.negatives += 1;
            // Most negatives are below every positive.
            if self.at.last().is_none_or(|lowest| score < *lowest) {
                continue;
            }
            let at = self.at.partition_point(|threshold| *threshold > score);
            let step = &mut ranking.steps[at];
            if self.at[at] == score {
                step.tied += 1;
            } else {
                step.above += 1;
            }
        }
    }
}

/// Average precision of `(score, on)` entries: [`Ranking::average_precision`].
///
/// ```
/// // Ties are one threshold, at which two of four are positive.
/// let entries = [(0.5, true), (0.5, false), (0.5, true), (0.5, false)];
/// assert_eq!(phex::metrics::average_precision(entries.into_iter()), Some(0.5));
/// ```
pub fn average_precision<T: Scalar>(
    entries: impl Iterator<Item = (T, bool)> + Clone,
) -> Option<f64> {
    Ranking::new(entries).average_precision()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ranking(entries: &[(f64, bool)]) -> Ranking {
        Ranking::new(entries.iter().copied())
    }

    #[test]
    fn areas_match_a_computation_by_hand() {
        // Ranked + − + − +: precisions 1, 2/3, 3/5.
        let some = ranking(&[(0.9, true), (0.8, false), (0.7, true), (0.6, false), (0.5, true)]);
        let expected = (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0;
        assert!((some.average_precision().unwrap() - expected).abs() < 1e-15);
        // Pairs in order: 2 for the first, 1 for the second, 0 for the third, out of 6.
        assert_eq!(some.roc_area(), Some(0.5));
        // Trapezoids: 1 → 1, then 1/2 → 2/3, then 2/4 → 3/5.
        let area = (1.0 + 0.5 * (0.5 + 2.0 / 3.0) + 0.5 * (0.5 + 0.6)) / 3.0;
        assert!((some.interpolated_area().unwrap() - area).abs() < 1e-15);
        // A negative first: 0 → 1/2.
        let late = ranking(&[(0.9, false), (0.8, true)]);
        assert_eq!(late.average_precision(), Some(0.5));
        assert_eq!(late.interpolated_area(), Some(0.25));
        assert_eq!(late.roc_area(), Some(0.0));
    }

    #[test]
    fn ties_are_one_threshold_and_horizontal_from_the_start() {
        let tied = ranking(&[(0.3, true), (0.3, false), (0.3, false), (0.3, true), (0.1, false)]);
        assert_eq!(tied.average_precision(), Some(0.5));
        assert_eq!(tied.interpolated_area(), Some(0.5));
        assert_eq!(tied.roc_area(), Some((0.5 * 4.0 + 2.0) / 6.0));
        // A certain positive, then two positives tied with two negatives: 1 → 1, (2/3), 3/5.
        let later = [(0.9, true), (0.3, true), (0.3, true), (0.3, false), (0.3, false)];
        let area = (1.0 + 0.5 * (1.0 + 2.0 / 3.0) + 0.5 * (2.0 / 3.0 + 0.6)) / 3.0;
        assert!((ranking(&later).interpolated_area().unwrap() - area).abs() < 1e-15);
        // Minus zero is zero.
        assert_eq!(ranking(&[(0.0, true), (-0.0, false)]).average_precision(), Some(0.5));
    }

    #[test]
    fn areas_of_empty_rankings_are_none() {
        for entries in [&[][..], &[(0.5, false)], &[(f64::NAN, true)]] {
            assert_eq!(ranking(entries).average_precision(), None);
            assert_eq!(ranking(entries).interpolated_area(), None);
            assert_eq!(ranking(entries).roc_area(), None);
        }
        let only = ranking(&[(0.5, true), (0.1, true)]);
        assert_eq!((only.average_precision(), only.roc_area()), (Some(1.0), None));
        assert_eq!((only.positives(), only.negatives()), (2, 0));
    }
}
