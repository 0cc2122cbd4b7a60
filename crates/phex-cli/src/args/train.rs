//! The arguments of `phex train` and `phex tune`.
//!
//! Options that are not given stay `None`: [`Recipe`] has the defaults, and help texts show them.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;
use phex::Named as _;
use phex::learn::{Loss, Tie};
use phex_train::{
    ClassWeights, Curriculum, Metric, Norm, ObjectiveConfig, RateSchedule, Recipe, Start,
    StrengthSetting, UpdateRule, WarmUp,
};

use super::names::{described, listed, named};
use super::numbers::tolerance;
use super::settings::{StageEpochs, StrengthGrid, Widths};
use super::{DataArguments, DeviceArguments, EngineArguments, GraphFile, LabelArguments};

const RECIPE: Recipe = Recipe::STANDARD;

/// A help text that ends with the default.
fn with_default(text: &str, default: impl Display) -> String {
    format!("{text} [default: {default}]")
}

fn strengths(settings: &[StrengthSetting]) -> String {
    settings.iter().map(StrengthSetting::to_string).collect::<Vec<_>>().join(",")
}

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
    // Last, because what follows would come under its headings.
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
    #[arg(long, value_name = "STRENGTHS", help = with_default(
        "Strengths to compare, separated by commas, for the last stage of training",
        strengths(RECIPE.tuning_strengths)
    ))]
    pub(crate) grid: Option<StrengthGrid>,
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=10_000),
        help = with_default("Seeds per strength", RECIPE.tuning_seeds)
    )]
    pub(crate) seeds: Option<u64>,
    /// Do not train a model with the best strength at the end
    #[arg(long)]
    pub(crate) no_refit: bool,
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) set: TrainingSet,
    #[command(flatten)]
    pub(crate) settings: SettingArguments,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

/// How a run is shown and kept.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// File of the report [default: report.html in the folder]
    #[arg(long, value_name = "FILE", conflicts_with = "no_report")]
    pub(crate) report: Option<PathBuf>,
    /// Write no report
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Do not compare the model with label frequencies and sums of leaves
    #[arg(long)]
    pub(crate) no_baselines: bool,
    #[arg(
        long,
        value_name = "SECONDS",
        env = "PHEX_CHECKPOINT_EVERY",
        value_parser = tolerance,
        help = with_default(
            "Seconds between checkpoints; 0 writes one after every step",
            RECIPE.checkpoint_seconds
        )
    )]
    pub(crate) checkpoint_every: Option<f64>,
    /// Start over: delete the checkpoint, and replace the model of an earlier run
    #[arg(long)]
    pub(crate) restart: bool,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Print the record of the run as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print one line per epoch
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// The data for training and validation.
#[derive(Debug, Args)]
pub(crate) struct TrainingSet {
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Columns that are features [default: all columns with no other role]
    #[arg(long, value_name = "COLUMN", num_args = 1.., help_heading = "Data")]
    pub(crate) features: Vec<String>,
    /// Data for validation, in the same format
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Data")]
    pub(crate) valid: Vec<PathBuf>,
    #[arg(
        long,
        alias = "val-fraction",
        value_name = "FRACTION",
        conflicts_with = "valid",
        help_heading = "Data",
        help = with_default(
            "Without validation data: fraction of the rows to hold out for validation, below 1; 0 trains \
             on all rows",
            format!("{} of {} rows or more, else 0", RECIPE.validation_fraction, RECIPE.validation_rows)
        )
    )]
    pub(crate) validation_fraction: Option<f64>,
    #[command(flatten)]
    pub(crate) labels: LabelArguments,
    /// A row may have several labels at once, although each row lists only one
    #[arg(long, help_heading = "Labels", conflicts_with = "single_label")]
    pub(crate) multi_label: bool,
    /// Labels of the validation data, if --label-file has those of the training data
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

/// The settings of training. Flags win over the file of settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct SettingArguments {
    /// File of settings (TOML); flags win over it
    #[arg(long, value_name = "FILE", env = "PHEX_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = described::<ObjectiveConfig>(&[
            ("relations", "Labels under their relations"),
            ("independent", "Each label on its own"),
            ("softmax", "A softmax over the leaves, on rows labelled with a leaf"),
            ("softmax-coarse", "The same, with a coarse row as the sum of its leaves"),
            ("max-constraint", "The largest sigmoid at or below each label"),
        ]),
        help = with_default(
            "What to minimise; all but `relations` are baselines",
            ObjectiveConfig::default()
        )
    )]
    pub(crate) objective: Option<ObjectiveConfig>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = named::<Loss>(),
        help = with_default(
            "Loss of the labels: of all at once, or of each on its own",
            RECIPE.loss.name()
        )
    )]
    pub(crate) loss: Option<Loss>,
    #[arg(long, value_name = "STRENGTH", help = with_default(
        "Strength of relations in training: `given`, `hard`, `u=0.5`, `q=0.1`, `w=2` or `scale=2`",
        RECIPE.stage().strength
    ))]
    pub(crate) strength: Option<StrengthSetting>,
    /// `none`, `hard-to-soft=U` or `soft-to-hard=U`: two stages, soft meaning u = U
    #[arg(long, value_name = "NAME", conflicts_with = "strength")]
    pub(crate) curriculum: Option<Curriculum>,
    /// Epochs of the two stages of a curriculum [default: half of --epochs each]
    #[arg(long, value_name = "FIRST,SECOND", requires = "curriculum", conflicts_with = "epochs")]
    pub(crate) stage_epochs: Option<StageEpochs>,
    /// Epochs on the rows labelled with a leaf, before all rows; `auto` takes as many steps as one epoch
    /// over all rows [default: auto for relations, unless a curriculum or stages are given]
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) warm_up: Option<WarmUp>,
    #[arg(long, value_name = "FRACTION", help = with_default(
        "Share of each batch that is drawn from the rows labelled with a leaf",
        format!("{} with hidden layers if only some rows are labelled with a leaf, else 0", RECIPE.leaf_share)
    ))]
    pub(crate) leaf_share: Option<f64>,
    #[arg(long, value_name = "N", help = with_default(
        "Passes over the training rows",
        format!("{}, or as many as make {} steps", RECIPE.epochs, RECIPE.steps)
    ))]
    pub(crate) epochs: Option<usize>,
    /// Learn the strengths of soft relations: one factor (`scale`), one per kind of relation (`kind`), or
    /// one per relation (`relation`), which finds wrong relations of a hierarchy. Otherwise, for
    /// example between classes and attributes, use `phex tune`: strengths chosen on validation rows did
    /// better in all our experiments
    #[arg(long, value_name = "TIE", value_parser = named::<Tie>())]
    pub(crate) learn_strengths: Option<Tie>,
    #[arg(long, value_name = "N", help = with_default(
        "Learn strengths in N parts of the rows, each under scores of a model that has not seen it; 0 \
         learns them together with the weights",
        format!("{} for `relation`, else 0", RECIPE.strength_folds)
    ))]
    pub(crate) strength_folds: Option<usize>,
    #[arg(long, value_name = "WEIGHT", help = with_default(
        "Weight of the prior that holds learned strengths to the given ones",
        format!("{}, or {} with folds", RECIPE.strength_prior, RECIPE.fold_prior)
    ))]
    pub(crate) strength_prior: Option<f64>,
    #[arg(long, value_name = "RATE", help = with_default(
        "Size of a step of learned strengths",
        format!("{}, or {} with folds", RECIPE.strength_rate, RECIPE.fold_rate)
    ))]
    pub(crate) strength_rate: Option<f64>,
    #[arg(long, value_name = "STEPS", help = with_default(
        "Steps of the weights per step of learned strengths", RECIPE.strength_every
    ))]
    pub(crate) strength_every: Option<usize>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = listed::<ClassWeights>(ClassWeights::NAMES),
        help = with_default(
            "Weights of rows: equal, or by how rare their most specific label is", "none"
        )
    )]
    pub(crate) class_weights: Option<ClassWeights>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = listed::<Metric>(Metric::NAMES),
        help = with_default(
            "Metric that chooses the epoch to keep",
            format!("{}; in tuning {}", RECIPE.metric, RECIPE.tuning_metric)
        )
    )]
    pub(crate) metric: Option<Metric>,
    #[arg(long, value_name = "EPOCHS", help = with_default(
        "End a stage after this many validations without improvement; 0 means never",
        format!("{}, or 0 with --epochs", RECIPE.patience)
    ))]
    pub(crate) patience: Option<usize>,
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help = with_default(
            "After validation, train once more on all rows, for the epochs that were kept",
            "true for linear heads where rows are held out"
        )
    )]
    pub(crate) all_rows: Option<bool>,
    /// Widths of hidden layers, separated by commas; `none` is a linear head [default: none]
    #[arg(long, value_name = "WIDTHS", help_heading = "Head")]
    pub(crate) hidden: Option<Widths>,
    #[arg(long, value_name = "FRACTION", help_heading = "Head", help = with_default(
        "Fraction of hidden values to drop at random", RECIPE.dropout
    ))]
    pub(crate) dropout: Option<f64>,
    #[arg(long, value_name = "FRACTION", help_heading = "Head", help = with_default(
        "Fraction of features to drop at random", RECIPE.input_dropout
    ))]
    pub(crate) input_dropout: Option<f64>,
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Head",
        value_parser = listed::<Norm>(Norm::NAMES),
        help = with_default("Normalisation before each activation", RECIPE.norm)
    )]
    pub(crate) norm: Option<Norm>,
    #[arg(long, value_name = "NAME", help_heading = "Head", help = with_default(
        "Initial weights of the last layer: `zero`, `uniform` or `normal=0.1`", RECIPE.start
    ))]
    pub(crate) start: Option<Start>,
    #[arg(
        long,
        help_heading = "Head",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help = with_default(
            "Start the biases of the last layer at the frequencies of the labels",
            "true where most rows have every label on or off"
        )
    )]
    pub(crate) prior: Option<bool>,
    #[arg(long, value_name = "SIZE", help_heading = "Head", help = with_default(
        "Clip standardised features to ± this value, such as 5; 0 means no clipping",
        RECIPE.feature_clip
    ))]
    pub(crate) feature_clip: Option<f64>,
    #[arg(long, value_name = "FACTOR", help_heading = "Head", help = with_default(
        "Factor on the scores of labels that have children",
        format!("{} / √(labels above a leaf) for single-label graphs, else 1", RECIPE.inner_scale)
    ))]
    pub(crate) inner_scale: Option<f64>,
    #[arg(
        long,
        alias = "optimizer",
        value_name = "NAME",
        help_heading = "Optimiser",
        value_parser = listed::<UpdateRule>(UpdateRule::NAMES),
        help = with_default("How a step follows from a gradient", RECIPE.rule)
    )]
    pub(crate) optimiser: Option<UpdateRule>,
    #[arg(long, value_name = "FRACTION", help_heading = "Optimiser", help = with_default(
        "Fraction of the previous step that `sgd` keeps", RECIPE.momentum
    ))]
    pub(crate) momentum: Option<f64>,
    #[arg(long, alias = "lr", value_name = "RATE", help_heading = "Optimiser", help = with_default(
        "Size of a step",
        format!(
            "{}; for a linear head over d features {} √({} / d)",
            RECIPE.hidden_learning_rate, RECIPE.learning_rate, RECIPE.rate_features
        )
    ))]
    pub(crate) learning_rate: Option<f64>,
    #[arg(long, value_name = "RATE", help_heading = "Optimiser", help = with_default(
        "Weight decay per step, times the learning rate", RECIPE.weight_decay
    ))]
    pub(crate) weight_decay: Option<f64>,
    #[arg(long, value_name = "SCHEDULE", help_heading = "Optimiser", help = with_default(
        "Learning rate over a stage: `cosine`, `linear` (`=0.1`: fraction that goes up first), \
         `constant` or `step=10,0.5` (times 0.5 every 10 epochs)",
        RECIPE.schedule
    ))]
    pub(crate) rate_schedule: Option<RateSchedule>,
    #[arg(long, alias = "batch-size", value_name = "ROWS", help_heading = "Optimiser", help = with_default(
        "Rows per step",
        format!("rows / {}, between {} and {}", RECIPE.epoch_steps, RECIPE.smallest_batch, RECIPE.batch)
    ))]
    pub(crate) batch: Option<usize>,
    #[arg(long, value_name = "MEMORY", help_heading = "Optimiser", help = with_default(
        "Keep an exponential average of the weights with this memory, such as 0.999; 0 keeps the last \
         weights",
        RECIPE.average
    ))]
    pub(crate) average: Option<f64>,
    #[arg(long, value_name = "LENGTH", help_heading = "Optimiser", help = with_default(
        "Shorten longer gradients to this length; 0 means never", RECIPE.clip
    ))]
    pub(crate) clip: Option<f64>,
}

impl TrainingSet {
    /// The fraction of the rows to hold out, if the user chose it. Validation data choose it too: no
    /// rows are held out beside them.
    pub(crate) fn held_out(&self) -> Option<f64> {
        if self.valid.is_empty() { self.validation_fraction } else { Some(0.0) }
    }
}
