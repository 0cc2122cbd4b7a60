//! Training through label relations.
//!
//! A [`Trainer`] takes a [`Config`], a graph and [`Examples`] whose labels are on, off or unknown, and
//! trains a [`Head`] (linear or a few layers) by the loss of what is observed under the relations.
//! Stages make a curriculum, strengths may be learned, an [`Observer`] watches and keeps
//! [`Checkpoint`]s; the result is a [`TrainedModel`], which predicts and becomes a bundle.

mod checkpoint;
mod config;
mod engine;
mod error;
mod evaluate;
mod examples;
mod features;
mod head;
mod model;
mod objective;
mod optimiser;
mod prior;
mod trainer;
mod tune;

pub use checkpoint::Checkpoint;
pub use config::{
    ClassWeights, Config, HeadConfig, Metric, Norm, ObjectiveConfig, OptimiserConfig, RateSchedule,
    RowChoice, Rule, Stage, Start, StrengthConfig, StrengthSetting, ValidationConfig,
};
pub use error::Error;
pub use examples::Examples;
pub use features::Standardiser;
pub use head::Head;
pub use model::{Predictor, TrainedModel};
pub use trainer::{EpochRecord, Flow, Observer, Profile, Progress, Silent, Trainer};
pub use tune::{SettingSummary, Trial, Tuning};
