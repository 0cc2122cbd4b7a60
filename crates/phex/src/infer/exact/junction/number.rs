//! The numbers that the kernels compute with. All are ≥ 0.
//!
//! A [`TableNumber`] is either a vector of `f32` or `f64` with one row per lane, or [`Wide`]: one
//! row, as a double with its own exponent, which neither underflows nor overflows. Lanes are
//! rescaled by powers of two, which is exact, so the answer for a row does not depend on the rows
//! beside it.
//!
//! Below 1e-24 (f32) or 1e-280 (f64), what underflows may matter when summed over some 10⁷ states.
//! Two ways to compute the same number may differ by a relative 1e-3 (f32) or 1e-9 (f64). A row
//! beyond either limit is doubtful.
//!
//! [`Reach`] answers another question with the same passes: which messages are zero because the
//! evidence rules their states out, and not because they underflowed.

use super::tables::FixedWeights;
use crate::numeric::Elementary as _;

/// A non-negative number, or one number per lane.
pub(super) trait TableNumber: Copy + Send + Sync {
    const LANES: usize;
    const ZERO: Self;
    const ONE: Self;
    type Exponents: Copy + Exponents;
    /// Products may reach two to this power, and sums of 2²⁵ of them do not overflow.
    const RANGE: i32;
    /// Two to this power is the smallest normal number.
    const LEAST: i32;
    fn times(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// Division in which 0 / 0 is 0.
    fn over(self, other: Self) -> Self;
    fn peak(self, other: Self) -> Self;
    /// A fixed weight, the same in all lanes.
    fn weight(weights: &FixedWeights, at: u32) -> Self;
    fn count(times: f32) -> Self;
    /// Two to this power.
    fn power(exponent: i32) -> Self;
    /// The power of two that scales the peak to `[1/2, 1) · 2^height`, and minus its exponent.
    fn lift(self, height: i32) -> (Self, Self::Exponents);
    /// `e` to the power of a logarithm of 0 or less in each of the first `count` lanes, and 1 in
    /// the others.
    fn exp(count: usize, logarithm: impl Fn(usize) -> f64) -> Self;
    /// Marks the lanes in which this or `other` is tiny, or in which `whole` times two to the
    /// exponents is not the true value.
    fn doubt(
        self,
        other: Self,
        whole: Self,
        exponents: Self::Exponents,
        truth: Self,
        doubt: &mut Self::Exponents,
    );
    /// Raises the lanes of this set to at least two to this power. Numbers that cannot underflow
    /// stay as they are.
    fn at_least(self, exponent: i32, lanes: Reach) -> Self;
    /// The mantissa and exponent of a lane.
    fn lane(&self, lane: usize) -> (f64, i128);
}

/// Exponents of two, one per lane.
pub(super) trait Exponents {
    const NONE: Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn lane(&self, lane: usize) -> i128;
}

impl<const L: usize> Exponents for [i32; L] {
    const NONE: Self = [0; L];
    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for lane in 0..L {
            self[lane] += other[lane];
        }
        self
    }
    #[inline(always)]
    fn subtract(mut self, other: Self) -> Self {
        for lane in 0..L {
            self[lane] -= other[lane];
        }
        self
    }
    fn lane(&self, lane: usize) -> i128 {
        i128::from(self[lane])
    }
}

macro_rules! lanes {
    ($name:ident, $type:ident, $lanes:literal, $align:literal, $table:ident, $tiny:literal,
     $drift:literal, $range:literal, $bits:ident, $mantissa:literal, $bias:literal) => {
        /// Rows side by side, aligned to a cache line.
        #[derive(Debug, Clone, Copy)]
        #[repr(align($align))]
        pub(super) struct $name([$type; $lanes]);

        impl TableNumber for $name {
            const LANES: usize = $lanes;
            const ZERO: Self = $name([0.0; $lanes]);
            const ONE: Self = $name([1.0; $lanes]);
            type Exponents = [i32; $lanes];
            const RANGE: i32 = $range;
            const LEAST: i32 = 1 - $bias;
            #[inline(always)]
            fn times(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    self.0[lane] *= other.0[lane];
                }
                self
            }
            #[inline(always)]
            fn plus(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    self.0[lane] += other.0[lane];
                }
                self
            }
            #[inline(always)]
            fn over(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    let below = other.0[lane];
                    self.0[lane] = if below > 0.0 { self.0[lane] / below } else { 0.0 };
                }
                self
            }
            #[inline(always)]
            fn peak(mut self, other: Self) -> Self {
                for lane in 0..$lanes {
                    let other = other.0[lane];
                    self.0[lane] = if self.0[lane] > other { self.0[lane] } else { other };
                }
                self
            }
            #[inline(always)]
            fn weight(weights: &FixedWeights, at: u32) -> Self {
                $name([weights.$table[at as usize]; $lanes])
            }
            #[inline(always)]
            fn count(times: f32) -> Self {
                $name([$type::from(times); $lanes])
            }
            #[inline(always)]
            fn power(exponent: i32) -> Self {
                $name([$type::from_bits((($bias + exponent) as $bits) << $mantissa); $lanes])
            }
            #[inline(always)]
            fn lift(self, height: i32) -> (Self, Self::Exponents) {
                let mut factor = Self::ONE;
                let mut exponents = [0; $lanes];
                for lane in 0..$lanes {
                    // This is right for a normal number. A zero or subnormal peak is rejected
                    // afterwards.
                    let exponent = (self.0[lane].to_bits() >> $mantissa) as i32 - ($bias - 1);
                    let lift = (height - exponent).clamp(2 - $bias, $bias - 1);
                    factor.0[lane] = $type::from_bits((($bias + lift) as $bits) << $mantissa);
                    exponents[lane] = -lift;
                }
                (factor, exponents)
            }
            #[inline(always)]
            fn doubt(
                self,
                other: Self,
                whole: Self,
                exponents: Self::Exponents,
                truth: Self,
                doubt: &mut Self::Exponents,
            ) {
                for lane in 0..$lanes {
                    let exponent = exponents[lane].clamp(1 - $bias, $bias);
                    let power = $type::from_bits((($bias + exponent) as $bits) << $mantissa);
                    let (whole, truth) = (whole.0[lane] * power, truth.0[lane]);
                    let agrees = (whole - truth).abs() <= $drift * truth;
                    let clear = self.0[lane] >= $tiny && other.0[lane] >= $tiny;
                    doubt[lane] |= i32::from(!(agrees & clear));
                }
            }
            #[inline(always)]
            fn exp(count: usize, logarithm: impl Fn(usize) -> f64) -> Self {
                let mut weight = [0.0; $lanes];
                for lane in 0..count.min($lanes) {
                    weight[lane] = logarithm(lane) as $type;
                }
                for lane in 0..$lanes {
                    let exact = weight[lane].exp_downwards();
                    // A subnormal weight has few digits. It becomes the smallest normal number,
                    // which is noticed where it matters. Only evidence gives a weight of zero.
                    let possible = weight[lane] > $type::NEG_INFINITY;
                    let least = if possible { $type::MIN_POSITIVE } else { 0.0 };
                    weight[lane] = if exact < $type::MIN_POSITIVE { least } else { exact };
                }
                $name(weight)
            }
            #[inline(always)]
            fn at_least(mut self, exponent: i32, lanes: Reach) -> Self {
                let least = $type::from_bits((($bias + exponent) as $bits) << $mantissa);
                for lane in 0..$lanes {
                    let least = if lanes.0 >> lane & 1 == 1 { least } else { 0.0 };
                    self.0[lane] = if self.0[lane] < least { least } else { self.0[lane] };
                }
                self
            }
            #[inline(always)]
            fn lane(&self, lane: usize) -> (f64, i128) {
                (f64::from(self.0[lane]), 0)
            }
        }
    };
}

lanes!(F32x16, f32, 16, 64, single, 1e-24, 1e-3, 96, u32, 23, 127);
lanes!(F32x1, f32, 1, 4, single, 1e-24, 1e-3, 96, u32, 23, 127);
lanes!(F64x8, f64, 8, 64, double, 1e-280, 1e-9, 960, u64, 52, 1023);
lanes!(F64x1, f64, 1, 8, double, 1e-280, 1e-9, 960, u64, 52, 1023);

/// `mantissa · 2^exponent`, with a mantissa that is 0 or in [1/2, 1).
///
/// Exponents have room for sums of millions of scores at the limit of 10³⁰.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wide {
    mantissa: f64,
    exponent: i128,
}

impl Wide {
    fn new(mantissa: f64, exponent: i128) -> Wide {
        if mantissa == 0.0 {
            return Wide::ZERO;
        }
        let bits = mantissa.to_bits();
        let own = (bits >> 52 & 0x7ff) as i128 - 1022;
        let mantissa = f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52);
        Wide { mantissa, exponent: exponent + own }
    }

    pub(super) fn exp(logarithm: f64) -> Wide {
        if logarithm == f64::NEG_INFINITY {
            return Wide::ZERO;
        }
        let exponent = (logarithm / std::f64::consts::LN_2).floor();
        // ln 2 in two parts, so that the product is exact for the exponents in use.
        const HIGH: f64 = 0.693_147_180_369_123_8;
        const LOW: f64 = 1.908_214_929_270_587_7e-10;
        let rest = (logarithm - exponent * HIGH) - exponent * LOW;
        // Beyond 10¹⁵ the rest is rounding, which must not make a state vanish.
        Wide::new(rest.clamp(-700.0, 700.0).exp(), exponent as i128)
    }

    fn scale(exponent: i128) -> f64 {
        if exponent < -1000 { 0.0 } else { f64::from_bits(((1023 + exponent) as u64) << 52) }
    }

    /// This number as a fraction of a larger one.
    pub(super) fn share(self, whole: Wide) -> f64 {
        let ratio = self.over(whole);
        ratio.mantissa * Wide::scale(ratio.exponent.min(1000))
    }
}

impl TableNumber for Wide {
    const LANES: usize = 1;
    const ZERO: Wide = Wide { mantissa: 0.0, exponent: 0 };
    const ONE: Wide = Wide { mantissa: 0.5, exponent: 1 };
    type Exponents = [i32; 1];
    const RANGE: i32 = 0;
    const LEAST: i32 = 0;
    #[inline(always)]
    fn times(self, other: Wide) -> Wide {
        let mantissa = self.mantissa * other.mantissa;
        let exponent = self.exponent + other.exponent;
        if mantissa >= 0.5 {
            Wide { mantissa, exponent }
        } else {
            Wide { mantissa: 2.0 * mantissa, exponent: exponent - 1 }
        }
    }
    #[inline(always)]
    fn plus(self, other: Wide) -> Wide {
        if self.mantissa == 0.0 {
            return other;
        }
        if other.mantissa == 0.0 {
            return self;
        }
        let (large, small) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let sum = large.mantissa + small.mantissa * Wide::scale(small.exponent - large.exponent);
        if sum < 1.0 {
            Wide { mantissa: sum, exponent: large.exponent }
        } else {
            Wide { mantissa: 0.5 * sum, exponent: large.exponent + 1 }
        }
    }
    fn over(self, other: Wide) -> Wide {
        if other.mantissa == 0.0 || self.mantissa == 0.0 {
            return Wide::ZERO;
        }
        Wide::new(self.mantissa / other.mantissa, self.exponent - other.exponent)
    }
    fn peak(self, other: Wide) -> Wide {
        if self.mantissa == 0.0 {
            return other;
        }
        let more = (self.exponent, self.mantissa) >= (other.exponent, other.mantissa);
        if more || other.mantissa == 0.0 { self } else { other }
    }
    fn weight(weights: &FixedWeights, at: u32) -> Wide {
        weights.wide[at as usize]
    }
    fn count(times: f32) -> Wide {
        Wide::new(f64::from(times), 0)
    }
    fn power(exponent: i32) -> Wide {
        Wide { exponent: 1 + i128::from(exponent), ..Wide::ONE }
    }
    fn lift(self, _: i32) -> (Wide, [i32; 1]) {
        (Wide::ONE, [0])
    }
    fn doubt(self, _: Wide, _: Wide, _: [i32; 1], _: Wide, _: &mut [i32; 1]) {}
    fn exp(_: usize, logarithm: impl Fn(usize) -> f64) -> Wide {
        Wide::exp(logarithm(0))
    }
    fn at_least(self, _: i32, _: Reach) -> Wide {
        self
    }
    fn lane(&self, _: usize) -> (f64, i128) {
        (self.mantissa, self.exponent)
    }
}

/// The lanes in which a number is not zero in exact arithmetic, as bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reach(u16);

impl Exponents for () {
    const NONE: () = ();
    fn add(self, (): ()) {}
    fn subtract(self, (): ()) {}
    fn lane(&self, _: usize) -> i128 {
        0
    }
}

impl TableNumber for Reach {
    const LANES: usize = 16;
    const ZERO: Reach = Reach(0);
    const ONE: Reach = Reach(u16::MAX);
    type Exponents = ();
    const RANGE: i32 = 0;
    const LEAST: i32 = 0;
    #[inline(always)]
    fn times(self, other: Reach) -> Reach {
        Reach(self.0 & other.0)
    }
    #[inline(always)]
    fn plus(self, other: Reach) -> Reach {
        Reach(self.0 | other.0)
    }
    fn over(self, other: Reach) -> Reach {
        self.times(other)
    }
    #[inline(always)]
    fn peak(self, other: Reach) -> Reach {
        self.plus(other)
    }
    #[inline(always)]
    fn weight(_: &FixedWeights, _: u32) -> Reach {
        Reach::ONE
    }
    fn count(_: f32) -> Reach {
        Reach::ONE
    }
    fn power(_: i32) -> Reach {
        Reach::ONE
    }
    fn lift(self, _: i32) -> (Reach, ()) {
        (Reach::ONE, ())
    }
    fn doubt(self, _: Reach, _: Reach, (): (), _: Reach, (): &mut ()) {}
    fn exp(count: usize, logarithm: impl Fn(usize) -> f64) -> Reach {
        let impossible = (0..count).filter(|&lane| logarithm(lane) == f64::NEG_INFINITY);
        Reach(impossible.fold(u16::MAX, |lanes, lane| lanes & !(1 << lane)))
    }
    #[inline(always)]
    fn at_least(self, _: i32, _: Reach) -> Reach {
        self
    }
    fn lane(&self, lane: usize) -> (f64, i128) {
        (f64::from(self.0 >> lane & 1), 0)
    }
}
