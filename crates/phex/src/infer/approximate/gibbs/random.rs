//! Random numbers for all lanes at once: one xoshiro128+ generator a lane.
//!
//! Nine additions, shifts and exclusive-ors a number, all on vectors of 32-bit lanes. The low bits of
//! this generator are weak, so the upper 23 become the uniform number. The seeds of lanes come from
//! splitmix64, whose outputs are all different.

use super::LANES;
use super::sweep::Vector;
use crate::numeric::Lanes;

/// A step of splitmix64: the next state, mixed.
pub(super) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// Spreads every bit over all.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The generators of all lanes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Random {
    words: [[u32; LANES]; 4],
}

impl Random {
    /// Generators that share nothing with those of another seed.
    pub(super) fn new(mut seed: u64) -> Random {
        let seeds: [[u64; 2]; LANES] =
            std::array::from_fn(|_| [splitmix(&mut seed), splitmix(&mut seed)]);
        let words = [
            // A state of zeros would stay there.
            seeds.map(|[a, _]| a as u32 | 1),
            seeds.map(|[a, _]| (a >> 32) as u32),
            seeds.map(|[_, b]| b as u32),
            seeds.map(|[_, b]| (b >> 32) as u32),
        ];
        Random { words }
    }

    /// Uniform numbers in `[0, 1)`, multiples of 2⁻²³.
    #[inline(always)]
    pub(super) fn uniform(&mut self) -> Vector {
        let [s0, s1, s2, s3] = &mut self.words;
        let mut out = [0.0; LANES];
        for lane in 0..LANES {
            let sum = s0[lane].wrapping_add(s3[lane]);
            let shifted = s1[lane] << 9;
            s2[lane] ^= s0[lane];
            s3[lane] ^= s1[lane];
            s1[lane] ^= s2[lane];
            s0[lane] ^= s3[lane];
            s2[lane] ^= shifted;
            s3[lane] = s3[lane].rotate_left(11);
            // The bits of a number in [1, 2).
            out[lane] = f32::from_bits((sum >> 9) | 0x3f80_0000) - 1.0;
        }
        Lanes(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_lanes_differ() {
        let mut random = Random::new(1);
        let draws = 20_000;
        let mut sums = [[0.0; 2]; LANES];
        let mut product = 0.0;
        for _ in 0..draws {
            let Lanes(uniform) = random.uniform();
            for (u, [sum, squares]) in uniform.map(f64::from).into_iter().zip(&mut sums) {
                assert!((0.0..1.0).contains(&u));
                *sum += u;
                *squares += u * u;
            }
            product += f64::from(uniform[0]) * f64::from(uniform[1]);
        }
        let n = f64::from(draws);
        for [sum, squares] in sums {
            assert!((sum / n - 0.5).abs() < 0.01);
            assert!((squares / n - 1.0 / 3.0).abs() < 0.01);
        }
        assert!((product / n - 0.25).abs() < 0.01);
    }
}
