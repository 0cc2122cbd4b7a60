//! Heads over features that are trained through the relations, for Python.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use phex::infer::{Evidence, Options};
use phex_io::{
    Bundle, FeatureColumn, FeatureKind, FeatureSchema, Features, ModelCard, Target, Targets,
    Tensor, TensorData,
};
use phex_train::{
    Config, EpochRecord, Error, Examples, Flow, Observer, Progress, TrainedModel, Trainer,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::arrays::{Table, matrix, read_known, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::threads::detached;

/// How often a run looks whether someone pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);
/// Rows that are predicted at a time.
const PIECE: usize = 4096;

/// A linear map or a small network from features to logits, with what it was trained through.
#[pyclass(frozen, module = "phex._core")]
#[derive(Debug)]
pub(crate) struct Head(TrainedModel);

/// Calls back to Python after each epoch; a callback that returns something true ends the run.
struct Watch {
    callback: Option<Py<PyAny>>,
    looked: Instant,
    stopped: bool,
    raised: Option<PyErr>,
}

impl Observer for Watch {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.looked.elapsed() > LOOK {
            self.looked = Instant::now();
            self.raised = self.raised.take().or(Python::attach(|py| py.check_signals().err()));
        }
        if self.stopped || self.raised.is_some() { Flow::Stop } else { Flow::Continue }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        let Some(callback) = &self.callback else { return };
        let text = serde_json::to_string(record).unwrap_or_default();
        let answer = Python::attach(|py| callback.bind(py).call1((text,))?.is_truthy());
        match answer {
            Ok(stop) => self.stopped = stop,
            Err(error) => self.raised = Some(error),
        }
    }
}

fn features(value: &Bound<'_, PyAny>, columns: Option<usize>) -> Result<Features, Failure> {
    let array = value.cast::<PyArray2<f32>>().map_err(|_| {
        Failure::input(
            "features have to be an array of two dimensions (rows × features) of float32",
        )
    })?;
    let found = array.shape()[1];
    if let Some(expected) = columns.filter(|&expected| expected != found) {
        let message = format!("there are {found} features, but the head was trained on {expected}");
        return Err(Failure::Input(message));
    }
    let table = Table::of(array, found)?;
    Ok(Features {
        names: numbered(found),
        rows: table.rows,
        columns: found,
        values: table.values().into_owned(),
    })
}

/// Names for features that have none.
fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("f{at}")).collect()
}

fn targets(known: &[Evidence], labels: usize) -> Targets {
    let mut targets = Targets::new(labels);
    for row in known.chunks_exact(labels) {
        let entries = row.iter().enumerate().filter(|(_, entry)| **entry != Evidence::Unknown);
        let entry = |(at, entry): (usize, &Evidence)| Target {
            label: at as u32,
            on: *entry == Evidence::On,
        };
        targets.push(&entries.map(entry).collect::<Vec<_>>(), false);
    }
    targets
}

fn written(error: &serde_json::Error) -> Failure {
    Failure::Input(format!("the configuration cannot be used: {error}"))
}

#[pymethods]
impl Head {
    /// Trains on features (float32) and what is known of labels (int8), by a configuration in JSON.
    ///
    /// `on_epoch` is called with the record of each epoch in JSON; what it returns, if true, stops.
    /// `warm_up` puts the stage before all others that the rows ask for.
    #[staticmethod]
    #[pyo3(signature = (graph, features, known, config, weights=None, on_epoch=None, warm_up=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn train<'py>(
        py: Python<'py>,
        graph: &Graph,
        features: &Bound<'py, PyAny>,
        known: &Bound<'py, PyAny>,
        config: &str,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        on_epoch: Option<Py<PyAny>>,
        warm_up: bool,
    ) -> Result<Head, Failure> {
        let config: Config = serde_json::from_str(config).map_err(|error| written(&error))?;
        let features = self::features(features, None)?;
        let names: Vec<String> = graph.0.labels().iter().map(|label| label.name.clone()).collect();
        let known = read_known(Some(known), features.rows, &names)?.unwrap_or_default();
        let targets = targets(&known, names.len());
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let mut watch =
            Watch { callback: on_epoch, looked: Instant::now(), stopped: false, raised: None };
        let trained = detached(py, || {
            let examples = Examples::new(&features, &targets, &graph.0)?;
            let config = if warm_up { config.with_warm_up(&examples, &graph.0) } else { config };
            let mut trainer = Trainer::new(config, &graph.0, &Options::default(), examples, None)?;
            if let Some(weights) = &weights {
                trainer.weigh(weights)?;
            }
            trainer.run(&mut watch)
        })?;
        match (trained, watch.raised) {
            (_, Some(error)) => Err(Failure::Python(error)),
            (Err(Error::Interrupted), None) => {
                Err(Failure::input("`on_epoch` stopped the training"))
            }
            (trained, None) => Ok(Head(trained?)),
        }
    }

    /// Reads a bundle that `phex train` or `save` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Head, Failure> {
        Ok(Head(py.detach(|| TrainedModel::read(&path))?))
    }

    /// Writes a bundle: a folder that `phex predict` reads.
    ///
    /// `names` are the columns that it looks for in a table; `f0`, `f1` and so on unless given.
    #[pyo3(signature = (path, names=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        names: Option<Vec<String>>,
    ) -> Result<(), Failure> {
        let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let card = ModelCard {
            title,
            uses: String::from(
                "`phex predict` and `phex.sklearn.RelationClassifier.load` read it.",
            ),
            training: format!(
                "A head over {} features, trained from Python. `config.json` has all settings and what \
                 became of each epoch.",
                self.columns()
            ),
            tags: Vec::new(),
            evaluation: Vec::new(),
            limits: String::new(),
        };
        let mut model = self.0.clone();
        if let Some(names) =
            names.or_else(|| model.schema.is_none().then(|| numbered(self.columns())))
        {
            let (expected, found) = (self.columns(), names.len());
            if found != expected {
                return Err(phex::Error::Shape { what: "the names", expected, found }.into());
            }
            let column = |name| FeatureColumn { name, kind: FeatureKind::Numeric };
            model.schema = Some(FeatureSchema { columns: names.into_iter().map(column).collect() });
        }
        let bundle = model.to_bundle(card.markdown(&self.0.graph))?;
        Ok(py.detach(|| phex_io::write_bundle(&path, &bundle))?)
    }

    /// The relations, with the strengths of the last stage or those learned.
    #[getter]
    fn graph(&self) -> Graph {
        Graph::new(self.0.graph.clone())
    }

    /// How it was trained, in JSON.
    #[getter]
    fn config(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.0.config).map_err(|error| written(&error))
    }

    /// What became of each epoch, in JSON.
    #[getter]
    fn history(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.0.history).map_err(|error| written(&error))
    }

    /// The names of its features, where they are known.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.0.schema.as_ref().map(FeatureSchema::names)
    }

    /// How many features it takes.
    #[getter]
    fn columns(&self) -> usize {
        self.0.standardiser.columns()
    }

    /// The logits of each row: rows × labels.
    fn logits<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let features = self::features(features, Some(self.columns()))?;
        let values = detached(py, || self.0.logits(&features, 0..features.rows))??;
        matrix(py, values, features.rows, self.0.graph.len())
    }

    /// The probability of each label, through the engine that it was trained through: rows × labels.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let features = self::features(features, Some(self.columns()))?;
        let values = detached(py, || -> Result<Vec<f32>, Error> {
            let predictor = self.0.predictor(&Options::default())?;
            let mut values = Vec::with_capacity(features.rows * self.0.graph.len());
            for start in (0..features.rows).step_by(PIECE) {
                let rows = start..(start + PIECE).min(features.rows);
                values.extend(predictor.probabilities(&features, rows)?);
            }
            Ok(values)
        })??;
        matrix(py, values, features.rows, self.0.graph.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<Pickled<'py>, Failure> {
        let py = slf.py();
        let bundle = slf.get().0.to_bundle(String::new())?;
        let tensors = PyDict::new(py);
        for (name, tensor) in bundle.tensors {
            if let TensorData::F32(values) = tensor.data {
                let flat = vector(py, values).into_any();
                tensors.set_item(name, flat.call_method1("reshape", (tensor.shape,))?)?;
            }
        }
        let restore = slf.get_type().getattr("_restore")?;
        let config = Value::Object(bundle.config).to_string();
        Ok((restore, (config, Graph::new(bundle.graph), tensors)))
    }

    /// For pickle.
    #[staticmethod]
    fn _restore(config: &str, graph: &Graph, tensors: &Bound<'_, PyDict>) -> Result<Head, Failure> {
        let config = serde_json::from_str(config).map_err(|error| written(&error))?;
        let mut read = BTreeMap::new();
        for (name, values) in tensors.iter() {
            let values: PyReadonlyArrayDyn<'_, f32> = values.extract()?;
            let data = TensorData::F32(values.as_array().iter().copied().collect());
            read.insert(name.extract::<String>()?, Tensor { shape: values.shape().to_vec(), data });
        }
        let graph = (*graph.0).clone();
        let bundle = Bundle { config, graph, tensors: read, card: String::new() };
        Ok(Head(TrainedModel::from_bundle(&bundle)?))
    }

    fn __repr__(&self) -> String {
        format!("<Head from {} features to {} labels>", self.columns(), self.0.graph.len())
    }
}

/// What pickle keeps: a function and its arguments.
type Pickled<'py> = (Bound<'py, PyAny>, (String, Graph, Bound<'py, PyDict>));
