//! What was typed after the commands that run engines on rows of scores.

use std::path::PathBuf;

use clap::Args;

use super::numbers::at_least_one;
use super::{DeviceArguments, EngineArguments, GraphInput};

/// Rows of scores, and what is known of them.
#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// Table of scores (logits), a column a label: CSV, npy or Parquet; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Table of what is known: 1 on, 0 off, empty unknown
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence: Option<PathBuf>,
    /// Form of the table of scores, where its name does not say it
    #[arg(long, value_name = "FORM")]
    pub(crate) table_format: Option<String>,
    /// Column that is not a label and is passed through; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
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
    // Last, for what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

#[derive(Debug, Args)]
pub(crate) struct InferCommand {
    /// Where the probabilities go; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Write what is known of each row's answer, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnosis: Option<PathBuf>,
    /// Bound log Z of each row from both sides, by engines that are approximate
    #[arg(long)]
    pub(crate) bounds: bool,
    /// Write the standard error of each probability; by gibbs
    #[arg(long, value_name = "FILE")]
    pub(crate) standard_errors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    // Last, for what follows would come under its headings.
    #[command(flatten)]
    pub(crate) rows: RowArguments,
}

#[derive(Debug, Args)]
pub(crate) struct MapCommand {
    /// Where the label sets go, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// How many label sets a row
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) top: usize,
    // Last, for what follows would come under its headings.
    #[command(flatten)]
    pub(crate) rows: RowArguments,
}
