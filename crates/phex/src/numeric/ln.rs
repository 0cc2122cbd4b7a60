//! Natural logarithms without function calls or branches, so that loops over them become vector
//! instructions.
//!
//! `x = 2ᵉ m` with `m` in `[√½, √2)`, so `ln x = e ln 2 + 2 artanh z` with `z = (m − 1) / (m + 1)`,
//! `|z| < 0.172`. The series of artanh in `z²` stops below rounding error.

use super::Elementary;

/// Logarithms of positive normal numbers.
pub(crate) trait LogLane: Elementary {
    /// `ln x` for a positive normal number, within 2 units in the last place of the larger of the
    /// result and 1.
    fn ln_lane(self) -> Self;
}

macro_rules! log_lane {
    ($type:ident, $bits:ident, $signed:ident, $mantissa:literal, $ln_2:expr, $terms:literal) => {
        impl LogLane for $type {
            #[inline(always)]
            fn ln_lane(self) -> $type {
                // The bits of √½: taken off first, they make the exponent that of a number in
                // [√½, √2) relative to it.
                const START: $bits = std::$type::consts::FRAC_1_SQRT_2.to_bits();
                let bits = self.to_bits().wrapping_sub(START);
                let exponent = (bits as $signed) >> $mantissa;
                let fraction = (bits & ((1 << $mantissa) - 1)).wrapping_add(START);
                let m = $type::from_bits(fraction);
                let z = (m - 1.0) / (m + 1.0);
                let square = z * z;
                let mut sum = 2.0 / (2 * $terms + 1) as $type;
                for term in (0..$terms).rev() {
                    sum = sum * square + 2.0 / (2 * term + 1) as $type;
                }
                let [high, low] = $ln_2;
                let e = exponent as $type;
                e * high + (sum * z + e * low)
            }
        }
    };
}

log_lane!(f32, u32, i32, 23, [0.693_359_4, -2.121_944_4e-4], 5);
log_lane!(f64, u64, i64, 52, [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10], 11);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_close_to_those_of_the_standard_library() {
        for step in -3000..=3000 {
            let x = (f64::from(step) * 0.02).exp();
            let (exact, size) = (x.ln(), x.ln().abs().max(1.0));
            assert!((x.ln_lane() - exact).abs() <= 5e-16 * size, "ln({x})");
            let narrow = x as f32;
            let exact = f64::from(narrow).ln();
            assert!((f64::from(narrow.ln_lane()) - exact).abs() <= 2.5e-7 * size, "ln({narrow})");
        }
        assert_eq!(1f64.ln_lane(), 0.0);
        assert_eq!(1f32.ln_lane(), 0.0);
    }
}
