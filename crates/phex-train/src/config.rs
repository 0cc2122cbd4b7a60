//! What to train and how: plain data, checked once, written into bundles.

use std::fmt;
use std::str::FromStr;

use phex::graph::{RelationGraph, Strength};
use phex::learn::{Loss, Tie};
use serde::{Deserialize, Serialize};

use crate::{Error, Examples};

/// Everything that decides a training run, beside the data and the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// From features to logits.
    pub head: HeadConfig,
    /// What is minimised.
    pub objective: ObjectiveConfig,
    /// How it is minimised.
    pub optimiser: OptimiserConfig,
    /// One after another; each starts from the weights of the one before.
    pub stages: Vec<Stage>,
    /// Whether relation strengths are learned.
    pub strengths: StrengthConfig,
    /// When to stop, and which weights to keep.
    pub validation: ValidationConfig,
    /// How rows are weighed.
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
            seed: 0,
        }
    }
}

/// A linear map, or a network of fully connected layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadConfig {
    /// The width of each hidden layer; none is a linear head.
    pub hidden: Vec<usize>,
    /// The part of hidden values that is left out at random in training, in `[0, 1)`.
    pub dropout: f64,
    /// The part of features that is left out at random in training, in `[0, 1)`.
    pub input_dropout: f64,
    /// Normalisation before each activation.
    pub norm: Norm,
    /// The weights of the last layer at the start. Hidden layers start at random in any case.
    pub start: Start,
    /// Whether the biases of the last layer start at the labels' frequencies, so that training does
    /// not begin with learning how rare labels are.
    pub prior: bool,
    /// Standardised features beyond this are cut to it; 0 cuts nothing.
    pub feature_clip: f64,
}

impl Default for HeadConfig {
    fn default() -> HeadConfig {
        HeadConfig {
            hidden: Vec::new(),
            dropout: 0.0,
            input_dropout: 0.0,
            norm: Norm::None,
            start: Start::Zero,
            prior: false,
            feature_clip: 0.0,
        }
    }
}

/// Normalisation of hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// None.
    #[default]
    None,
    /// Over the rows of a batch; in prediction by running averages.
    Batch,
    /// Over the values of a row.
    Layer,
}

/// The weights of the last layer at the start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Zero: every label starts at even odds, and coarse rows commit no leaf at random.
    #[default]
    Zero,
    /// Normal with this standard deviation.
    Normal(f64),
    /// Uniform in ±1/√inputs, weights and biases: what most frameworks do.
    Uniform,
}

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum ObjectiveConfig {
    /// The loss of the observed labels under the relations.
    Relations {
        /// Which loss.
        loss: Loss,
    },
    /// Baseline: each label on its own, by the logistic loss of those observed.
    Independent,
    /// Baseline: a softmax over the leaves; a coarse label is the sum of its leaves.
    Softmax {
        /// Whether rows without a leaf are used too.
        coarse: bool,
    },
    /// Baseline: the largest sigmoid below each label (Giunchiglia and Lukasiewicz 2020).
    MaxConstraint,
}

impl Default for ObjectiveConfig {
    fn default() -> ObjectiveConfig {
        ObjectiveConfig::Relations { loss: Loss::Joint }
    }
}

/// How the loss is minimised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimiserConfig {
    /// The rule of a step.
    pub rule: Rule,
    /// The size of a step.
    pub learning_rate: f64,
    /// Decay of weights (not of biases) a step, times the learning rate.
    pub weight_decay: f64,
    /// How the learning rate changes over the steps of a stage.
    pub schedule: RateSchedule,
    /// Rows of a step.
    pub batch: usize,
    /// Weights that are evaluated and kept are an exponential average with this memory, in
    /// `[0, 1)`; 0 keeps the last.
    pub average: f64,
    /// Longer gradients are shortened to this length; 0 never.
    pub clip: f64,
}

impl Default for OptimiserConfig {
    fn default() -> OptimiserConfig {
        OptimiserConfig {
            rule: Rule::default(),
            learning_rate: 1e-3,
            weight_decay: 1e-4,
            schedule: RateSchedule::default(),
            batch: 64,
            average: 0.0,
            clip: 0.0,
        }
    }
}

/// The rule of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Rule {
    /// Gradient descent with momentum.
    Sgd {
        /// The part of the last step that is kept.
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

impl Default for Rule {
    fn default() -> Rule {
        Rule::AdamW { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// How the learning rate changes over a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum RateSchedule {
    /// It does not.
    #[default]
    Constant,
    /// Up from zero over this part of the steps, then along half a cosine to zero.
    Cosine {
        /// The part of the steps that go up, in `[0, 1)`.
        warm_up: f64,
    },
    /// Up likewise, then straight down to zero.
    Linear {
        /// The part of the steps that go up, in `[0, 1)`.
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

/// A part of a curriculum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stage {
    /// What it is called in reports.
    pub name: String,
    /// The strengths of relations while it lasts.
    pub strength: StrengthSetting,
    /// Which rows it trains on.
    pub rows: RowChoice,
    /// How often it goes over them.
    pub epochs: usize,
    /// Epochs from one look at the validation rows to the next; the last epoch is always looked at. Weights
    /// are kept, and patience counted, by looks.
    pub validate_every: usize,
    /// The learning rate, where it differs.
    pub learning_rate: Option<f64>,
}

impl Default for Stage {
    fn default() -> Stage {
        Stage {
            name: String::from("train"),
            strength: StrengthSetting::Given,
            rows: RowChoice::All,
            epochs: 30,
            validate_every: 1,
            learning_rate: None,
        }
    }
}

impl Stage {
    /// The same on the rows of which a leaf is known. Few rows make short epochs, so validation rows are
    /// looked at ten times at most: looking would otherwise take longer than learning.
    pub fn warm_up(self, epochs: usize) -> Stage {
        let (name, rows) = (String::from("warm-up"), RowChoice::MostSpecific);
        Stage { name, rows, epochs, validate_every: epochs.div_ceil(10).max(1), ..self }
    }
}

/// Which rows a stage trains on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowChoice {
    /// All.
    #[default]
    All,
    /// Those of which a leaf of the hierarchy is known to be on, or all leaves are known.
    MostSpecific,
}

/// The strengths of a graph's relations, as they are or changed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StrengthSetting {
    /// As the graph gives them.
    #[default]
    Given,
    /// Every relation has this one.
    All(Strength),
    /// Every cost times this factor.
    Scale(f64),
}

impl StrengthSetting {
    /// The graph with these strengths.
    ///
    /// # Errors
    /// When a strength comes out of range.
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

impl fmt::Display for StrengthSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrengthSetting::Given => f.write_str("given"),
            StrengthSetting::All(strength) => strength.fmt(f),
            StrengthSetting::Scale(factor) => write!(f, "scale={factor}"),
        }
    }
}

impl FromStr for StrengthSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<StrengthSetting, String> {
        let text = text.trim();
        if text == "given" {
            return Ok(StrengthSetting::Given);
        }
        if let Some(factor) = text.strip_prefix("scale=") {
            return match factor.parse() {
                Ok(factor) if (0.0..f64::INFINITY).contains(&factor) => {
                    Ok(StrengthSetting::Scale(factor))
                }
                _ => Err(format!("`{text}`: a scale is a number of 0 or more")),
            };
        }
        let known = "write `given`, `hard`, `u=0.5`, `q=0.1`, `w=2` or `scale=2`";
        let strength =
            Strength::parse(text).map_err(|_| format!("`{text}` is no strength: {known}"))?;
        match strength.fault() {
            None if !text.is_empty() => Ok(StrengthSetting::All(strength)),
            None => Err(format!("an empty strength: {known}")),
            Some(fault) => Err(fault),
        }
    }
}

impl TryFrom<String> for StrengthSetting {
    type Error = String;

    fn try_from(text: String) -> Result<StrengthSetting, String> {
        text.parse()
    }
}

impl From<StrengthSetting> for String {
    fn from(setting: StrengthSetting) -> String {
        setting.to_string()
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
        /// The prior towards the given strength: `λ/2 Σ (φ − given)²` in all.
        prior: f64,
        /// The size of a step.
        learning_rate: f64,
        /// Steps of the head between steps of the strengths.
        every: usize,
    },
}

/// When to stop, and which weights to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationConfig {
    /// The part of the rows that is held out when no validation data are given, in `[0, 1)`.
    pub fraction: f64,
    /// What decides which epoch is best.
    pub metric: Metric,
    /// A stage ends when so many epochs did not improve it; 0 never ends it early.
    pub patience: usize,
}

impl Default for ValidationConfig {
    fn default() -> ValidationConfig {
        ValidationConfig { fraction: 0.0, metric: Metric::Loss, patience: 0 }
    }
}

/// What is measured after each epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The mean loss of the observed labels: less is better.
    #[default]
    Loss,
    /// How often the most probable leaf (or member of the one-of group) is the true one.
    Accuracy,
    /// The area under the precision-recall curve of all pairs of a row and a label.
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

    /// The name used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Loss => "loss",
            Metric::Accuracy => "accuracy",
            Metric::AuPrc => "au-prc",
        }
    }
}

/// How rows are weighed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeights {
    /// All the same.
    #[default]
    None,
    /// By the inverse frequency of their most specific label.
    Balanced,
    /// By the weight of their most specific label: label name to weight, 1 where none is given.
    Given(std::collections::BTreeMap<String, f64>),
}

impl Config {
    /// These settings with a stage before the first on the rows of which a leaf is known, as long as one
    /// pass over all rows takes; as they are where all rows or few know one. From random weights coarse
    /// rows commit leaves at random before fine rows can speak.
    pub fn with_warm_up(mut self, examples: &Examples<'_>, graph: &RelationGraph) -> Config {
        if let (Some(epochs), Some(first)) = (examples.warm_up_epochs(graph), self.stages.first()) {
            let stage = first.clone().warm_up(epochs);
            self.stages.insert(0, stage);
        }
        self
    }

    /// Checks every range.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field and the range.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |field: &'static str, need: &str| {
            Err(Error::Config { field, message: String::from(need) })
        };
        let below_one = |value: f64| (0.0..1.0).contains(&value);
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let not_negative = |value: f64| (0.0..f64::INFINITY).contains(&value);
        let optimiser = &self.optimiser;
        if self.head.hidden.contains(&0) {
            return wrong("head.hidden", "a hidden layer needs a width of 1 or more");
        }
        if !below_one(self.head.dropout) || !below_one(self.head.input_dropout) {
            return wrong("head.dropout", "a number of 0 or more and below 1 is needed");
        }
        if !not_negative(self.head.feature_clip) {
            return wrong("head.feature_clip", "a number of 0 or more is needed");
        }
        if let Start::Normal(scale) = self.head.start
            && !not_negative(scale)
        {
            return wrong("head.start", "a standard deviation of 0 or more is needed");
        }
        if !positive(optimiser.learning_rate) {
            return wrong("optimiser.learning_rate", "a number above 0 is needed");
        }
        if !not_negative(optimiser.weight_decay) || !not_negative(optimiser.clip) {
            return wrong("optimiser.weight_decay", "weight decay and clip are 0 or more");
        }
        if optimiser.batch == 0 {
            return wrong("optimiser.batch", "1 row or more is needed");
        }
        if !below_one(optimiser.average) {
            return wrong("optimiser.average", "a number of 0 or more and below 1 is needed");
        }
        match optimiser.schedule {
            RateSchedule::Cosine { warm_up } | RateSchedule::Linear { warm_up }
                if !below_one(warm_up) =>
            {
                return wrong("optimiser.schedule", "warm_up is 0 or more and below 1");
            }
            RateSchedule::Step { every, factor }
                if every == 0 || !(factor > 0.0 && factor <= 1.0) =>
            {
                return wrong(
                    "optimiser.schedule",
                    "every is 1 or more, factor above 0 and at most 1",
                );
            }
            _ => {}
        }
        match optimiser.rule {
            Rule::Sgd { momentum } if !below_one(momentum) => {
                return wrong("optimiser.rule", "momentum is 0 or more and below 1");
            }
            Rule::AdamW { beta1, beta2, epsilon }
                if !(below_one(beta1) && below_one(beta2) && positive(epsilon)) =>
            {
                return wrong("optimiser.rule", "betas are below 1, epsilon is above 0");
            }
            _ => {}
        }
        if self.stages.is_empty() || self.stages.iter().all(|stage| stage.epochs == 0) {
            return wrong("stages", "one stage with one epoch is needed");
        }
        if self.stages.iter().any(|stage| stage.validate_every == 0) {
            return wrong("stages", "validate_every is 1 or more");
        }
        if self.stages.iter().filter_map(|stage| stage.learning_rate).any(|rate| !positive(rate)) {
            return wrong("stages", "a learning rate is above 0");
        }
        if let StrengthConfig::Learned { prior, learning_rate, every, .. } = self.strengths
            && !(not_negative(prior) && positive(learning_rate) && every > 0)
        {
            return wrong(
                "strengths",
                "prior is 0 or more, learning_rate above 0, every 1 or more",
            );
        }
        if !below_one(self.validation.fraction) {
            return wrong("validation.fraction", "a number of 0 or more and below 1 is needed");
        }
        Ok(())
    }
}
