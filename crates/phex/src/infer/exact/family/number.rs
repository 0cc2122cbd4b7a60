//! The numbers that the recursions run on: non-negative, added and multiplied, never subtracted.
//!
//! There is one recursion and there are two kinds of numbers: [`Lanes`](super::lanes::Lanes), a
//! value for each of several rows in the linear domain (fast, of limited range), and [`Log`], the
//! logarithm of one row's value (slow, any range).

use crate::numeric::log_add;

/// A non-negative number, or several side by side.
pub(super) trait Semiring: Copy {
    /// A constant of the model: the same for all rows.
    type Weight: Copy;
    /// What a probability is written as.
    type Real: Copy + Default;
    /// Powers of two that were divided out.
    type Exponents: Copy + Default;

    const ZERO: Self;
    const ONE: Self;
    /// Finite log-weights below minus this do not fit; they are clamped and watched.
    const LIMIT: f64;

    fn weight(log_weight: f64) -> Self::Weight;
    fn weigh(self, weight: Self::Weight) -> Self;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// `self · factor + term`.
    fn times_plus(self, factor: Self, term: Self) -> Self;
    fn larger(self, other: Self) -> Self;
    fn reciprocal(self) -> Self;
    /// A factor that brings `self` close to 1; its inverse is counted in `exponents`.
    fn scale(self, exponents: &mut Self::Exponents) -> Self;
    /// `self / total` as a probability, where the total is 1 up to what the check lets pass.
    fn share(self, total: Self) -> Self::Real;
    /// Marks in `suspect` where a total that should be 1 is not.
    fn check_total(self, suspect: &mut Self);
    /// Marks in `suspect` where this mass is more than may sit where a weight was clamped.
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
