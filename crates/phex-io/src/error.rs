//! The errors of this crate.
//!
//! They name files, lines, columns and limits. How a user changes an option is the business of the
//! program that prints the error, so the fields are there to be matched on.

use std::fmt;
use std::io;

use crate::Format;

/// Where a cell of a table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellLocation {
    /// The file.
    pub path: String,
    /// The record that the cell belongs to.
    pub record: RecordNumber,
    /// The name of the column.
    pub column: String,
}

/// The number of a record in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordNumber {
    /// The line on which the record starts, counted from 1, in a text file.
    Line(usize),
    /// The row, counted from 1, in a file without lines.
    Row(u64),
}

impl fmt::Display for CellLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CellLocation { path, record, column } = self;
        match record {
            RecordNumber::Line(line) => write!(f, "{path}:{line}: column `{column}`"),
            RecordNumber::Row(row) => write!(f, "{path}: row {row}, column `{column}`"),
        }
    }
}

/// What can go wrong with a file.
///
/// A file that can be read but describes an inconsistent graph is not an error of this crate: the
/// [`GraphBuilder`](phex::graph::GraphBuilder) reports all inconsistencies at once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not read the file.
    #[error("{path}: cannot be read: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The operating system could not write the file.
    #[error("{path}: cannot be written: {source}")]
    Write {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The text does not follow the rules of its format.
    #[error("{path}:{line}: {message}")]
    Syntax {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what is expected.
        message: String,
    },
    /// Neither the name of the file nor its content shows the format.
    #[error("{path}: neither the name nor the content shows the format; give one of {known}")]
    UnknownFormat {
        /// The file.
        path: String,
        /// The names of the possible formats.
        known: String,
    },
    /// The format can only be read, or only be written.
    #[error("{path}: {format} files can be {only} only")]
    OneWay {
        /// The file.
        path: String,
        /// Its format.
        format: Format,
        /// `read` or `written`.
        only: &'static str,
    },
    /// The format needs a second file.
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
    /// A line, or a record of a table of text, is longer than allowed.
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
    /// The graph has more labels than allowed.
    #[error("{path}:{line}: more than the {limit} labels allowed; raise the limit to read it")]
    TooManyLabels {
        /// The file.
        path: String,
        /// The line of the first label beyond the limit.
        line: usize,
        /// How many labels are allowed.
        limit: usize,
    },
    /// A table has a column that is neither a label nor a column to keep.
    #[error("{path}: the column `{column}` is not a label of the model{hint}")]
    UnknownColumn {
        /// The file.
        path: String,
        /// The name of the column.
        column: String,
        /// `; did you mean …?`, or nothing.
        hint: String,
    },
    /// A table lacks a column that is needed.
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
    /// A table without column names does not have one column per label.
    #[error("{path}: the table has {found} columns and the model has {expected} labels")]
    ColumnCount {
        /// The file.
        path: String,
        /// How many columns it has.
        found: u64,
        /// How many labels there are.
        expected: usize,
    },
    /// A cell holds a value that is not allowed there.
    #[error("{location}: {message}")]
    Cell {
        /// Where the cell is.
        location: CellLocation,
        /// What is wrong and what is expected.
        message: String,
    },
    /// A column of a data set cannot be used as requested.
    #[error("{path}: the column `{column}` {message}")]
    Column {
        /// The file, or `the added data set`.
        path: String,
        /// The name of the column.
        column: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A column without a name would become a feature; pandas writes its index like that.
    #[error("{path}: a column has no name; features need names")]
    UnnamedFeature {
        /// The file.
        path: String,
    },
    /// A column has a type that cannot become a feature.
    #[error("{path}: the column `{column}` is of type {kind} and cannot be a feature")]
    NotAFeature {
        /// The file.
        path: String,
        /// The name of the column.
        column: String,
        /// The type, as its file format names it.
        kind: String,
    },
    /// A column of text has more categories than allowed.
    #[error(
        "{location}: {text} makes this a column of text, and it has more than {limit} different \
         values"
    )]
    TooManyCategories {
        /// The cell that broke the limit.
        location: CellLocation,
        /// The first cell that is not a number, quoted.
        text: String,
        /// How many categories are allowed.
        limit: usize,
    },
    /// A data set is larger than allowed.
    #[error("{path}: more than the {limit} {what} allowed")]
    TooMuchData {
        /// The file.
        path: String,
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// A model bundle is damaged, incomplete or of a newer version.
    #[error("{path}: {message}")]
    Bundle {
        /// The folder, or the part of it.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A table as a whole cannot be used: it is damaged or has the wrong shape.
    #[error("{path}: {message}")]
    Table {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A model or a set of samples as a whole cannot be used, or cannot be written.
    #[error("{path}: {message}")]
    Model {
        /// The file, or `the model`.
        path: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The format cannot express a part of the graph.
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
        /// The reason.
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
    /// The line that the error is about, if there is one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Error::Syntax { line, .. }
            | Error::LineTooLong { line, .. }
            | Error::TooManyLabels { line, .. } => Some(*line),
            Error::Cell { location, .. } | Error::TooManyCategories { location, .. } => {
                match location.record {
                    RecordNumber::Line(line) => Some(line),
                    RecordNumber::Row(_) => None,
                }
            }
            _ => None,
        }
    }
}
