//! Rounding in a chosen direction: the probabilities that a number type can represent form a grid.

use super::Scalar;

/// A number type whose neighbours are known.
pub(crate) trait Grid: Scalar {
    /// The distance from 1 to the next larger number.
    const STEP: f64;
    /// The smallest positive number with full precision.
    const SMALLEST: f64;
    /// Logits of probabilities are clipped to plus and minus this.
    const CLIP: f64;
    /// The largest number that is at most this, which must not be negative.
    fn round_down(value: f64) -> Self;
    /// The smallest number that is at least this, which must not be negative.
    fn round_up(value: f64) -> Self;
    /// The next smaller number, of a positive number.
    fn below(self) -> Self;

    /// Rounds a probability towards one half, and away from 0 and 1. Then the side that is
    /// unlikely loses nothing, and the likely side loses at most one unit in the last place.
    #[inline(always)]
    fn towards_half(probability: f64) -> Self {
        let one = Self::ONE.below();
        let (down, up) = (Self::round_down(probability), Self::round_up(probability));
        let down = if down > one { one } else { down };
        if probability > 0.5 { down } else { up }
    }
}

impl Grid for f32 {
    const STEP: f64 = f32::EPSILON as f64;
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    const CLIP: f64 = 15.0;

    #[inline(always)]
    fn round_down(value: f64) -> f32 {
        // In bits, without a branch: neighbours of a positive number have neighbouring bits.
        let near = value as f32;
        f32::from_bits(near.to_bits().wrapping_sub(u32::from(f64::from(near) > value)))
    }

    #[inline(always)]
    fn round_up(value: f64) -> f32 {
        let near = value as f32;
        f32::from_bits(near.to_bits().wrapping_add(u32::from(f64::from(near) < value)))
    }

    #[inline(always)]
    fn below(self) -> f32 {
        f32::from_bits(self.to_bits().wrapping_sub(1))
    }
}

impl Grid for f64 {
    const STEP: f64 = f64::EPSILON;
    const SMALLEST: f64 = f64::MIN_POSITIVE;
    const CLIP: f64 = 30.0;

    #[inline(always)]
    fn round_down(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn round_up(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn below(self) -> f64 {
        f64::from_bits(self.to_bits().wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_in_the_promised_direction() {
        for value in [1e-12, 0.1, 0.3, 0.5, 0.7, 0.999_999_99, 1.0 - 1e-12] {
            assert!(f64::from(f32::round_down(value)) <= value);
            assert!(f64::from(f32::round_up(value)) >= value);
            let half = f64::from(f32::towards_half(value));
            assert!((half - 0.5).abs() <= (value - 0.5).abs() && half < 1.0, "{value}");
            assert_eq!(value.below(), value.next_down());
            assert_eq!((value as f32).below(), (value as f32).next_down());
        }
        assert_eq!((f32::round_down(0.0), f32::round_up(0.0)), (0.0, 0.0));
        assert_eq!((f32::towards_half(1.0), f64::towards_half(1.0)), (1f32.below(), 1f64.below()));
    }
}
