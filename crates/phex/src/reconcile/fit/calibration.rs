//! From rows as they come to calibrated logits.

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
