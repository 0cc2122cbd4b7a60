//! The same quantity of one row, or of several rows side by side.
//!
//! The passes are written once for both. Every operation works on each row by itself and in the same
//! order, so a row has the same bits in either form.

use crate::numeric::{Elementary, Lanes, LogLane, Scalar};

/// Numbers of one or more rows.
pub(super) trait Pack: Copy + Send {
    type Scalar: LogLane;

    fn splat(value: Self::Scalar) -> Self;
    fn map(self, f: impl Fn(Self::Scalar) -> Self::Scalar) -> Self;
    fn zip(self, other: Self, f: impl Fn(Self::Scalar, Self::Scalar) -> Self::Scalar) -> Self;
    /// The number of each row.
    fn rows(&self) -> &[Self::Scalar];

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.zip(other, Self::Scalar::max)
    }

    /// Absolute values.
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.zip(self.map(|x| -x), Self::Scalar::max)
    }

    /// `e` to a power of at most 0. Powers too small for the number type become the smallest one
    /// that is not, because a maximum is faster than a choice.
    #[inline(always)]
    fn exp(self) -> Self {
        let deepest = Self::splat(-Self::Scalar::DEEPEST);
        self.larger(deepest).map(Self::Scalar::exp_negative)
    }
}

impl<T: LogLane, const L: usize> Pack for Lanes<T, L> {
    type Scalar = T;

    #[inline(always)]
    fn splat(value: T) -> Self {
        Lanes([value; L])
    }

    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        Lanes::map(self, f)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Lanes::zip(self, other, f)
    }

    #[inline(always)]
    fn rows(&self) -> &[T] {
        &self.0
    }
}

/// A number of one row. Unlike [`Lanes`] of one, it is not padded to a cache line.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneRow<T>(pub(super) T);

impl<T: LogLane> Pack for OneRow<T> {
    type Scalar = T;

    #[inline(always)]
    fn splat(value: T) -> Self {
        OneRow(value)
    }

    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        OneRow(f(self.0))
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        OneRow(f(self.0, other.0))
    }

    #[inline(always)]
    fn rows(&self) -> &[T] {
        std::slice::from_ref(&self.0)
    }
}
