//! Tuning: which strength of the relations works best.
//!
//! A [`Trial`] is one training run with one setting and one seed, measured on validation rows.
//! [`Tuning`] collects trials, knows which are done, and summarises them by setting: the mean over seeds
//! and the sample standard deviation `√(Σ (x − mean)² / (n − 1))`. It neither trains nor touches files.

use phex::metrics::Spread;
use serde::{Deserialize, Serialize};

use crate::config::{Metric, StrengthSetting};

/// One training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The strength of the relations.
    pub setting: StrengthSetting,
    /// The seed.
    pub seed: u64,
    /// The metric on the validation rows.
    pub value: f64,
    /// The run: [`Trainer::fingerprint`](crate::Trainer::fingerprint).
    pub fingerprint: String,
    /// The number of epochs.
    pub epochs: usize,
    /// Seconds of training.
    pub seconds: f64,
}

/// Trials with the same metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// What is measured.
    pub metric: Metric,
    /// The runs, in the order in which they finished.
    pub trials: Vec<Trial>,
}

/// All trials of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SettingSummary {
    /// The setting.
    pub setting: StrengthSetting,
    /// The metric over the seeds.
    #[serde(flatten)]
    pub spread: Spread,
}

impl Tuning {
    /// Without trials.
    pub fn new(metric: Metric) -> Tuning {
        Tuning { metric, trials: Vec::new() }
    }

    /// The trial of this run, if it is done.
    pub fn find(&self, setting: StrengthSetting, seed: u64, fingerprint: &str) -> Option<&Trial> {
        self.trials.iter().find(|trial| {
            trial.setting == setting && trial.seed == seed && trial.fingerprint == fingerprint
        })
    }

    /// Adds a trial, replacing one with the same setting and seed.
    pub fn add(&mut self, trial: Trial) {
        self.trials.retain(|old| (old.setting, old.seed) != (trial.setting, trial.seed));
        self.trials.push(trial);
    }

    /// Each setting with the mean over its seeds, in the order of their first trials.
    ///
    /// ```
    /// use phex_train::{Metric, Trial, Tuning};
    /// let mut tuning = Tuning::new(Metric::AuPrc);
    /// for (setting, seed, value) in [("hard", 0, 0.6), ("u=1", 0, 0.7), ("u=1", 1, 0.9)] {
    ///     let (setting, fingerprint) = (setting.parse()?, String::new());
    ///     tuning.add(Trial { setting, seed, value, fingerprint, epochs: 1, seconds: 0.0 });
    /// }
    /// let summary = tuning.summary();
    /// assert_eq!((summary[0].spread.count, summary[0].spread.deviation), (1, None));
    /// assert!((summary[1].spread.mean - 0.8).abs() < 1e-12);
    /// assert_eq!(tuning.best().map(|best| best.setting.to_string()), Some("u=1".into()));
    /// # Ok::<(), String>(())
    /// ```
    pub fn summary(&self) -> Vec<SettingSummary> {
        let mut settings: Vec<StrengthSetting> = Vec::new();
        for trial in &self.trials {
            if !settings.contains(&trial.setting) {
                settings.push(trial.setting);
            }
        }
        settings.into_iter().map(|setting| self.of(setting)).collect()
    }

    /// The setting with the best mean; of equals, the one that was tried first.
    pub fn best(&self) -> Option<SettingSummary> {
        self.summary().into_iter().filter(|summary| !summary.spread.mean.is_nan()).reduce(
            |best, next| {
                if self.metric.improves(next.spread.mean, best.spread.mean) { next } else { best }
            },
        )
    }

    fn of(&self, setting: StrengthSetting) -> SettingSummary {
        let values: Vec<f64> = self
            .trials
            .iter()
            .filter(|trial| trial.setting == setting)
            .map(|trial| trial.value)
            .collect();
        let nothing = Spread { mean: f64::NAN, deviation: None, count: 0 };
        let spread = Spread::of(&values).unwrap_or(nothing);
        SettingSummary { setting, spread }
    }
}

#[cfg(test)]
mod tests {
    use phex::graph::Strength;

    use super::*;

    fn trial(u: f64, seed: u64, value: f64) -> Trial {
        let setting = StrengthSetting::All(Strength::U(u));
        Trial { setting, seed, value, fingerprint: format!("{u}"), epochs: 3, seconds: 0.5 }
    }

    #[test]
    fn means_deviations_and_the_choice() {
        let mut tuning = Tuning::new(Metric::Accuracy);
        for (u, seed, value) in
            [(0.1, 0, 0.5), (0.5, 0, 0.9), (0.1, 1, 0.7), (0.5, 1, 0.5), (1.0, 0, 0.7)]
        {
            tuning.add(trial(u, seed, value));
        }
        let summary = tuning.summary();
        let means: Vec<f64> = summary.iter().map(|setting| setting.spread.mean).collect();
        for (mean, expected) in means.iter().zip([0.6, 0.7, 0.7]) {
            assert!((mean - expected).abs() < 1e-12);
        }
        // √((0.2² + 0.2²) / 1)
        assert!((summary[1].spread.deviation.unwrap() - 0.08f64.sqrt()).abs() < 1e-12);
        assert_eq!(summary[2].spread.deviation, None);
        let best = tuning.best().unwrap();
        assert_eq!(best.setting, StrengthSetting::All(Strength::U(0.5)), "the first of equals");
        let mut losses = tuning.clone();
        losses.metric = Metric::Loss;
        assert_eq!(losses.best().unwrap().setting, StrengthSetting::All(Strength::U(0.1)));
    }

    #[test]
    fn a_trial_is_found_again_only_as_the_same_run() {
        let mut tuning = Tuning::new(Metric::AuPrc);
        assert_eq!(tuning.best(), None);
        tuning.add(trial(0.5, 3, 0.4));
        let setting = StrengthSetting::All(Strength::U(0.5));
        assert!(tuning.find(setting, 3, "0.5").is_some());
        assert!(tuning.find(setting, 4, "0.5").is_none());
        assert!(tuning.find(setting, 3, "other data").is_none());
        tuning.add(Trial { value: 0.6, ..trial(0.5, 3, 0.4) });
        assert_eq!(tuning.trials.len(), 1, "the same setting and seed is replaced");
        let text = serde_json::to_string(&tuning).unwrap();
        assert_eq!(serde_json::from_str::<Tuning>(&text).unwrap(), tuning);
    }

    #[test]
    fn no_number_is_never_chosen() {
        let mut tuning = Tuning::new(Metric::AuPrc);
        tuning.add(trial(0.1, 0, f64::NAN));
        assert_eq!(tuning.best(), None);
        tuning.add(trial(0.2, 0, 0.1));
        assert_eq!(tuning.best().unwrap().setting, StrengthSetting::All(Strength::U(0.2)));
    }
}
