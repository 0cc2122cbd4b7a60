//! Strengths that are learned, for Python.

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use phex::learn::{self, Tie};
use pyo3::prelude::*;

use crate::arrays::vector;
use crate::errors::Failure;
use crate::graph::Graph;
use crate::options::named;

/// The costs of a graph's soft relations, as a few parameters.
///
/// `tie` says which relations share a parameter: `scale` (all), `kind` (those of hierarchy, and those of
/// exclusion) or `relation` (none). Parameters are factors on the given costs; with `relation` they are
/// the costs themselves.
#[pyclass(frozen, module = "phex")]
#[derive(Debug, Clone)]
pub(crate) struct Strengths(learn::Strengths);

/// The numbers of a vector of a given length.
fn numbers(
    values: &PyReadonlyArray1<'_, f64>,
    expected: usize,
    what: &'static str,
) -> Result<Vec<f64>, Failure> {
    let found = values.len();
    if found != expected {
        return Err(phex::Error::Shape { what, expected, found }.into());
    }
    Ok(values.as_array().to_vec())
}

#[pymethods]
impl Strengths {
    #[new]
    #[pyo3(signature = (graph, tie="kind"))]
    fn new(graph: &Graph, tie: &str) -> Result<Strengths, Failure> {
        let tie: Tie = named("tie", tie)?;
        Ok(Strengths(learn::Strengths::new((*graph.0).clone(), tie)?))
    }

    /// What each parameter is: `scale`, `hierarchy`, `exclusion`, or the relation.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names().to_vec()
    }

    /// The parameters of the given graph.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        vector(py, self.0.values().to_vec()).into_any()
    }

    /// The graph with these parameters; negative ones count as 0.
    fn graph(&self, values: PyReadonlyArray1<'_, f64>) -> Result<Graph, Failure> {
        let mut strengths = self.0.clone();
        let values = numbers(&values, self.0.values().len(), "the parameters")?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (name, value) = (&self.0.names()[at], values[at]);
            return Err(Failure::Input(format!("the parameter `{name}` is {value}")));
        }
        strengths.set(&values);
        Ok(Graph::new(strengths.graph()?))
    }

    /// Turns the gradient by the cost of each term into the gradient by each parameter.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        costs: PyReadonlyArray1<'py, f64>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let costs = numbers(&costs, self.0.terms(), "the gradient by costs")?;
        Ok(vector(py, self.0.gradient(&costs)).into_any())
    }

    fn __len__(&self) -> usize {
        self.0.values().len()
    }

    fn __repr__(&self) -> String {
        format!("<Strengths: {}>", self.0.names().join(", "))
    }
}
