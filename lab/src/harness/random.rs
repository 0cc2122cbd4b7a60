//! Random choices: each stream follows from a seed and from what it is for.

use phex::numeric::Scalar;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers for one purpose.
#[derive(Debug)]
pub(crate) struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream of this seed and purpose.
    pub(crate) fn new(seed: u64, purpose: &str) -> RandomStream {
        // FNV-1a of the purpose keeps streams of different purposes apart.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let seed = hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        RandomStream(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0.random_range(0..below)
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// The numbers below `count` in random order.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

/// Normal scores with mean 0 and this standard deviation; the same for the same seed.
pub(crate) fn normal_scores<T: Scalar>(count: usize, deviation: f64, seed: u64) -> Vec<T> {
    let mut random = RandomStream::new(seed, "scores");
    (0..count).map(|_| T::from_f64(deviation * random.normal())).collect()
}
