//! The lab: experiments and benchmarks of phex. It is not published.
//!
//! - [`Experiment`]: what label relations are worth on real data, in runs that can be repeated and resumed. An
//!   experiment is read from a TOML file (those of the paper are built in), its runs go through a [`JobQueue`], which
//!   keeps each in a [`Journal`], and its results are [`Findings`]. Every method of an experiment is tuned by the same
//!   number of trials on validation data and then tested.
//! - `bench`: speed, errors and memory of phex beside its peers.
//! - `engines`: time and error of every engine on one model.
//!
//! All of them share one `harness`: data, runs, timing, statistics, tables, result files. [`main`] is the `lab`
//! command.

mod bench;
mod engines;
mod error;
mod experiment;
mod harness;

use clap::{Parser, Subcommand};

pub use error::Error;
pub use experiment::{Experiment, Findings};
pub use harness::{
    ConsoleProgress, JobGroup, JobQueue, Journal, MarkdownTable, NoProgress, PairedTest,
    ResultFolder, ResultPage, RunProgress,
};

/// Experiments and benchmarks of phex
#[derive(Debug, Parser)]
#[command(name = "lab", version, about, max_term_width = 100)]
struct LabArguments {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Run an experiment of the paper, or your own, on real data
    Experiment(experiment::ExperimentCommand),
    /// Measure speed, errors and memory
    #[command(subcommand)]
    Bench(Box<bench::BenchCommand>),
    /// Measure time and error of every engine that can handle a graph or model
    Engines(engines::EnginesCommand),
}

/// The `lab` command.
///
/// # Errors
/// Whatever is wrong, in words for the user.
pub fn main() -> anyhow::Result<()> {
    match LabArguments::parse().command {
        LabCommand::Experiment(command) => experiment::run(&command),
        LabCommand::Bench(command) => bench::run(&command),
        LabCommand::Engines(command) => engines::run(&command),
    }
}
