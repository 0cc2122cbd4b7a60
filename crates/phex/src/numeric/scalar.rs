//! The number types of scores and probabilities: `f32` and `f64`.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number type for scores and probabilities: `f32` or `f64`.
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
    /// `ln(1 + x)`.
    fn ln_1p(self) -> Self;
    /// The larger of two numbers.
    fn max(self, other: Self) -> Self;
    /// Whether the number is neither infinite nor NaN.
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
            fn ln_1p(self) -> Self {
                $type::ln_1p(self)
            }
            #[inline(always)]
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
