//! Heads over features, trained through relations, for Python.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use phex::infer::{Evidence, Options};
use phex_io::{
    Bundle, FeatureColumn, FeatureKind, FeatureSchema, Features, Target, Targets, Tensor,
    TensorData,
};
use phex_train::{
    EpochRecord, Error, Examples, Flow, Observer, Progress, Recipe, RunFolder, TrainedModel,
    Trainer, TrainingChoices,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::arrays::{Table, evidence_of, matrix, vector};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::threads::detached;

/// Time between checks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);

/// A linear map or a small network from features to logits, with the relations of its labels.
#[pyclass(frozen, module = "phex._core")]
#[derive(Debug)]
pub(crate) struct Head(TrainedModel);

/// Calls Python after each epoch. If the callback returns a true value, the run stops.
struct PythonObserver {
    callback: Option<Py<PyAny>>,
    checked: Instant,
    stopped: bool,
    raised: Option<PyErr>,
}

impl Observer for PythonObserver {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.checked.elapsed() > SIGNALS {
            self.checked = Instant::now();
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
        Failure::input("features must be an array of two dimensions (rows × features) of float32")
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

/// Default names of features.
fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("f{at}")).collect()
}

/// The columns of this many features, with the given names or default ones.
fn schema(names: Option<Vec<String>>, features: usize) -> Result<FeatureSchema, Failure> {
    let names = names.unwrap_or_else(|| numbered(features));
    if names.len() != features {
        let (expected, found) = (features, names.len());
        return Err(phex::Error::Shape { what: "the names", expected, found }.into());
    }
    let column = |name| FeatureColumn { name, kind: FeatureKind::Numeric };
    Ok(FeatureSchema { columns: names.into_iter().map(column).collect() })
}

/// Targets of rows of evidence.
pub(crate) fn targets(evidence: &[Evidence], labels: usize) -> Targets {
    let mut targets = Targets::new(labels);
    for row in evidence.chunks_exact(labels) {
        let entries = row.iter().enumerate().filter(|(_, entry)| **entry != Evidence::Unknown);
        let entry = |(at, entry): (usize, &Evidence)| Target {
            label: at as u32,
            on: *entry == Evidence::On,
        };
        targets.push(&entries.map(entry).collect::<Vec<_>>(), false);
    }
    targets
}

fn json(error: &serde_json::Error) -> Failure {
    Failure::Input(format!("the settings cannot be used: {error}"))
}

#[pymethods]
impl Head {
    /// Trains on features (float32) and evidence of labels (int8), by the choices of a user in JSON.
    ///
    /// `on_epoch` is called with the record of each epoch in JSON. If it returns a true value, the run
    /// stops. `run_folder` keeps checkpoints, so that the same call resumes an interrupted run, and
    /// finally the model. `names` are the columns of its features (default: `f0`, `f1` and so on).
    #[staticmethod]
    #[pyo3(signature = (graph, features, evidence, choices, weights=None, on_epoch=None, run_folder=None, names=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn train<'py>(
        py: Python<'py>,
        graph: &Graph,
        features: &Bound<'py, PyAny>,
        evidence: &Bound<'py, PyAny>,
        choices: &str,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        on_epoch: Option<Py<PyAny>>,
        run_folder: Option<PathBuf>,
        names: Option<Vec<String>>,
    ) -> Result<Head, Failure> {
        let choices: TrainingChoices =
            serde_json::from_str(choices).map_err(|error| json(&error))?;
        let features = self::features(features, None)?;
        let schema = schema(names, features.columns)?;
        let labels: Vec<String> = graph.0.labels().iter().map(|label| label.name.clone()).collect();
        let evidence = evidence_of(Some(evidence), features.rows, &labels)?.unwrap_or_default();
        let targets = targets(&evidence, labels.len());
        let weights = weights.map(|weights| weights.as_array().to_vec());
        let mut observer = PythonObserver {
            callback: on_epoch,
            checked: Instant::now(),
            stopped: false,
            raised: None,
        };
        let trained = detached(py, || {
            let folder = run_folder.as_deref().map(RunFolder::open).transpose()?;
            let examples = Examples::new(&features, &targets, &graph.0)?;
            let config = Recipe::STANDARD.config(&choices, &examples, &graph.0)?;
            let mut trainer = Trainer::new(config, &graph.0, &Options::default(), examples, None)?;
            if let Some(weights) = &weights {
                trainer.weigh(weights)?;
            }
            match folder {
                Some(folder) => folder.run(trainer, "fit", schema, &mut observer),
                None => trainer.run(&mut observer),
            }
        })?;
        match (trained, observer.raised) {
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
    /// `names` are the columns of its features in a table (default: `f0`, `f1` and so on).
    #[pyo3(signature = (path, names=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        names: Option<Vec<String>>,
    ) -> Result<(), Failure> {
        let mut model = self.0.clone();
        if names.is_some() || model.schema.is_none() {
            model.schema = Some(schema(names, self.columns())?);
        }
        let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let card = model.card(title);
        let bundle = model.to_bundle(card.markdown(&self.0.graph))?;
        Ok(py.detach(|| phex_io::write_bundle(&path, &bundle))?)
    }

    /// The relations, with the strengths of the last stage or the learned ones.
    #[getter]
    fn graph(&self) -> Graph {
        Graph::new(self.0.graph.clone())
    }

    /// The settings of its training, in JSON.
    #[getter]
    fn config(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.0.config).map_err(|error| json(&error))
    }

    /// The record of each epoch, in JSON.
    #[getter]
    fn history(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.0.history).map_err(|error| json(&error))
    }

    /// The names of its features, or `None`.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.0.schema.as_ref().map(FeatureSchema::names)
    }

    /// The number of features.
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

    /// The probability of each label, computed by the engine of training: rows × labels.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        features: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let features = self::features(features, Some(self.columns()))?;
        let values = detached(py, || -> Result<Vec<f32>, Error> {
            self.0.predictor(&Options::default())?.predict(&features)
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
        let config = serde_json::from_str(config).map_err(|error| json(&error))?;
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

/// For pickle: a function and its arguments.
type Pickled<'py> = (Bound<'py, PyAny>, (String, Graph, Bound<'py, PyDict>));
