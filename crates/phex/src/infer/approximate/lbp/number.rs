//! Odds with their own exponent.
//!
//! A belief is the product of hundreds of messages. It is stored as `mantissa · 2^exponent`, where
//! the exponent is a number of the same type. So nothing overflows, and no logarithm is needed.

use crate::infer::Number;
use crate::numeric::Scalar;
use crate::numeric::{Elementary, Lanes};

/// A number type for messages.
pub(crate) trait Odds: Elementary + Number {
    /// Messages along pairs are clamped to this and its inverse, so that four of them multiply
    /// safely.
    const MESSAGE: Self;
    /// The same limit for the messages of larger factors, and for cavity odds.
    const WIDE: Self;
    /// Beliefs enter messages with at most this exponent.
    const EXPONENT: Self;
    /// The exponent of odds that nothing outweighs. Sums with it are still exact.
    const FIXED: f64;
    /// Odds below this, or above its inverse, may have been cut off.
    const LEAST: Self;
    /// Between messages with odds below this, or above its inverse, damping makes no difference.
    const FADED: Self;
    /// Pairs whose labels differ at no more cost than this use the fast path: eight messages
    /// multiply safely, and two can share a division.
    const MILD: f64;
    /// On the fast path, beliefs enter messages with at most this exponent.
    const MILD_EXPONENT: Self;
    /// Odds get no closer to a fixed point than this, relatively.
    const ROUNDING: f64;
    /// Probabilities get no closer to a fixed point than this.
    const NOISE: f64;
    /// Mantissa in `[1, 2)` and exponent of a positive number.
    fn split(self) -> (Self, Self);
    /// Two to an integer power that the type holds.
    fn power_of_two(self) -> Self;
}

impl Odds for f32 {
    const MESSAGE: f32 = 1_073_741_824.0; // 2³⁰
    const WIDE: f32 = 1.329_228e36; // 2¹²⁰
    const EXPONENT: f32 = 90.0;
    const FIXED: f64 = 8_388_608.0; // 2²³
    const LEAST: f32 = 1e-26;
    const FADED: f32 = 1e-7;
    const ROUNDING: f64 = 1e-4;
    const NOISE: f64 = 5e-6;
    const MILD: f64 = 6.0;
    const MILD_EXPONENT: f32 = 40.0;

    #[inline(always)]
    fn split(self) -> (f32, f32) {
        let bits = self.to_bits();
        // The exponent's bits below those of 2²³ count from it.
        let exponent = f32::from_bits(0x4b00_0000 | (bits >> 23)) - (8_388_608.0 + 127.0);
        (f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000), exponent)
    }

    #[inline(always)]
    fn power_of_two(self) -> f32 {
        f32::from_bits((self + 12_582_912.0).to_bits().wrapping_add(127) << 23)
    }
}

impl Odds for f64 {
    const MESSAGE: f64 = 1.809_251_394_333_065_6e75; // 2²⁵⁰
    const WIDE: f64 = 6.668_014_432_879_854e240; // 2⁸⁰⁰
    const EXPONENT: f64 = 700.0;
    const FIXED: f64 = 1_073_741_824.0; // 2³⁰
    const LEAST: f64 = 1e-70;
    const FADED: f64 = 1e-12;
    const ROUNDING: f64 = 1e-11;
    const NOISE: f64 = 0.0;
    const MILD: f64 = 50.0;
    const MILD_EXPONENT: f64 = 300.0;

    #[inline(always)]
    fn split(self) -> (f64, f64) {
        let bits = self.to_bits();
        let exponent = f64::from_bits(0x4330_0000_0000_0000 | (bits >> 52))
            - (4_503_599_627_370_496.0 + 1023.0);
        (f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000), exponent)
    }

    #[inline(always)]
    fn power_of_two(self) -> f64 {
        f64::from_bits((self + 6_755_399_441_055_744.0).to_bits().wrapping_add(1023) << 52)
    }
}

/// `mantissa · 2^exponent` in each lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled<T, const L: usize> {
    pub(crate) mantissa: Lanes<T, L>,
    pub(crate) exponent: Lanes<T, L>,
}

impl<T: Odds, const L: usize> Scaled<T, L> {
    pub(crate) const ONE: Self =
        Scaled { mantissa: Lanes([T::ONE; L]), exponent: Lanes([T::ZERO; L]) };

    /// `e` to these powers, of any size. Infinite ones become [`Odds::FIXED`].
    #[inline(always)]
    pub(crate) fn exp(log: Lanes<f64, L>) -> Self {
        let mut out = Self::ONE;
        for lane in 0..L {
            let clipped = clip(log.0[lane] * std::f64::consts::LOG2_E, T::FIXED);
            let down = clipped.floor();
            let rest = (clipped - down - 1.0) * std::f64::consts::LN_2;
            out.mantissa.0[lane] = T::from_f64(2.0 * rest.exp_downwards());
            out.exponent.0[lane] = T::from_f64(down);
        }
        out
    }

    /// Multiplies by odds that leave the mantissa in range.
    #[inline(always)]
    pub(crate) fn times(&mut self, factor: &Lanes<T, L>) {
        self.mantissa = self.mantissa * *factor;
    }

    /// Moves the size of the mantissa into the exponent.
    #[inline(always)]
    pub(crate) fn normalise(&mut self) {
        for lane in 0..L {
            let (mantissa, exponent) = self.mantissa.0[lane].split();
            self.mantissa.0[lane] = mantissa;
            self.exponent.0[lane] += exponent;
        }
    }

    /// As plain odds, with a clipped exponent.
    #[inline(always)]
    pub(crate) fn odds(&self, most: T) -> Lanes<T, L> {
        let exponent = self.exponent.map(|exponent| clip(exponent, most));
        self.mantissa.zip(exponent, |mantissa, exponent| mantissa * exponent.power_of_two())
    }
}

/// Clamps to ± the limit.
#[inline(always)]
pub(crate) fn clip<T: Scalar>(value: T, limit: T) -> T {
    let value = if value > limit { limit } else { value };
    if value < -limit { -limit } else { value }
}

/// Clamps to the limit and its inverse.
#[inline(always)]
pub(crate) fn within<T: Scalar>(value: T, limit: T) -> T {
    let least = T::ONE / limit;
    let value = if value < limit { value } else { limit };
    if value > least { value } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_many_odds_do_not_overflow() {
        let logs = [0.0, 3.5, -2.25, 700.0, -5000.0, 1e6, 88.7, -88.7];
        let mut scaled = Scaled::<f32, 8>::exp(Lanes(logs));
        let mut exact = logs;
        for step in 0..1000 {
            let factor = if step % 3 == 0 { 0.25f32 } else { 3.0 };
            scaled.times(&Lanes([factor; 8]));
            scaled.normalise();
            exact.iter_mut().for_each(|log| *log += f64::from(factor).ln());
        }
        for lane in 0..8 {
            let log = f64::from(scaled.mantissa.0[lane]).ln()
                + f64::from(scaled.exponent.0[lane]) * std::f64::consts::LN_2;
            assert!((log - exact[lane]).abs() < 1e-3 + 1e-6 * exact[lane].abs(), "{lane}: {log}");
        }
        assert_eq!(Scaled::<f64, 2>::exp(Lanes([0.0, -1e30])).odds(700.0).0[0], 1.0);
    }
}
