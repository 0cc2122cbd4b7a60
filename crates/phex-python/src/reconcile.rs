//! Reconciling, for Python: arrays in, arrays out.

use numpy::PyReadonlyArray1;
use phex::Named as _;
use phex::graph::RelationGraph;
use phex::infer::Trust;
use phex::reconcile::{
    self, FinishedRows, FinishedWatch, FitForm, FitOptions, ReconcileEngine, ReconcileLoss,
    ReconcileOptions, refuse_softmax,
};
use pyo3::prelude::*;

use crate::arrays::{Cell, Scores, Table, evidence_of, matrix, vector};
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
    compiled: Compiled,
}

/// A reconciler, fitted or not.
#[derive(Debug)]
enum Compiled {
    Plain(reconcile::Reconciler),
    Fitted(reconcile::FittedReconciler),
}

impl Compiled {
    fn reconciler(&self) -> &reconcile::Reconciler {
        match self {
            Compiled::Plain(reconciler) => reconciler,
            Compiled::Fitted(fitted) => fitted.reconciler(),
        }
    }

    fn run<T: Cell>(
        &self,
        rows: FinishedRows<'_, T>,
    ) -> Result<reconcile::Reconciled<T>, phex::Error> {
        match self {
            Compiled::Plain(reconciler) => reconciler.run(rows),
            Compiled::Fitted(fitted) => fitted.run(rows),
        }
    }

    fn gradient<T: Cell>(
        &self,
        rows: FinishedRows<'_, T>,
        answer: &[T],
        upstream: &[T],
    ) -> Result<Vec<T>, phex::Error> {
        match self {
            Compiled::Plain(reconciler) => reconciler.gradient(rows, answer, upstream),
            Compiled::Fitted(fitted) => fitted.gradient(rows, answer, upstream),
        }
    }
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
        let compiled = Compiled::Plain(reconciler);
        Ok(ReconcilerCore { graph: (*graph.0).clone(), compiled })
    }

    /// Fits temperatures and weights of levels to labelled rows that the classifier has not seen.
    #[pyo3(signature = (values, evidence, *, logits=false, forms=None, folds=None, noise=None, rows=None))]
    #[allow(clippy::too_many_arguments)] // They are keywords.
    fn fit(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        evidence: &Bound<'_, PyAny>,
        logits: bool,
        forms: Option<Vec<String>>,
        folds: Option<u32>,
        noise: Option<f64>,
        rows: Option<usize>,
    ) -> Result<ReconcilerCore, Failure> {
        let standard = FitOptions::default();
        let forms = forms.unwrap_or_default();
        let forms = forms.iter().map(|name| FitForm::from_name(name)).collect::<Result<_, _>>()?;
        let options = FitOptions {
            reconcile: self.compiled.reconciler().options().clone(),
            forms,
            folds: folds.unwrap_or(standard.folds),
            noise: noise.unwrap_or(standard.noise),
            rows: rows.unwrap_or(standard.rows),
        };
        let fitted = match Scores::read(values, self.__len__())? {
            Scores::Single(table) => self.fitted(py, &table, evidence, logits, &options)?,
            Scores::Double(table) => self.fitted(py, &table, evidence, logits, &options)?,
        };
        Ok(ReconcilerCore { graph: self.graph.clone(), compiled: Compiled::Fitted(fitted) })
    }

    /// A fitted reconciler from its parameters as JSON.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        graph: &Graph,
        parameters: &str,
        tolerance: Option<f64>,
        passes: Option<u32>,
    ) -> Result<ReconcilerCore, Failure> {
        let parameters = serde_json::from_str(parameters)
            .map_err(|error| Failure::Input(format!("parameters of a fit: {error}")))?;
        let standard = ReconcileOptions::default();
        let options = ReconcileOptions {
            tolerance: tolerance.unwrap_or(standard.tolerance),
            passes: passes.unwrap_or(standard.passes),
            ..standard
        };
        let restore =
            || reconcile::FittedReconciler::from_parameters(&graph.0, &parameters, &options);
        let compiled = Compiled::Fitted(detached(py, restore)??);
        Ok(ReconcilerCore { graph: (*graph.0).clone(), compiled })
    }

    /// The fitted parameters as JSON; none without a fit.
    #[getter]
    fn parameters(&self) -> Option<String> {
        match &self.compiled {
            Compiled::Plain(_) => None,
            Compiled::Fitted(fitted) => serde_json::to_string(fitted.parameters()).ok(),
        }
    }

    /// What the fit saw, as JSON and as a table; none without a fit, or if it was loaded.
    #[getter]
    fn report(&self) -> Option<(String, String)> {
        let Compiled::Fitted(fitted) = &self.compiled else { return None };
        let report = fitted.report()?;
        Some((serde_json::to_string(report).ok()?, report.to_string()))
    }

    /// Which engine handles which part, and why.
    #[getter]
    fn plan(&self) -> ReconcilePlan {
        ReconcilePlan::new(self.compiled.reconciler().plan())
    }

    fn __len__(&self) -> usize {
        self.compiled.reconciler().names().len()
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

    /// The derivatives with respect to rows, from `upstream`, those with respect to `probabilities`,
    /// which `run` made of these rows. All three are arrays of the same type.
    #[pyo3(signature = (values, probabilities, upstream, *, logits=false))]
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        probabilities: &Bound<'py, PyAny>,
        upstream: &Bound<'py, PyAny>,
        logits: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let read = |array| Scores::read(array, self.__len__());
        match (read(values)?, read(probabilities)?, read(upstream)?) {
            (Scores::Single(values), Scores::Single(answer), Scores::Single(upstream)) => {
                self.derived(py, [&values, &answer, &upstream], logits)
            }
            (Scores::Double(values), Scores::Double(answer), Scores::Double(upstream)) => {
                self.derived(py, [&values, &answer, &upstream], logits)
            }
            _ => Err(Failure::input(
                "the values, the probabilities and the derivatives must have the same type",
            )),
        }
    }
}

impl ReconcilerCore {
    fn fitted<T: Cell>(
        &self,
        py: Python<'_>,
        table: &Table<'_, T>,
        evidence: &Bound<'_, PyAny>,
        logits: bool,
        options: &FitOptions,
    ) -> Result<reconcile::FittedReconciler, Failure> {
        let evidence = evidence_of(Some(evidence), table.rows, self.compiled.reconciler().names())?;
        let values = table.values();
        let rows = finished(&values, logits);
        let evidence = evidence.unwrap_or_default();
        Ok(detached(py, || reconcile::fit(&self.graph, rows, &evidence, options))??)
    }

    fn derived<'py, T: Cell>(
        &self,
        py: Python<'py>,
        tables: [&Table<'_, T>; 3],
        logits: bool,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let [values, answer, upstream] = tables.map(Table::values);
        let rows = finished(&values, logits);
        let found = detached(py, || self.compiled.gradient(rows, &answer, &upstream))??;
        matrix(py, found, tables[0].rows, tables[0].columns)
    }

    fn answer<T: Cell>(
        &self,
        py: Python<'_>,
        table: &Table<'_, T>,
        logits: bool,
    ) -> Result<ReconciledRows, Failure> {
        let values = table.values();
        let rows = finished(&values, logits);
        let found = detached(py, || self.compiled.run(rows))??;
        refuse_softmax(&self.graph, rows, &found)?;
        ReconciledRows::new(py, found)
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
