//! Which engine training goes through.
//!
//! Exact where a row takes at most [`OPERATIONS`]. Beyond that a hierarchy goes through `forests`: its
//! log Z is convex in the scores, while training through Bethe's (`lbp`, `blocks`) may collapse. A
//! model is asked through the engine that it was trained through.

use std::sync::Arc;

use phex::infer::{Budget, Engine, Method, Options};
use phex::model::Model;

/// Operations a row that an exact engine may take in training: about 10 ms.
const OPERATIONS: f64 = 1e7;

/// Iterations of `forests` where none are asked for: on hierarchies few are left to do.
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
