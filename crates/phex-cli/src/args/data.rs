//! Which data, and where their labels are.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Tables of features.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArguments {
    /// Data, an example a row: CSV, TSV, npy, Parquet or ARFF; several files follow one another
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// Form of the data, where names do not say it
    #[arg(long, value_name = "FORM")]
    pub(crate) data_format: Option<String>,
    /// Columns that are not features and not read
    #[arg(long, value_name = "COLUMN", num_args = 1..)]
    pub(crate) drop: Vec<String>,
    /// Columns that are not features and are passed through
    #[arg(long, value_name = "COLUMN", num_args = 1..)]
    pub(crate) keep: Vec<String>,
}

/// Where the labels of data are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Labels")]
pub(crate) struct LabelArguments {
    /// Column that has the labels of a row
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label_column: Option<String>,
    /// Other files that have the labels, row by row: tables, npy, or text with a row a line
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) label_file: Vec<PathBuf>,
    /// How labels are written
    #[arg(long, value_name = "FORM")]
    pub(crate) label_format: Option<LabelFormat>,
    /// What is between the names of a list; `@` in ARFF and `;` elsewhere when not given
    #[arg(long, value_name = "TEXT")]
    pub(crate) separator: Option<String>,
    /// The labels that numbers stand for, a name a line, from 0; the graph's order when not given
    #[arg(long, value_name = "FILE")]
    pub(crate) label_names: Option<PathBuf>,
    /// What labels are that a row does not list
    #[arg(long, value_name = "WHAT")]
    pub(crate) unlisted: Option<UnlistedLabels>,
    /// Labels above one that is on are on too; so they are anyway where unlisted ones are off
    #[arg(long)]
    pub(crate) ancestors: bool,
}

/// How labels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LabelFormat {
    /// The name of one label
    Name,
    /// The number of one label
    Id,
    /// Names with a separator between them; `!name` is off
    List,
    /// A column for each label: 1 on, 0 off, empty unknown
    Matrix,
    /// The hierarchical attribute of ARFF files
    Hierarchical,
}

/// What labels are that a row does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UnlistedLabels {
    /// Nothing is known of them
    Unknown,
    /// They are off
    Off,
}
