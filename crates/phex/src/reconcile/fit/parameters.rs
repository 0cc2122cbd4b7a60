//! Fitted parameters, and the calibrated logits that they make of a row.
//!
//! A label's logit `ℓ` becomes `ℓ / temperature + bias` of its level. A distribution over the labels
//! of a head becomes `p^(1 / temperature)`, normalised.

use serde::{Deserialize, Serialize};

use super::levels::Levels;
use super::options::FitForm;
use crate::Error;
use crate::infer::in_range;
use crate::reconcile::ReconcileLoss;

/// The parameters of one level or head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelParameters {
    /// `level 0` for the most general labels, and so on.
    pub name: String,
    /// How many labels it has.
    pub labels: usize,
    /// The divisor of logits. Above 1, the classifier was too certain.
    pub temperature: f64,
    /// What is added to the divided logits.
    pub bias: f64,
    /// How much its labels count in the loss. Labels with a small weight give way. The mean over all
    /// labels is 1; for the categorical loss, that over all heads.
    pub weight: f64,
}

/// Everything that was fitted. It can be stored, and
/// [`FittedReconciler::from_parameters`](super::FittedReconciler::from_parameters) reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedParameters {
    /// Which of them are free.
    pub form: FitForm,
    /// The loss that they were fitted for.
    pub loss: ReconcileLoss,
    /// One entry per level, the most general first.
    pub levels: Vec<LevelParameters>,
}

impl FittedParameters {
    /// The parameters that change nothing.
    pub(super) fn neutral(form: FitForm, loss: ReconcileLoss, levels: &Levels) -> FittedParameters {
        let level = |(name, members): (&String, &Vec<usize>)| LevelParameters {
            name: name.clone(),
            labels: members.len(),
            temperature: 1.0,
            bias: 0.0,
            weight: 1.0,
        };
        let levels = levels.names.iter().zip(&levels.members).map(level).collect();
        FittedParameters { form, loss, levels }
    }

    /// Checks that they belong to the levels of a graph and that every value is in its range.
    pub(super) fn check(&self, levels: &Levels) -> Result<(), Error> {
        let mine = self.levels.iter().map(|level| (level.name.as_str(), level.labels));
        let theirs = levels.names.iter().zip(&levels.members);
        if !mine.eq(theirs.map(|(name, members)| (name.as_str(), members.len()))) {
            let reason = String::from(
                "the parameters were fitted for a graph with other levels; fit them again for this graph",
            );
            return Err(Error::Unfittable { reason });
        }
        for level in &self.levels {
            let range = "between 0.001 and 1,000";
            in_range("a temperature", level.temperature, range, |x| (1e-3..=1e3).contains(&x))?;
            in_range("a bias", level.bias, "between -100 and 100", |x| x.abs() <= 100.0)?;
            let range = "between 0.000000001 and 1,000,000,000";
            in_range("the weight of a level", level.weight, range, |x| (1e-9..=1e9).contains(&x))?;
        }
        Ok(())
    }

    /// The same parameters, with weights whose mean is 1. A common factor of all weights changes no
    /// answer.
    pub(super) fn normalised(mut self, levels: &Levels) -> FittedParameters {
        let mean = self.mean_weight(levels);
        self.levels.iter_mut().for_each(|level| level.weight /= mean);
        self
    }

    /// The mean weight: what gains are measured in.
    fn mean_weight(&self, levels: &Levels) -> f64 {
        let size = |labels: usize| if levels.heads { 1.0 } else { labels as f64 };
        let total: f64 = self.levels.iter().map(|level| size(level.labels) * level.weight).sum();
        total / self.levels.iter().map(|level| size(level.labels)).sum::<f64>()
    }

    /// The weight of each label as it is compiled, and the mean weight in the same unit. `None` if all
    /// are alike. The unit is the middle between the smallest weight and the largest, so that both
    /// are in the range that is safe, whatever the mean is.
    pub(super) fn weights(&self, levels: &Levels) -> Option<(Vec<f64>, f64)> {
        let each = || self.levels.iter().map(|level| level.weight);
        let (least, most) = (each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max));
        if least == most {
            return None;
        }
        let unit = (least * most).sqrt();
        let mut weights = vec![1.0; levels.labels()];
        for (level, members) in self.levels.iter().zip(&levels.members) {
            members.iter().for_each(|&label| weights[label] = level.weight / unit);
        }
        Some((weights, self.mean_weight(levels) / unit))
    }

    /// Whether logits stay as they are.
    pub(super) fn keeps_logits(&self) -> bool {
        !self.form.infers()
            && self.levels.iter().all(|level| level.temperature == 1.0 && level.bias == 0.0)
    }

    /// The calibrated logits of a row, or the scores that inference starts from. Those of heads are
    /// logarithms of probabilities.
    pub(super) fn apply(&self, levels: &Levels, logits: &[f64], out: &mut [f64]) {
        for (level, members) in self.levels.iter().zip(&levels.members) {
            let &LevelParameters { temperature, bias, .. } = level;
            if !levels.heads {
                members.iter().for_each(|&at| out[at] = logits[at] / temperature + bias);
                continue;
            }
            members.iter().for_each(|&at| out[at] = logits[at] / temperature);
        }
        if levels.heads && !self.form.infers() {
            levels.normalise(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weight_is_one_and_compiled_weights_are_in_range() {
        let names = vec![String::from("a"), String::from("b")];
        let mut levels = Levels { names, members: vec![vec![0], vec![1, 2, 3]], heads: false };
        for (heads, expected) in [(false, 0.25 * 3.2e4 + 0.75 * 3.2e-5), (true, 1.6e4 + 1.6e-5)] {
            levels.heads = heads;
            let loss = ReconcileLoss::Log;
            let mut raw = FittedParameters::neutral(FitForm::Trust, loss, &levels);
            assert_eq!(raw.weights(&levels), None);
            (raw.levels[0].weight, raw.levels[1].weight) = (3.2e4, 3.2e-5);
            let fitted = raw.clone().normalised(&levels);
            assert!((fitted.mean_weight(&levels) - 1.0).abs() < 1e-12);
            assert!((fitted.levels[0].weight - 3.2e4 / expected).abs() < 1e-9);
            let (a, mean) = raw.weights(&levels).unwrap();
            let (b, same) = fitted.weights(&levels).unwrap();
            assert!(a.iter().zip(&b).all(|(a, b)| (a / b - 1.0).abs() < 1e-12));
            assert!(
                (mean / same - 1.0).abs() < 1e-12
                    && (mean / a[0] * 3.2e4 / expected - 1.0).abs() < 1e-9
            );
            assert!(a.iter().all(|weight| (1e-6..=1e6).contains(weight)));
        }
    }

    #[test]
    fn heads_are_powers_that_sum_to_one() {
        let levels =
            Levels { names: vec![String::from("h")], members: vec![vec![0, 1, 2]], heads: true };
        let loss = ReconcileLoss::Categorical;
        let mut parameters = FittedParameters::neutral(FitForm::Temperature, loss, &levels);
        parameters.levels[0].temperature = 2.0;
        let p = [0.7f64, 0.2, 0.1];
        let logits = p.map(f64::ln);
        let mut out = [0.0; 3];
        parameters.apply(&levels, &logits, &mut out);
        let total: f64 = p.iter().map(|p| p.sqrt()).sum();
        for (p, z) in p.iter().zip(out) {
            assert!((z.exp() - p.sqrt() / total).abs() < 1e-12);
        }
    }
}
