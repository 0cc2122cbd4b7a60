//! The results of inference.
//!
//! How far to trust an approximate answer is a diagnosis, not a number. [`Diagnosis::doubt`] names
//! a reason for doubt, with thresholds calibrated on the benchmark of approximate engines. The
//! absence of doubt is not a proof.

use serde::Serialize;

use crate::Error;
use crate::model::OneOfGroup;

/// Which results are wanted in addition to marginals and log-partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Want {
    /// The expected number of violations of each relation, in the order of the model's relations.
    pub expectations: bool,
    /// The entropy of each row's distribution, in nats. It is computed from the expectations, so it
    /// implies them.
    pub entropy: bool,
    /// The standard error of each marginal, for engines that sample.
    pub standard_errors: bool,
    /// Rigorous bounds on log Z for approximate answers: from below by mean field, from above by
    /// tree-reweighted messages. They cost more than the answer itself.
    pub bounds: bool,
}

/// How far an answer can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trust {
    /// Exact up to rounding.
    Exact,
    /// Every marginal is within this distance of the exact one.
    Certified(f64),
    /// No bound on the error is available, but there is a diagnosis.
    Approximate(Diagnosis),
}

/// What an approximate engine can report about its answer for a row.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Diagnosis {
    /// The number of iterations or sweeps.
    pub iterations: u32,
    /// Whether the last change was within the tolerance. For sampling, whether the chains agree.
    pub converged: bool,
    /// The last change of any belief. For sampling, the potential scale reduction minus 1.
    pub residual: f64,
    /// Rigorous lower and upper bounds on `log Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<(f64, f64)>,
    /// The effective number of independent samples as a fraction of those drawn, in `[0, 1]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_sample: Option<f64>,
    /// The largest standard error of a marginal, for sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

impl Diagnosis {
    /// Below this fraction of effective samples, the proposal missed much of the distribution.
    pub const LOW_SAMPLE: f64 = 0.2;
    /// Standard errors above this affect the second digit.
    pub const HIGH_STANDARD_ERROR: f64 = 0.01;
    /// An interval around log Z wider than this, in nats, carries no information about
    /// probabilities.
    pub const WIDE_BOUNDS: f64 = 1.0;

    /// Why the answer should not be trusted. `None` when there is no reason for doubt, which does
    /// not prove that it is right.
    pub fn doubt(&self) -> Option<&'static str> {
        // A NaN is a reason for doubt as well.
        let width = self.bounds.map(|(low, high)| high - low);
        if !self.converged {
            Some("it did not converge")
        } else if let Some(error) = self.standard_error {
            let small = error <= Diagnosis::HIGH_STANDARD_ERROR;
            (!small).then_some("its standard error is high")
        } else if let Some(part) = self.effective_sample {
            let enough = part >= Diagnosis::LOW_SAMPLE;
            (!enough).then_some("its effective sample size is low")
        } else if let Some(width) = width {
            let narrow = width <= Diagnosis::WIDE_BOUNDS;
            (!narrow).then_some("its bounds on log Z are wide")
        } else {
            None
        }
    }
}

impl Trust {
    /// Why the answer should not be trusted, if there is a reason.
    pub fn doubt(&self) -> Option<&'static str> {
        match self {
            Trust::Exact => None,
            Trust::Certified(error) if *error <= 1e-3 => None,
            Trust::Certified(_) => Some("its certified error is more than 0.001"),
            Trust::Approximate(diagnosis) => diagnosis.doubt(),
        }
    }
}

/// The outcome for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowStatus {
    /// The row has an answer.
    #[default]
    Answered,
    /// The score of this label is NaN, infinite or beyond ±[`SCORE_LIMIT`](crate::numeric::SCORE_LIMIT). All
    /// results of the row are NaN.
    BadScore {
        /// The first such label.
        label: usize,
    },
    /// No legal state agrees with the evidence. All results of the row are NaN, and log Z is minus
    /// infinity.
    Impossible,
}

impl RowStatus {
    /// Requires an answer for this row of a model whose labels have these names.
    ///
    /// # Errors
    /// [`Error::BadScore`] and [`Error::Impossible`].
    pub fn require_answer(self, row: usize, names: &[String]) -> Result<(), Error> {
        match self {
            RowStatus::Answered => Ok(()),
            RowStatus::BadScore { label } => {
                Err(Error::BadScore { row, label: names[label].clone() })
            }
            RowStatus::Impossible => Err(Error::Impossible { row }),
        }
    }
}

/// The results for a block of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior<T> {
    /// How many labels each row has.
    pub labels: usize,
    /// The probability of each label, row after row.
    pub marginals: Vec<T>,
    /// The log-partition of each row. With evidence, it is over the states that agree with the
    /// evidence.
    pub log_partition: Vec<f64>,
    /// The expected violations of each relation, row after row, if requested.
    pub expectations: Option<Vec<T>>,
    /// The entropy of each row, if requested.
    pub entropy: Option<Vec<f64>>,
    /// The standard error of each marginal, row after row, if requested and sampled.
    pub standard_errors: Option<Vec<T>>,
    /// The outcome for each row.
    pub status: Vec<RowStatus>,
    /// How far each row can be trusted.
    pub trust: Vec<Trust>,
}

impl<T> Posterior<T> {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.log_partition.len()
    }

    /// The marginals of a row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.marginals[row * self.labels..(row + 1) * self.labels]
    }

    /// The distribution of a row over a one-of group: the probabilities of its labels, which sum
    /// to 1.
    pub fn group(&self, row: usize, group: &OneOfGroup) -> Vec<T>
    where
        T: Copy,
    {
        group.labels.iter().map(|id| self.row(row)[id.index()]).collect()
    }

    /// The largest certified error of any row: 0 when all rows are exact, and 1 (which certifies
    /// nothing) when one is approximate.
    pub fn certified_error(&self) -> f64 {
        let error = |trust: &Trust| match trust {
            Trust::Exact => 0.0,
            Trust::Certified(error) => *error,
            Trust::Approximate(_) => 1.0,
        };
        // A NaN bounds nothing.
        let known = |e: f64| if e.is_nan() { 1.0 } else { e };
        self.trust.iter().map(|trust| known(error(trust))).fold(0.0, f64::max)
    }
}
