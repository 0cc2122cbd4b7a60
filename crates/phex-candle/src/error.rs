//! The errors of this crate.

use candle_core::DType;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the core. A row that contradicts hard relations is
    /// [`phex::Error::Contradiction`].
    #[error(transparent)]
    Core(#[from] phex::Error),
    /// An error of candle.
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
    /// A tensor has the wrong shape.
    #[error("{what} have the shape {found:?} instead of {expected}")]
    Shape {
        /// Which tensor.
        what: &'static str,
        /// The expected shape, in words.
        expected: String,
        /// Its shape.
        found: Vec<usize>,
    },
    /// Logits that are not floating-point numbers.
    #[error("the logits are {found:?}; convert them to f32 or f64")]
    Precision {
        /// Their type.
        found: DType,
    },
    /// A target that is not valid evidence.
    #[error(
        "row {row}, column {column} of the targets: {value} is not valid; {}",
        phex::infer::Evidence::EXPECTED
    )]
    Target {
        /// The row, counted from 0.
        row: usize,
        /// The column, which is the index of the label.
        column: usize,
        /// The value.
        value: f64,
    },
    /// The weight of a row is not valid.
    #[error("row {row}: the weight is {value}, but must be finite and 0 or more")]
    Weight {
        /// The row, counted from 0.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// A learned strength is out of range.
    #[error(
        "the strength parameter `{name}` is {value}, but must be finite and 0 or more; call `project` after each step of the optimiser, and lower the learning rate if it is not finite"
    )]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// Its value.
        value: f64,
    },
    /// The incoming gradient of a layer is not finite.
    #[error(
        "row {row}: the gradient by the marginal of `{label}` is {value}; keep logarithms of marginals away from 0, or use `RelationLoss`, which needs none"
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
