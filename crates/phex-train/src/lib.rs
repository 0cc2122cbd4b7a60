//! Training through label relations.
//!
//! A [`Trainer`] takes a [`Config`], a graph and [`Examples`] whose labels are on, off or unknown. It
//! trains a [`Head`] (linear or a few layers) by the loss of the targets under the relations. Stages
//! form a curriculum, strengths may be learned, and an [`Observer`] follows the run and keeps
//! [`Checkpoint`]s. The result is a [`TrainedModel`], which predicts and becomes a bundle.
//!
//! A [`Recipe`] makes the complete [`Config`] of the [`TrainingChoices`] of a user: it is the one home
//! of defaults. A [`RunFolder`] keeps a run on disk, so that an interrupted run can be resumed to the
//! same bits, and ends with the bundle, its model card and `run.json`.

mod baselines;
mod checkpoint;
mod choices;
mod compare;
mod config;
mod engine;
mod error;
mod evaluate;
mod examples;
mod features;
mod head;
mod labels;
mod model;
mod objective;
mod optimiser;
mod prior;
mod recipe;
mod run;
mod taxonomy;
mod trainer;
mod tune;

pub use baselines::Baselines;
pub use checkpoint::Checkpoint;
pub use choices::TrainingChoices;
pub use compare::{ComparedScores, Comparison};
pub use config::{
    ClassWeights, Config, Curriculum, HeadConfig, Metric, Norm, ObjectiveConfig, OptimiserConfig,
    RateSchedule, RowChoice, Stage, Start, StrengthConfig, StrengthSetting, UpdateRule,
    ValidationConfig, WarmUp,
};
pub use error::Error;
pub use examples::{ExampleCounts, Examples, rows_with_leaf};
pub use features::Standardiser;
pub use head::Head;
pub use labels::{LabelFormat, LabelSettings, read_unlisted};
pub use model::{Predictor, TrainedModel};
pub use recipe::Recipe;
pub use run::{CheckpointKeeper, RunFolder, RunInputs, RunLock, RunRecord};
pub use taxonomy::TaxonomyDoubt;
pub use trainer::{
    EpochRecord, Flow, Observer, Profile, Progress, Silent, TrainedRun, Trainer, WorkerPart,
    epoch_rows,
};
pub use tune::{SettingSummary, Trial, Tuning};
