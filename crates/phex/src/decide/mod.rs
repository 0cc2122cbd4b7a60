//! Decisions: from marginals, or from scores and an engine, to one label set per row.
//!
//! | [`Decision`] | the set of a row |
//! |---|---|
//! | `Threshold` | the labels whose probability reaches `at` |
//! | `Best` | the most probable of some classes, with all its ancestors |
//! | `BackOff` | the most specific label whose probability reaches `confidence`, with all its ancestors |
//! | `Consistent` | the most probable legal set: `argmax p(x)` (MAP) |
//!
//! A row with a NaN or infinite marginal, which inference could not answer, has no decision. Its
//! set is empty, [`Decisions::is_answered`] is false, and the [`metrics`](crate::metrics) leave it
//! out. Probabilities are compared in the number type of the marginals, so that 0.9 reaches 0.9 in
//! single precision. On exact marginals of a hard hierarchy, a threshold gives sets that are closed
//! upwards, because a child is never more probable than its parent. A threshold above 0.5 breaks no
//! exclusion. Only `Consistent` satisfies every hard relation on any graph.
//!
//! A row costs O(labels), or as much as [`Engine::best`] for `Consistent`.

mod classes;
mod sets;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::graph::{LabelId, RelationGraph, Topology};
use crate::infer::{Block, Engine, Want};
use crate::numeric::Scalar;

pub use classes::Classes;
pub(crate) use classes::named;
pub use sets::Decisions;
pub(crate) use sets::rows_of;

/// How label sets are chosen.
///
/// ```
/// use phex::decide::{Classes, Decision, decide};
/// use phex::graph::GraphBuilder;
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("dog", "husky", None);
/// let graph = builder.build()?;
/// let marginals = [0.99, 0.85, 0.4];
/// let on = |decision| Ok::<_, phex::Error>(decide(&decision, &graph, &marginals)?.row(0).to_vec());
/// assert_eq!(on(Decision::default())?, [true, true, false]);
/// assert_eq!(on(Decision::Best { among: Classes::Leaves })?, [true, true, true]);
/// assert_eq!(on(Decision::BackOff { confidence: 0.9 })?, [true, false, false]);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Decision {
    /// Every label whose probability is at least this.
    Threshold {
        /// In `[0, 1]`. The default is 0.5.
        #[serde(default = "half")]
        at: f64,
    },
    /// The most probable of these labels (the first among equals), with all its ancestors.
    Best {
        /// The default is the leaves.
        #[serde(default)]
        among: Classes,
    },
    /// Of the labels whose probability is at least this, the deepest in the hierarchy (by the
    /// longest path from a root). Among equally deep labels it is the most probable, and then the
    /// first. It comes with all its ancestors. The set is empty when no label reaches this
    /// probability.
    BackOff {
        /// In `[0, 1]`.
        confidence: f64,
    },
    /// The most probable label set that the relations allow. It needs an engine.
    Consistent,
}

impl Default for Decision {
    /// A threshold of 0.5.
    fn default() -> Decision {
        Decision::Threshold { at: half() }
    }
}

fn half() -> f64 {
    0.5
}

/// Decides from marginals: rows with one probability per label of the graph, one after another.
///
/// See [`Decision`] for an example.
///
/// # Errors
/// [`Error::Shape`] when the entries are not whole rows. [`Error::OutOfRange`] for a threshold
/// outside `[0, 1]`. [`Error::UnknownName`] for classes that the graph does not have.
/// [`Error::NeedsEngine`] for [`Decision::Consistent`].
pub fn decide<T: Scalar>(
    decision: &Decision,
    graph: &RelationGraph,
    marginals: &[T],
) -> Result<Decisions, Error> {
    let labels = graph.len();
    let rows = rows_of("the marginals", labels, marginals.len())?;
    let mut decisions = Decisions::unanswered_rows(labels, rows);
    let rule = CheckedRule::new(decision, graph)?;
    for (row, marginals) in marginals.chunks_exact(labels.max(1)).enumerate() {
        if !marginals.iter().all(|p| p.is_finite()) {
            continue;
        }
        let chosen = rule.choose(marginals, graph.topology());
        let on = decisions.answer(row, chosen);
        match &rule {
            CheckedRule::Threshold(at) => {
                let at = T::from_f64(*at);
                on.iter_mut().zip(marginals).for_each(|(on, p)| *on = *p >= at);
            }
            CheckedRule::Best(_) | CheckedRule::BackOff(..) => {
                if let Some(label) = chosen {
                    switch_on(graph.topology(), label, on);
                }
            }
        }
    }
    Ok(decisions)
}

/// Decides from scores, by the engine's marginals or, for [`Decision::Consistent`], by its best
/// set.
///
/// ```
/// use phex::decide::{Decision, decide_scores};
/// use phex::{graph::GraphBuilder, infer::{Block, Engine, Options}, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).exclusion("animal", "car", None);
/// let graph = builder.build()?;
/// let engine = Engine::compile(Model::new(&graph)?, &Options::default())?;
/// let block = Block::new(3, &[-1.0, 3.0, 1.0]);
/// let sets = decide_scores(&Decision::Consistent, &graph, &engine, &block)?;
/// assert_eq!(sets.row(0), [true, true, false]);
/// # Ok::<(), phex::Error>(())
/// ```
///
/// # Errors
/// As [`decide`] and [`Engine::run`] or [`Engine::best`]. But a row with a NaN or infinite score,
/// or with evidence that no state agrees with, is a row without an answer.
pub fn decide_scores(
    decision: &Decision,
    graph: &RelationGraph,
    engine: &Engine,
    block: &Block<'_, f64>,
) -> Result<Decisions, Error> {
    let (expected, found) = (graph.len(), engine.model().len());
    if expected != found {
        return Err(Error::Columns { expected: found, found: expected });
    }
    if *decision != Decision::Consistent {
        return decide(decision, graph, &engine.run(block, Want::default())?.marginals);
    }
    let best = |row: usize| match engine.best(block, row, 1) {
        Err(Error::BadScore { .. }) => Ok(None),
        found => Ok(found?.into_iter().next()),
    };
    let best = (0..block.rows()).into_par_iter().map(best).collect::<Result<Vec<_>, Error>>()?;
    let mut decisions = Decisions::unanswered_rows(block.labels(), block.rows());
    for (row, best) in best.into_iter().enumerate() {
        if let Some(best) = best {
            decisions.answer(row, None).copy_from_slice(&best.on);
        }
    }
    Ok(decisions)
}

/// A decision with its labels looked up and its numbers checked.
enum CheckedRule {
    Threshold(f64),
    Best(Vec<LabelId>),
    /// The labels from the deepest up, and the confidence.
    BackOff(Vec<LabelId>, f64),
}

impl CheckedRule {
    fn new(decision: &Decision, graph: &RelationGraph) -> Result<CheckedRule, Error> {
        match decision {
            Decision::Threshold { at } => {
                Ok(CheckedRule::Threshold(probability("the threshold", *at)?))
            }
            Decision::Best { among } => Ok(CheckedRule::Best(among.resolve(graph)?)),
            Decision::BackOff { confidence } => {
                let confidence = probability("the confidence of back-off", *confidence)?;
                let mut labels: Vec<LabelId> = graph.ids().collect();
                labels.sort_by_key(|&id| std::cmp::Reverse(graph.topology().depth(id)));
                Ok(CheckedRule::BackOff(labels, confidence))
            }
            Decision::Consistent => Err(Error::NeedsEngine),
        }
    }

    /// The label that the rule chooses from finite marginals.
    fn choose<T: Scalar>(&self, marginals: &[T], topology: &Topology) -> Option<LabelId> {
        let p = |id: LabelId| marginals[id.index()];
        let first_best = |best: Option<LabelId>, id: LabelId| match best {
            Some(best) if p(best) >= p(id) => Some(best),
            _ => Some(id),
        };
        match self {
            CheckedRule::Threshold(_) => None,
            CheckedRule::Best(classes) => classes.iter().copied().fold(None, first_best),
            CheckedRule::BackOff(labels, confidence) => {
                let confidence = T::from_f64(*confidence);
                let deepest = labels.iter().position(|&id| p(id) >= confidence)?;
                let depth = topology.depth(labels[deepest]);
                let equals = labels[deepest..].iter().copied();
                let equals = equals.take_while(|&id| topology.depth(id) == depth);
                equals.filter(|&id| p(id) >= confidence).fold(None, first_best)
            }
        }
    }
}

/// Turns on a label and everything above it.
fn switch_on(topology: &Topology, label: LabelId, on: &mut [bool]) {
    let mut stack = vec![label];
    while let Some(label) = stack.pop() {
        if !std::mem::replace(&mut on[label.index()], true) {
            stack.extend_from_slice(topology.parents(label));
        }
    }
}

fn probability(option: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::OutOfRange { option, value, range: "between 0 and 1" })
}

#[cfg(test)]
mod tests;
