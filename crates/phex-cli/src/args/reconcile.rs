//! The arguments of `phex reconcile`.

use std::path::PathBuf;

use clap::Args;
use phex::reconcile::{ReconcileEngine, ReconcileLoss, ReconcileOptions};

use super::names::{explained, named};
use super::{GraphInput, LabelArguments};

#[derive(Debug, Args)]
pub(crate) struct ReconcileCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Table of finished probabilities, one column per label: CSV, npy or Parquet; `-` for standard
    /// input
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "scores",
        conflicts_with = "scores"
    )]
    pub(crate) probabilities: Option<PathBuf>,
    /// Table of their logits instead, which keep digits that probabilities near 1 lose
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Format of the table, if its name does not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) table_format: Option<String>,
    /// Column that is not a label and is copied to the output; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// File of the consistent probabilities; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Write what is guaranteed about each row, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnosis: Option<PathBuf>,
    /// The loss of a row that must not get worse
    #[arg(long, value_name = "LOSS", default_value = "log", value_parser = explained::<ReconcileLoss>(&[
        "The log loss, summed over labels",
        "The Brier score, summed over labels; only for hierarchies",
        "The log loss of softmax heads: the labels of a one-of group share one distribution",
    ]))]
    pub(crate) loss: ReconcileLoss,
    /// Table with the columns `label` and `weight`: how much labels count in the loss [default: 1]
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Fit temperatures and weights of levels on these rows, which the classifier has not seen: tables
    /// like the probabilities, whose labels are in a column or in separate files
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "weights")]
    pub(crate) fit: Vec<PathBuf>,
    /// Stop iterating when no relation is violated by more than this
    #[arg(long, value_name = "VIOLATION", default_value_t = ReconcileOptions::default().tolerance)]
    pub(crate) tolerance: f64,
    /// Use this engine wherever it fits, for comparisons; the cheapest handles the rest [default: the
    /// cheapest]
    #[arg(long, value_name = "NAME", value_parser = named::<ReconcileEngine>())]
    pub(crate) engine: Option<ReconcileEngine>,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    // Last, because what follows would come under its heading.
    #[command(flatten)]
    pub(crate) labels: LabelArguments,
}
