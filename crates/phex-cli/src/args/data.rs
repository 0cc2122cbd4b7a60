//! Arguments for data files and their labels.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use phex_io::Unlisted;
use phex_train::{LabelFormat, read_unlisted};

use super::names::described;

/// Tables of features.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArguments {
    /// Data, one example per row: CSV, TSV, npy, Parquet or ARFF; several files are concatenated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// Format of the data, if the file names do not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) data_format: Option<String>,
    /// Columns to ignore
    #[arg(long, value_name = "COLUMN", num_args = 1..)]
    pub(crate) drop: Vec<String>,
    /// Columns to copy to the output; they are not features
    #[arg(long, value_name = "COLUMN", num_args = 1..)]
    pub(crate) keep: Vec<String>,
}

/// Where the labels of the data are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Labels")]
pub(crate) struct LabelArguments {
    /// Column with the labels of each row
    #[arg(long, alias = "label", value_name = "COLUMN")]
    pub(crate) label_column: Option<String>,
    /// Separate files with the labels of each row: tables, npy, or text with one row per line
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) label_file: Vec<PathBuf>,
    /// How labels are written
    #[arg(long, value_name = "FORMAT", value_parser = described::<LabelFormat>(&[
        ("name", "The name of one label"),
        ("id", "The number of one label"),
        ("list", "Names with a separator between them; `!name` is off"),
        ("matrix", "One column per label: 1 on, 0 off, empty unknown"),
        ("hierarchical", "The hierarchical attribute of ARFF files"),
    ]))]
    pub(crate) label_format: Option<LabelFormat>,
    /// Text between the names of a list [default: `@` in ARFF files, `;` in others]
    #[arg(long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,
    /// Names of the labels that numbers stand for, one per line, from 0; in `eval` and `reconcile` also of
    /// columns without names [default: the graph's order]
    #[arg(long, value_name = "FILE")]
    pub(crate) label_names: Option<PathBuf>,
    /// State of labels that a row does not list [default: unknown; off in ARFF's hierarchical attribute]
    #[arg(
        long,
        value_name = "STATE",
        value_parser = PossibleValuesParser::new(["unknown", "off"]).try_map(|s| read_unlisted(&s))
    )]
    pub(crate) unlisted: Option<Unlisted>,
    /// Labels above one that is on are on as well; implied by --unlisted off
    #[arg(long)]
    pub(crate) ancestors: bool,
}

impl LabelArguments {
    /// Whether the labels are in a column or in files.
    pub(crate) fn is_given(&self) -> bool {
        self.label_column.is_some() || !self.label_file.is_empty()
    }
}
