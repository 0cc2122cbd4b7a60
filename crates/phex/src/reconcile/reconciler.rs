//! A graph compiled for reconciling, which runs on blocks of rows.
//!
//! Rows are split into chunks, which run on the threads of the current rayon pool. No sum runs
//! across rows, so the answer for a row does not depend on its block, to the bit.

use std::sync::Arc;

use rayon::prelude::*;

use super::compile::{CompiledParts, NONE, Part, compile};
use super::forest::probabilities_of;
use super::gradient::Tangents;
use super::rows::{Chunk, RowOutcome, RunSettings};
use super::{FinishedRows, ReconcileLoss, ReconcileOptions, ReconcilePlan, Reconciled, SumLimit};
use crate::Error;
use crate::graph::{LabelId, RelationGraph};
use crate::infer::Number;
use crate::numeric::softplus;

/// How many rows one thread processes at a time: enough that lanes are refilled often.
const ROWS: usize = 256;

/// A graph compiled for reconciling. It is cheap to clone and can be shared between threads.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex::reconcile::{FinishedRows, ReconcileOptions, Reconciler};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// let reconciler = Reconciler::compile(&builder.build()?, &ReconcileOptions::default())?;
/// // A dog with more certainty than an animal: both get the mean of the logits.
/// let answer = reconciler.run(FinishedRows::Probabilities(&[0.2, 0.7]))?;
/// assert!((answer.row(0)[0] - 0.433_f64).abs() < 1e-3);
/// assert_eq!(answer.row(0)[0], answer.row(0)[1]);
/// // Whatever the truth is, its log loss has fallen by at least this.
/// assert!(answer.gain[0] > 0.29);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reconciler {
    pub(super) compiled: Arc<CompiledParts>,
    pub(super) tangents: Arc<Tangents>,
    options: Arc<ReconcileOptions>,
    names: Arc<[String]>,
    attempts: usize,
}

/// How often `newton` tries a row.
const ATTEMPTS: usize = 5;

impl Reconciler {
    /// Compiles a graph.
    ///
    /// # Errors
    /// [`Error::NoRelations`] when the graph has none. [`Error::NoLegalState`] when its one-of
    /// groups contradict other relations. [`Error::Unreconcilable`] when the loss does not fit the
    /// relations. [`Error::OutOfRange`] and [`Error::Shape`] for options.
    pub fn compile(graph: &RelationGraph, options: &ReconcileOptions) -> Result<Reconciler, Error> {
        let compiled = Arc::new(compile(graph, options)?);
        let names = graph.labels().iter().map(|label| label.name.clone()).collect();
        let (tangents, options) = (Arc::default(), Arc::new(options.clone()));
        Ok(Reconciler { compiled, tangents, options, names, attempts: ATTEMPTS })
    }

    /// The same, with one attempt for each row. Rows that are hard may stay as they are.
    pub(super) fn hasty(self) -> Reconciler {
        Reconciler { attempts: 1, ..self }
    }

    /// Which engine handles which part, why, and at what cost.
    pub fn plan(&self) -> &ReconcilePlan {
        &self.compiled.plan
    }

    /// What consistent probabilities keep: the inequalities and equations over labels that can be on
    /// and off.
    pub fn limits(&self) -> Vec<SumLimit> {
        let mut limits = Vec::new();
        for part in &self.compiled.parts {
            let system = part.system();
            let label = |at: u32| LabelId(system.labels[at as usize]);
            limits.extend((0..system.len()).map(|row| SumLimit {
                members: system.members.of(row).iter().map(|&at| label(at)).collect(),
                above: (system.upper[row] != NONE).then(|| label(system.upper[row])),
                equal: system.equal[row],
                cost: system.cap[row],
            }));
        }
        limits
    }

    /// The options it was compiled with.
    pub fn options(&self) -> &ReconcileOptions {
        &self.options
    }

    /// The names of the labels, in the order of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes a block of rows consistent.
    ///
    /// # Errors
    /// [`Error::Shape`] when the values are not rows of one value per label.
    /// [`Error::NotFinished`] for a probability outside `[0, 1]` or a logit that is NaN.
    /// [`Error::NotDistribution`] when a softmax head does not sum to 1 (up to 0.02).
    pub fn run<T: Number>(&self, rows: FinishedRows<'_, T>) -> Result<Reconciled<T>, Error> {
        let n = self.names.len();
        let count = self.check(rows)?;
        let mut result = Reconciled::new(n, count);
        let mut outcomes = vec![RowOutcome::default(); count];
        let settings = RunSettings {
            loss: self.options.loss,
            tolerance: self.options.tolerance,
            passes: self.options.passes,
            attempts: self.attempts,
        };
        let threads = rayon::current_num_threads().max(1);
        let size = (count / (4 * threads)).clamp(64, ROWS);
        result
            .probabilities
            .par_chunks_mut(size * n)
            .zip(outcomes.par_chunks_mut(size))
            .zip(rows.values().par_chunks(size * n))
            .for_each(|((probabilities, outcomes), values)| {
                probabilities.copy_from_slice(values);
                let input = match rows {
                    FinishedRows::Probabilities(_) => FinishedRows::Probabilities(values),
                    FinishedRows::Logits(_) => {
                        probabilities_of(probabilities);
                        FinishedRows::Logits(values)
                    }
                };
                let mut chunk = Chunk { labels: n, input, probabilities, outcomes };
                self.run_chunk(&mut chunk, &settings);
            });
        for (row, outcome) in outcomes.into_iter().enumerate() {
            result.gain[row] = outcome.gain;
            result.gap[row] = outcome.gap;
            result.violation[row] = outcome.violation;
            result.input_violation[row] = outcome.input_violation;
            result.passes[row] = outcome.passes;
            result.trust[row] = outcome.trust();
        }
        Ok(result)
    }

    fn run_chunk<T: Number>(&self, chunk: &mut Chunk<'_, T>, settings: &RunSettings) {
        for part in &self.compiled.parts {
            match part {
                Part::Forest(part) => part.run(chunk, settings),
                Part::Newton(part) => part.run(chunk, settings),
                Part::Closure(part) => part.run(chunk, settings),
                Part::Categorical(part) => part.run(chunk),
            }
        }
        self.fix_constants(chunk);
    }

    /// Labels that never change get the probability 0 or 1.
    fn fix_constants<T: Number>(&self, chunk: &mut Chunk<'_, T>) {
        let loss = self.options.loss;
        for (label, value) in self.compiled.constant.iter().enumerate() {
            let Some(on) = value else { continue };
            let target = if *on { T::ONE } else { T::ZERO };
            let weight = self.options.weights.as_ref().map_or(1.0, |weights| weights[label]);
            for row in 0..chunk.rows() {
                let at = row * chunk.labels + label;
                let p = chunk.probabilities[at];
                if p == target {
                    continue;
                }
                let off = (p.to_f64() - target.to_f64()).abs();
                let mut logit = [0.0];
                chunk.values(row, &[label as u32], ReconcileLoss::Log, &mut logit);
                let logit = if *on { -logit[0] } else { logit[0] };
                let outcome = &mut chunk.outcomes[row];
                outcome.gain += match loss {
                    ReconcileLoss::Log => weight * softplus(logit),
                    ReconcileLoss::Brier => weight * off * off,
                    // The softmax of one label is 1, whatever its logit is.
                    ReconcileLoss::Categorical => 0.0,
                };
                outcome.see_violation(off);
                outcome.passes = outcome.passes.max(1);
                chunk.probabilities[at] = target;
            }
        }
    }

    /// Checks the values, and returns the number of rows.
    pub(super) fn check<T: Number>(&self, rows: FinishedRows<'_, T>) -> Result<usize, Error> {
        let count = check_values(rows, self.names.len(), |label| self.names[label].clone())?;
        for part in &self.compiled.parts {
            if let Part::Categorical(part) = part {
                part.check(rows, &self.names)?;
            }
        }
        Ok(count)
    }
}

/// Checks that values are whole rows of probabilities or logits, and returns the number of rows.
pub(super) fn check_values<T: Number>(
    rows: FinishedRows<'_, T>,
    n: usize,
    name: impl Fn(usize) -> String,
) -> Result<usize, Error> {
    let values = rows.values();
    if !values.len().is_multiple_of(n) {
        let expected = values.len().next_multiple_of(n);
        return Err(Error::Shape {
            what: "rows of one value per label",
            expected,
            found: values.len(),
        });
    }
    let fits = |value: f64| match rows {
        FinishedRows::Probabilities(_) => (0.0..=1.0).contains(&value),
        FinishedRows::Logits(_) => !value.is_nan(),
    };
    if let Some(at) = values.iter().position(|value| !fits(value.to_f64())) {
        let (row, label) = (at / n, name(at % n));
        return Err(Error::NotFinished { row, label, value: values[at].to_f64() });
    }
    Ok(values.len() / n)
}
