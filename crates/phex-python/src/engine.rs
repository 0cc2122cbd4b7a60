//! The engine, for Python: arrays in, arrays out.

use numpy::{PyArray2, PyReadonlyArray1, PyUntypedArrayMethods};
use phex::infer::{self, Block, Evidence, RowStatus, Want};
use phex::learn::{self, Loss, Objective};
use phex::model::Model;
use phex_io::{IsingFormat, ising_to_string};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Cell, Scores, Table, evidence_of, matrix, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::options;
use crate::posterior::{Gradients, Plan, Posterior};
use crate::threads::detached;

/// A compiled model. `phex.Model` wraps it.
///
/// Scores are arrays of rows × labels of float32 or float64. Evidence is int8: 1 on, 0 off, -1 unknown.
#[pyclass(frozen, module = "phex._core")]
#[derive(Debug)]
pub(crate) struct Engine(infer::Engine);

/// Label sets of a row, and their log-weights.
type SetsOfRow<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Runs the same code for either type of scores.
macro_rules! for_either {
    ($scores:expr, $table:ident => $body:expr) => {
        match $scores {
            Scores::Single($table) => $body,
            Scores::Double($table) => $body,
        }
    };
}

fn block<'a, T: Cell>(
    labels: usize,
    scores: &'a [T],
    evidence: Option<&'a [Evidence]>,
) -> Block<'a, T> {
    let block = Block::new(labels, scores);
    match evidence {
        Some(evidence) => block.with_evidence(evidence),
        None => block,
    }
}

impl Engine {
    pub(crate) fn inner(&self) -> &infer::Engine {
        &self.0
    }

    fn labels(&self) -> usize {
        self.0.model().len()
    }

    /// Raises if a row has no answer.
    fn all_answered(&self, status: &[RowStatus]) -> Result<(), Failure> {
        let names = self.0.model().names();
        let mut rows = status.iter().enumerate();
        Ok(rows.try_for_each(|(row, status)| status.require_answer(row, names))?)
    }

    fn answer<T: Cell>(
        &self,
        py: Python<'_>,
        table: &Table<'_, T>,
        evidence: Option<&Bound<'_, PyAny>>,
        want: Want,
    ) -> Result<infer::Posterior<T>, Failure> {
        let evidence = evidence_of(evidence, table.rows, self.0.model().names())?;
        let scores = table.values();
        let block = block(self.labels(), &scores, evidence.as_deref());
        Ok(detached(py, || self.0.run(&block, want))??)
    }

    /// The scores in double precision, for best sets and samples.
    fn doubles(&self, scores: &Scores<'_>) -> Vec<f64> {
        match scores {
            Scores::Single(table) => table.values().iter().map(|&score| f64::from(score)).collect(),
            Scores::Double(table) => table.values().into_owned(),
        }
    }
}

fn rows_of(scores: &Scores<'_>) -> usize {
    for_either!(scores, table => table.rows)
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (graph, **arguments))]
    fn new(
        py: Python<'_>,
        graph: &Graph,
        arguments: Option<&Bound<'_, PyDict>>,
    ) -> Result<Engine, Failure> {
        let options = options::read(arguments)?;
        let compile = || infer::Engine::compile(Model::new(&graph.0)?, &options);
        Ok(Engine(detached(py, compile)??))
    }

    /// Which method was chosen, why, and what it costs.
    #[getter]
    fn plan(&self) -> Plan {
        Plan::new(self.0.plan())
    }

    /// How many terms have a cost: the columns of expectations.
    #[getter]
    fn terms(&self) -> usize {
        self.0.model().terms()
    }

    fn __len__(&self) -> usize {
        self.labels()
    }

    /// The probability of each label: rows × labels. Raises if a row has no answer.
    #[pyo3(signature = (logits, evidence=None))]
    fn marginals<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        for_either!(Scores::read(logits, self.labels())?, table => {
            let found = self.answer(py, &table, evidence, Want::default())?;
            self.all_answered(&found.status)?;
            matrix(py, found.marginals, table.rows, table.columns)
        })
    }

    /// The log-partition of each row; with evidence, over the states that agree with it.
    #[pyo3(signature = (logits, evidence=None))]
    fn log_partition<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        for_either!(Scores::read(logits, self.labels())?, table => {
            let found = self.answer(py, &table, evidence, Want::default())?;
            // An impossible row has a log-partition: minus infinity.
            let bad = |status: &RowStatus| match status {
                RowStatus::Impossible => RowStatus::Answered,
                other => *other,
            };
            self.all_answered(&found.status.iter().map(bad).collect::<Vec<_>>())?;
            Ok(vector(py, found.log_partition).into_any())
        })
    }

    /// All requested results. Rows without an answer are NaN and have a status.
    #[pyo3(signature = (logits, evidence=None, *, expectations=false, entropy=false,
                        standard_errors=false, bounds=false))]
    #[allow(clippy::too_many_arguments)] // They are keywords.
    fn run(
        &self,
        py: Python<'_>,
        logits: &Bound<'_, PyAny>,
        evidence: Option<&Bound<'_, PyAny>>,
        expectations: bool,
        entropy: bool,
        standard_errors: bool,
        bounds: bool,
    ) -> Result<Posterior, Failure> {
        let want = Want { expectations, entropy, standard_errors, bounds };
        for_either!(Scores::read(logits, self.labels())?, table => {
            Posterior::new(py, self.answer(py, &table, evidence, want)?, bounds)
        })
    }

    /// The most probable label set of each row: rows × labels. Raises if a row has no answer.
    #[pyo3(signature = (logits, evidence=None))]
    fn map<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let scores = Scores::read(logits, self.labels())?;
        let evidence = evidence_of(evidence, rows_of(&scores), self.0.model().names())?;
        let (scores, labels) = (self.doubles(&scores), self.labels());
        let block = block(labels, &scores, evidence.as_deref());
        let best = |row| match self.0.best(&block, row, 1)?.pop() {
            Some(best) => Ok(best.on),
            None => Err(phex::Error::Impossible { row }),
        };
        let rows = block.rows();
        let found = detached(py, || (0..rows).map(best).collect::<Result<Vec<_>, _>>())??;
        matrix(py, found.into_iter().flatten().collect(), rows, labels)
    }

    /// The `k` most probable label sets of each row, best first, with their log-weights.
    #[pyo3(signature = (logits, evidence=None, k=1))]
    fn best<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
        k: usize,
    ) -> Result<Vec<SetsOfRow<'py>>, Failure> {
        let scores = Scores::read(logits, self.labels())?;
        let evidence = evidence_of(evidence, rows_of(&scores), self.0.model().names())?;
        let (scores, labels) = (self.doubles(&scores), self.labels());
        let block = block(labels, &scores, evidence.as_deref());
        let found = detached(py, || {
            let rows = (0..block.rows()).map(|row| self.0.best(&block, row, k));
            rows.collect::<Result<Vec<_>, _>>()
        })??;
        let arrays = |sets: Vec<infer::LabelSet>| {
            let weights = sets.iter().map(|set| set.log_weight).collect();
            let count = sets.len();
            let on = sets.into_iter().flat_map(|set| set.on).collect();
            Ok((matrix(py, on, count, labels)?, vector(py, weights).into_any()))
        };
        found.into_iter().map(arrays).collect()
    }

    /// Label sets drawn from the distribution of each row: rows × count × labels.
    #[pyo3(signature = (logits, evidence=None, count=1, seed=0))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
        count: usize,
        seed: u64,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let scores = Scores::read(logits, self.labels())?;
        let evidence = evidence_of(evidence, rows_of(&scores), self.0.model().names())?;
        let (scores, labels) = (self.doubles(&scores), self.labels());
        let block = block(labels, &scores, evidence.as_deref());
        let rows = block.rows();
        let found = detached(py, || {
            let rows = (0..rows).map(|row| self.0.sample(&block, row, count, seed));
            rows.collect::<Result<Vec<_>, _>>()
        })??;
        if let Some(row) = found.iter().position(|sets| sets.len() != count) {
            return Err(phex::Error::Impossible { row }.into());
        }
        let on: Vec<bool> = found.into_iter().flatten().flatten().collect();
        let flat = matrix(py, on, rows * count, labels)?;
        Ok(flat.call_method1("reshape", ((rows, count, labels),))?)
    }

    /// The loss of the evidence of each row, and its gradient.
    #[pyo3(signature = (logits, evidence, weights=None, *, loss="joint", costs=false))]
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        evidence: &Bound<'py, PyAny>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        loss: &str,
        costs: bool,
    ) -> Result<Gradients, Failure> {
        let loss: Loss = options::named("loss", loss)?;
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let objective = Objective { loss, costs };
        for_either!(Scores::read(logits, self.labels())?, table => {
            let evidence = evidence_of(Some(evidence), table.rows, self.0.model().names())?;
            let scores = table.values();
            let block = block(self.labels(), &scores, evidence.as_deref());
            let work = || learn::gradients(&self.0, &block, weights.as_deref(), objective);
            Gradients::new(py, detached(py, work)??, self.labels())
        })
    }

    /// For each row, the covariance of its labels times its vector: the derivative of marginals.
    #[pyo3(signature = (logits, vectors, evidence=None))]
    fn covariance_product<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        vectors: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        for_either!(Scores::read(logits, self.labels())?, table => {
            self.covariance(py, &table, vectors, evidence)
        })
    }

    /// The energy of one row as a dimod model in JSON. Hard relations cost `hard`, or a sufficient cost.
    #[pyo3(signature = (logits, hard=None))]
    fn to_bqm(
        &self,
        logits: PyReadonlyArray1<'_, f64>,
        hard: Option<f64>,
    ) -> Result<String, Failure> {
        let (expected, found) = (self.labels(), logits.len());
        if found != expected {
            return Err(phex::Error::Columns { expected, found }.into());
        }
        let scores = logits.as_array().to_vec();
        let model = self.0.model();
        if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
            return Err(phex::Error::BadScore { row: 0, label: model.names()[at].clone() }.into());
        }
        if let Some(hard) = hard.filter(|hard| !(0.0..f64::INFINITY).contains(hard)) {
            return Err(Failure::Input(format!("hard is {hard}, but must be 0 or more")));
        }
        let hard = hard.unwrap_or_else(|| model.hard_cost(&scores));
        Ok(ising_to_string(&model.to_ising(&scores, Some(hard))?, IsingFormat::Bqm)?)
    }
}

impl Engine {
    fn covariance<'py, T: Cell>(
        &self,
        py: Python<'py>,
        table: &Table<'py, T>,
        vectors: &Bound<'py, PyAny>,
        evidence: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let vectors = vectors.cast::<PyArray2<T>>().map_err(|_| {
            Failure::input("the vectors must be an array of the shape and type of the scores")
        })?;
        let vectors = Table::of(vectors, self.labels())?;
        let evidence = evidence_of(evidence, table.rows, self.0.model().names())?;
        let (scores, vectors) = (table.values(), vectors.values());
        let block = block(self.labels(), &scores, evidence.as_deref());
        let work = || learn::covariance_product(&self.0, &block, &vectors);
        matrix(py, detached(py, work)??, table.rows, table.columns)
    }
}
