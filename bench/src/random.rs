//! Random numbers that are the same in every run: xorshift, a benchmark needs no better.

use phex::infer::Number;

/// A stream of random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// Streams of different seeds have nothing to do with each other.
    pub(crate) fn new(seed: u64) -> Random {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random(88_172_645_463_325_252 ^ mixed.rotate_left(32))
    }

    /// In `[0, 1)`.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.uniform() * count as f64) as usize
    }

    /// Standard normal, as a sum of uniform numbers.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Standard normal scores times a scale.
pub(crate) fn scores<T: Number>(count: usize, scale: f64) -> Vec<T> {
    let mut random = Random::new(0);
    (0..count).map(|_| T::from_f64(random.normal() * scale)).collect()
}
