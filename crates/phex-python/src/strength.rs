//! Strengths of relations.

use phex::graph;
use pyo3::prelude::*;

use crate::errors::Failure;

/// How much a violated relation costs: `Strength("u=0.5")`, or by one of its units.
///
/// >>> from phex import Strength
/// >>> Strength.u(0.5).cost
/// 2.0
/// >>> Strength("hard").is_hard
/// True
#[pyclass(frozen, from_py_object, module = "phex", eq)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Strength(pub(crate) graph::Strength);

/// A strength from Python: an object, or a text such as `u=0.5`.
#[derive(FromPyObject)]
pub(crate) enum StrengthLike {
    Strength(Strength),
    Text(String),
}

impl StrengthLike {
    pub(crate) fn read(self) -> Result<graph::Strength, Failure> {
        match self {
            StrengthLike::Strength(strength) => Ok(strength.0),
            StrengthLike::Text(text) => graph::Strength::parse(&text).map_err(Failure::Input),
        }
    }
}

fn checked(strength: graph::Strength) -> Result<Strength, Failure> {
    match strength.fault() {
        None => Ok(Strength(strength)),
        Some(fault) => Err(Failure::Input(fault)),
    }
}

#[pymethods]
impl Strength {
    #[new]
    fn new(text: &str) -> Result<Strength, Failure> {
        if text.trim().is_empty() {
            let message = "an empty strength: write `hard`, `q=0.1`, `u=0.5` or `w=2`";
            return Err(Failure::input(message));
        }
        checked(graph::Strength::parse(text).map_err(Failure::Input)?)
    }

    /// A violation is impossible.
    #[staticmethod]
    fn hard() -> Strength {
        Strength(graph::Strength::Hard)
    }

    /// A violation multiplies the weight of a state by this factor, from 0 to 1.
    #[staticmethod]
    fn q(value: f64) -> Result<Strength, Failure> {
        checked(graph::Strength::Q(value))
    }

    /// The paper's coefficient u: a violation costs 4u.
    #[staticmethod]
    fn u(value: f64) -> Result<Strength, Failure> {
        checked(graph::Strength::U(value))
    }

    /// A violation costs this much log-weight.
    #[staticmethod]
    fn w(value: f64) -> Result<Strength, Failure> {
        checked(graph::Strength::W(value))
    }

    /// The cost of a violation: 0 for no relation, infinite for a hard one.
    #[getter]
    fn cost(&self) -> f64 {
        self.0.cost()
    }

    /// The factor `exp(-cost)`: 1 for no relation, 0 for a hard one.
    #[getter]
    fn factor(&self) -> f64 {
        self.0.factor()
    }

    /// Whether a violation is impossible.
    #[getter]
    fn is_hard(&self) -> bool {
        self.0.is_hard()
    }

    fn __hash__(&self) -> u64 {
        self.0.cost().to_bits()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Strength('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}
