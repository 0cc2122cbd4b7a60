//! Rows side by side: a small array of numbers whose loops compile to vector instructions.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use super::Scalar;

/// How many rows run side by side.
pub(crate) const LANES: usize = 16;

/// One number for each of [`LANES`] rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(crate) struct Lanes<T>(pub(crate) [T; LANES]);

impl<T: Scalar> Lanes<T> {
    pub(crate) const ZERO: Lanes<T> = Lanes([T::ZERO; LANES]);

    pub(crate) fn splat(value: T) -> Lanes<T> {
        Lanes([value; LANES])
    }

    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(T) -> T) -> Lanes<T> {
        Lanes(self.0.map(f))
    }

    #[inline(always)]
    pub(crate) fn zip(self, other: Lanes<T>, f: impl Fn(T, T) -> T) -> Lanes<T> {
        let mut out = self;
        for (a, &b) in out.0.iter_mut().zip(&other.0) {
            *a = f(*a, b);
        }
        out
    }

    #[inline(always)]
    pub(crate) fn max(self, other: Lanes<T>) -> Lanes<T> {
        self.zip(other, T::max)
    }

    #[inline(always)]
    pub(crate) fn exp(self) -> Lanes<T> {
        self.map(T::exp)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident) => {
        impl<T: Scalar> $trait for Lanes<T> {
            type Output = Lanes<T>;
            #[inline(always)]
            fn $method(self, other: Lanes<T>) -> Lanes<T> {
                self.zip(other, $trait::$method)
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl<T: Scalar> Neg for Lanes<T> {
    type Output = Lanes<T>;
    #[inline(always)]
    fn neg(self) -> Lanes<T> {
        self.map(T::neg)
    }
}

impl<T: Scalar> AddAssign for Lanes<T> {
    #[inline(always)]
    fn add_assign(&mut self, other: Lanes<T>) {
        *self = *self + other;
    }
}
