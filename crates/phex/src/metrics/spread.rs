//! Mean and spread of repeated measurements, such as one metric over several seeds.
//!
//! Of n values x: the mean `m = Σ x / n`, the sample standard deviation `s = √(Σ (x − m)² / (n − 1))` and the
//! standard error of the mean `s / √n`. A single value has no spread. O(n).

use serde::{Deserialize, Serialize};

/// The mean of some values; `None` without values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut count = 0usize;
    let sum: f64 = values.into_iter().inspect(|_| count += 1).sum();
    (count > 0).then(|| sum / count as f64)
}

/// The mean of some values and how far they spread around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean, or the only value; NaN if there is none.
    pub mean: f64,
    /// The sample standard deviation, for two or more values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// How many values there are.
    pub count: usize,
}

impl Spread {
    /// The spread of some values; `None` without values.
    ///
    /// ```
    /// use phex::metrics::Spread;
    ///
    /// let spread = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
    /// assert_eq!((spread.mean, spread.deviation, spread.count), (2.0, Some(1.0), 3));
    /// assert_eq!(Spread::of(&[0.5]), Some(Spread::single(0.5)));
    /// ```
    pub fn of(values: &[f64]) -> Option<Spread> {
        let (mean, count) = (mean(values.iter().copied())?, values.len());
        let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (count > 1).then(|| (square / (count - 1) as f64).sqrt());
        Some(Spread { mean, deviation, count })
    }

    /// One value without a spread.
    pub fn single(value: f64) -> Spread {
        Spread { mean: value, deviation: None, count: 1 }
    }

    /// The standard error of the mean, for two or more values.
    pub fn standard_error(&self) -> Option<f64> {
        self.deviation.map(|deviation| deviation / (self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_standard_error() {
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(spread.mean, 2.5);
        // s² = 5/3; √(5/3/4) = 0.6455.
        assert!((spread.standard_error().unwrap() - 0.645_497_2).abs() < 1e-6);
        assert_eq!(Spread::single(0.5).standard_error(), None);
        assert_eq!(Spread::of(&[]), None);
    }
}
