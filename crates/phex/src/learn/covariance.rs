//! The covariance of a row's labels times a vector, without the matrix.
//!
//! With the marginals `P(ℓ)`, `∂Pᵢ/∂ℓⱼ = Cov(xᵢ, xⱼ)`: the gradient by the logits of any function of
//! the marginals is the covariance times its gradient `g` by the marginals. That is a derivative of
//! the marginals along `g`, so two passes in doubles give it, whatever the number of labels:
//!
//! `Cov(x) g = (P(ℓ + εg) − P(ℓ − εg)) / 2ε + O(ε²)`
//!
//! With `ε max|g|` = [`DIFFERENCE_STEP`](super::DIFFERENCE_STEP) both errors, of the step and of
//! rounding, stay below 1e-9 `max|g|`; scores beyond 1e6 lose more, because the step is then near
//! their last digits.

use crate::Error;
use crate::infer::{Backend, Block, Evidence, Number, Posterior, Want};

use super::known;
use super::rules::DIFFERENCE_STEP as STEP;

/// Rows that are moved at a time, so that memory stays small beside the block's.
pub(super) const CHUNK: usize = 256;

/// The covariance of the labels of each row times a vector of its own.
///
/// `vectors` has an entry for each score of the block, and so has the answer. A layer that makes
/// marginals of logits is differentiated by it: given the gradient of some loss by the marginals,
/// it returns the gradient by the logits. Evidence of the block is kept to: the covariance is that
/// of the states that agree with it. A row has NaN where its marginals are NaN, and where its vector
/// has a NaN or an infinity; a vector of zeros costs nothing and gives zeros.
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
/// [`Error::NotExact`] when the engine is not exact, [`Error::Shape`] when there is not an entry
/// for each score, [`Error::Columns`] as [`Engine::run`](crate::infer::Engine::run); [`Error::Device`].
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
        let moves = rows.iter().zip(&slopes).map(|(&row, slope)| Move {
            scores: block.row(row),
            slope,
            known: known(block, row),
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
pub(super) struct Move<'a, T> {
    pub(super) scores: &'a [T],
    pub(super) slope: &'a [f64],
    pub(super) known: Option<&'a [Evidence]>,
}

/// Runs each row a step up its slope, as row `2i` of the answer, and a step down, as row `2i + 1`.
/// The derivative of an answer along the slope is their difference times the row's factor.
pub(super) fn both_ways<'a, T: Number>(
    runner: &dyn Backend,
    labels: usize,
    moves: impl Iterator<Item = Move<'a, T>>,
    want: Want,
) -> Result<(Posterior<f64>, Vec<f64>), Error> {
    let (mut scores, mut evidence, mut factors) = (Vec::new(), Vec::new(), Vec::new());
    for Move { scores: from, slope, known } in moves {
        // The direction is divided first: a tiny step times a huge slope would lose digits.
        let most = slope.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for sign in [STEP, -STEP] {
            let moved = from.iter().zip(slope);
            scores.extend(moved.map(|(score, g)| score.to_f64() + sign * (g / most)));
            match known {
                Some(known) => evidence.extend_from_slice(known),
                None => evidence.resize(scores.len(), Evidence::Unknown),
            }
        }
        factors.push(0.5 * most / STEP);
    }
    let block = Block::new(labels, &scores);
    let is_known = evidence.iter().any(|&entry| entry != Evidence::Unknown);
    let block = if is_known { block.with_evidence(&evidence) } else { block };
    Ok((runner.run(&block, want)?, factors))
}
