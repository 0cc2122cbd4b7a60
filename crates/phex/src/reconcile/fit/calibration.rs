//! From rows as they come to calibrated logits, and derivatives on the way back.

use rayon::prelude::*;

use super::levels::Levels;
use super::parameters::FittedParameters;
use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::{Block, Engine, Number, Options, Want};
use crate::model::Model;
use crate::numeric::{Grid, logit};
use crate::reconcile::FinishedRows;

/// Probabilities of heads below this count as this.
const LEAST: f64 = 1e-30;
/// Logits of heads beyond this count as this.
const MOST: f64 = 1e4;

/// The logits of rows, clipped as engines clip them; the logarithms of the probabilities of heads.
pub(super) fn logits_of<T: Number>(rows: FinishedRows<'_, T>, levels: &Levels) -> Vec<f64> {
    let clip = |logit: f64| logit.clamp(-T::CLIP, T::CLIP);
    let mut logits: Vec<f64> = match rows {
        FinishedRows::Probabilities(values) if levels.heads => {
            values.par_iter().map(|p| p.to_f64().max(LEAST).ln()).collect()
        }
        FinishedRows::Probabilities(values) => {
            values.par_iter().map(|p| clip(logit(p.to_f64()))).collect()
        }
        FinishedRows::Logits(values) if levels.heads => {
            values.par_iter().map(|z| z.to_f64().clamp(-MOST, MOST)).collect()
        }
        FinishedRows::Logits(values) => values.par_iter().map(|z| clip(z.to_f64())).collect(),
    };
    if levels.heads {
        logits.par_chunks_mut(levels.labels()).for_each(|row| levels.normalise(row));
    }
    logits
}

/// The engine of the graph's conditional random field, if one is exact.
pub(super) fn exact_engine(graph: &RelationGraph) -> Result<Engine, Error> {
    let engine = Engine::compile(Model::new(graph)?, &Options::default())?;
    if engine.plan().approximate {
        let method = engine.plan().method;
        return Err(Error::NotExact { method });
    }
    Ok(engine)
}

/// The calibrated logits of rows (logarithms of the probabilities of heads). `engine` is for forms that infer.
pub(super) fn calibrated(
    parameters: &FittedParameters,
    levels: &Levels,
    engine: Option<&Engine>,
    logits: &[f64],
) -> Result<Vec<f64>, Error> {
    let n = levels.labels();
    let mut out = vec![0.0; logits.len()];
    out.par_chunks_mut(n)
        .zip(logits.par_chunks(n))
        .for_each(|(out, logits)| parameters.apply(levels, logits, out));
    let Some(engine) = engine.filter(|_| parameters.form.infers()) else { return Ok(out) };
    let posterior = engine.run(&Block::new(n, &out), Want::default())?;
    if levels.heads {
        return Ok(posterior.marginals.par_iter().map(|&p| p.max(LEAST).ln()).collect());
    }
    let limit = <f64 as Grid>::CLIP;
    Ok(posterior.marginals.par_iter().map(|&p| logit(p).clamp(-limit, limit)).collect())
}

/// Turns derivatives with respect to calibrated logits into those with respect to the rows as they
/// came, where no inference is between them: the chain rule through `ℓ / temperature + bias` and the
/// clipping. Clipped values get 0.
///
/// The answer for heads does not change if a number is added to all logits of a head. So its
/// derivatives sum to 0 over the head, and normalising passes them on.
pub(super) fn pull_back<T: Number>(
    parameters: &FittedParameters,
    levels: &Levels,
    rows: FinishedRows<'_, T>,
    gradient: &mut [T],
) {
    let n = levels.labels();
    let mut heat = vec![1.0; n];
    for (level, members) in parameters.levels.iter().zip(&levels.members) {
        members.iter().for_each(|&at| heat[at] = level.temperature);
    }
    let slope = |value: f64| match rows {
        FinishedRows::Probabilities(_) if levels.heads && value < LEAST => 0.0,
        FinishedRows::Probabilities(_) if levels.heads => 1.0 / value,
        FinishedRows::Probabilities(_) if logit(value).abs() > T::CLIP => 0.0,
        FinishedRows::Probabilities(_) => 1.0 / (value * (1.0 - value)),
        FinishedRows::Logits(_) if value.abs() > if levels.heads { MOST } else { T::CLIP } => 0.0,
        FinishedRows::Logits(_) => 1.0,
    };
    let rows = gradient.par_chunks_mut(n).zip(rows.values().par_chunks(n));
    rows.for_each(|(gradient, values)| {
        for ((gradient, value), heat) in gradient.iter_mut().zip(values).zip(&heat) {
            *gradient = T::from_f64(gradient.to_f64() * slope(value.to_f64()) / heat);
        }
    });
}
