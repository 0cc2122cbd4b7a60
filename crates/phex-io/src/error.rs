//! The errors of this crate.

use std::io;

use crate::Format;

/// What can go wrong with a file.
///
/// A file that was read but is no sensible graph is no error of this crate: the
/// [`GraphBuilder`](phex::graph::GraphBuilder) that it filled reports that, all at once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not read it.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The operating system could not write it.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The text is not what the format asks for.
    #[error("{path}:{line}: {message}")]
    Syntax {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what is expected.
        message: String,
    },
    /// Neither the name nor the content tells the format.
    #[error("{path}: the format is not known from the name or the content; give one of {known}")]
    UnknownFormat {
        /// The file.
        path: String,
        /// The names of the formats that would do.
        known: String,
    },
    /// The format exists in the other direction only.
    #[error("{path}: {format} files can be {only} only")]
    OneWay {
        /// The file.
        path: String,
        /// Its format.
        format: Format,
        /// `read` or `written`.
        only: &'static str,
    },
    /// The format needs another file beside this one.
    #[error("{path}: {format} files need {what}; {help}")]
    NeedsFile {
        /// The file.
        path: String,
        /// Its format.
        format: Format,
        /// What is needed.
        what: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// The file is longer than allowed.
    #[error("{path}: the file has more than the {limit} bytes allowed; raise the limit to read it")]
    TooLarge {
        /// The file.
        path: String,
        /// How many bytes are allowed.
        limit: u64,
    },
    /// A line is longer than allowed.
    #[error(
        "{path}:{line}: the line has more than the {limit} bytes allowed; is this a text file?"
    )]
    LineTooLong {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// How many bytes are allowed.
        limit: usize,
    },
    /// There are more labels than allowed.
    #[error("{path}:{line}: more than the {limit} labels allowed; raise the limit to read it")]
    TooManyLabels {
        /// The file.
        path: String,
        /// The line of the first label that is too much.
        line: usize,
        /// How many labels are allowed.
        limit: usize,
    },
    /// A table has a column that is no label.
    #[error(
        "{path}: the column `{column}` is no label of the model{hint}; to pass it through, use --keep {column:?}"
    )]
    UnknownColumn {
        /// The file.
        path: String,
        /// The name of the column.
        column: String,
        /// What was perhaps meant, or nothing.
        hint: String,
    },
    /// A table has no column for a label, or none to pass through.
    #[error("{path}: no column is named `{column}`{}", more(*.count))]
    MissingColumn {
        /// The file.
        path: String,
        /// The first name that is missing.
        column: String,
        /// How many are missing.
        count: usize,
    },
    /// A table has two columns of the same name.
    #[error("{path}: two columns are named `{column}`")]
    DuplicateColumn {
        /// The file.
        path: String,
        /// The name.
        column: String,
    },
    /// A table without names has more or fewer columns than there are labels.
    #[error("{path}: the table has {found} columns and the model has {expected} labels")]
    ColumnCount {
        /// The file.
        path: String,
        /// How many columns it has.
        found: u64,
        /// How many labels there are.
        expected: usize,
    },
    /// A cell of a table without lines holds what it may not.
    #[error("{path}: row {row}, column `{column}`: {message}")]
    Cell {
        /// The file.
        path: String,
        /// The row, counted from 1.
        row: u64,
        /// The name of the column.
        column: String,
        /// What is wrong and what is expected.
        message: String,
    },
    /// A column of a data set is not what is expected.
    #[error("{path}: the column `{column}` {message}")]
    Column {
        /// The file, or `the added data set`.
        path: String,
        /// The name of the column.
        column: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A data set is larger than allowed.
    #[error(
        "{path}: more than the {limit} {what} allowed; leave columns out with --drop or raise the limit"
    )]
    TooMuchData {
        /// The file.
        path: String,
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// A model bundle is damaged, lacks a part or is of another version.
    #[error("{path}: {message}")]
    Bundle {
        /// The folder, or the part of it.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A table as a whole is not what is expected: damaged, or of another kind.
    #[error("{path}: {message}")]
    Table {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A model or a set of samples as a whole is not what is expected, or cannot be written.
    #[error("{path}: {message}")]
    Model {
        /// The file, or `the model`.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The graph has something for which the format has no words.
    #[error("{format} files cannot hold {what}; write TOML or JSON instead")]
    NotExpressible {
        /// The format.
        format: Format,
        /// What it cannot hold.
        what: String,
    },
    /// The graph could not be turned into text.
    #[error("the graph cannot be written as {format}: {message}")]
    Encode {
        /// The format.
        format: Format,
        /// Why.
        message: String,
    },
}

/// How many other columns are missing.
fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => String::from(", nor another one that is needed"),
        _ => format!(", nor {} others that are needed", count - 1),
    }
}

impl Error {
    /// The line that the error is about, where there is one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Error::Syntax { line, .. }
            | Error::LineTooLong { line, .. }
            | Error::TooManyLabels { line, .. } => Some(*line),
            _ => None,
        }
    }
}
