//! The numbers that the recursions run on. They are non-negative, added and multiplied, but never
//! subtracted.
//!
//! There is one recursion and two kinds of numbers. [`Lanes`](super::lanes::Lanes) holds a value
//! for each of several rows in the linear domain, which is fast but has a limited range. [`Log`] is
//! the logarithm of one row's value, which is slow but has any range.

use crate::numeric::log_add;

/// A non-negative number, or several side by side.
pub(super) trait Semiring: Copy {
    /// A constant of the model: the same for all rows.
    type Weight: Copy;
    /// The type of a probability.
    type Real: Copy + Default;
    /// The powers of two that were divided out.
    type Exponents: Copy + Default;

    const ZERO: Self;
    const ONE: Self;
    /// Finite log-weights below minus this do not fit. They are clamped, and the clamped mass is
    /// checked.
    const LIMIT: f64;

    fn weight(log_weight: f64) -> Self::Weight;
    fn weigh(self, weight: Self::Weight) -> Self;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// `self · factor + term`.
    fn times_plus(self, factor: Self, term: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn reciprocal(self) -> Self;
    /// A factor that scales `self` close to 1. `exponents` counts its inverse.
    fn scale(self, exponents: &mut Self::Exponents) -> Self;
    /// `self / total` as a probability, where the total is 1 within the tolerance of the check.
    fn share(self, total: Self) -> Self::Real;
    /// Marks the lanes in which a total that should be 1 is not.
    fn check_total(self, suspect: &mut Self);
    /// Marks the lanes in which this mass exceeds the limit for clamped weights.
    fn check_clamped(self, suspect: &mut Self);
}

/// The logarithm of a non-negative number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Log(pub(super) f64);

impl Semiring for Log {
    type Weight = f64;
    type Real = f64;
    type Exponents = ();

    const ZERO: Log = Log(f64::NEG_INFINITY);
    const ONE: Log = Log(0.0);
    const LIMIT: f64 = f64::INFINITY;

    fn weight(log_weight: f64) -> f64 {
        log_weight
    }

    fn weigh(self, weight: f64) -> Log {
        Log(self.0 + weight)
    }

    fn times(self, other: Log) -> Log {
        Log(self.0 + other.0)
    }

    fn plus(self, other: Log) -> Log {
        Log(log_add(self.0, other.0))
    }

    fn times_plus(self, factor: Log, term: Log) -> Log {
        self.times(factor).plus(term)
    }

    fn larger(self, other: Log) -> Log {
        Log(self.0.max(other.0))
    }

    fn reciprocal(self) -> Log {
        Log(-self.0)
    }

    fn scale(self, _: &mut ()) -> Log {
        Log::ONE
    }

    fn share(self, total: Log) -> f64 {
        if self.0 == f64::NEG_INFINITY { 0.0 } else { (self.0 - total.0).exp() }
    }

    fn check_total(self, _: &mut Log) {}

    fn check_clamped(self, _: &mut Log) {}
}
