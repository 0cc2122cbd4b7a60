//! Inference: from a model and rows of scores to probabilities.
//!
//! A model is compiled once into an [`Engine`]. The engine runs on blocks of rows and returns a
//! [`Posterior`]. `exact` holds the exact engines and `approximate` the others; `registry` lists
//! them all. Every engine passes the same conformance tests against brute force.
//!
//! Kernels take and return slices; only `star` uses ndarray, for its two matrix products. There is
//! no BLAS and no `unsafe` code: `multiversion` selects the vector width at run time.

use std::fmt;

mod advice;
pub(crate) mod approximate;
mod backend;
pub mod compiled;
mod engine;
mod evidence;
pub(crate) mod exact;
mod extreme;
mod kernel;
mod options;
mod plan;
mod pool;
mod posterior;
mod registers;
mod registry;
mod rows;
mod score_form;

pub use advice::{Change, changes_for_exactness};

pub use backend::{Accelerator, Backend};
pub use engine::Engine;
pub use evidence::Evidence;
pub(crate) use kernel::{Kernel, Size, forward_sets_to_own, forward_to_own};
pub(crate) use options::in_range;
pub use options::{GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions};
pub use plan::{Plan, Refusal};
pub use posterior::{Diagnosis, Posterior, RowStatus, Trust, Want};
pub use rows::{Block, Number};
pub use score_form::{PROBABILITY_FLOOR, ScoreForm, ScoreInput, unscored};

use crate::numeric::log_max;

/// The buffers that a kernel fills for a block of rows. The scores are finite. A kernel writes
/// every entry. It sets `log_partition` to minus infinity when no state agrees with the evidence;
/// the caller then overwrites the row.
pub(crate) struct Answers<'a, T> {
    /// Rows × labels.
    pub(crate) marginals: &'a mut [T],
    /// One value per row.
    pub(crate) log_partition: &'a mut [f64],
    /// Rows × relations, if requested.
    pub(crate) expectations: Option<&'a mut [T]>,
    /// A bound on the error of the marginals, one per row: 0 for exact kernels.
    pub(crate) error: &'a mut [f64],
    /// The diagnosis of each row, filled by approximate kernels only.
    pub(crate) diagnosis: &'a mut [Diagnosis],
    /// Rows × labels, if requested from a kernel that samples.
    pub(crate) standard_errors: Option<&'a mut [T]>,
}

/// A lower bound on log Z that carries no information. Unlike minus infinity, it does not mean that
/// the row is impossible.
pub(crate) const NO_BOUND: f64 = f64::MIN;

/// Why an engine cannot handle a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unfit {
    /// The model does not have the required shape. The text says why and names labels.
    Shape(String),
    /// It would cost more than the budget allows.
    Budget {
        /// What it would need, in words.
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

/// The largest allowed cost of a compiled engine, and of finding it. Engines refuse models that cost
/// more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Elementary operations per row.
    pub operations: f64,
    /// Bytes of tables, and of scratch memory per block of rows.
    pub bytes: f64,
    /// Steps that the search for an engine may take, of a nanosecond or two each. It bounds the
    /// list of legal states and the search for a junction tree, each by itself.
    pub search: f64,
}

impl Default for Budget {
    /// 10⁹ operations per row (about a second), 2 GiB, and 5·10⁹ steps of search (up to about ten seconds).
    fn default() -> Budget {
        Budget { operations: 1e9, bytes: 2.0 * 1024.0 * 1024.0 * 1024.0, search: 5e9 }
    }
}

/// A label set with its log-weight.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelSet {
    /// The log-weight. Subtracting the log-partition gives the log-probability.
    pub log_weight: f64,
    /// Whether each label is on.
    pub on: Vec<bool>,
}

/// Draws an index with probability proportional to `exp` of its log-weight. `None` when all weights
/// are zero.
pub(crate) fn draw(log_weights: &[f64], uniform: &mut dyn FnMut() -> f64) -> Option<usize> {
    let most = log_max(log_weights.iter().copied());
    if most == f64::NEG_INFINITY {
        return None;
    }
    let total: f64 = log_weights.iter().map(|weight| (weight - most).exp()).sum();
    let mut left = uniform() * total;
    let found = log_weights.iter().position(|weight| {
        left -= (weight - most).exp();
        left < 0.0
    });
    // Rounding may leave a remainder, which goes to the last index with a positive weight.
    found.or_else(|| log_weights.iter().rposition(|&weight| weight > f64::NEG_INFINITY))
}
