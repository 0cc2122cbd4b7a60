//! Means with standard errors, and whether two of them differ.
//!
//! Of n values: mean `m = Σ x / n`, standard error `s / √n` with `s² = Σ (x − m)² / (n − 1)`. Two methods
//! are compared run by run: with d the differences, `t = mean(d) / error(d)` follows Student's
//! distribution with n − 1 degrees of freedom when the methods do not differ (paired t-test, two-sided).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What some values are about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Their mean.
    pub mean: f64,
    /// The standard error of the mean; none of a single value.
    pub error: Option<f64>,
    /// How many there are.
    pub count: usize,
}

impl Summary {
    /// The summary of some values; none of no values.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (count > 1).then(|| (square / (count - 1) as f64 / count as f64).sqrt());
        Some(Summary { mean, error, count })
    }

    /// The same in hundredths, with one digit: `43.1 ± 0.6`.
    pub fn percent(&self) -> String {
        match self.error {
            Some(error) => format!("{:.1} ± {:.1}", 100.0 * self.mean, 100.0 * error),
            None => format!("{:.1}", 100.0 * self.mean),
        }
    }
}

/// One method against another on the same runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// By how much the first is better, with its standard error.
    pub difference: Summary,
    /// The probability of a difference at least as large when there is none; none of a single run.
    pub p_value: Option<f64>,
}

impl Comparison {
    /// Compares values of the same runs in the same order; none of no runs, or of different numbers.
    pub fn paired(first: &[f64], second: &[f64]) -> Option<Comparison> {
        if first.len() != second.len() {
            return None;
        }
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let difference = Summary::of(&differences)?;
        let p_value = difference.error.and_then(|error| {
            if error == 0.0 {
                return Some(if difference.mean == 0.0 { 1.0 } else { 0.0 });
            }
            let degrees = (difference.count - 1) as f64;
            let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
            Some(2.0 * student.sf((difference.mean / error).abs()))
        });
        Some(Comparison { difference, p_value })
    }

    /// Hundredths with the p-value: `+4.7 ± 1.0, p = 0.008`.
    pub fn percent(&self) -> String {
        let sign = if self.difference.mean < 0.0 { "" } else { "+" };
        let p_value = match self.p_value {
            Some(p) if p < 0.001 => String::from(", p < 0.001"),
            Some(p) => format!(", p = {p:.3}"),
            None => String::new(),
        };
        format!("{sign}{}{p_value}", self.difference.percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_standard_error() {
        let summary = Summary::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(summary.mean, 2.5);
        // s² = 5/3; √(5/3/4) = 0.6455.
        assert!((summary.error.unwrap() - 0.645_497_2).abs() < 1e-6);
        assert_eq!(Summary::of(&[0.5]).unwrap().percent(), "50.0");
        assert_eq!(Summary::of(&[]), None);
    }

    /// Student's own data (1908): the gain of sleep by two drugs on ten patients; t = −4.0621, p = 0.00283.
    #[test]
    fn pairs_are_compared_as_student_did() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let comparison = Comparison::paired(&first, &second).unwrap();
        assert!((comparison.difference.mean + 1.58).abs() < 1e-12);
        assert!((comparison.p_value.unwrap() - 0.002_833).abs() < 1e-6);
        assert_eq!(Comparison::paired(&first, &second[1..]), None);
        let same = Comparison::paired(&first, &first).unwrap();
        assert_eq!(same.p_value, Some(1.0));
    }
}
