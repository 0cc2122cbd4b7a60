//! How probabilities are reconciled.

use serde::{Deserialize, Serialize};

use crate::infer::in_range;
use crate::{Error, Named};

/// The loss that must not get worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReconcileLoss {
    /// The log loss, summed over labels: each label is an independent yes-or-no question.
    #[default]
    Log,
    /// The Brier score, summed over labels. Only for hierarchies, where the log loss does not get
    /// worse either.
    Brier,
    /// The log loss of softmax heads, summed over heads: each level of a taxonomy is one
    /// distribution. Only for forests in which each level is a one-of group.
    Categorical,
}

impl Named for ReconcileLoss {
    const WHAT: &'static str = "loss";
    const CHOICES: &'static [(&'static str, ReconcileLoss)] = &[
        ("log", ReconcileLoss::Log),
        ("brier", ReconcileLoss::Brier),
        ("categorical", ReconcileLoss::Categorical),
    ];
}

/// How a graph is compiled for reconciling, and when the iterations stop.
#[derive(Debug, Clone, PartialEq)]
pub struct ReconcileOptions {
    /// The loss that must not get worse.
    pub loss: ReconcileLoss,
    /// How much each label counts in the loss: one positive number per label. Probabilities of
    /// labels with a large weight move less. `None` counts all labels alike.
    pub weights: Option<Vec<f64>>,
    /// Iterative engines stop when no relation is violated by more than this. The answer is made
    /// consistent afterwards, whatever the tolerance. Single precision stops at 10⁻⁶ at the latest.
    pub tolerance: f64,
    /// Iterative engines stop after this many passes, unless the answer would then be worse than
    /// the input for some legal truth: in that case they go on.
    pub passes: u32,
    /// Takes this engine for every part of the graph that it can handle, for comparisons. Other parts
    /// get the cheapest, and the plan says why. `None` takes the cheapest everywhere.
    pub engine: Option<super::ReconcileEngine>,
}

impl Default for ReconcileOptions {
    fn default() -> ReconcileOptions {
        ReconcileOptions {
            loss: ReconcileLoss::Log,
            weights: None,
            tolerance: 1e-7,
            passes: 200,
            engine: None,
        }
    }
}

impl ReconcileOptions {
    /// The largest ratio of label weights, which keeps the arithmetic safe.
    const WEIGHTS: &'static str = "between 0.000001 and 1,000,000";

    /// Checks that every option is in its range, for a graph of this many labels.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], which names the option, and [`Error::Shape`] when there is not one
    /// weight per label.
    pub fn check(&self, labels: usize) -> Result<(), Error> {
        in_range("tolerance", self.tolerance, "between 0 and 0.1", |x| x > 0.0 && x <= 0.1)?;
        in_range("passes", self.passes, "1 to 1,000,000", |x| (1.0..=1e6).contains(&x))?;
        if let Some(weights) = &self.weights {
            if weights.len() != labels {
                let (expected, found) = (labels, weights.len());
                return Err(Error::Shape { what: "weights of labels", expected, found });
            }
            for &weight in weights {
                let fits = |x| (1e-6..=1e6).contains(&x);
                in_range("the weight of a label", weight, ReconcileOptions::WEIGHTS, fits)?;
            }
        }
        Ok(())
    }
}
