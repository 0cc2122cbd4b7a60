//! Inference: from a model and rows of scores to probabilities.
//!
//! A model is compiled once into an [`Engine`]; the engine runs on blocks of rows and returns a
//! [`Posterior`]. Every engine passes the same conformance tests against brute force.

use std::fmt;

mod advice;
pub(crate) mod approximate;
mod backend;
pub mod compiled;
mod engine;
mod evidence;
pub(crate) mod exact;
mod kernel;
mod options;
mod plan;
mod pool;
mod posterior;
mod registry;
mod rows;

pub use advice::{Change, changes_for_exactness};

pub use backend::{Accelerator, Backend};
pub use engine::Engine;
pub use evidence::Evidence;
pub(crate) use kernel::{Kernel, Size, forward_to_own};
pub(crate) use options::in_range;
pub use options::{GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions};
pub use plan::{Plan, Refusal};
pub use posterior::{Diagnosis, Posterior, RowStatus, Trust, Want};
pub use rows::{Block, Number};

/// The buffers that a kernel fills for a block of rows. Kernels see finite scores only; they write
/// every entry, and set `log_partition` to minus infinity where no state agrees with the evidence
/// (the caller then overwrites the row).
pub(crate) struct Answers<'a, T> {
    /// Rows × labels.
    pub(crate) marginals: &'a mut [T],
    /// A value a row.
    pub(crate) log_partition: &'a mut [f64],
    /// Rows × relations, when asked for.
    pub(crate) expectations: Option<&'a mut [T]>,
    /// A bound on the error of the marginals a row: 0 for exact kernels.
    pub(crate) error: &'a mut [f64],
    /// What approximate kernels know of each row; exact ones leave it alone.
    pub(crate) diagnosis: &'a mut [Diagnosis],
    /// Rows × labels, when asked for of a kernel that samples.
    pub(crate) standard_errors: Option<&'a mut [T]>,
}

/// A lower bound on log Z that says nothing: unlike minus infinity, not that the row is impossible.
pub(crate) const NO_BOUND: f64 = f64::MIN;

/// Why an engine does not take a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unfit {
    /// The model has another shape; says which, naming labels.
    Shape(String),
    /// It would cost more than the budget allows.
    Budget {
        /// What it would take, in words.
        needs: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Shape(why) => f.write_str(why),
            Unfit::Budget { needs } => write!(f, "over budget: {needs}"),
        }
    }
}

/// What a compiled engine may cost. Engines refuse a model above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Elementary operations a row.
    pub operations: f64,
    /// Bytes of tables, and of scratch memory a block of rows.
    pub bytes: f64,
}

impl Default for Budget {
    /// 10⁹ operations a row (about a second) and 2 GiB.
    fn default() -> Budget {
        Budget { operations: 1e9, bytes: 2.0 * 1024.0 * 1024.0 * 1024.0 }
    }
}

/// A label set with its log-weight.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSet {
    /// The log-weight; minus the log-partition it is the log-probability.
    pub log_weight: f64,
    /// Whether each label is on.
    pub on: Vec<bool>,
}

/// Draws an index in proportion to `exp` of its log-weight; `None` when all weigh nothing.
pub(crate) fn draw(log_weights: &[f64], uniform: &mut dyn FnMut() -> f64) -> Option<usize> {
    let most = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return None;
    }
    let total: f64 = log_weights.iter().map(|weight| (weight - most).exp()).sum();
    let mut left = uniform() * total;
    let found = log_weights.iter().position(|weight| {
        left -= (weight - most).exp();
        left < 0.0
    });
    // Rounding may leave a crumb: it belongs to the last index that weighs anything.
    found.or_else(|| log_weights.iter().rposition(|&weight| weight > f64::NEG_INFINITY))
}
