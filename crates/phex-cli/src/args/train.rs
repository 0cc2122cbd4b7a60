//! What was typed after `phex train` and `phex tune`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use phex_train::{Metric, Norm, RateSchedule, Start, StrengthSetting};

use super::numbers::{damping, finite, tolerance};
use super::settings::{Curriculum, Grid, StageEpochs, WarmUp, Widths, schedule, start};
use super::{DataArguments, DeviceArguments, EngineArguments, GraphFile, LabelArguments};

#[derive(Debug, Args)]
pub(crate) struct TrainCommand {
    #[command(flatten)]
    pub(crate) graph: GraphFile,
    /// Folder of the trained model
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) set: TrainingSet,
    #[command(flatten)]
    pub(crate) settings: SettingArguments,
    // Last, for what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TuneCommand {
    #[command(flatten)]
    pub(crate) graph: GraphFile,
    /// Folder of the results and of the model trained with the best strength
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Strengths to try, with commas between them, for the last stage of training
    #[arg(
        long,
        value_name = "STRENGTHS",
        default_value = "hard,u=0.1,u=0.3,u=0.5,u=0.7,u=1,u=1.5"
    )]
    pub(crate) grid: Grid,
    /// Seeds of each strength
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    pub(crate) seeds: u64,
    /// Train no model with the best strength at the end
    #[arg(long)]
    pub(crate) no_refit: bool,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) set: TrainingSet,
    #[command(flatten)]
    pub(crate) settings: SettingArguments,
    // Last, for what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

/// How a run is watched and kept.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Where the report goes; `report.html` in the folder when not given
    #[arg(long, value_name = "FILE", conflicts_with = "no_report")]
    pub(crate) report: Option<PathBuf>,
    /// Write no report
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Seconds between checkpoints; 0 keeps one after every step
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30.0,
        env = "PHEX_CHECKPOINT_EVERY",
        value_parser = tolerance
    )]
    pub(crate) checkpoint_every: f64,
    /// Start over: forget the checkpoint, and replace the model of an earlier run
    #[arg(long)]
    pub(crate) restart: bool,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say a line an epoch
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// The data to train on, and those to validate by.
#[derive(Debug, Args)]
pub(crate) struct TrainingSet {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Columns that are features; all that are nothing else when not given
    #[arg(long, value_name = "COLUMN", num_args = 1.., help_heading = "Data")]
    pub(crate) features: Vec<String>,
    /// Data for validation, of the same form
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Data")]
    pub(crate) valid: Vec<PathBuf>,
    /// Without those: part of the rows that are held out for validation, below 1
    #[arg(
        long,
        value_name = "PART",
        conflicts_with = "valid",
        help_heading = "Data",
        value_parser = damping
    )]
    pub(crate) validation_fraction: Option<f64>,
    #[command(flatten)]
    pub(crate) labels: LabelArguments,
    /// Labels of the validation data, where --label-file has those of the others
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        requires = "valid",
        requires = "label_file",
        help_heading = "Labels"
    )]
    pub(crate) valid_labels: Vec<PathBuf>,
}

/// What is trained and how. A flag wins over the file of settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct SettingArguments {
    /// File of settings (TOML); flags win over it
    #[arg(long, value_name = "FILE", env = "PHEX_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// What is minimised; all but `relations` are baselines
    #[arg(long, value_name = "NAME")]
    pub(crate) objective: Option<ObjectiveName>,
    /// Loss of the observed labels: all at once, or each by itself
    #[arg(long, value_name = "NAME")]
    pub(crate) loss: Option<LossName>,
    /// Strength of relations in training: `given`, `hard`, `u=0.5`, `q=0.1`, `w=2` or `scale=2`
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) strength: Option<StrengthSetting>,
    /// `none`, `hard-to-soft=U` or `soft-to-hard=U`: first one, then the other, soft being u = U
    #[arg(long, value_name = "NAME", conflicts_with = "strength")]
    pub(crate) curriculum: Option<Curriculum>,
    /// Epochs of the two stages of a curriculum; half of --epochs each when not given
    #[arg(long, value_name = "FIRST,SECOND", requires = "curriculum", conflicts_with = "epochs")]
    pub(crate) stage_epochs: Option<StageEpochs>,
    /// Epochs on the rows with a known leaf alone, before all others; `auto`, as many as one pass over
    /// all rows takes, when neither this nor a curriculum nor a file of settings is given
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) warm_up: Option<WarmUp>,
    /// Passes over the training rows; 30 when not given
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,
    /// Learn strengths: one factor, one for each kind of relation, or each relation's own
    #[arg(long, value_name = "TIE")]
    pub(crate) learn_strengths: Option<TieName>,
    /// Weight of the prior that holds learned strengths to the given ones; 0.01 when not given
    #[arg(long, value_name = "WEIGHT", value_parser = tolerance)]
    pub(crate) strength_prior: Option<f64>,
    /// Size of a step of learned strengths; 0.01 when not given
    #[arg(long, value_name = "RATE", value_parser = finite)]
    pub(crate) strength_rate: Option<f64>,
    /// Steps of the weights between steps of strengths; 10 when not given
    #[arg(long, value_name = "STEPS")]
    pub(crate) strength_every: Option<usize>,
    /// Weights of rows: all the same, or by how rare their most specific label is
    #[arg(long, value_name = "NAME")]
    pub(crate) class_weights: Option<WeightsName>,
    /// Metric that decides which epoch is kept
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<MetricName>,
    /// End a stage after so many epochs that did not improve the metric; 0 never
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) patience: Option<usize>,
    /// Widths of hidden layers, with commas between them; `none` is a linear head
    #[arg(long, value_name = "WIDTHS", help_heading = "Head")]
    pub(crate) hidden: Option<Widths>,
    /// Part of hidden values that is left out at random
    #[arg(long, value_name = "PART", help_heading = "Head", value_parser = damping)]
    pub(crate) dropout: Option<f64>,
    /// Part of features that is left out at random
    #[arg(long, value_name = "PART", help_heading = "Head", value_parser = damping)]
    pub(crate) input_dropout: Option<f64>,
    /// Normalisation before each activation
    #[arg(long, value_name = "NAME", help_heading = "Head")]
    pub(crate) norm: Option<NormName>,
    /// Weights of the last layer at the start: `zero`, `uniform` or `normal=0.1`
    #[arg(long, value_name = "NAME", help_heading = "Head", value_parser = start)]
    pub(crate) start: Option<Start>,
    /// Start the biases of the last layer at the frequencies of the labels
    #[arg(long, help_heading = "Head")]
    pub(crate) prior: bool,
    /// Cut standardised features beyond this, such as 5; 0 cuts none
    #[arg(long, value_name = "SIZE", help_heading = "Head", value_parser = tolerance)]
    pub(crate) feature_clip: Option<f64>,
    /// Rule of a step
    #[arg(long, value_name = "NAME", help_heading = "Optimiser")]
    pub(crate) optimiser: Option<OptimiserName>,
    /// Part of the last step that `sgd` keeps; 0.9 when not given
    #[arg(long, value_name = "PART", help_heading = "Optimiser", value_parser = damping)]
    pub(crate) momentum: Option<f64>,
    /// Size of a step; 0.001 when not given
    #[arg(long, value_name = "RATE", help_heading = "Optimiser", value_parser = finite)]
    pub(crate) learning_rate: Option<f64>,
    /// Decay of weights a step, times the learning rate; 0.0001 when not given
    #[arg(long, value_name = "RATE", help_heading = "Optimiser", value_parser = tolerance)]
    pub(crate) weight_decay: Option<f64>,
    /// Learning rate over a stage: `cosine`, `linear` (`=0.1`: part that goes up first), `constant` or
    /// `step=10,0.5` (times 0.5 every 10 epochs); `cosine` when not given
    #[arg(long, value_name = "SCHEDULE", help_heading = "Optimiser", value_parser = schedule)]
    pub(crate) rate_schedule: Option<RateSchedule>,
    /// Rows of a step; 64 when not given
    #[arg(long, value_name = "ROWS", help_heading = "Optimiser")]
    pub(crate) batch: Option<usize>,
    /// Keep an exponential average of the weights with this memory, such as 0.999; 0 the last
    #[arg(long, value_name = "MEMORY", help_heading = "Optimiser", value_parser = damping)]
    pub(crate) average: Option<f64>,
    /// Shorten longer gradients to this length; 0 never
    #[arg(long, value_name = "LENGTH", help_heading = "Optimiser", value_parser = tolerance)]
    pub(crate) clip: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveName {
    /// Labels under their relations
    Relations,
    /// Each label on its own
    Independent,
    /// A softmax over the leaves, of rows with a leaf
    Softmax,
    /// The same with rows whose labels are above the leaves
    SoftmaxCoarse,
    /// The largest sigmoid below each label
    MaxConstraint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossName {
    Joint,
    Marginal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TieName {
    Scale,
    Kind,
    Relation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsName {
    None,
    Balanced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptimiserName {
    #[value(name = "adamw")]
    AdamW,
    Sgd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NormName {
    None,
    Batch,
    Layer,
}

impl From<NormName> for Norm {
    fn from(name: NormName) -> Norm {
        match name {
            NormName::None => Norm::None,
            NormName::Batch => Norm::Batch,
            NormName::Layer => Norm::Layer,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricName {
    Loss,
    Accuracy,
    AuPrc,
}

impl From<MetricName> for Metric {
    fn from(name: MetricName) -> Metric {
        match name {
            MetricName::Loss => Metric::Loss,
            MetricName::Accuracy => Metric::Accuracy,
            MetricName::AuPrc => Metric::AuPrc,
        }
    }
}
