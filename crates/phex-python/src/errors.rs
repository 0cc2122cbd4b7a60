//! From the errors of the crates to the exceptions of `phex.errors`, with the same texts.

use phex::infer::Evidence;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::report::Report;

/// An error of any of the crates.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the core.
    Core(phex::Error),
    /// An error in a file.
    File(phex_io::Error),
    /// An error of a GPU.
    Cuda(phex_cuda::Error),
    /// An error of training.
    Train(phex_train::Error),
    /// An argument cannot be used.
    Input(String),
    /// Raised by Python.
    Python(PyErr),
}

impl Failure {
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::Input(message.into())
    }
}

impl From<phex::Error> for Failure {
    fn from(error: phex::Error) -> Failure {
        Failure::Core(error)
    }
}

impl From<phex_io::Error> for Failure {
    fn from(error: phex_io::Error) -> Failure {
        Failure::File(error)
    }
}

impl From<phex_train::Error> for Failure {
    fn from(error: phex_train::Error) -> Failure {
        match error {
            phex_train::Error::Core(error) => Failure::Core(error),
            phex_train::Error::File(error) => Failure::File(error),
            error => Failure::Train(error),
        }
    }
}

impl From<phex_cuda::Error> for Failure {
    fn from(error: phex_cuda::Error) -> Failure {
        match error {
            phex_cuda::Error::Model(error) => Failure::Core(error),
            error => Failure::Cuda(error),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| match failure {
            Failure::Python(error) => error,
            Failure::Core(error) => core(py, error),
            Failure::File(error) => raise(py, "FileError", error.to_string()),
            Failure::Cuda(error) => raise(py, "EngineError", error.to_string()),
            Failure::Train(error) => raise(py, "TrainingError", error.to_string()),
            Failure::Input(message) => raise(py, "InputError", message),
        })
    }
}

fn core(py: Python<'_>, error: phex::Error) -> PyErr {
    use phex::Error;
    let text = error.to_string();
    let class = match &error {
        Error::Graph { .. } => "GraphError",
        Error::Unfit { .. } | Error::NotExact { .. } | Error::BestOnly => "EngineError",
        Error::Budget { .. } | Error::NoRoom { .. } | Error::TooManyPairs { .. } => "BudgetError",
        Error::Contradiction { .. } => "TrainingError",
        _ => "InputError",
    };
    let raised = raise(py, class, text);
    if let Error::Graph { report } = error {
        // If this fails, the error still has its text.
        let _ = raised.value(py).setattr("report", Report::new(*report));
    }
    raised
}

/// The message about a row whose evidence (1 on, 0 off, -1 unknown) contradicts hard relations.
#[pyfunction]
pub(crate) fn contradiction(row: usize, labels: Vec<String>, evidence: Vec<i8>) -> String {
    let entry = |&code: &i8| Evidence::from_number(f64::from(code)).unwrap_or(Evidence::Unknown);
    let evidence: Vec<Evidence> = evidence.iter().map(entry).collect();
    phex::Error::contradiction(row, labels.iter().map(String::as_str), &evidence).to_string()
}

/// The message about a row with a score that engines reject.
#[pyfunction]
pub(crate) fn bad_score(row: usize, label: String) -> String {
    phex::Error::BadScore { row, label }.to_string()
}

/// An exception of a class of `phex.errors`.
fn raise(py: Python<'_>, class: &str, text: String) -> PyErr {
    let class = py.import("phex.errors").and_then(|module| module.getattr(class));
    match class.and_then(|class| class.call1((text.as_str(),))) {
        Ok(value) => PyErr::from_value(value),
        Err(_) => PyValueError::new_err(text),
    }
}
