//! Rows of scores with evidence.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use ndarray::{Array2, ArrayView2, LinalgScalar};

use super::lanes::Elementary;
use super::{Posterior, Runner, Want};
use crate::Error;

/// A number type of scores and probabilities: `f32` or `f64`.
pub trait Scalar:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Not a number.
    const NAN: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// From a double, rounded.
    fn from_f64(value: f64) -> Self;
    /// As a double.
    fn to_f64(self) -> f64;
    /// `e` to this power.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The larger of two numbers.
    fn max(self, other: Self) -> Self;
    /// Whether neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! scalar {
    ($type:ident) => {
        impl Scalar for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $type::NAN;
            const NEG_INFINITY: Self = $type::NEG_INFINITY;
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn exp(self) -> Self {
                $type::exp(self)
            }
            fn ln(self) -> Self {
                $type::ln(self)
            }
            fn max(self, other: Self) -> Self {
                $type::max(self, other)
            }
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

/// A number type that engines run on: `f32` or `f64`.
#[allow(private_bounds)] // Sealed: the elementary functions are ours.
pub trait Number: Elementary + LinalgScalar {
    /// Of two matrices with the same entries, the one of this type.
    fn pick<'a>(narrow: &'a Array2<f32>, wide: &'a Array2<f64>) -> ArrayView2<'a, Self>;

    /// What a runner answers to rows of this type.
    #[doc(hidden)]
    fn run(
        runner: &dyn Runner,
        block: &Block<'_, Self>,
        want: Want,
    ) -> Result<Posterior<Self>, Error>;
}

impl Number for f32 {
    fn pick<'a>(narrow: &'a Array2<f32>, _: &'a Array2<f64>) -> ArrayView2<'a, f32> {
        narrow.view()
    }

    fn run(
        runner: &dyn Runner,
        block: &Block<'_, f32>,
        want: Want,
    ) -> Result<Posterior<f32>, Error> {
        runner.run_single(block, want)
    }
}

impl Number for f64 {
    fn pick<'a>(_: &'a Array2<f32>, wide: &'a Array2<f64>) -> ArrayView2<'a, f64> {
        wide.view()
    }

    fn run(
        runner: &dyn Runner,
        block: &Block<'_, f64>,
        want: Want,
    ) -> Result<Posterior<f64>, Error> {
        runner.run_double(block, want)
    }
}

/// What is known of a label in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(i8)]
pub enum Evidence {
    /// Known to be off.
    Off = -1,
    /// Not known.
    #[default]
    Unknown = 0,
    /// Known to be on.
    On = 1,
}

/// A block of rows: a score for each label, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, T> {
    pub(crate) labels: usize,
    pub(crate) scores: &'a [T],
    pub(crate) evidence: Option<&'a [Evidence]>,
}

impl<'a, T: Scalar> Block<'a, T> {
    /// Rows of `labels` scores each, one after another.
    ///
    /// # Panics
    /// When the number of scores is not a multiple of `labels`.
    pub fn new(labels: usize, scores: &'a [T]) -> Block<'a, T> {
        assert!(labels > 0 && scores.len().is_multiple_of(labels), "rows of {labels} scores");
        Block { labels, scores, evidence: None }
    }

    /// Adds evidence: an entry for each score.
    ///
    /// # Panics
    /// When there is not an entry for each score.
    pub fn with_evidence(self, evidence: &'a [Evidence]) -> Block<'a, T> {
        assert_eq!(evidence.len(), self.scores.len(), "an entry of evidence for each score");
        Block { evidence: Some(evidence), ..self }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.scores.len() / self.labels
    }

    /// How many labels a row has.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The scores of a row.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.scores[row * self.labels..(row + 1) * self.labels]
    }

    /// What is known of a label in a row.
    pub fn evidence(&self, row: usize, label: usize) -> Evidence {
        self.evidence.map_or(Evidence::Unknown, |known| known[row * self.labels + label])
    }

    /// A part of the rows.
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Block<'a, T> {
        let range = rows.start * self.labels..rows.end * self.labels;
        let evidence = self.evidence.map(|known| &known[range.clone()]);
        Block { labels: self.labels, scores: &self.scores[range], evidence }
    }
}
