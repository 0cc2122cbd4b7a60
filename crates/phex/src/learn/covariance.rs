//! Multiplies the covariance of a row's labels by a vector, without building the matrix.
//!
//! With the marginals `P(ℓ)`, `∂Pᵢ/∂ℓⱼ = Cov(xᵢ, xⱼ)`. So for any function of the marginals, the
//! gradient with respect to the logits is the covariance times the gradient `g` with respect to the
//! marginals. This is a directional derivative of the marginals along `g`, so two passes in double
//! precision give it, whatever the number of labels:
//!
//! `Cov(x) g = (P(ℓ + εg) − P(ℓ − εg)) / 2ε + O(ε²)`
//!
//! With `ε max|g|` = [`DIFFERENCE_STEP`](super::DIFFERENCE_STEP), the errors from the step and from
//! rounding both stay below 1e-9 `max|g|`. Scores beyond 1e6 lose more, because the step is then
//! close to their last digits.

use crate::Error;
use crate::infer::{Backend, Block, Evidence, Number, Posterior, Want};

use super::rules::DIFFERENCE_STEP as STEP;
use super::{evidence_of, has_evidence};

/// How many rows are moved at a time, so that the memory stays small compared with the block's.
pub(super) const CHUNK: usize = 256;

/// The covariance of the labels of each row, times that row's vector.
///
/// `vectors` has one entry per score of the block, and so has the result. This differentiates a
/// layer that turns logits into marginals: given the gradient of a loss with respect to the
/// marginals, it returns the gradient with respect to the logits. With evidence, the covariance is
/// over the states that agree with it. A row is NaN when its marginals are NaN, or when its vector
/// contains NaN or infinity. A vector of zeros costs nothing and gives zeros.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::infer::{Block, Engine, Options};
/// use phex::learn::covariance_product;
/// use phex::model::Model;
///
/// let mut builder = GraphBuilder::new();
/// builder.exclusion("dog", "cat", None);
/// let engine = Engine::compile(Model::new(&builder.build()?)?, &Options::default())?;
/// // Neither, a dog or a cat, equally likely: variance 2/9, covariance −1/9.
/// let found: Vec<f64> = covariance_product(&engine, &Block::new(2, &[0.0, 0.0]), &[1.0, 0.0])?;
/// assert!((found[0] - 2.0 / 9.0).abs() < 1e-9 && (found[1] + 1.0 / 9.0).abs() < 1e-9);
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotExact`] when the engine is not exact. [`Error::Shape`] when there is not one entry
/// per score. [`Error::Columns`] as [`Engine::run`](crate::infer::Engine::run). [`Error::Device`].
pub fn covariance_product<T: Number>(
    runner: &dyn Backend,
    block: &Block<'_, T>,
    vectors: &[T],
) -> Result<Vec<T>, Error> {
    let engine = runner.engine();
    if !engine.plan().exact {
        return Err(Error::NotExact { method: engine.plan().method });
    }
    let labels = block.labels();
    let expected = block.rows() * labels;
    if vectors.len() != expected {
        return Err(Error::Shape { what: "the vectors", expected, found: vectors.len() });
    }
    if labels != engine.model().len() {
        return Err(Error::Columns { expected: engine.model().len(), found: labels });
    }
    let vector = |row: usize| &vectors[row * labels..(row + 1) * labels];
    let rows: Vec<usize> =
        (0..block.rows()).filter(|&row| vector(row).iter().any(|g| g.to_f64() != 0.0)).collect();
    let mut product = vec![T::ZERO; vectors.len()];
    for rows in rows.chunks(CHUNK) {
        let slopes: Vec<Vec<f64>> = rows
            .iter()
            .map(|&row| vector(row).iter().map(|entry| entry.to_f64()).collect())
            .collect();
        let moves = rows.iter().zip(&slopes).map(|(&row, slope)| ScoreDirection {
            scores: block.row(row),
            slope,
            evidence: evidence_of(block, row),
        });
        let (moved, factors) = both_ways(runner, labels, moves, Want::default())?;
        for (at, (&row, factor)) in rows.iter().zip(factors).enumerate() {
            let product = &mut product[row * labels..(row + 1) * labels];
            let answers = moved.row(2 * at).iter().zip(moved.row(2 * at + 1));
            for (out, (up, down)) in product.iter_mut().zip(answers) {
                *out = T::from_f64(factor * (up - down));
            }
        }
    }
    Ok(product)
}

/// A row, and the direction in which its scores move.
pub(super) struct ScoreDirection<'a, T> {
    pub(super) scores: &'a [T],
    pub(super) slope: &'a [f64],
    pub(super) evidence: Option<&'a [Evidence]>,
}

/// Runs each row one step up its slope, as row `2i` of the result, and one step down, as row
/// `2i + 1`. The derivative of a result along the slope is their difference times the row's factor.
pub(super) fn both_ways<'a, T: Number>(
    runner: &dyn Backend,
    labels: usize,
    moves: impl Iterator<Item = ScoreDirection<'a, T>>,
    want: Want,
) -> Result<(Posterior<f64>, Vec<f64>), Error> {
    let (mut scores, mut evidence, mut factors) = (Vec::new(), Vec::new(), Vec::new());
    for ScoreDirection { scores: from, slope, evidence: own } in moves {
        // The direction is divided first, because a tiny step times a huge slope would lose digits.
        let most = slope.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for sign in [STEP, -STEP] {
            let moved = from.iter().zip(slope);
            scores.extend(moved.map(|(score, g)| score.to_f64() + sign * (g / most)));
            match own {
                Some(own) => evidence.extend_from_slice(own),
                None => evidence.resize(scores.len(), Evidence::Unknown),
            }
        }
        factors.push(0.5 * most / STEP);
    }
    let block = Block::new(labels, &scores);
    let clamped = has_evidence(&evidence);
    let block = if clamped { block.with_evidence(&evidence) } else { block };
    Ok((runner.run(&block, want)?, factors))
}
