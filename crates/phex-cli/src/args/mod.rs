//! The arguments of the command line.

mod data;
mod device;
mod engine;
mod graph;
mod names;
mod numbers;
mod predict;
mod reconcile;
mod rows;
mod settings;
mod suggestions;
mod train;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use data::{DataArguments, LabelArguments};
pub(crate) use device::{DeviceArguments, DeviceName};
pub(crate) use engine::EngineArguments;
pub(crate) use graph::{
    CheckCommand, ConvertCommand, GraphCommand, GraphFile, GraphInput, LabelsCommand, PlanCommand,
    ScoreArguments, ShowCommand, StatesCommand, TransformCommand,
};
pub(crate) use predict::{EvalCommand, PredictCommand};
pub(crate) use reconcile::ReconcileCommand;
pub(crate) use rows::{InferCommand, MapCommand, RowArguments, TableArguments};
pub(crate) use suggestions::without_misleading;
pub(crate) use train::{RunArguments, SettingArguments, TrainCommand, TrainingSet, TuneCommand};

/// Classifiers that respect what is known about their labels.
#[derive(Debug, Parser)]
#[command(name = "phex", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check, show and transform label-relation graphs
    #[command(subcommand)]
    Graph(Box<GraphCommand>),
    /// Turn scores into consistent probabilities
    Infer(Box<InferCommand>),
    /// Make the finished probabilities of a classifier consistent, and never worse
    Reconcile(Box<ReconcileCommand>),
    /// Find the most probable consistent label sets of each row
    Map(Box<MapCommand>),
    /// Train a classifier with label relations
    Train(Box<TrainCommand>),
    /// Predict probabilities or label sets of new data with a trained model
    Predict(Box<PredictCommand>),
    /// Measure how good a trained model, or a table of probabilities, is
    Eval(Box<EvalCommand>),
    /// Find the strength of the relations that works best
    Tune(Box<TuneCommand>),
    /// Turn the samples of an annealer back into label sets
    Samples(Box<SamplesCommand>),
    /// Take a tour on built-in data: relations at work, a broken graph, training with coarse labels
    Demo(DemoCommand),
    /// Print a script that completes commands and options in a shell
    Completions(CompletionsCommand),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct SamplesCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// The samples: CSV, or a sample set of dimod as JSON; `-` for standard input
    #[arg(value_name = "SAMPLES")]
    pub(crate) samples: PathBuf,
    #[command(flatten)]
    pub(crate) scores: ScoreArguments,
    /// File of the label sets, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoCommand {
    /// Write pictures, data, a trained model and a report into this folder
    #[arg(long, value_name = "FOLDER", default_value = "phex-demo")]
    pub(crate) out: PathBuf,
}
