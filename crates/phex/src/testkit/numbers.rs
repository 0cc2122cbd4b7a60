//! Random numbers for tests.

use crate::numeric::GOLDEN;

/// A small generator, which is good enough for tests.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Streams of different seeds are independent.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(GOLDEN) | 1)
    }

    /// A uniform number in `[0, 1)`.
    #[allow(clippy::should_implement_trait)] // A stream of numbers that never ends.
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A uniform integer in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }

    /// A standard normal number, as a sum of uniform numbers.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    /// This many normal numbers.
    pub fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.normal()).collect()
    }
}
