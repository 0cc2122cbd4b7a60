//! Reconciling, for Python: arrays in, arrays out.

use numpy::{PyArray2, PyReadonlyArray1};
use phex::Named as _;
use phex::graph::RelationGraph;
use phex::infer::Trust;
use phex::reconcile::{
    self, FinishedRows, FinishedWatch, ReconcileEngine, ReconcileLoss, ReconcileOptions,
    refuse_softmax,
};
use pyo3::prelude::*;

use crate::arrays::{Cell, Scores, Table, matrix, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::threads::detached;

/// A graph compiled for reconciling. `phex.Reconciler` wraps it.
///
/// Probabilities, or their logits, are arrays of rows × labels of float32 or float64.
#[pyclass(frozen, module = "phex._core", name = "Reconciler")]
#[derive(Debug)]
pub(crate) struct ReconcilerCore {
    graph: RelationGraph,
    reconciler: reconcile::Reconciler,
}

/// The parts of a graph that one engine reconciles.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct PlannedPart {
    /// The engine.
    engine: &'static str,
    /// How many parts of the graph it handles.
    parts: usize,
    /// How many labels they have.
    labels: usize,
    /// How many inequalities and equations describe their relations.
    rows: usize,
    /// Why this engine.
    why: String,
    /// Whether the answer is exact up to rounding; otherwise each row has a certified distance.
    exact: bool,
    /// Whether the inequalities describe the consistent probabilities exactly.
    hull: bool,
    /// Predicted elementary operations per row.
    operations: f64,
}

/// Which engines reconcile a graph, and why.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct ReconcilePlan {
    /// The parts by engine, cheapest engine first.
    parts: Vec<PlannedPart>,
    /// The names of the engines.
    engines: Vec<&'static str>,
    /// Whether the inequalities describe the consistent probabilities of all parts exactly.
    hull: bool,
    /// Labels that no legal label set contains: their probability becomes 0.
    never: usize,
    /// Labels that every legal label set contains: their probability becomes 1.
    always: usize,
    /// Labels without relations: their probabilities stay as they are.
    free: usize,
    /// How many relations are soft.
    soft: usize,
    /// One line for each engine.
    text: String,
}

#[pymethods]
impl ReconcilePlan {
    fn __repr__(&self) -> String {
        let hull = if self.hull { "exact inequalities" } else { "a relaxation" };
        format!("<ReconcilePlan by {}: {hull}>", self.engines.join(", "))
    }
}

impl ReconcilePlan {
    fn new(plan: &reconcile::ReconcilePlan) -> ReconcilePlan {
        let part = |part: &reconcile::PlannedPart| PlannedPart {
            engine: part.engine.name(),
            parts: part.parts,
            labels: part.labels,
            rows: part.rows,
            why: part.why.clone(),
            exact: part.exact,
            hull: part.hull,
            operations: part.operations,
        };
        let mut engines: Vec<_> = plan.parts.iter().map(|part| part.engine.name()).collect();
        engines.dedup();
        ReconcilePlan {
            parts: plan.parts.iter().map(part).collect(),
            engines,
            hull: plan.is_hull(),
            never: plan.never,
            always: plan.always,
            free: plan.free,
            soft: plan.soft,
            text: plan.to_string(),
        }
    }
}

/// Consistent probabilities, and what is guaranteed about each row.
#[pyclass(frozen, module = "phex._core", get_all, name = "Reconciled")]
#[derive(Debug)]
pub(crate) struct ReconciledRows {
    /// Rows × labels.
    probabilities: Py<PyAny>,
    /// By how much the loss of each row falls at least.
    gain: Py<PyAny>,
    /// By how much it could fall more at most.
    gap: Py<PyAny>,
    /// The largest violation of a relation by each row of the output.
    violation: Py<PyAny>,
    /// The largest violation of a relation by each row of the input.
    input_violation: Py<PyAny>,
    /// How many passes each row took: 0 if it was consistent.
    passes: Py<PyAny>,
    /// `exact`, `certified` or `approximate`, for each row.
    trust: Vec<&'static str>,
    /// How far a probability of each row is from the best one at most; NaN if that is not known.
    error: Py<PyAny>,
}

impl ReconciledRows {
    fn new<T: Cell>(
        py: Python<'_>,
        found: reconcile::Reconciled<T>,
    ) -> Result<ReconciledRows, Failure> {
        let rows = found.rows();
        let trust = |trust: &Trust| match trust {
            Trust::Exact => ("exact", 0.0),
            Trust::Certified(error) => ("certified", *error),
            Trust::Approximate(_) => ("approximate", f64::NAN),
        };
        let (trust, error): (Vec<_>, Vec<_>) = found.trust.iter().map(trust).unzip();
        Ok(ReconciledRows {
            probabilities: matrix(py, found.probabilities, rows, found.labels)?.unbind(),
            gain: vector(py, found.gain).into_any().unbind(),
            gap: vector(py, found.gap).into_any().unbind(),
            violation: vector(py, found.violation).into_any().unbind(),
            input_violation: vector(py, found.input_violation).into_any().unbind(),
            passes: vector(py, found.passes).into_any().unbind(),
            trust,
            error: vector(py, error).into_any().unbind(),
        })
    }
}

fn finished<T>(values: &[T], logits: bool) -> FinishedRows<'_, T> {
    if logits { FinishedRows::Logits(values) } else { FinishedRows::Probabilities(values) }
}

#[pymethods]
impl ReconcilerCore {
    #[new]
    #[pyo3(signature = (graph, *, loss="log", weights=None, tolerance=None, passes=None, engine=None))]
    fn new(
        py: Python<'_>,
        graph: &Graph,
        loss: &str,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        tolerance: Option<f64>,
        passes: Option<u32>,
        engine: Option<&str>,
    ) -> Result<ReconcilerCore, Failure> {
        let standard = ReconcileOptions::default();
        let options = ReconcileOptions {
            loss: ReconcileLoss::from_name(loss)?,
            weights: weights.map(|weights| weights.as_array().to_vec()),
            tolerance: tolerance.unwrap_or(standard.tolerance),
            passes: passes.unwrap_or(standard.passes),
            engine: engine.map(ReconcileEngine::from_name).transpose()?,
        };
        let compile = || reconcile::Reconciler::compile(&graph.0, &options);
        let reconciler = detached(py, compile)??;
        Ok(ReconcilerCore { graph: (*graph.0).clone(), reconciler })
    }

    /// Which engine handles which part, and why.
    #[getter]
    fn plan(&self) -> ReconcilePlan {
        ReconcilePlan::new(self.reconciler.plan())
    }

    fn __len__(&self) -> usize {
        self.reconciler.names().len()
    }

    /// Makes rows of probabilities consistent, or rows of their logits.
    #[pyo3(signature = (values, *, logits=false))]
    fn run(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        logits: bool,
    ) -> Result<ReconciledRows, Failure> {
        match Scores::read(values, self.__len__())? {
            Scores::Single(table) => self.answer(py, &table, logits),
            Scores::Double(table) => self.answer(py, &table, logits),
        }
    }

    /// From the derivative of a function by the output to its derivative by the values.
    #[pyo3(signature = (values, upstream, *, logits=false))]
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        upstream: &Bound<'py, PyAny>,
        logits: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        match Scores::read(values, self.__len__())? {
            Scores::Single(table) => self.derivative(py, &table, upstream, logits),
            Scores::Double(table) => self.derivative(py, &table, upstream, logits),
        }
    }
}

impl ReconcilerCore {
    fn answer<T: Cell>(
        &self,
        py: Python<'_>,
        table: &Table<'_, T>,
        logits: bool,
    ) -> Result<ReconciledRows, Failure> {
        let values = table.values();
        let rows = finished(&values, logits);
        let found = detached(py, || self.reconciler.run(rows))??;
        refuse_softmax(&self.graph, rows, &found)?;
        ReconciledRows::new(py, found)
    }

    fn derivative<'py, T: Cell>(
        &self,
        py: Python<'py>,
        table: &Table<'py, T>,
        upstream: &Bound<'py, PyAny>,
        logits: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let upstream = upstream.cast::<PyArray2<T>>().map_err(|_| {
            Failure::input("the derivative must be an array of the shape and type of the values")
        })?;
        let upstream = Table::of(upstream, self.__len__())?;
        let (values, upstream) = (table.values(), upstream.values());
        let rows = finished(&values, logits);
        let work = || {
            let found = self.reconciler.run(rows)?;
            self.reconciler.gradient(rows, &found, &upstream)
        };
        matrix(py, detached(py, work)??, table.rows, table.columns)
    }
}

/// Whether an array that is meant to hold scores looks like finished probabilities.
#[pyfunction]
pub(crate) fn looks_finished(values: &Bound<'_, PyAny>, labels: usize) -> Result<bool, Failure> {
    let mut watch = FinishedWatch::default();
    match Scores::read(values, labels)? {
        Scores::Single(table) => watch.see(&table.values()),
        Scores::Double(table) => watch.see(&table.values()),
    }
    Ok(watch.looks_finished())
}
