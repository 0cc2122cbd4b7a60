//! Decisions, for Python: from marginals to label sets.

use std::borrow::Cow;

use numpy::PyArray1;
use phex::decide::{Decision, Decisions};
use phex::infer::Number;
use pyo3::prelude::*;

use crate::arrays::{Scores, matrix, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::threads::detached;

/// The label set of each row (rows × labels), and the label that the rule chose.
///
/// `rule` is a decision in JSON, such as `{"by": "back-off", "confidence": 0.9}`. The chosen label is -1
/// if the rule chose none.
#[pyfunction]
pub(crate) fn decide<'py>(
    py: Python<'py>,
    graph: &Graph,
    marginals: &Bound<'py, PyAny>,
    rule: &str,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyArray1<i64>>), Failure> {
    let rule: Decision = serde_json::from_str(rule)
        .map_err(|error| Failure::Input(format!("the rule cannot be used: {error}")))?;
    let decisions = match Scores::read(marginals, graph.0.len())? {
        Scores::Single(table) => decided(py, graph, &rule, table.values())?,
        Scores::Double(table) => decided(py, graph, &rule, table.values())?,
    };
    let rows = 0..decisions.rows();
    let on = rows.clone().flat_map(|row| decisions.row(row).iter().copied()).collect();
    let chosen = rows.map(|row| decisions.chosen(row).map_or(-1, |id| id.index() as i64)).collect();
    Ok((matrix(py, on, decisions.rows(), decisions.labels())?, vector(py, chosen)))
}

/// The best legal label set of each row of finished probabilities: rows × labels.
#[pyfunction]
pub(crate) fn best_sets<'py>(
    py: Python<'py>,
    graph: &Graph,
    probabilities: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let decisions = match Scores::read(probabilities, graph.0.len())? {
        Scores::Single(table) => {
            let values = table.values();
            detached(py, || phex::reconcile::best_sets(&graph.0, &values))??
        }
        Scores::Double(table) => {
            let values = table.values();
            detached(py, || phex::reconcile::best_sets(&graph.0, &values))??
        }
    };
    let on = (0..decisions.rows()).flat_map(|row| decisions.row(row).iter().copied()).collect();
    matrix(py, on, decisions.rows(), decisions.labels())
}

fn decided<T: Number>(
    py: Python<'_>,
    graph: &Graph,
    rule: &Decision,
    marginals: Cow<'_, [T]>,
) -> Result<Decisions, Failure> {
    Ok(detached(py, || phex::decide::decide(rule, &graph.0, &marginals))??)
}
