//! A trained model: from features to consistent probabilities, in memory and as a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use phex::graph::RelationGraph;
use phex::infer::{Accelerator, Options, Want};
use phex_io::{Bundle, FeatureSchema, Features, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::baselines::Baselines;
use crate::config::Config;
use crate::features::Standardiser;
use crate::head::Head;
use crate::objective::Objective;
use crate::trainer::EpochRecord;

/// A trained head with its relations.
#[derive(Debug, Clone)]
pub struct TrainedModel {
    /// The settings that it was trained with.
    pub config: Config,
    /// The relations, with the strengths of the last stage or those learned.
    pub graph: RelationGraph,
    /// From standardised features to logits.
    pub head: Head,
    /// The mean and the deviation of each feature.
    pub standardiser: Standardiser,
    /// The epoch of these weights, if validation chose one.
    pub best_epoch: Option<usize>,
    /// The record of each epoch.
    pub history: Vec<EpochRecord>,
    /// The columns of the table that the features came from, if known.
    pub schema: Option<FeatureSchema>,
    /// What it has to beat, if that was kept.
    pub baselines: Option<Baselines>,
}

/// A trained model with a compiled engine.
#[derive(Debug)]
pub struct Predictor<'a> {
    pub(crate) model: &'a TrainedModel,
    objective: Objective,
}

impl TrainedModel {
    /// Compiles the relations for prediction.
    ///
    /// # Errors
    /// When no engine can handle the graph.
    pub fn predictor(&self, options: &Options) -> Result<Predictor<'_>, Error> {
        let objective = Objective::new(self.config.objective, &self.graph, options)?;
        Ok(Predictor::new(self, objective))
    }

    /// The logits of some rows.
    ///
    /// # Errors
    /// [`Error::Examples`] when the table has another number of features.
    pub fn logits(
        &self,
        features: &Features,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<f32>, Error> {
        self.standardiser.check(features)?;
        let mut values = Vec::with_capacity(rows.len() * features.columns);
        rows.for_each(|row| self.standardiser.push(features.row(row), &mut values));
        Ok(self.head.logits(&values))
    }

    /// The model as a bundle with this card.
    ///
    /// # Errors
    /// When the configuration cannot be written as JSON.
    pub fn to_bundle(&self, card: String) -> Result<Bundle, Error> {
        let config = BundleConfig {
            config: self.config.clone(),
            inputs: self.head.inputs(),
            best_epoch: self.best_epoch,
            history: self.history.clone(),
            schema: self.schema.clone(),
        };
        let config = match serde_json::to_value(config) {
            Ok(serde_json::Value::Object(config)) => config,
            Ok(_) => return Err(Error::Model { message: String::from("it has no configuration") }),
            Err(error) => return Err(Error::Model { message: error.to_string() }),
        };
        let mut tensors = BTreeMap::new();
        let layout = self.head.layout();
        let weights = layout.weights.iter().map(|part| (part, &self.head.weights));
        let averages = layout.averages.iter().map(|part| (part, &self.head.averages));
        for (part, values) in weights.chain(averages) {
            let data = TensorData::F32(values[part.range.clone()].to_vec());
            tensors.insert(part.name.clone(), Tensor { shape: part.shape.clone(), data });
        }
        for (name, values) in [
            ("features.mean", &self.standardiser.mean),
            ("features.deviation", &self.standardiser.deviation),
        ] {
            let data = TensorData::F32(values.clone());
            tensors.insert(String::from(name), Tensor { shape: vec![values.len()], data });
        }
        self.baselines.iter().for_each(|baselines| baselines.write(&mut tensors));
        Ok(Bundle { config, graph: self.graph.clone(), tensors, card })
    }

    /// The model of a bundle.
    ///
    /// # Errors
    /// [`Error::Model`] when a part is missing or inconsistent with the others.
    pub fn from_bundle(bundle: &Bundle) -> Result<TrainedModel, Error> {
        let written: BundleConfig = serde_json::from_value(bundle.config.clone().into())
            .map_err(|error| Error::Model { message: format!("config.json: {error}") })?;
        written.config.check()?;
        let read = |name: &str, shape: &[usize]| -> Result<&[f32], Error> {
            match bundle.tensors.get(name) {
                Some(Tensor { shape: found, data: TensorData::F32(values) }) if found == shape => {
                    match values.iter().position(|value| !value.is_finite()) {
                        None => Ok(values),
                        Some(at) => Err(Error::Model {
                            message: format!(
                                "the tensor `{name}` has the value {} at {at}",
                                values[at]
                            ),
                        }),
                    }
                }
                Some(tensor) => Err(Error::Model {
                    message: format!(
                        "the tensor `{name}` has the shape {:?} instead of {shape:?}",
                        tensor.shape
                    ),
                }),
                None => Err(Error::Model { message: format!("the tensor `{name}` is missing") }),
            }
        };
        let inputs = written.inputs;
        // The configuration must not claim more weights than there are.
        let size = written.config.head.size(inputs, bundle.graph.len())?;
        let found = bundle.tensors.values().map(|tensor| tensor.data.len()).sum::<usize>();
        if size > found.saturating_mul(6) {
            let message = format!(
                "config.json describes a head from {inputs} features, and the tensors hold {found} numbers only"
            );
            return Err(Error::Model { message });
        }
        let mut head = Head::of_graph(&written.config.head, inputs, &bundle.graph, 0);
        let layout = head.layout().clone();
        for part in &layout.weights {
            head.weights[part.range.clone()].copy_from_slice(read(&part.name, &part.shape)?);
        }
        for part in &layout.averages {
            head.averages[part.range.clone()].copy_from_slice(read(&part.name, &part.shape)?);
        }
        let standardiser = Standardiser {
            mean: read("features.mean", &[inputs])?.to_vec(),
            deviation: read("features.deviation", &[inputs])?.to_vec(),
            clip: match written.config.head.feature_clip {
                0.0 => f32::MAX,
                clip => clip as f32,
            },
        };
        let mut model = TrainedModel {
            config: written.config,
            graph: bundle.graph.clone(),
            head,
            standardiser,
            best_epoch: written.best_epoch,
            history: written.history,
            schema: written.schema,
            baselines: None,
        };
        model.baselines = Baselines::read(&bundle.tensors, &model, read)?;
        Ok(model)
    }

    /// The same model with the head of another one, trained in the same way on more rows.
    pub(crate) fn with_head_of(self, other: Option<TrainedModel>) -> TrainedModel {
        match other {
            Some(TrainedModel { head, standardiser, .. }) => {
                TrainedModel { head, standardiser, ..self }
            }
            None => self,
        }
    }

    /// Reads the model of a folder.
    ///
    /// # Errors
    /// When the folder is not a bundle of a trained model.
    pub fn read(folder: &Path) -> Result<TrainedModel, Error> {
        TrainedModel::from_bundle(&phex_io::read_bundle(folder)?)
    }
}

/// The model's part of `config.json`.
#[derive(Debug, Serialize, Deserialize)]
struct BundleConfig {
    #[serde(rename = "training")]
    config: Config,
    inputs: usize,
    best_epoch: Option<usize>,
    history: Vec<EpochRecord>,
    schema: Option<FeatureSchema>,
}

impl<'a> Predictor<'a> {
    pub(crate) fn new(model: &'a TrainedModel, objective: Objective) -> Predictor<'a> {
        Predictor { model, objective }
    }

    /// The same predictor with probabilities computed on a device. Best label sets stay on the CPU.
    ///
    /// # Errors
    /// The device's error for an engine that it does not support; [`Error::NothingToAccelerate`] for
    /// baselines.
    pub fn on(self, accelerator: &dyn Accelerator) -> Result<Self, Error> {
        let objective = self.objective.on(accelerator, Want::default())?;
        Ok(Predictor { objective, ..self })
    }

    /// The probability of each label in some rows.
    ///
    /// # Errors
    /// [`Error::Examples`] when the table has another number of features.
    pub fn probabilities(
        &self,
        features: &Features,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<f32>, Error> {
        self.objective.probabilities(&self.model.logits(features, rows)?)
    }

    /// The engine, if the objective has relations.
    pub fn engine(&self) -> Option<&phex::infer::Engine> {
        self.objective.engine()
    }
}
