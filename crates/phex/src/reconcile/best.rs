//! The best legal label set of finished probabilities.
//!
//! The log loss that probabilities `q` expect of a label set `y`, plus what `y` pays for soft
//! relations, is lowest for the most probable label set of the model whose scores are the logits of
//! `q`: `argmax Σ logit(q_i) y_i − cost(y)`. A row costs what [`Engine::best`] costs.

use super::FinishedRows;
use super::reconciler::check_values;
use crate::Error;
use crate::decide::{Decision, Decisions, decide_scores};
use crate::graph::RelationGraph;
use crate::infer::{Block, Engine, Number, Options};
use crate::model::Model;
use crate::numeric::logit;

/// The scores of finished probabilities: their logits, clipped to ±30 (±15 in single precision), so
/// that they are finite for 0 and 1 as well.
fn scores_of<T: Number>(probabilities: &[T]) -> Vec<f64> {
    let score = |p: &T| logit(p.to_f64()).clamp(-T::CLIP, T::CLIP);
    probabilities.iter().map(score).collect()
}

/// The best legal label set of each row of reconciled probabilities: that with the lowest log loss.
///
/// On a hard hierarchy, these are the labels above 0.5. With exclusions and one-of groups, a threshold
/// may leave a row without a label.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::reconcile::best_sets;
///
/// let mut builder = GraphBuilder::new();
/// builder.one_of("kind", ["cat", "dog", "owl"], None);
/// // No label is above 0.5, but one of them must be on.
/// let sets = best_sets(&builder.build()?, &[0.35, 0.4, 0.25])?;
/// assert_eq!(sets.row(0), [false, true, false]);
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotFinished`] for a value that is not a probability, [`Error::Shape`] when the values are
/// not whole rows, and those of [`Engine::compile`] and [`Engine::best`] where no exact engine can
/// handle the graph.
pub fn best_sets<T: Number>(
    graph: &RelationGraph,
    probabilities: &[T],
) -> Result<Decisions, Error> {
    check_values(FinishedRows::Probabilities(probabilities), graph.len(), |label| {
        graph.labels()[label].name.clone()
    })?;
    let engine = Engine::compile(Model::new(graph)?, &Options::default())?;
    let scores = scores_of(probabilities);
    decide_scores(&Decision::Consistent, graph, &engine, &Block::new(graph.len(), &scores))
}
