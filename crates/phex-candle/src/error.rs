//! The errors of this crate.

use candle_core::DType;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine or its graph.
    #[error(transparent)]
    Core(#[from] phex::Error),
    /// Candle.
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
    /// A tensor has not the shape that it needs.
    #[error("{what} have the shape {found:?}, but need {expected}")]
    Shape {
        /// Which tensor.
        what: &'static str,
        /// The shape that it needs, in words.
        expected: String,
        /// The shape that it has.
        found: Vec<usize>,
    },
    /// Logits that are no floating-point numbers.
    #[error("the logits are {found:?}; convert them to f32 or f64")]
    Precision {
        /// The type of their numbers.
        found: DType,
    },
    /// A target that is not valid evidence.
    #[error("target {at}: {value} is not valid; {}", phex::infer::Evidence::EXPECTED)]
    Target {
        /// Its place in the tensor, row after row.
        at: usize,
        /// The value.
        value: f64,
    },
    /// A row's weight is no weight.
    #[error("row {row}: the weight is {value}, but has to be finite and 0 or more")]
    Weight {
        /// The row, counted from 0.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// What is observed of a row contradicts hard relations.
    #[error(
        "row {row} ({observed}) contradicts the hard relations of the graph; correct the targets, soften the relations, give the row the weight 0, or use `Loss::Marginal`"
    )]
    Impossible {
        /// The row, counted from 0.
        row: usize,
        /// Its observed labels.
        observed: String,
    },
    /// A learned strength is out of range.
    #[error(
        "the strength parameter `{name}` is {value}, but has to be finite and 0 or more; call `project` after each step of the optimiser, and lower the learning rate where it is not finite"
    )]
    Parameter {
        /// What the parameter is.
        name: String,
        /// Its value.
        value: f64,
    },
    /// The gradient that comes back to a layer is no number.
    #[error(
        "row {row}: the gradient by the marginal of `{label}` is {value}; keep a logarithm of marginals away from 0, or use `RelationLoss`, which needs none"
    )]
    Gradient {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: String,
        /// The gradient.
        value: f64,
    },
}

impl From<Error> for candle_core::Error {
    fn from(error: Error) -> candle_core::Error {
        match error {
            Error::Candle(error) => error,
            error => candle_core::Error::wrap(error),
        }
    }
}
