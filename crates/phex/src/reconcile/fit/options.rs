//! What can be fitted, and how.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::infer::in_range;
use crate::reconcile::{ReconcileLoss, ReconcileOptions};
use crate::{Error, Named};

/// A form of the fit: which parameters are free. The others stay at the values that change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitForm {
    /// Nothing: plain reconciling.
    Identity,
    /// One temperature for all labels.
    Temperature,
    /// The weight of labels grows or falls by one factor per level. A large factor lets the most
    /// specific labels decide: a parent is then the sum of its children where they cover it, and at
    /// least the largest of them elsewhere. A small factor lets the most general labels decide.
    Trust,
    /// One temperature, and the factor of weights.
    TemperatureTrust,
    /// A temperature per level or head.
    Levels,
    /// A temperature per level, and the factor of weights.
    LevelsTrust,
    /// A temperature and a bias per level.
    LevelsBias,
    /// A temperature and a bias per level, and the factor of weights.
    LevelsBiasTrust,
    /// A temperature and a weight per level.
    LevelsWeights,
    /// Exact inference (the conditional random field of the graph) with one temperature.
    Infer,
    /// Exact inference with a temperature per level.
    InferLevels,
}

impl Named for FitForm {
    const WHAT: &'static str = "form";
    const CHOICES: &'static [(&'static str, FitForm)] = &[
        ("identity", FitForm::Identity),
        ("temperature", FitForm::Temperature),
        ("trust", FitForm::Trust),
        ("temperature-trust", FitForm::TemperatureTrust),
        ("levels", FitForm::Levels),
        ("levels-trust", FitForm::LevelsTrust),
        ("levels-bias", FitForm::LevelsBias),
        ("levels-bias-trust", FitForm::LevelsBiasTrust),
        ("levels-weights", FitForm::LevelsWeights),
        ("infer", FitForm::Infer),
        ("infer-levels", FitForm::InferLevels),
    ];
}

impl fmt::Display for FitForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FitForm {
    /// Weights per level beyond this many levels are too many parameters.
    const MOST_WEIGHTS: usize = 6;

    /// How many parameters are free.
    pub fn parameters(self, levels: usize) -> usize {
        match self {
            FitForm::Identity => 0,
            FitForm::Temperature | FitForm::Trust | FitForm::Infer => 1,
            FitForm::TemperatureTrust => 2,
            FitForm::Levels | FitForm::InferLevels => levels,
            FitForm::LevelsTrust => levels + 1,
            FitForm::LevelsBias => 2 * levels,
            FitForm::LevelsBiasTrust => 2 * levels + 1,
            FitForm::LevelsWeights => (2 * levels).saturating_sub(1),
        }
    }

    /// Whether the calibrated probabilities are those of inference.
    pub fn infers(self) -> bool {
        matches!(self, FitForm::Infer | FitForm::InferLevels)
    }

    /// Whether labels get weights.
    pub(super) fn weighs(self) -> bool {
        use FitForm::{LevelsBiasTrust, LevelsTrust, LevelsWeights, TemperatureTrust, Trust};
        matches!(self, Trust | TemperatureTrust | LevelsTrust | LevelsBiasTrust | LevelsWeights)
    }

    /// Whether levels get biases.
    pub(super) fn biases(self) -> bool {
        matches!(self, FitForm::LevelsBias | FitForm::LevelsBiasTrust)
    }

    /// Whether every level has a temperature of its own.
    pub(super) fn is_per_level(self) -> bool {
        self.parameters(3) >= 3
    }

    /// Whether the form makes sense and is not the same as a smaller one.
    pub(super) fn suits(self, levels: usize, loss: ReconcileLoss) -> bool {
        let categorical = loss == ReconcileLoss::Categorical;
        match self {
            FitForm::Identity | FitForm::Temperature | FitForm::Infer => true,
            // A distribution has no bias.
            FitForm::LevelsBias => !categorical,
            FitForm::LevelsBiasTrust => !categorical && levels > 1,
            FitForm::LevelsWeights => (3..=FitForm::MOST_WEIGHTS).contains(&levels),
            _ => levels > 1,
        }
    }
}

/// How parameters are fitted and chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// How rows are reconciled. The weights of labels are fitted, so none may be given.
    pub reconcile: ReconcileOptions,
    /// The forms to choose from. Empty: all that suit the graph. [`FitForm::Identity`] is always
    /// among them.
    pub forms: Vec<FitForm>,
    /// How many parts the rows fall into for cross-validation: 2 to 100.
    pub folds: u32,
    /// The form with the fewest parameters is chosen among those whose loss is within this many
    /// standard errors of the lowest: 0 to 10.
    pub noise: f64,
    /// At most this many rows are used, evenly spread: 10 to 10,000,000.
    pub rows: usize,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            reconcile: ReconcileOptions::default(),
            forms: Vec::new(),
            folds: 5,
            noise: 1.0,
            rows: 20_000,
        }
    }
}

impl FitOptions {
    /// Checks that every option is in its range, for a graph of this many labels.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], which names the option, and [`Error::Unfittable`] when weights of
    /// labels are given.
    pub fn check(&self, labels: usize) -> Result<(), Error> {
        self.reconcile.check(labels)?;
        if self.reconcile.weights.is_some() {
            let reason = String::from("the weights of labels are fitted; give none");
            return Err(Error::Unfittable { reason });
        }
        in_range("folds", self.folds, "2 to 100", |x| (2.0..=100.0).contains(&x))?;
        in_range("noise", self.noise, "between 0 and 10", |x| (0.0..=10.0).contains(&x))?;
        in_range("the number of rows to fit", self.rows as f64, "10 to 10,000,000", |x| {
            (10.0..=1e7).contains(&x)
        })
    }

    /// The forms to try, the fewest parameters first.
    pub(super) fn forms(&self, levels: usize) -> Vec<FitForm> {
        let wanted = |form: &FitForm| self.forms.is_empty() || self.forms.contains(form);
        let all = FitForm::CHOICES.iter().map(|(_, form)| *form);
        let mut forms: Vec<FitForm> = all
            .filter(|form| *form == FitForm::Identity || wanted(form))
            .filter(|form| form.suits(levels, self.reconcile.loss))
            .collect();
        forms.sort_by_key(|form| form.parameters(levels));
        forms
    }
}
