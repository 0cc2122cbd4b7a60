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

/// The logits of rows, clipped as engines clip them.
pub(super) fn logits_of<T: Number>(rows: FinishedRows<'_, T>) -> Vec<f64> {
    let clip = |logit: f64| logit.clamp(-T::CLIP, T::CLIP);
    match rows {
        FinishedRows::Probabilities(values) => {
            values.par_iter().map(|p| clip(logit(p.to_f64()))).collect()
        }
        FinishedRows::Logits(values) => values.par_iter().map(|z| clip(z.to_f64())).collect(),
    }
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

/// The calibrated logits of rows. `engine` is for forms that infer.
pub(super) fn calibrated(
    parameters: &FittedParameters,
    levels: &Levels,
    engine: Option<&Engine>,
    logits: &[f64],
) -> Result<Vec<f64>, Error> {
    let n: usize = levels.members.iter().map(Vec::len).sum();
    let mut out = vec![0.0; logits.len()];
    out.par_chunks_mut(n)
        .zip(logits.par_chunks(n))
        .for_each(|(out, logits)| parameters.apply(levels, logits, out));
    let Some(engine) = engine.filter(|_| parameters.form.infers()) else { return Ok(out) };
    let posterior = engine.run(&Block::new(n, &out), Want::default())?;
    let limit = <f64 as Grid>::CLIP;
    Ok(posterior.marginals.par_iter().map(|&p| logit(p).clamp(-limit, limit)).collect())
}
