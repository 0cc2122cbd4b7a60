//! The vectorised arithmetic of `star`: kinds of cells, cells, sums over cells, and the softmax
//! over classes.

use multiversion::multiversion;

use crate::numeric::Elementary;
use crate::numeric::Scalar;

/// [`cell`] for all attributes of a row and one kind, vectorised.
#[multiversion(targets = "simd")]
pub(super) fn cells<T: Elementary>(scores: &[T], off: T, on: T, level: &mut [T], given: &mut [T]) {
    for ((&score, level), given) in scores.iter().zip(level).zip(given) {
        let (a, b) = (-off, score - on);
        let off_wins = a > b;
        let high = if off_wins { a } else { b };
        let small = (if off_wins { b - a } else { a - b }).exp_downwards();
        let share = T::ONE / (T::ONE + small);
        *level = high + small.ln_1p_unit();
        *given = if off_wins { small * share } else { share };
    }
}

/// [`cell`] for all attributes of a row and one class, vectorised. Returns the sum of `l` and
/// computes the conditional probabilities.
#[multiversion(targets = "simd")]
pub(super) fn class_cells<T: Elementary>(scores: &[T], off: &[T], on: &[T], given: &mut [T]) -> T {
    // Sixteen partial sums, so that the order of additions is the same on every machine.
    let mut sums = [T::ZERO; 16];
    let chunks = scores.chunks(16).zip(off.chunks(16)).zip(on.chunks(16)).zip(given.chunks_mut(16));
    for (((scores, off), on), given) in chunks {
        let cells = scores.iter().zip(off).zip(on).zip(given).zip(&mut sums);
        for ((((&score, &off), &on), given), sum) in cells {
            let (a, b) = (-off, score - on);
            let off_wins = a > b;
            let high = if off_wins { a } else { b };
            let small = (if off_wins { b - a } else { a - b }).exp_downwards();
            let share = T::ONE / (T::ONE + small);
            *sum += high + small.ln_1p_unit();
            *given = if off_wins { small * share } else { share };
        }
    }
    sums.into_iter().sum()
}

/// `sums += factor · values`.
#[multiversion(targets = "simd")]
pub(super) fn add_scaled<T: Elementary>(sums: &mut [T], values: &[T], factor: T) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

/// [`softmax`], vectorised.
#[multiversion(targets = "simd")]
pub(super) fn softmax_fast<T: Elementary>(weights: &mut [T], most: T) -> f64 {
    // Sixteen partial sums, whatever the width of the vectors. So the order of additions, and with
    // it the result, is the same on every machine.
    let mut sums = [T::ZERO; 16];
    let shift = if most > T::NEG_INFINITY { most } else { T::ZERO };
    for chunk in weights.chunks_mut(16) {
        for (weight, sum) in chunk.iter_mut().zip(&mut sums) {
            *weight = (*weight - shift).exp_downwards();
            *sum += *weight;
        }
    }
    let total: T = sums.into_iter().sum();
    let scale = if total > T::ZERO { T::ONE / total } else { T::ZERO };
    for weight in weights.iter_mut() {
        *weight *= scale;
    }
    total.to_f64()
}

/// `log(exp(−off) + exp(score − on))`, and the share of the second term.
#[inline(always)]
pub(super) fn cell<T: Scalar>(score: T, off: T, on: T) -> (T, T) {
    let (a, b) = (-off, score - on);
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    let small = (low - high).exp();
    let level = high + (T::ONE + small).ln();
    let share = T::ONE / (T::ONE + small);
    (level, if a > b { small * share } else { share })
}

/// Turns log-weights into probabilities. Returns the sum of `exp(weight − most)`.
pub(super) fn softmax<T: Scalar>(weights: &mut [T], most: T) -> f64 {
    if most == T::NEG_INFINITY {
        weights.fill(T::ZERO);
        return 0.0;
    }
    let mut total = T::ZERO;
    for weight in weights.iter_mut() {
        *weight = (*weight - most).exp();
        total += *weight;
    }
    weights.iter_mut().for_each(|weight| *weight = *weight / total);
    total.to_f64()
}

/// The distinct costs and the kind of each cell.
pub(super) fn kinds(costs: &[[f64; 2]]) -> (Vec<[f64; 2]>, Vec<u32>) {
    let mut index: std::collections::HashMap<[u64; 2], u32> = Default::default();
    let mut kinds = Vec::new();
    let mut kind_of = Vec::with_capacity(costs.len());
    for &cost in costs {
        let key = cost.map(f64::to_bits);
        let kind = *index.entry(key).or_insert_with(|| {
            kinds.push(cost);
            kinds.len() as u32 - 1
        });
        kind_of.push(kind);
    }
    if kinds.is_empty() {
        kinds.push([0.0, 0.0]);
    }
    // The most frequent kind that excludes nothing comes first. The others are differences from it.
    let mut counts = vec![0usize; kinds.len()];
    kind_of.iter().for_each(|&kind| counts[kind as usize] += 1);
    let finite = (0..kinds.len()).filter(|&kind| !kinds[kind].contains(&f64::INFINITY));
    if let Some(first) = finite.max_by_key(|&kind| counts[kind]) {
        kinds.swap(0, first);
        for kind in &mut kind_of {
            *kind = match *kind {
                0 => first as u32,
                other if other == first as u32 => 0,
                other => other,
            };
        }
    }
    (kinds, kind_of)
}
