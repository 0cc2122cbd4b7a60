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
