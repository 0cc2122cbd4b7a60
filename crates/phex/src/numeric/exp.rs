//! Computes `exp` and `log1p` without function calls or branches, so that loops over them become
//! vector instructions.
//!
//! `exp(x)` splits `x = n ln 2 + r` with `|r| ≤ ln 2 / 2`: a polynomial gives `exp(r)` and the bits
//! of the exponent give `2ⁿ`. `ln(1 + x)` is `2 artanh(x / (2 + x))`, computed by its series. Both
//! are within a few units in the last place. Every function is `inline(always)`, because the caller
//! decides for which vector width it is compiled.

use super::Scalar;

/// Elementary functions without calls or branches.
pub(crate) trait Elementary: Scalar {
    /// For exponents below minus this, `exp` returns 0.
    const DEEPEST: Self;
    /// `e` to a power in `[−DEEPEST, 0]`, within 2 units in the last place.
    fn exp_negative(self) -> Self;
    /// `e` to any power of 0 or less, including minus infinity.
    #[inline(always)]
    fn exp_downwards(self) -> Self {
        let inside = if self < -Self::DEEPEST { -Self::DEEPEST } else { self };
        if self < -Self::DEEPEST { Self::ZERO } else { inside.exp_negative() }
    }
    /// `ln(1 + x)` for `x` in `[0, 1]`. The series of `2 artanh(x / (2 + x))` runs in the square of
    /// that fraction (at most 1/9) and stops below rounding error.
    fn ln_1p_unit(self) -> Self;
}

impl Elementary for f32 {
    const DEEPEST: f32 = 80.0;

    #[inline(always)]
    fn exp_negative(self) -> f32 {
        // Adding 1.5 · 2²³ rounds to an integer and leaves it in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let shifted = self * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (self - n * 0.693_359_4) - n * -2.121_944_4e-4;
        let mut p = 1.0 / 5040.0;
        for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            p = p * r + c;
        }
        p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
    }

    #[inline(always)]
    fn ln_1p_unit(self) -> f32 {
        let z = self / (2.0 + self);
        let square = z * z;
        let mut sum = 2.0 / 15.0;
        for odd in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
            sum = sum * square + 2.0 / odd;
        }
        sum * z
    }
}

impl Elementary for f64 {
    const DEEPEST: f64 = 700.0;

    #[inline(always)]
    fn exp_negative(self) -> f64 {
        const ROUND: f64 = 6_755_399_441_055_744.0;
        const TERMS: [f64; 13] = [
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ];
        let shifted = self * std::f64::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (self - n * 0.693_147_180_369_123_8) - n * 1.908_214_929_270_587_7e-10;
        let mut p = 1.0 / 6_227_020_800.0;
        for c in TERMS {
            p = p * r + c;
        }
        p * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
    }

    #[inline(always)]
    fn ln_1p_unit(self) -> f64 {
        let z = self / (2.0 + self);
        let square = z * z;
        let mut sum = 2.0 / 33.0;
        for half in (0..16).rev() {
            sum = sum * square + 2.0 / f64::from(2 * half + 1);
        }
        sum * z
    }
}

/// `2 ^ x` in single precision, by a polynomial in the fraction and the bits of the whole part.
#[inline(always)]
fn power_of_two(x: f32, polynomial: impl IntoIterator<Item = f32>) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let shifted = x + ROUND;
    let rest = x - (shifted - ROUND);
    let power = polynomial.into_iter().reduce(|power, c| power * rest + c).unwrap_or(1.0);
    power * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// The series of `2 ^ x`, highest power first.
const POWERS: [f32; 7] = [
    1.540_353e-4,
    1.333_355_8e-3,
    9.618_129e-3,
    5.550_411e-2,
    0.240_226_5,
    std::f32::consts::LN_2,
    1.0,
];

/// `exp(x)` for `x ≤ 0`, accurate to six digits, which is enough for an annealer.
#[inline(always)]
pub(crate) fn exp_six_digits(x: f32) -> f32 {
    let x = if x < -80.0 { -80.0 } else { x } * std::f32::consts::LOG2_E;
    power_of_two(x, POWERS.into_iter().skip(1))
}

/// `1 / (1 + e^−x)` in single precision, with a relative error of at most 5e-7, which is enough for
/// a sampler.
#[inline(always)]
pub(crate) fn sigmoid_lane(x: f32) -> f32 {
    sigmoid_of_power(-std::f32::consts::LOG2_E * x)
}

/// `1 / (1 + 2^x)`, with a relative error of at most 3e-7. In base 2 there is no multiple of ln 2
/// to subtract exactly.
#[inline(always)]
pub(crate) fn sigmoid_of_power(x: f32) -> f32 {
    const LIMIT: f32 = 100.0;
    let x = if x < LIMIT { x } else { LIMIT };
    let x = if x > -LIMIT { x } else { -LIMIT };
    1.0 / (1.0 + power_of_two(x, POWERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementary_functions_are_close_to_those_of_the_standard_library() {
        for step in 0..=10_000 {
            let x = f64::from(step) / 10_000.0;
            assert!((x.ln_1p_unit() - x.ln_1p()).abs() < 4e-16, "ln(1 + {x})");
            assert!((f64::from((x as f32).ln_1p_unit()) - x.ln_1p()).abs() < 2e-7);
            let y = -x * 90.0;
            let exact = y.exp();
            assert!((y.exp_downwards() - exact).abs() <= 2e-15 * exact, "exp({y})");
            let narrow = f64::from((y as f32).exp_downwards());
            assert!((narrow - f64::from(y as f32).exp()).abs() <= 4e-7 * exact + 2e-35);
        }
        assert_eq!(f32::NEG_INFINITY.exp_downwards(), 0.0);
        assert_eq!(f64::NEG_INFINITY.exp_downwards(), 0.0);
    }

    #[test]
    fn coarse_functions_are_as_accurate_as_documented() {
        for step in -10_000i16..=10_000 {
            let x = f32::from(step) / 250.0;
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            let error = (f64::from(sigmoid_lane(x)) - exact).abs() / exact;
            // The argument is rounded once in base 2.
            assert!(error < 5e-7 + 2e-7 * f64::from(x.abs()), "{x}: {error}");
            let (down, exact) = (-x.abs(), f64::from(-x.abs()).exp());
            assert!((f64::from(exp_six_digits(down)) - exact).abs() < 6e-6 * exact, "exp({down})");
        }
        assert_eq!(sigmoid_lane(1e30), 1.0);
        assert!(sigmoid_lane(-1e30) < 1e-29);
        assert!(sigmoid_lane(f32::MIN) < 1e-29);
    }
}
