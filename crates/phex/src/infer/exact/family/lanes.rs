//! Holds the weights of 16 (`f32`) or 8 (`f64`) rows side by side as one number of the recursion.

use super::number::Semiring;
use crate::numeric::Elementary;
pub(super) use crate::numeric::Lanes;

/// A number type of the linear-domain recursion.
pub(super) trait Real: Elementary {
    /// Rows with exponents beyond ±this go to the log-domain recursion. e^−LIMIT is a normal
    /// number.
    const LIMIT: Self;
    /// The same limit in double precision.
    const RANGE: f64;
    /// How far a total may be from 1.
    const TOLERANCE: Self;
    /// How much mass may be in states whose weight was clamped.
    const CLAMPED: Self;
    fn absolute(self) -> Self;
    /// The power of two 2⁻ᵉ that scales a positive number into [1, 2), and e.
    fn power_of_two(self) -> (Self, i32);
}

impl Real for f32 {
    const LIMIT: f32 = 80.0;
    const RANGE: f64 = 80.0;
    const TOLERANCE: f32 = 1e-4;
    const CLAMPED: f32 = 1e-7;

    #[inline(always)]
    fn absolute(self) -> f32 {
        f32::from_bits(self.to_bits() & 0x7fff_ffff)
    }

    #[inline(always)]
    fn power_of_two(self) -> (f32, i32) {
        let exponent = ((self.to_bits() >> 23) as i32).min(253);
        (f32::from_bits(((254 - exponent) as u32) << 23), exponent - 127)
    }
}

impl Real for f64 {
    const LIMIT: f64 = 600.0;
    const RANGE: f64 = 600.0;
    const TOLERANCE: f64 = 1e-10;
    const CLAMPED: f64 = 1e-13;

    #[inline(always)]
    fn absolute(self) -> f64 {
        f64::from_bits(self.to_bits() & 0x7fff_ffff_ffff_ffff)
    }

    #[inline(always)]
    fn power_of_two(self) -> (f64, i32) {
        let exponent = ((self.to_bits() >> 52) as i64).min(2045);
        (f64::from_bits(((2046 - exponent) as u64) << 52), exponent as i32 - 1023)
    }
}

impl<T: Real, const L: usize> Semiring for Lanes<T, L> {
    type Weight = T;
    type Real = Wide<T, L>;
    type Exponents = Wide<i32, L>;

    const ZERO: Self = Lanes([T::ZERO; L]);
    const ONE: Self = Lanes([T::ONE; L]);
    const LIMIT: f64 = T::RANGE;

    fn weight(log_weight: f64) -> T {
        let clamped = if log_weight.is_finite() { log_weight.max(-T::RANGE) } else { log_weight };
        T::from_f64(clamped.exp())
    }

    #[inline(always)]
    fn weigh(self, weight: T) -> Self {
        self.map(|x| x * weight)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[inline(always)]
    fn times_plus(self, factor: Self, term: Self) -> Self {
        self.times(factor).plus(term)
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.zip(other, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.map(|x| T::ONE / x)
    }

    #[inline(always)]
    fn scale(self, exponents: &mut Wide<i32, L>) -> Self {
        let mut out = self;
        for lane in 0..L {
            let (factor, exponent) = self.0[lane].power_of_two();
            out.0[lane] = factor;
            exponents.0[lane] += exponent;
        }
        out
    }

    #[inline(always)]
    fn share(self, total: Self) -> Wide<T, L> {
        // 1 / y ≈ 2 − y avoids a division. The error is (1 − y)², which is below rounding.
        Wide(self.zip(total, |x, y| x * (T::ONE + (T::ONE - y))).0)
    }

    #[inline(always)]
    fn check_total(self, suspect: &mut Self) {
        // Written so that NaN counts as suspect.
        let fine = |total: T, before: T| {
            if (total - T::ONE).absolute() <= T::TOLERANCE { before } else { T::ONE }
        };
        *suspect = self.zip(*suspect, fine);
    }

    #[inline(always)]
    fn check_clamped(self, suspect: &mut Self) {
        let fine = |mass: T, before: T| if mass <= T::CLAMPED { before } else { T::ONE };
        *suspect = self.zip(*suspect, fine);
    }
}

/// An array with a default.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Wide<T, const L: usize>(pub(super) [T; L]);

impl<T: Copy + Default, const L: usize> Default for Wide<T, L> {
    fn default() -> Self {
        Wide([T::default(); L])
    }
}
