//! Vectors of sixteen chains.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::numeric::{LaneRandom, Lanes};

/// The number of chains side by side.
pub(super) const CHAINS: usize = 16;

/// One number per chain.
pub(super) type Lane = Lanes<f32, CHAINS>;

/// One generator per chain.
pub(super) type ChainRandom = LaneRandom<CHAINS>;

/// Generators for all chains, seeded by another generator.
pub(super) fn chain_random(random: &mut Xoshiro256PlusPlus) -> ChainRandom {
    let mut words = [[0; CHAINS]; 4];
    words.as_flattened_mut().iter_mut().for_each(|word| *word = random.random());
    LaneRandom::from_words(words)
}
