//! Random numbers: seeds derived from their purpose, and generators that run side by side.
//!
//! Everything random derives from one seed given by the user. [`mix`] and [`splitmix`] turn a seed
//! and a position (a row, a task) into a stream that is independent of its neighbours. So a result
//! does not depend on the number of threads. Single streams are `Xoshiro256PlusPlus`.
//! [`LaneRandom`] has one xoshiro128+ generator per lane (Blackman and Vigna), which costs nine
//! additions, shifts and exclusive-ors per number.

use super::Lanes;

/// The increment of splitmix64: 2⁶⁴ divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64: advances the state and mixes it. All outputs of one period differ.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    mix(*state)
}

/// Makes every output bit depend on every input bit.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// One xoshiro128+ generator per lane. The low bits are weak, so numbers use the high bits only.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct LaneRandom<const L: usize> {
    words: [[u32; L]; 4],
}

impl<const L: usize> LaneRandom<L> {
    /// Creates generators from four words per lane.
    pub(crate) fn from_words(mut words: [[u32; L]; 4]) -> LaneRandom<L> {
        // A lane whose four words are all zero would produce zeros forever.
        words[0].iter_mut().for_each(|word| *word |= 1);
        LaneRandom { words }
    }

    /// Creates generators that are independent of those of another seed.
    pub(crate) fn new(mut seed: u64) -> LaneRandom<L> {
        let seeds: [[u64; 2]; L] =
            std::array::from_fn(|_| [splitmix(&mut seed), splitmix(&mut seed)]);
        LaneRandom::from_words([
            seeds.map(|[a, _]| a as u32),
            seeds.map(|[a, _]| (a >> 32) as u32),
            seeds.map(|[_, b]| b as u32),
            seeds.map(|[_, b]| (b >> 32) as u32),
        ])
    }

    #[inline(always)]
    fn next(&mut self, number: impl Fn(u32) -> f32) -> Lanes<f32, L> {
        let [s0, s1, s2, s3] = &mut self.words;
        let mut out = Lanes::NONE;
        for lane in 0..L {
            let sum = s0[lane].wrapping_add(s3[lane]);
            let shifted = s1[lane] << 9;
            s2[lane] ^= s0[lane];
            s3[lane] ^= s1[lane];
            s1[lane] ^= s2[lane];
            s0[lane] ^= s3[lane];
            s2[lane] ^= shifted;
            s3[lane] = s3[lane].rotate_left(11);
            out.0[lane] = number(sum);
        }
        out
    }

    /// Uniform in `[0, 1)`, in multiples of 2⁻²³: the bits form a number in `[1, 2)`, from which 1
    /// is subtracted.
    #[inline(always)]
    pub(crate) fn uniform(&mut self) -> Lanes<f32, L> {
        self.next(|sum| f32::from_bits((sum >> 9) | 0x3f80_0000) - 1.0)
    }

    /// Uniform in `[0, 1)`, in multiples of 2⁻²⁴.
    #[inline(always)]
    pub(crate) fn uniform_fine(&mut self) -> Lanes<f32, L> {
        self.next(|sum| (sum >> 8) as i32 as f32 * (1.0 / 16_777_216.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_lanes_differ() {
        const LANES: usize = 16;
        let draws = 20_000;
        for fine in [false, true] {
            let mut random = LaneRandom::<LANES>::new(1);
            let mut sums = [[0.0; 2]; LANES];
            let mut product = 0.0;
            for _ in 0..draws {
                let Lanes(uniform) = if fine { random.uniform_fine() } else { random.uniform() };
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
}
