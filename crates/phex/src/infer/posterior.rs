//! What inference answers.

use crate::model::OneOfGroup;

/// Which answers are wanted beside marginals and log-partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Want {
    /// The expected number of violations of each relation, in the order of the model's relations.
    pub expectations: bool,
    /// The entropy of each row's distribution, in nats. Needs `expectations`, and implies them.
    pub entropy: bool,
}

/// How far an answer can be trusted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trust {
    /// Up to rounding.
    Exact,
    /// Every marginal is within this distance of the exact one.
    Certified(f64),
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowStatus {
    /// Answered.
    #[default]
    Answered,
    /// The score of this label is NaN, infinite or beyond ±1e30: the row is all NaN.
    BadScore {
        /// The first such label.
        label: usize,
    },
    /// No legal state agrees with the evidence: the row is all NaN and log Z is minus infinity.
    Impossible,
}

/// Answers for a block of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior<T> {
    /// How many labels a row has.
    pub labels: usize,
    /// The probability of each label, row after row.
    pub marginals: Vec<T>,
    /// The log-partition of each row; with evidence, over the states that agree with it.
    pub log_partition: Vec<f64>,
    /// The expected violations of each relation, row after row, when asked for.
    pub expectations: Option<Vec<T>>,
    /// The entropy of each row, when asked for.
    pub entropy: Option<Vec<f64>>,
    /// What became of each row.
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

    /// The largest certified error of any row: 0 when all are exact.
    pub fn certified_error(&self) -> f64 {
        let error = |trust: &Trust| match trust {
            Trust::Exact => 0.0,
            Trust::Certified(error) => *error,
        };
        // A bound that is not a number bounds nothing.
        let known = |e: f64| if e.is_nan() { 1.0 } else { e };
        self.trust.iter().map(|trust| known(error(trust))).fold(0.0, f64::max)
    }
}
