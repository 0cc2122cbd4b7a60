//! The answers of engines, as objects with arrays.

use phex::infer::{self, RowStatus, Trust};
use phex::learn;
use pyo3::prelude::*;

use crate::arrays::{Cell, matrix, vector};
use crate::errors::Failure;

/// Which engine was chosen, why, and what it costs.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The engine.
    method: &'static str,
    /// Whether its answers are exact.
    exact: bool,
    /// Whether its answers are approximate, with a diagnosis for each row.
    approximate: bool,
    /// Why this engine.
    why: String,
    /// Predicted elementary operations per row.
    operations: f64,
    /// Predicted bytes of tables and scratch memory.
    bytes: u64,
    /// Engines that cannot handle the model, and why.
    refused: Vec<(String, String)>,
}

impl Plan {
    pub(crate) fn new(plan: &infer::Plan) -> Plan {
        let refused = plan.refused.iter();
        Plan {
            method: plan.method.name(),
            exact: plan.exact,
            approximate: plan.approximate,
            why: plan.why.clone(),
            operations: plan.operations,
            bytes: plan.bytes,
            refused: refused.map(|r| (r.method.name().to_owned(), r.why.clone())).collect(),
        }
    }
}

#[pymethods]
impl Plan {
    fn __repr__(&self) -> String {
        let trust = match (self.exact, self.approximate) {
            (true, _) => "exact",
            (_, true) => "approximate",
            _ => "certified",
        };
        format!(
            "<Plan: {} ({trust}), {:.1e} operations per row: {}>",
            self.method, self.operations, self.why
        )
    }
}

/// Answers for rows of scores.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug)]
pub(crate) struct Posterior {
    /// The probability of each label: rows × labels. NaN in rows without an answer.
    marginals: Py<PyAny>,
    /// The log-partition of each row; with evidence, over the states that agree with it.
    log_partition: Py<PyAny>,
    /// The expected violations of each relation: rows × terms, if requested.
    expectations: Option<Py<PyAny>>,
    /// The entropy of each row in nats, if requested.
    entropy: Option<Py<PyAny>>,
    /// The standard error of each marginal, if requested and sampled.
    standard_errors: Option<Py<PyAny>>,
    /// The status of each row: `answered`, `bad-score` or `impossible`.
    status: Vec<&'static str>,
    /// A bound on the error of each row's marginals: 0 is exact, NaN is unknown.
    error: Py<PyAny>,
    /// Whether each row converged; true for exact rows.
    converged: Py<PyAny>,
    /// Lower and upper bounds on log Z of each row, if requested: rows × 2.
    bounds: Option<Py<PyAny>>,
    /// Why a row should not be trusted; `None` if there is no reason for doubt.
    doubt: Vec<Option<&'static str>>,
}

fn status_name(status: &RowStatus) -> &'static str {
    match status {
        RowStatus::Answered => "answered",
        RowStatus::BadScore { .. } => "bad-score",
        RowStatus::Impossible => "impossible",
    }
}

impl Posterior {
    pub(crate) fn new<T: Cell>(
        py: Python<'_>,
        found: infer::Posterior<T>,
        bounds: bool,
    ) -> Result<Posterior, Failure> {
        let (rows, labels) = (found.rows(), found.labels);
        let table = |values: Option<Vec<T>>, columns: Option<usize>| -> Result<_, Failure> {
            let Some(values) = values else { return Ok(None) };
            let columns = columns.unwrap_or(values.len().checked_div(rows).unwrap_or(0));
            Ok(Some(matrix(py, values, rows, columns)?.unbind()))
        };
        let error = |trust: &Trust| match trust {
            Trust::Exact => 0.0,
            Trust::Certified(error) => *error,
            Trust::Approximate(_) => f64::NAN,
        };
        let converged = |trust: &Trust| match trust {
            Trust::Approximate(diagnosis) => diagnosis.converged,
            _ => true,
        };
        let interval = |(trust, log_partition): (&Trust, &f64)| match trust {
            Trust::Approximate(diagnosis) => {
                diagnosis.bounds.map_or([f64::NEG_INFINITY, f64::INFINITY], |(a, b)| [a, b])
            }
            _ => [*log_partition; 2],
        };
        let bounds = match bounds {
            true => {
                let both = found.trust.iter().zip(&found.log_partition).flat_map(interval);
                Some(matrix(py, both.collect(), rows, 2)?.unbind())
            }
            false => None,
        };
        Ok(Posterior {
            error: vector(py, found.trust.iter().map(error).collect()).into_any().unbind(),
            converged: vector(py, found.trust.iter().map(converged).collect()).into_any().unbind(),
            bounds,
            doubt: found.trust.iter().map(Trust::doubt).collect(),
            status: found.status.iter().map(status_name).collect(),
            marginals: matrix(py, found.marginals, rows, labels)?.unbind(),
            log_partition: vector(py, found.log_partition).into_any().unbind(),
            expectations: table(found.expectations, None)?,
            entropy: found.entropy.map(|values| vector(py, values).into_any().unbind()),
            standard_errors: table(found.standard_errors, Some(labels))?,
        })
    }
}

#[pymethods]
impl Posterior {
    fn __len__(&self) -> usize {
        self.status.len()
    }

    fn __repr__(&self) -> String {
        let answered = self.status.iter().filter(|status| **status == "answered").count();
        let doubted = self.doubt.iter().flatten().count();
        format!(
            "<Posterior of {} rows: {answered} answered, {doubted} doubtful>",
            self.status.len()
        )
    }
}

/// Losses of rows and their gradients.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug)]
pub(crate) struct Gradients {
    /// The loss of each row, before weights; infinite if hard relations forbid the evidence.
    losses: Py<PyAny>,
    /// The derivative of the weighted sum of losses by each logit: rows × labels.
    logits: Py<PyAny>,
    /// Its derivative by the cost of each term of the model, if requested.
    costs: Option<Py<PyAny>>,
    /// The probability of each label without the evidence: rows × labels. Zeros in rows without evidence.
    marginals: Py<PyAny>,
    /// The status of each row: `answered`, `bad-score` or `impossible`.
    status: Vec<&'static str>,
}

impl Gradients {
    pub(crate) fn new<T: Cell>(
        py: Python<'_>,
        found: learn::Gradients<T>,
        labels: usize,
    ) -> Result<Gradients, Failure> {
        let rows = found.losses.len();
        Ok(Gradients {
            losses: vector(py, found.losses).into_any().unbind(),
            logits: matrix(py, found.logits, rows, labels)?.unbind(),
            costs: found.costs.map(|costs| vector(py, costs).into_any().unbind()),
            marginals: matrix(py, found.marginals, rows, labels)?.unbind(),
            status: found.status.iter().map(status_name).collect(),
        })
    }
}
