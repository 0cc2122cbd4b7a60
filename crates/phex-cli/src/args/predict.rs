//! The arguments of `phex predict` and `phex eval`.

use std::path::PathBuf;

use clap::Args;
use phex::decide::{Classes, Decision};

use super::numbers::at_least_one;
use super::settings::{classes, decision};
use super::{DataArguments, DeviceArguments, EngineArguments, LabelArguments};

#[derive(Debug, Args)]
pub(crate) struct PredictCommand {
    /// Folder of a trained model
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
    /// File of the probabilities (CSV, npy, Parquet) or label sets (CSV, `.jsonl`); `-` for standard
    /// output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Write label sets: `threshold=0.5`, `best`, `best=GROUP`, `back-off=0.9` or `consistent`
    #[arg(long, value_name = "RULE", value_parser = decision)]
    pub(crate) decide: Option<Decision>,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EvalCommand {
    /// Folder of a trained model; labels are read from the data as in training
    #[arg(value_name = "BUNDLE", required_unless_present = "graph", conflicts_with = "graph")]
    pub(crate) bundle: Option<PathBuf>,
    /// Without a model: graph of the probabilities
    #[arg(long, value_name = "FILE", requires = "probabilities")]
    pub(crate) graph: Option<PathBuf>,
    /// Table of probabilities, one column per label: CSV, npy or Parquet
    #[arg(long, value_name = "FILE", requires = "graph")]
    pub(crate) probabilities: Option<PathBuf>,
    /// Label sets to evaluate: `threshold=0.5`, `best`, `best=GROUP`, `back-off=0.9` or
    /// `consistent`
    #[arg(long, value_name = "RULE", default_value = "threshold=0.5", value_parser = decision)]
    pub(crate) decide: Decision,
    /// Labels to leave out of everything but accuracy and violations, such as the root
    #[arg(long, value_name = "LABEL", num_args = 1..)]
    pub(crate) leave_out: Vec<String>,
    /// Accuracy within the K most probable classes; several K separated by commas
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = at_least_one)]
    pub(crate) top: Vec<usize>,
    /// Classes of accuracy: `leaves`, `all` or a one-of group [default: `leaves` with --top]
    #[arg(long, value_name = "NAME", value_parser = classes)]
    pub(crate) classes: Option<Classes>,
    /// Write a report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Do not compare with the label frequencies of the data
    #[arg(long)]
    pub(crate) no_baselines: bool,
    /// Also print one line per label
    #[arg(long)]
    pub(crate) all: bool,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) labels: LabelArguments,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}
