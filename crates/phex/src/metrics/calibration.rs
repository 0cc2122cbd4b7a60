//! Calibration: whether things that are predicted with probability `p` are true with frequency `p`.
//!
//! Probabilities are sorted into bins. Bin `b` has `n_b` of the `N` entries, their mean probability
//! is `p_b`, and a fraction `o_b` of them is on. The expected calibration error is
//! `Σ n_b / N |p_b − o_b|`. It depends on the bins: with extreme probabilities, bins of equal width
//! are empty or crowded, but bins of equal mass are not.
//!
//! Equal width costs O(N). Equal mass costs O(N · bins) and one copy of the probabilities.

use serde::{Deserialize, Serialize};

use super::LabelTable;
use super::multiclass::{TrueClass, distinct, true_class};
use crate::Error;
use crate::graph::LabelId;
use crate::numeric::Scalar;

/// More bins would carry no information.
const MOST_BINS: usize = 10_000;

/// How probabilities are divided into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binning {
    /// `[0, 1]` in intervals of equal width. A probability on an edge belongs to the bin above.
    #[default]
    EqualWidth,
    /// Bins with equally many entries. Equal probabilities are all in one bin, the lowest that
    /// contains one of them, so there may be fewer bins than requested.
    EqualMass,
}

/// One bin of a reliability table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// The lowest probability of the bin.
    pub low: f64,
    /// The highest probability of the bin.
    pub high: f64,
    /// How many entries are in the bin.
    pub count: u64,
    /// Their mean probability. `None` in an empty bin.
    pub predicted: Option<f64>,
    /// The fraction of them that is on.
    pub observed: Option<f64>,
}

/// A reliability table.
///
/// ```
/// use phex::metrics::{Binning, Reliability};
/// let entries = [(0.2, false), (0.2, true), (0.9, true), (0.9, true)];
/// let table = Reliability::new(entries.into_iter(), Binning::EqualWidth, 2)?;
/// assert_eq!((table.bins[0].predicted, table.bins[0].observed), (Some(0.2), Some(0.5)));
/// assert!((table.expected_error().unwrap() - (0.3 + 0.1) / 2.0).abs() < 1e-12);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reliability {
    /// How the bins were made.
    pub binning: Binning,
    /// The bins, from low probabilities to high ones.
    pub bins: Vec<Bin>,
}

impl Reliability {
    /// Sorts `(probability, on)` entries into bins. Probabilities that are not finite are left out.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless there are 1 to 10,000 bins.
    pub fn new<T: Scalar>(
        entries: impl Iterator<Item = (T, bool)> + Clone,
        binning: Binning,
        bins: usize,
    ) -> Result<Reliability, Error> {
        if !(1..=MOST_BINS).contains(&bins) {
            let (option, range) = ("the number of bins", "between 1 and 10000");
            return Err(Error::OutOfRange { option, value: bins as f64, range });
        }
        let entries = entries.filter(|(p, _)| p.is_finite());
        let made = match binning {
            Binning::EqualWidth => {
                let edges: Vec<f64> = (0..=bins).map(|at| at as f64 / bins as f64).collect();
                // Compares with the edges themselves, because p · bins rounds across them.
                let inner = &edges[1..bins];
                fill(&edges, entries, |p| inner.partition_point(|edge| *edge <= p))
            }
            Binning::EqualMass => {
                let edges = equal_mass(entries.clone().map(|(p, _)| p).collect(), bins);
                let upper = edges.get(1..).unwrap_or_default();
                fill(&edges, entries, |p| upper.partition_point(|edge| *edge < p))
            }
        };
        Ok(Reliability { binning, bins: made })
    }

    /// The mean distance between probability and frequency over entries (ECE). `None` without
    /// entries.
    pub fn expected_error(&self) -> Option<f64> {
        let total: u64 = self.bins.iter().map(|bin| bin.count).sum();
        let gaps = self.gaps().map(|(count, gap)| count as f64 * gap);
        (total > 0).then(|| gaps.sum::<f64>() / total as f64)
    }

    /// The largest distance of any bin. `None` without entries.
    pub fn largest_error(&self) -> Option<f64> {
        self.gaps().map(|(_, gap)| gap).reduce(f64::max)
    }

    fn gaps(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.bins.iter().filter_map(|bin| {
            let (predicted, observed) = bin.predicted.zip(bin.observed)?;
            Some((bin.count, (predicted - observed).abs()))
        })
    }
}

/// The bins between these edges, with the entries that fall into them.
fn fill<T: Scalar>(
    edges: &[f64],
    entries: impl Iterator<Item = (T, bool)>,
    bin_of: impl Fn(f64) -> usize,
) -> Vec<Bin> {
    let mut sums = vec![(0u64, 0.0, 0u64); edges.len().saturating_sub(1)];
    for (p, on) in entries {
        let p = p.to_f64();
        let (count, sum, positives) = &mut sums[bin_of(p)];
        *count += 1;
        *sum += p;
        *positives += u64::from(on);
    }
    let bin = |(&(count, sum, positives), edges): (&(u64, f64, u64), &[f64])| Bin {
        low: edges[0],
        high: edges[1],
        count,
        predicted: (count > 0).then(|| sum / count as f64),
        observed: (count > 0).then(|| positives as f64 / count as f64),
    };
    sums.iter().zip(edges.windows(2)).map(bin).collect()
}

/// The lowest probability, then the highest of each bin, distinct and ascending.
fn equal_mass<T: Scalar>(mut all: Vec<T>, bins: usize) -> Vec<f64> {
    let (count, mut done) = (all.len(), 0);
    let mut upper = Vec::new();
    let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    let lowest = all.iter().copied().min_by(order).map(T::to_f64);
    for bin in 1..=bins {
        let end = count * bin / bins;
        if end <= done {
            continue;
        }
        // Everything before `done` is at most as high as everything after it.
        let (_, last, _) = all[done..].select_nth_unstable_by(end - done - 1, order);
        upper.push(last.to_f64());
        done = end;
    }
    upper.dedup();
    lowest.into_iter().chain(upper).collect()
}

/// The reliability of all entries of a table that count.
///
/// # Errors
/// As [`Reliability::new`].
pub fn reliability<T: Scalar>(
    table: &LabelTable<'_, T>,
    binning: Binning,
    bins: usize,
) -> Result<Reliability, Error> {
    Reliability::new(table.entries(), binning, bins)
}

/// The reliability of the most probable class (the first among equals): its probability, and
/// whether it is the true class. Rows are left out as in [`class_report`](super::class_report).
///
/// # Errors
/// As [`Reliability::new`]; [`Error::LabelOutOfRange`].
pub fn class_reliability<T: Scalar>(
    table: &LabelTable<'_, T>,
    classes: &[LabelId],
    binning: Binning,
    bins: usize,
) -> Result<Reliability, Error> {
    let classes = distinct(table, classes)?;
    let entries = (0..table.rows()).filter_map(|row| {
        let TrueClass::One(truth) = true_class(table, &classes, row) else { return None };
        let p = |at: usize| table.probabilities(row)[classes[at].index()];
        let best = (1..classes.len()).fold(0, |best, at| if p(at) > p(best) { at } else { best });
        Some((p(best), best == truth))
    });
    Reliability::new(entries, binning, bins)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::infer::Evidence::{Off, On};

    #[test]
    fn equal_mass_bins_match_a_computation_by_hand() {
        // Sorted: .1 .2 .3 | .3 .5 .6 | .7 .8 .9. The second .3 goes with the first.
        let p = [0.9, 0.3, 0.1, 0.5, 0.3, 0.2, 0.8, 0.7, 0.6];
        let entries = p.iter().map(|&p| (p, p > 0.55));
        let table = Reliability::new(entries, Binning::EqualMass, 3).unwrap();
        let counts: Vec<u64> = table.bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [4, 2, 3]);
        let edges: Vec<(f64, f64)> = table.bins.iter().map(|bin| (bin.low, bin.high)).collect();
        assert_eq!(edges, [(0.1, 0.3), (0.3, 0.6), (0.6, 0.9)]);
        assert_eq!(table.bins[1].observed, Some(0.5));
        assert!((table.bins[0].predicted.unwrap() - 0.225).abs() < 1e-15);
        let error = (4.0 * 0.225 + 2.0 * 0.05 + 3.0 * 0.2) / 9.0;
        assert!((table.expected_error().unwrap() - error).abs() < 1e-12);
        assert!((table.largest_error().unwrap() - 0.225).abs() < 1e-12);
    }

    #[test]
    fn edges_belong_to_the_bin_above_and_one_to_the_last() {
        for binning in [Binning::EqualWidth, Binning::EqualMass] {
            let empty = Reliability::new::<f64>([].into_iter(), binning, 10).unwrap();
            assert_eq!((empty.expected_error(), empty.largest_error()), (None, None));
            let same = Reliability::new([(0.3, true); 5].into_iter(), binning, 10).unwrap();
            assert_eq!(same.bins.iter().map(|bin| bin.count).max(), Some(5));
            assert!(Reliability::new([(0.3, true)].into_iter(), binning, 0).is_err());
        }
        let p = [0.0, 0.1, 0.3, 0.7, 1.0, f64::NAN];
        let table = Reliability::new(p.iter().map(|&p| (p, true)), Binning::EqualWidth, 10);
        let counts: Vec<u64> = table.unwrap().bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [1, 1, 0, 1, 0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn the_most_probable_class_is_compared_with_the_true_one() {
        let table = LabelTable::new(2, &[0.9, 0.1, 0.2, 0.8], &[On, Off, On, Off]).unwrap();
        let classes = [LabelId(0), LabelId(1)];
        let found = class_reliability(&table, &classes, Binning::EqualWidth, 1).unwrap();
        assert_eq!((found.bins[0].count, found.bins[0].observed), (2, Some(0.5)));
        assert!((found.bins[0].predicted.unwrap() - 0.85).abs() < 1e-12);
        let none = class_reliability(&table, &[], Binning::EqualWidth, 1).unwrap();
        assert_eq!(none.expected_error(), None);
    }
}
