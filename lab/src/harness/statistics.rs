//! Means, quantiles and ranks, and whether two methods differ.
//!
//! [`Spread`] has means and standard errors. Two methods are compared run by run: with d the differences,
//! `t = mean(d) / error(d)` follows Student's distribution with n − 1 degrees of freedom if the methods do not
//! differ (paired t-test, two-sided).

use phex::metrics::Spread;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The quantile of sorted values; NaN without values.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((part * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The median, the upper one of two; NaN without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Spearman's rank correlation; NaN if all first or all second values are equal.
pub(crate) fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let first = ranks(pairs.iter().map(|pair| pair.0).collect());
    let second = ranks(pairs.iter().map(|pair| pair.1).collect());
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    product(&first, &second) / (product(&first, &first) * product(&second, &second)).sqrt()
}

/// The rank of each value; equal values share theirs.
fn ranks(values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = order[first..].iter().take_while(|&&at| values[at] == values[order[first]]);
        let count = same.count().max(1);
        for &at in &order[first..first + count] {
            ranks[at] = first as f64 + (count as f64 - 1.0) / 2.0;
        }
        first += count;
    }
    ranks
}

/// A mean and its standard error in percent, with one decimal place: `43.1 ± 0.6`.
pub(crate) fn percent(spread: &Spread) -> String {
    match spread.standard_error() {
        Some(error) => format!("{:.1} ± {:.1}", 100.0 * spread.mean, 100.0 * error),
        None => format!("{:.1}", 100.0 * spread.mean),
    }
}

/// One method against another on the same runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedTest {
    /// By how much the first method is better.
    pub difference: Spread,
    /// The probability of a difference at least as large if there is none; `None` for a single run.
    pub p_value: Option<f64>,
}

impl PairedTest {
    /// Compares values of the same runs in the same order; `None` without runs, or if their numbers differ.
    pub fn new(first: &[f64], second: &[f64]) -> Option<PairedTest> {
        if first.len() != second.len() {
            return None;
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let difference = Spread::of(&differences)?;
        let p_value = difference.standard_error().and_then(|error| {
            if error == 0.0 {
                return Some(if difference.mean == 0.0 { 1.0 } else { 0.0 });
            }
            let degrees = (difference.count - 1) as f64;
            let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
            Some(2.0 * student.sf((difference.mean / error).abs()))
        });
        Some(PairedTest { difference, p_value })
    }

    /// The difference in percent and the p-value: `+4.7 ± 1.0, p = 0.008`.
    pub fn percent(&self) -> String {
        let sign = if self.difference.mean < 0.0 { "" } else { "+" };
        let p_value = match self.p_value {
            Some(p) if p < 0.001 => String::from(", p < 0.001"),
            Some(p) => format!(", p = {p:.3}"),
            None => String::new(),
        };
        format!("{sign}{}{p_value}", percent(&self.difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_no_error() {
        assert_eq!(percent(&Spread::single(0.5)), "50.0");
        assert_eq!(percent(&Spread::of(&[0.4, 0.5, 0.6]).unwrap()), "50.0 ± 5.8");
    }

    /// Student's own data (1908): the gain of sleep by two drugs on ten patients; t = −4.0621, p = 0.00283.
    #[test]
    fn pairs_are_compared_as_student_did() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let comparison = PairedTest::new(&first, &second).unwrap();
        assert!((comparison.difference.mean + 1.58).abs() < 1e-12);
        assert!((comparison.p_value.unwrap() - 0.002_833).abs() < 1e-6);
        assert_eq!(PairedTest::new(&first, &second[1..]), None);
        let same = PairedTest::new(&first, &first).unwrap();
        assert_eq!(same.p_value, Some(1.0));
    }

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[(1.0, 10.0), (2.0, 30.0), (3.0, 40.0)]), 1.0);
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        assert!(spearman(&[(1.0, 3.0), (1.0, 2.0)]).is_nan());
        assert_eq!((median(vec![3.0, 1.0, 2.0]), quantile(&[1.0, 2.0, 3.0], 0.5)), (2.0, 2.0));
    }
}
