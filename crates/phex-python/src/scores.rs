//! What the numbers of a classifier are, for Python.

use phex::Named as _;
use phex::infer::{ScoreForm, ScoreInput};
use phex::numeric::Scalar;
use pyo3::prelude::*;

use crate::arrays::{Scores, matrix};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::threads::detached;

/// Turns numbers of rows × labels into logits. `form` says what they are, and `given` which labels have them.
#[pyfunction]
pub(crate) fn to_logits<'py>(
    py: Python<'py>,
    graph: &Graph,
    values: &Bound<'py, PyAny>,
    given: Vec<bool>,
    form: &str,
) -> Result<Bound<'py, PyAny>, Failure> {
    let labels = graph.0.len();
    let form = ScoreForm::from_name(form)?;
    let mut input = ScoreInput::new(form, given, Some(&graph.0));
    match Scores::read(values, labels)? {
        Scores::Single(table) => {
            let values = converted(py, &mut input, table.values().into_owned())?;
            matrix(py, values, table.rows, labels)
        }
        Scores::Double(table) => {
            let values = converted(py, &mut input, table.values().into_owned())?;
            matrix(py, values, table.rows, labels)
        }
    }
}

fn converted<T: Scalar>(
    py: Python<'_>,
    input: &mut ScoreInput,
    mut values: Vec<T>,
) -> Result<Vec<T>, Failure> {
    detached(py, || input.convert(&mut values))??;
    Ok(values)
}

/// The score of each label that needs none of its own; `None` for the others.
#[pyfunction]
pub(crate) fn unscored(graph: &Graph) -> Vec<Option<f64>> {
    phex::infer::unscored(&graph.0)
}
