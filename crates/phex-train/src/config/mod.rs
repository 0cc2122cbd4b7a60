//! The settings of a training run: plain data, checked once, written into bundles.
//!
//! The defaults are those of [`Recipe::STANDARD`]; no other place has any. [`Config::check`] knows the
//! range of every setting, and `names` how settings are written as text.

mod check;
mod names;

use std::collections::BTreeMap;

use phex::graph::{RelationGraph, Strength};
use phex::learn::{Loss, Tie};
use serde::{Deserialize, Serialize};

use crate::recipe::Recipe;

/// Everything that decides a training run, besides the data and the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// From features to logits.
    pub head: HeadConfig,
    /// What is minimised.
    pub objective: ObjectiveConfig,
    /// How it is minimised.
    pub optimiser: OptimiserConfig,
    /// Run one after another; each starts from the weights of the previous one.
    pub stages: Vec<Stage>,
    /// Whether relation strengths are learned.
    pub strengths: StrengthConfig,
    /// When to stop, and which weights to keep.
    pub validation: ValidationConfig,
    /// How rows are weighted.
    pub class_weights: ClassWeights,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            head: HeadConfig::default(),
            objective: ObjectiveConfig::default(),
            optimiser: OptimiserConfig::default(),
            stages: vec![Stage::default()],
            strengths: StrengthConfig::default(),
            validation: ValidationConfig::default(),
            class_weights: ClassWeights::default(),
            seed: Recipe::STANDARD.seed,
        }
    }
}

/// A linear map, or a network of fully connected layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadConfig {
    /// The width of each hidden layer; empty for a linear head.
    pub hidden: Vec<usize>,
    /// The fraction of hidden values dropped at random in training, in `[0, 1)`.
    pub dropout: f64,
    /// The fraction of features dropped at random in training, in `[0, 1)`.
    pub input_dropout: f64,
    /// Normalisation before each activation.
    pub norm: Norm,
    /// The initial weights of the last layer. Hidden layers always start at random.
    pub start: Start,
    /// Whether the biases of the last layer start at the labels' frequencies, so that training does
    /// not begin with learning how rare labels are.
    pub prior: bool,
    /// Standardised features are clipped to ± this value; 0 means no clipping.
    pub feature_clip: f64,
    /// Factor α on the scores of labels that have children: `ℓ = s∘z` with `s` = α for these labels and
    /// 1 for the others. An inner score collects the gradients of all rows below it, so with α = 1 it
    /// moves first and most.
    pub inner_scale: f64,
}

impl Default for HeadConfig {
    fn default() -> HeadConfig {
        Recipe::STANDARD.head()
    }
}

/// Normalisation of hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// None.
    #[default]
    None,
    /// Over the rows of a batch; prediction uses running averages.
    Batch,
    /// Over the values of each row.
    Layer,
}

/// The initial weights of the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Zero: every label starts at even odds, and coarse rows favour no leaf at random.
    #[default]
    Zero,
    /// Normal with this standard deviation.
    Normal(f64),
    /// Weights and biases uniform in ±1/√inputs, as in most frameworks.
    Uniform,
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum ObjectiveConfig {
    /// The loss of the targets under the relations.
    Relations {
        /// Which loss.
        loss: Loss,
    },
    /// Baseline: each label on its own, by the logistic loss of its targets.
    Independent,
    /// Baseline: a softmax over the leaves; a coarse label is the sum of its leaves.
    Softmax {
        /// Whether rows without a leaf are used as well.
        coarse: bool,
    },
    /// Baseline: the largest sigmoid below each label (Giunchiglia and Lukasiewicz 2020).
    MaxConstraint,
}

impl Default for ObjectiveConfig {
    fn default() -> ObjectiveConfig {
        ObjectiveConfig::Relations { loss: Recipe::STANDARD.loss }
    }
}

/// How the loss is minimised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// How a step follows from a gradient.
    pub rule: UpdateRule,
    /// The size of a step.
    pub learning_rate: f64,
    /// Weight decay per step, times the learning rate. Biases do not decay.
    pub weight_decay: f64,
    /// How the learning rate changes over the steps of a stage.
    pub schedule: RateSchedule,
    /// Rows per step.
    pub batch: usize,
    /// The memory of an exponential average of weights, in `[0, 1)`. The average is evaluated and
    /// kept; 0 keeps the last weights.
    pub average: f64,
    /// Longer gradients are shortened to this length; 0 means never.
    pub clip: f64,
}

impl Default for OptimiserConfig {
    fn default() -> OptimiserConfig {
        Recipe::STANDARD.optimiser()
    }
}

/// How a step follows from a gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum UpdateRule {
    /// Gradient descent with momentum.
    Sgd {
        /// The fraction of the previous step that is kept.
        momentum: f64,
    },
    /// Adam with decoupled weight decay.
    AdamW {
        /// Memory of the mean of gradients.
        beta1: f64,
        /// Memory of the mean of their squares.
        beta2: f64,
        /// Added to the root of the latter.
        epsilon: f64,
    },
}

impl Default for UpdateRule {
    fn default() -> UpdateRule {
        Recipe::STANDARD.rule
    }
}

/// How the learning rate changes over a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum RateSchedule {
    /// It does not.
    Constant,
    /// Up from zero over a fraction of the steps, then along half a cosine to zero.
    Cosine {
        /// The fraction of the steps that go up, in `[0, 1)`.
        warm_up: f64,
    },
    /// Up in the same way, then straight down to zero.
    Linear {
        /// The fraction of the steps that go up, in `[0, 1)`.
        warm_up: f64,
    },
    /// Times `factor` every `every` epochs.
    Step {
        /// Epochs between changes.
        every: usize,
        /// The change, in `(0, 1]`.
        factor: f64,
    },
}

impl Default for RateSchedule {
    fn default() -> RateSchedule {
        Recipe::STANDARD.schedule
    }
}

/// A part of a curriculum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stage {
    /// Its name in reports.
    pub name: String,
    /// The strengths of relations during the stage.
    pub strength: StrengthSetting,
    /// Which rows it trains on.
    pub rows: RowChoice,
    /// At least this share of each batch is drawn from the rows labelled with a leaf; 0 leaves batches
    /// as they are.
    pub leaf_share: f64,
    /// How often it goes over them.
    pub epochs: usize,
    /// Validate every so many epochs; the last epoch is always validated. Weights are kept, and
    /// patience is counted, by validations.
    pub validate_every: usize,
    /// The learning rate, where it differs from the optimiser's.
    pub learning_rate: Option<f64>,
}

impl Default for Stage {
    fn default() -> Stage {
        Recipe::STANDARD.stage()
    }
}

/// Which rows a stage trains on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowChoice {
    /// All.
    #[default]
    All,
    /// Rows labelled with a leaf of the hierarchy, and rows in which every leaf is on or off.
    MostSpecific,
}

/// The strengths of a graph's relations, as given or changed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StrengthSetting {
    /// As the graph gives them.
    #[default]
    Given,
    /// The same strength for every relation.
    All(Strength),
    /// Every cost times this factor.
    Scale(f64),
}

impl StrengthSetting {
    /// The graph with these strengths.
    ///
    /// # Errors
    /// When a resulting strength is out of range.
    pub fn apply(self, graph: &RelationGraph) -> Result<RelationGraph, phex::Error> {
        match self {
            StrengthSetting::Given => Ok(graph.clone()),
            StrengthSetting::All(strength) => graph.map_strengths(|_, _| strength),
            StrengthSetting::Scale(factor) => graph.map_strengths(|_, strength| {
                if strength.is_hard() { strength } else { Strength::W(factor * strength.cost()) }
            }),
        }
    }
}

/// Whether relation strengths are learned.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum StrengthConfig {
    /// They stay as the stage sets them.
    #[default]
    Fixed,
    /// By gradient, in stages whose relations are soft.
    Learned {
        /// Which relations share a parameter.
        tie: Tie,
        /// The weight λ of the prior towards the given strength, `λ/2 Σ (φ − given)²`.
        prior: f64,
        /// The size of a step.
        learning_rate: f64,
        /// Steps of the head per step of the strengths.
        every: usize,
    },
    /// Before the last stage, on rows that the weights have not seen.
    CrossFitted {
        /// Which relations share a parameter.
        tie: Tie,
        /// The weight λ of the prior towards the given strength, `λ/2 Σ (φ − given)²` beside the sum of
        /// the losses of all rows.
        prior: f64,
        /// The size of the first step, in parts of the mean given parameter.
        learning_rate: f64,
        /// In how many parts the rows are cut.
        folds: usize,
    },
}

/// When to stop, and which weights to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// The fraction of the rows held out when no validation data are given, in `[0, 1)`.
    pub fraction: f64,
    /// The metric that decides which epoch is best.
    pub metric: Metric,
    /// A stage ends after so many validations without improvement; 0 never ends it early.
    pub patience: usize,
    /// Once validation has chosen the epochs, the head is trained again, for as many, on all rows: also
    /// those that were held out. What was measured is measured on the first head.
    pub all_rows: bool,
}

impl Default for ValidationConfig {
    fn default() -> ValidationConfig {
        Recipe::STANDARD.validation()
    }
}

/// What is measured on validation rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean loss of the targets; lower is better.
    #[default]
    Loss,
    /// How often the most probable leaf (or member of the one-of group) is the true one.
    Accuracy,
    /// The area under the precision-recall curve over all pairs of a row and a label.
    AuPrc,
}

impl Metric {
    /// Whether `new` is better than `old`.
    pub fn improves(self, new: f64, old: f64) -> bool {
        match self {
            Metric::Loss => new < old,
            Metric::Accuracy | Metric::AuPrc => new > old,
        }
    }
}

/// How rows are weighted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeights {
    /// All the same.
    #[default]
    None,
    /// By the inverse frequency of their most specific label.
    Balanced,
    /// By the weight of their most specific label: label name to weight, 1 where none is given.
    Given(BTreeMap<String, f64>),
}

/// Two kinds of strengths one after the other, in two stages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curriculum {
    /// One stage.
    None,
    /// Hard relations first, then soft ones with this u.
    HardToSoft(f64),
    /// Soft relations with this u first, then hard ones.
    SoftToHard(f64),
}

/// How long to train on the rows labelled with a leaf before all rows are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// As [`Recipe::warm_up_epochs`] says.
    Auto,
    /// So many epochs; 0 for no warm-up.
    Epochs(usize),
}
