//! The settings of a zero-shot experiment: the contents of its TOML file.

use serde::{Deserialize, Serialize};

use crate::Error;

/// A zero-shot experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZeroShotSettings {
    /// Its title in reports.
    pub title: String,
    /// The data set, a folder of this name.
    pub data: AttributeData,
    /// The seed of folds, orders of rows and noise.
    pub seed: u64,
    /// How many folds of classes there are.
    pub folds: usize,
    /// On how many of the other folds each setting is validated.
    pub validations: usize,
    /// The strengths u to try.
    pub strengths: Vec<f64>,
    /// How graded predicates become costs; one curve each.
    pub maps: Vec<MapCurve>,
    /// The strengths u to try with class logits, constant and by the first map. If there are any, HEX is also tried.
    pub class_logits: Vec<f64>,
    /// The strength u from which strengths are learned; without it none are learned.
    pub learned: Option<f64>,
    /// How steps are taken.
    pub rule: StepRule,
    /// The step sizes to try.
    pub learning_rates: Vec<f64>,
    /// The numbers of epochs to try, ascending.
    pub lengths: Vec<usize>,
    /// Rows per step.
    pub batch: usize,
    /// The bilinear baseline: ridges of features to try, in numbers of rows.
    pub feature_ridges: Vec<f64>,
    /// The bilinear baseline: ridges of attributes to try, in mean squares of the signatures.
    pub attribute_ridges: Vec<f64>,
    /// How features are scaled.
    pub scaling: Scaling,
    /// At most this many rows per class, unless the data are generated; 0 means all.
    pub rows_a_class: usize,
    /// aPY: the area under the ROC curve of the detectors that noise imitates.
    pub detector_area: Option<f64>,
}

/// Variable strengths: a map and the strengths u to try with it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MapCurve {
    /// The map.
    pub map: CostMap,
    /// The strengths u.
    pub strengths: Vec<f64>,
}

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AttributeData {
    /// Animals with Attributes.
    Awa,
    /// CUB-200-2011 birds.
    Cub,
    /// aPascal-aYahoo: its attribute annotations.
    Apy,
    /// Drawn at random.
    Generated,
}

impl AttributeData {
    /// Its name in tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            AttributeData::Awa => "AwA",
            AttributeData::Cub => "CUB",
            AttributeData::Apy => "aPY",
            AttributeData::Generated => "generated",
        }
    }

    /// The name of its folder.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            AttributeData::Awa => "awa",
            AttributeData::Cub => "cub",
            AttributeData::Apy => "apy",
            AttributeData::Generated => "generated",
        }
    }
}

/// How a graded predicate `c` in 0 to 1 becomes the costs of a cell, in units of w = 4u.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CostMap {
    /// `c` with the attribute off and `1 − c` with it on.
    Linear,
    /// The same for a value that is ½ at the threshold `t` of the binary matrix and linear on both sides of it: `c / 2t`,
    /// `½ + (c − t) / 2(1 − t)`.
    Centred,
    /// The same for the share of all predicates that are below `c` (equal ones count half).
    Rank,
}

impl CostMap {
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CostMap::Linear => "linear",
            CostMap::Centred => "centred",
            CostMap::Rank => "rank",
        }
    }
}

/// How steps are taken. Their sizes do not depend on the scale of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepRule {
    /// Adam: every weight has its own scale.
    Adam,
    /// Along the mean gradient, with one scale for all weights.
    Normed,
}

/// How features are scaled. They are also centred, over the training rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scaling {
    /// Each to standard deviation 1.
    Each,
    /// All by one factor, to a mean square of 1.
    All,
}

impl ZeroShotSettings {
    /// Checks every range.
    ///
    /// # Errors
    /// [`Error::Specification`], naming the field and what it needs.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |message: &str| {
            let (name, message) = (String::from(self.data.folder()), String::from(message));
            Err(Error::Specification { name, message })
        };
        let positive = |values: &[f64]| values.iter().all(|&v| v > 0.0 && v.is_finite());
        if self.folds < 3 {
            return wrong("folds: 3 or more are needed, to train, to validate and to test");
        }
        if self.validations == 0 || self.validations > self.folds - 2 {
            return wrong("validations: 1 or more are needed, and fewer than the folds that train");
        }
        let mut u = self.maps.iter().map(|curve| &curve.strengths).chain([&self.class_logits]);
        let learned = self.learned.is_none_or(|u| u > 0.0 && u.is_finite());
        if self.strengths.is_empty()
            || !positive(&self.strengths)
            || !u.all(|u| positive(u))
            || !learned
        {
            return wrong("strengths, maps, class_logits, learned: numbers above 0 are needed");
        }
        if self.learning_rates.is_empty() || !positive(&self.learning_rates) {
            return wrong("learning_rates: one or more numbers above 0 are needed");
        }
        if self.lengths.is_empty() || self.lengths[0] == 0 || !self.lengths.is_sorted() {
            return wrong("lengths: one or more numbers of epochs are needed, upwards from 1");
        }
        if self.batch == 0 {
            return wrong("batch: 1 row or more is needed");
        }
        let ridges = [&self.feature_ridges, &self.attribute_ridges];
        if ridges.iter().any(|ridges| ridges.is_empty() || !positive(ridges)) {
            return wrong("feature_ridges, attribute_ridges: numbers above 0 are needed");
        }
        if self.detector_area.is_some_and(|area| !(area > 0.5 && area < 1.0)) {
            return wrong("detector_area: a number between 0.5 and 1 is needed");
        }
        Ok(())
    }
}
