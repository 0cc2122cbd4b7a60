//! Standardised features: mean 0 and deviation 1 over the training rows, missing values at the mean.

use phex_io::Features;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The mean and the deviation of each feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardiser {
    /// The mean of the values that are not missing.
    pub mean: Vec<f32>,
    /// Their standard deviation; 1 for a constant feature.
    pub deviation: Vec<f32>,
    /// Standardised values are clipped to ± this.
    pub clip: f32,
}

impl Standardiser {
    /// From some rows of features. Missing (NaN) and infinite values do not count.
    /// Standardised values are clipped to ± `clip`; 0 means no clipping.
    pub fn new(features: &Features, rows: impl Iterator<Item = usize>, clip: f64) -> Standardiser {
        let columns = features.columns;
        let (mut count, mut mean, mut square) =
            (vec![0.0f64; columns], vec![0.0f64; columns], vec![0.0f64; columns]);
        // Welford's update: no second pass, no cancellation.
        for row in rows {
            for (at, &value) in features.row(row).iter().enumerate() {
                let value = f64::from(value);
                if value.is_finite() {
                    count[at] += 1.0;
                    let away = value - mean[at];
                    mean[at] += away / count[at];
                    square[at] += away * (value - mean[at]);
                }
            }
        }
        let deviation = square.iter().zip(&count).map(|(square, count)| {
            let deviation = (square / count.max(1.0)).sqrt();
            if deviation > 1e-12 { deviation as f32 } else { 1.0 }
        });
        Standardiser {
            clip: if clip > 0.0 { clip as f32 } else { f32::MAX },
            deviation: deviation.collect(),
            mean: mean.into_iter().map(|mean| mean as f32).collect(),
        }
    }

    /// The number of features.
    pub fn columns(&self) -> usize {
        self.mean.len()
    }

    /// Appends a standardised row to `out`.
    pub fn push(&self, row: &[f32], out: &mut Vec<f32>) {
        let columns = self.mean.iter().zip(&self.deviation);
        out.extend(row.iter().zip(columns).map(|(value, (mean, deviation))| {
            let value = (value - mean) / deviation;
            if value.is_finite() { value.clamp(-self.clip, self.clip) } else { 0.0 }
        }));
    }

    /// Checks that a table has as many features.
    ///
    /// # Errors
    /// [`Error::Examples`] when it has not.
    pub fn check(&self, features: &Features) -> Result<(), Error> {
        if features.columns == self.columns() {
            return Ok(());
        }
        let message = format!(
            "there are {} features, but the model needs {}; give the columns that it was trained on",
            features.columns,
            self.columns()
        );
        Err(Error::Examples { message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_at_the_mean() {
        let values = vec![1.0, 5.0, f32::NAN, 5.0, 3.0, f32::INFINITY];
        let names = vec![String::from("a"), String::from("b")];
        let features = Features { names, rows: 3, columns: 2, values };
        let standard = Standardiser::new(&features, 0..3, 0.0);
        assert_eq!(standard.mean, [2.0, 5.0]);
        assert_eq!(standard.deviation, [1.0, 1.0]);
        let mut out = Vec::new();
        (0..3).for_each(|row| standard.push(features.row(row), &mut out));
        assert_eq!(out, [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    }
}
