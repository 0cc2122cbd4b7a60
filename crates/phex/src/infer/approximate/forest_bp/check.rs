//! Checks an answer by importance sampling.
//!
//! A sample x of the forest under θ' has the importance weight `Π_R ψ(x) · exp((θ − θ') · x)`. If
//! all weights were equal, the forest would be the model. The effective sample size
//! `(Σ w)² / Σ w²`, as a fraction of the samples, is then 1. It is small when a few samples have
//! all the weight.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::ForestBp;
use super::messages::ForestBpRows;
use crate::infer::exact::junction::Junction;
use crate::infer::{Block, Budget, Evidence};
use crate::numeric::{GOLDEN, log_max};

/// The effective sample size as a fraction of the samples. `None` when the forest cannot be
/// sampled.
pub(super) fn effective_sample(
    blocks: &ForestBp,
    rows: &ForestBpRows<'_>,
    row: usize,
) -> Option<f64> {
    let sampler = blocks
        .sampler
        .get_or_init(|| Junction::compile(&blocks.split.forest, &Budget::default(), 0, 0).ok());
    let (adjusted, scores, evidence) = rows.proposal(row);
    let mut block = Block::new(scores.len(), &adjusted);
    if let Some(evidence) = evidence {
        block = block.with_evidence(evidence);
    }
    let sampler = sampler.as_ref()?.sampler(&block, 0)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(stream(blocks.seed, scores, evidence));
    let mut uniform = move || random.random::<f64>();
    let log_weights: Vec<f64> = (0..blocks.sampling.check)
        .map(|_| {
            let on = sampler.draw(&mut uniform);
            let bit = |label: usize| usize::from(on[label]);
            let residual = blocks.split.residual.iter();
            let cost: f64 = residual.map(|pair| pair.costs[bit(pair.a)][bit(pair.b)]).sum();
            let moved = scores.iter().zip(&adjusted).zip(&on).filter(|(_, on)| **on);
            moved.map(|((score, adjusted), _)| score - adjusted).sum::<f64>() - cost
        })
        .collect();
    let most = log_max(log_weights.iter().copied());
    if most == f64::NEG_INFINITY {
        return Some(0.0);
    }
    let weights = log_weights.iter().map(|weight| (weight - most).exp());
    let (sum, squares) = weights.fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    Some(sum * sum / squares / log_weights.len() as f64)
}

/// A seed that depends on the row alone, not on its position in a block.
fn stream(seed: u64, scores: &[f64], evidence: Option<&[Evidence]>) -> u64 {
    let fold = |state: u64, bits: u64| (state ^ bits).wrapping_mul(GOLDEN).rotate_left(29);
    let state = scores.iter().fold(seed, |state, score| fold(state, score.to_bits()));
    let evidence = evidence.unwrap_or(&[]).iter();
    evidence.fold(state, |state, &evidence| fold(state, evidence.code() as u64))
}
