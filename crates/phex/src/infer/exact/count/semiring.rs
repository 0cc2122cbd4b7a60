//! Three number types for the same recursion: sums of weights, sums in the log domain, and maxima.

use crate::numeric::log_add;

/// A weight that can be multiplied and accumulated.
pub(super) trait Weight: Copy + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    /// Whether numbers can underflow, so that the mass of each node is checked.
    const UNDERFLOWS: bool;
    /// Converts from a log-weight.
    fn from_log(log: f64) -> Self;
    /// Converts to a log-weight.
    fn log(self) -> f64;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// Divides a vector by its largest entry. Returns the logarithm of the divisor, or `None` when
    /// all entries are zero.
    fn rescale(values: &mut [Self]) -> Option<f64>;
}

/// The weight itself. It is fast, and is rescaled along the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Linear(f64);

impl Weight for Linear {
    const ZERO: Linear = Linear(0.0);
    const ONE: Linear = Linear(1.0);
    const UNDERFLOWS: bool = true;

    fn from_log(log: f64) -> Linear {
        Linear(log.exp())
    }

    fn log(self) -> f64 {
        self.0.ln()
    }

    #[inline(always)]
    fn times(self, other: Linear) -> Linear {
        Linear(self.0 * other.0)
    }

    #[inline(always)]
    fn plus(self, other: Linear) -> Linear {
        Linear(self.0 + other.0)
    }

    fn rescale(values: &mut [Linear]) -> Option<f64> {
        let most = values.iter().fold(0.0f64, |most, value| most.max(value.0));
        if most == 0.0 || !most.is_finite() {
            return None;
        }
        values.iter_mut().for_each(|value| value.0 /= most);
        Some(most.ln())
    }
}

/// The logarithm of a weight, added by log-sum-exp. It is slow, but safe for any score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Log(f64);

impl Weight for Log {
    const ZERO: Log = Log(f64::NEG_INFINITY);
    const ONE: Log = Log(0.0);
    const UNDERFLOWS: bool = false;

    fn from_log(log: f64) -> Log {
        Log(log)
    }

    fn log(self) -> f64 {
        self.0
    }

    fn times(self, other: Log) -> Log {
        Log(self.0 + other.0)
    }

    fn plus(self, other: Log) -> Log {
        Log(log_add(self.0, other.0))
    }

    fn rescale(values: &mut [Log]) -> Option<f64> {
        let possible = values.iter().any(|value| value.0 > f64::NEG_INFINITY);
        possible.then_some(0.0)
    }
}

/// The logarithm of a weight, of which the largest is kept. Used for the best label sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Max(f64);

impl Weight for Max {
    const ZERO: Max = Max(f64::NEG_INFINITY);
    const ONE: Max = Max(0.0);
    const UNDERFLOWS: bool = false;

    fn from_log(log: f64) -> Max {
        Max(log)
    }

    fn log(self) -> f64 {
        self.0
    }

    fn times(self, other: Max) -> Max {
        Max(self.0 + other.0)
    }

    fn plus(self, other: Max) -> Max {
        if self.0 > other.0 { self } else { other }
    }

    fn rescale(values: &mut [Max]) -> Option<f64> {
        let possible = values.iter().any(|value| value.0 > f64::NEG_INFINITY);
        possible.then_some(0.0)
    }
}
