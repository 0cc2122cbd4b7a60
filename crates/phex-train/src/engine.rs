//! The choice of the engine for training.
//!
//! An exact engine is used if a row takes at most [`OPERATIONS`]. Beyond that a hierarchy uses `forests`:
//! its log Z is convex in the scores, while training through Bethe's log Z (`lbp`, `forest-bp`) may
//! collapse. Prediction uses the engine of training. The device does not matter for the choice: the
//! answers are the same on every device.

use std::sync::Arc;

use phex::graph::RelationGraph;
use phex::infer::{Accelerator, Budget, Engine, Method, Options, Want};
use phex::model::Model;

use crate::Error;
use crate::config::{Config, ObjectiveConfig, StrengthConfig};

/// Operations per row that an exact engine may take in training: about 10 ms.
const OPERATIONS: f64 = 1e7;

/// Iterations of `forests` unless requested otherwise: hierarchies need few.
const ITERATIONS: u32 = 8;

/// Compiles a model for training and for the prediction that follows it.
pub(crate) fn compile(model: Model, options: &Options) -> Result<Engine, phex::Error> {
    if options.method != Method::Auto {
        return Engine::compile(model, options);
    }
    let operations = OPERATIONS.min(options.budget.operations);
    let budget = Budget { operations, ..options.budget };
    let exact = Options { method: Method::Exact, budget, ..options.clone() };
    let model = Arc::new(model);
    if let Ok(engine) = Engine::compile(Arc::clone(&model), &exact) {
        return Ok(engine);
    }
    let mut forests = Options { method: Method::Forests, ..options.clone() };
    if forests.messages == Default::default() {
        forests.messages.iterations = ITERATIONS;
    }
    Engine::compile(Arc::clone(&model), &forests).or_else(|_| Engine::compile(model, options))
}

impl Config {
    /// Checks that a device supports the engines of all stages, before any of them is trained.
    ///
    /// # Errors
    /// [`Error::NothingToAccelerate`] for baselines; the device's error for an engine that it does not
    /// support, or for learned strengths; as [`Trainer::new`](crate::Trainer::new) when no engine can
    /// handle the graph.
    pub fn check_on(
        &self,
        accelerator: &dyn Accelerator,
        graph: &RelationGraph,
        options: &Options,
    ) -> Result<(), Error> {
        if !matches!(self.objective, ObjectiveConfig::Relations { .. }) {
            return Err(Error::NothingToAccelerate);
        }
        let strengths: Vec<_> = self.stages.iter().map(|stage| stage.strength).collect();
        for (at, strength) in strengths.iter().enumerate() {
            // A warm-up has the strength of the next stage.
            if !strengths[..at].contains(strength) {
                let engine = compile(Model::new(&strength.apply(graph)?)?, options)?;
                accelerator.move_engine(&engine, self.wanted())?;
            }
        }
        Ok(())
    }

    /// What training asks engines for besides probabilities.
    pub(crate) fn wanted(&self) -> Want {
        let expectations = self.strengths != StrengthConfig::Fixed;
        Want { expectations, ..Want::default() }
    }
}
