//! The arguments of commands that run engines on rows of scores.

use std::path::PathBuf;

use clap::Args;
use phex::infer::ScoreForm;

use super::names::explained;
use super::numbers::{at_least_one, score};
use super::{DeviceArguments, EngineArguments, GraphInput};

/// Rows of scores, and their evidence.
#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// Table of scores (logits), one column per label: CSV, npy or Parquet; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Table of evidence: 1 on, 0 off, empty unknown
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence: Option<PathBuf>,
    /// Format of the table of scores, if its name does not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) table_format: Option<String>,
    /// Column that is not a label and is copied to the output; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// What the scores are [default: logits]
    #[arg(long, value_name = "KIND", value_parser = explained::<ScoreForm>(&[
        "Logits: of a sigmoid per label, or of one softmax over the leaves",
        "Finished probabilities, from 0 to 1",
        "Logarithms of probabilities",
    ]))]
    pub(crate) scores_are: Option<ScoreForm>,
    /// Names of the labels that the columns stand for, one per line, in the order of the columns
    #[arg(long, value_name = "FILE")]
    pub(crate) label_names: Option<PathBuf>,
    /// Score of labels without a column [default: 0 for labels above leaves if exactly one leaf is on]
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true)]
    pub(crate) missing: Option<f64>,
}

/// A graph, an engine and rows of scores.
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Say only which rows have no answer or a doubtful one, and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

#[derive(Debug, Args)]
pub(crate) struct InferCommand {
    /// File of the probabilities; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Write the diagnosis of each row's answer, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnosis: Option<PathBuf>,
    /// Bound log Z of each row from both sides, with approximate engines
    #[arg(long)]
    pub(crate) bounds: bool,
    /// Write the standard error of each probability; only gibbs has them
    #[arg(long, value_name = "FILE")]
    pub(crate) standard_errors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) rows: RowArguments,
}

#[derive(Debug, Args)]
pub(crate) struct MapCommand {
    /// File of the label sets, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Label sets per row
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) top: usize,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) rows: RowArguments,
}
