//! Rows of features, each with a class, and the predicates of the classes.

use phex_io::Features;
use serde::{Deserialize, Serialize};

use super::settings::Scaling;

/// A data set in memory.
#[derive(Debug, Clone)]
pub(super) struct ZeroShotData {
    /// Where it comes from, in words, and what differs from the paper.
    pub(super) about: String,
    pub(super) features: Features,
    /// The class of each row.
    pub(super) classes: Vec<usize>,
    pub(super) predicates: Predicates,
    /// The test classes that the data set fixes: of the first fold, or of all.
    pub(super) official: Vec<usize>,
    /// Whether all folds test the official classes.
    pub(super) fixed: bool,
    /// How far detectors separate on from off, in standard deviations of the noise that is added to the features, drawn
    /// again in each fold.
    pub(super) noise: Option<f64>,
}

/// The attributes of classes, class after class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Predicates {
    pub(super) classes: Vec<String>,
    pub(super) attributes: Vec<String>,
    /// Whether a class has an attribute.
    pub(super) binary: Vec<bool>,
    /// How certainly, from 0 to 1; `None` if it is missing.
    pub(super) graded: Vec<Option<f64>>,
    /// Graded predicates above this are binary ones.
    pub(super) threshold: f64,
}

impl Predicates {
    /// Binary predicates are graded ones above the mean over all classes: the rule of AwA's authors.
    pub(super) fn from_graded(
        classes: Vec<String>,
        attributes: Vec<String>,
        graded: Vec<Option<f64>>,
    ) -> Predicates {
        let known = graded.iter().flatten();
        let threshold = known.clone().sum::<f64>() / known.count().max(1) as f64;
        let binary = graded.iter().map(|c| c.is_some_and(|c| c > threshold)).collect();
        Predicates { classes, attributes, binary, graded, threshold }
    }

    /// Whether a class has an attribute.
    pub(super) fn has(&self, class: usize, attribute: usize) -> bool {
        self.binary[class * self.attributes.len() + attribute]
    }

    /// The graded predicates of a class.
    pub(super) fn graded(&self, class: usize) -> &[Option<f64>] {
        let width = self.attributes.len();
        &self.graded[class * width..(class + 1) * width]
    }
}

impl ZeroShotData {
    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.predicates.classes.len()
    }

    /// The rows of some classes, in order.
    pub(super) fn rows_of(&self, classes: &[usize]) -> Vec<usize> {
        let rows = 0..self.classes.len();
        rows.filter(|&row| classes.contains(&self.classes[row])).collect()
    }

    /// Keeps only the first `most` rows of each class; 0 keeps all.
    pub(super) fn limit(&mut self, most: usize) {
        if most == 0 {
            return;
        }
        let mut counts = vec![0; self.len()];
        let mut values = Vec::new();
        let mut classes = Vec::new();
        for (row, &class) in self.classes.iter().enumerate() {
            counts[class] += 1;
            if counts[class] <= most {
                values.extend_from_slice(self.features.row(row));
                classes.push(class);
            }
        }
        self.features.rows = classes.len();
        self.features.values = values;
        self.classes = classes;
    }
}

/// Centres and scales features, by the training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaler {
    mean: Vec<f32>,
    factor: Vec<f32>,
}

impl Scaler {
    /// From some rows: O(rows · columns).
    pub(super) fn new(features: &Features, rows: &[usize], scaling: Scaling) -> Scaler {
        let count = rows.len().max(1) as f64;
        let mut mean = vec![0.0f64; features.columns];
        for &row in rows {
            mean.iter_mut().zip(features.row(row)).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        mean.iter_mut().for_each(|sum| *sum /= count);
        let mut square = vec![0.0f64; features.columns];
        for &row in rows {
            let away = features.row(row).iter().zip(&mean).map(|(&x, mean)| f64::from(x) - mean);
            square.iter_mut().zip(away).for_each(|(sum, away)| *sum += away * away);
        }
        square.iter_mut().for_each(|sum| *sum /= count);
        let all = square.iter().sum::<f64>() / features.columns.max(1) as f64;
        let factor = square.iter().map(|&square| {
            let square = match scaling {
                Scaling::Each => square,
                Scaling::All => all,
            };
            // A constant feature carries no information.
            if square > 1e-24 { (1.0 / square.sqrt()) as f32 } else { 0.0 }
        });
        Scaler { factor: factor.collect(), mean: mean.iter().map(|&mean| mean as f32).collect() }
    }

    /// Some rows after scaling, row after row.
    pub(super) fn apply(&self, features: &Features, rows: &[usize]) -> Vec<f32> {
        let mut values = Vec::with_capacity(rows.len() * features.columns);
        for &row in rows {
            let columns = self.mean.iter().zip(&self.factor);
            values.extend(features.row(row).iter().zip(columns).map(|(x, (m, f))| (x - m) * f));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_centred_and_scaled_by_the_chosen_rows() {
        let values = vec![1.0, 10.0, 3.0, 30.0, 100.0, 0.0];
        let features = Features { names: Vec::new(), rows: 3, columns: 2, values };
        let each = Scaler::new(&features, &[0, 1], Scaling::Each);
        assert_eq!(each.apply(&features, &[1, 0]), [1.0, 1.0, -1.0, -1.0]);
        // The mean square of both columns is (1 + 100) / 2.
        let all = Scaler::new(&features, &[0, 1], Scaling::All);
        let root = 50.5f32.sqrt();
        let scaled = all.apply(&features, &[1]);
        assert!((scaled[0] - 1.0 / root).abs() < 1e-6 && (scaled[1] - 10.0 / root).abs() < 1e-6);
    }

    #[test]
    fn binary_predicates_are_those_above_the_mean() {
        let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        let graded = vec![Some(0.1), Some(0.9), None, Some(0.2)];
        let predicates = Predicates::from_graded(names(2), names(2), graded);
        assert!((predicates.threshold - 0.4).abs() < 1e-12);
        assert_eq!(predicates.binary, [false, true, false, false]);
        assert!(predicates.has(0, 1) && !predicates.has(1, 0));
    }
}
