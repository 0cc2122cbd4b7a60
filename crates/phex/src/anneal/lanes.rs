//! Vectors of sixteen chains: random numbers and the exponential function, in single precision.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Chains side by side.
pub(super) const CHAINS: usize = 16;

/// One number a chain.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Lane(pub(super) [f32; CHAINS]);

impl Lane {
    pub(super) const ZERO: Lane = Lane([0.0; CHAINS]);
}

/// Random numbers for all chains: xoshiro128+ (Blackman and Vigna), one a chain.
#[derive(Debug)]
pub(super) struct LaneRandom([[u32; CHAINS]; 4]);

impl LaneRandom {
    pub(super) fn new(random: &mut Xoshiro256PlusPlus) -> LaneRandom {
        let mut state = [[0; CHAINS]; 4];
        state.as_flattened_mut().iter_mut().for_each(|word| *word = random.random());
        // A chain whose four words are all zero would stay there.
        state[0].iter_mut().for_each(|word| *word |= 1);
        LaneRandom(state)
    }

    /// Uniform in [0, 1), multiples of 2⁻²⁴.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Lane {
        let [s0, s1, s2, s3] = &mut self.0;
        let mut out = Lane::ZERO;
        for lane in 0..CHAINS {
            let sum = s0[lane].wrapping_add(s3[lane]);
            let t = s1[lane] << 9;
            s2[lane] ^= s0[lane];
            s3[lane] ^= s1[lane];
            s1[lane] ^= s2[lane];
            s0[lane] ^= s3[lane];
            s2[lane] ^= t;
            s3[lane] = s3[lane].rotate_left(11);
            out.0[lane] = (sum >> 8) as i32 as f32 * (1.0 / 16_777_216.0);
        }
        out
    }
}

/// `exp(x)` for `x ≤ 0` to six digits: 2 to the whole part by bits, to the rest by a polynomial.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -80.0 { -80.0 } else { x } * std::f32::consts::LOG2_E;
    let shifted = x + ROUND;
    let rest = x - (shifted - ROUND);
    let mut p = 1.333_355_8e-3;
    for c in [9.618_129e-3, 5.550_411e-2, 0.240_226_5, std::f32::consts::LN_2, 1.0] {
        p = p * rest + c;
    }
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}
