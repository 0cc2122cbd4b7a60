//! Fixed-length arrays that hold several rows side by side. Loops over them become vector
//! instructions.
//!
//! There is no `unsafe` code and no BLAS: `multiversion` selects the vector width at run time, and
//! the compiler vectorises the loops.

use std::ops::{Add, AddAssign, Mul, Sub};

use super::Scalar;

/// The same quantity for `L` rows.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes<T, const L: usize>(pub(crate) [T; L]);

impl<T: Scalar, const L: usize> Lanes<T, L> {
    /// All lanes zero.
    pub(crate) const NONE: Self = Lanes([T::ZERO; L]);

    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(T) -> T) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = f(self.0[lane]);
        }
        out
    }

    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for lane in 0..L {
            out.0[lane] = f(self.0[lane], other.0[lane]);
        }
        out
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<T: Scalar, const L: usize> $trait for Lanes<T, L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, $trait::$method)
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);

impl<T: Scalar, const L: usize> AddAssign for Lanes<T, L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
