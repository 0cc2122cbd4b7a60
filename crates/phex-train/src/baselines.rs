//! What a model has to beat, kept with it so that later data can be judged by the same measure.
//!
//! A bundle holds the label frequencies of the training rows and, for linear heads, a second head: sums of
//! leaves, a softmax over the leaves in which a label above is the sum of its leaves, trained on the same
//! rows in the same stages. They are tensors beside the weights: `baselines.frequencies` and
//! `baselines.leaf_sums.*`. A bundle without them is as good; its model is compared with the frequencies of
//! the rows at hand alone.

use std::collections::BTreeMap;

use phex_io::{Tensor, TensorData};

use crate::Error;
use crate::config::{Config, ObjectiveConfig, StrengthConfig, StrengthSetting};
use crate::head::Head;
use crate::model::TrainedModel;

/// The tensor of label frequencies.
const FREQUENCIES: &str = "baselines.frequencies";
/// How the names of the tensors of sums of leaves begin.
const LEAF_SUMS: &str = "baselines.leaf_sums.";

/// What a model has to beat.
#[derive(Debug, Clone, PartialEq)]
pub struct Baselines {
    /// How often each label is on in the training rows.
    pub(crate) frequencies: Vec<f32>,
    /// The head of sums of leaves, for features standardised as those of the model.
    pub(crate) leaf_sums: Option<Head>,
}

impl Baselines {
    /// Adds their tensors to those of a bundle.
    pub(crate) fn write(&self, tensors: &mut BTreeMap<String, Tensor>) {
        let frequencies = Tensor::f32(&[self.frequencies.len()], self.frequencies.clone());
        tensors.insert(String::from(FREQUENCIES), frequencies);
        if let Some(head) = &self.leaf_sums {
            for part in &head.layout().weights {
                let values = head.weights[part.range.clone()].to_vec();
                let tensor = Tensor { shape: part.shape.clone(), data: TensorData::F32(values) };
                tensors.insert(format!("{LEAF_SUMS}{}", part.name), tensor);
            }
        }
    }

    /// The baselines among the tensors of a bundle, if it has any. `read` checks one; `model` has the
    /// settings, the graph and the number of features.
    ///
    /// # Errors
    /// [`Error::Model`] when one is damaged or does not fit the model.
    pub(crate) fn read<'t>(
        tensors: &'t BTreeMap<String, Tensor>,
        model: &TrainedModel,
        read: impl Fn(&str, &[usize]) -> Result<&'t [f32], Error>,
    ) -> Result<Option<Baselines>, Error> {
        if !tensors.contains_key(FREQUENCIES) {
            return Ok(None);
        }
        let frequencies = read(FREQUENCIES, &[model.graph.len()])?.to_vec();
        if let Some(at) = frequencies.iter().position(|value| !(0.0..=1.0).contains(value)) {
            let message =
                format!("the tensor `{FREQUENCIES}` has the value {} at {at}", frequencies[at]);
            return Err(Error::Model { message });
        }
        let has_sums = tensors.keys().any(|name| name.starts_with(LEAF_SUMS));
        let leaf_sums = (has_sums && model.config.head.hidden.is_empty()).then(|| {
            let config = leaf_sums_config(&model.config).head;
            let mut head = Head::of_graph(&config, model.head.inputs(), &model.graph, 0);
            for part in &head.layout().clone().weights {
                let values = read(&format!("{LEAF_SUMS}{}", part.name), &part.shape)?;
                head.weights[part.range.clone()].copy_from_slice(values);
            }
            Ok::<Head, Error>(head)
        });
        Ok(Some(Baselines { frequencies, leaf_sums: leaf_sums.transpose()? }))
    }
}

/// The settings of sums of leaves beside those of a model.
pub(crate) fn leaf_sums_config(config: &Config) -> Config {
    let mut config = config.clone();
    config.objective = ObjectiveConfig::Softmax { coarse: true };
    config.strengths = StrengthConfig::Fixed;
    config.head.inner_scale = 1.0;
    config.stages.iter_mut().for_each(|stage| stage.strength = StrengthSetting::Given);
    config
}

impl TrainedModel {
    /// The model of sums of leaves that is kept with this one.
    pub(crate) fn leaf_sums(&self) -> Option<TrainedModel> {
        let head = self.baselines.as_ref()?.leaf_sums.clone()?;
        let config = leaf_sums_config(&self.config);
        Some(TrainedModel { config, head, baselines: None, ..self.clone() })
    }
}
