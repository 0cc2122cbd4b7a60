//! The errors of the lab.

use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The core reports an error.
    #[error(transparent)]
    Core(#[from] phex::Error),
    /// A table or a graph cannot be read.
    #[error(transparent)]
    Data(#[from] phex_io::Error),
    /// Training fails.
    #[error(transparent)]
    Training(#[from] phex_train::Error),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The description of an experiment is not valid.
    #[error("{name}: {message}")]
    Specification {
        /// The experiment or its file.
        name: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A line of a journal cannot be read.
    #[error(
        "{}:{line}: {message}; remove the line, or remove the file to start over", path.display()
    )]
    Journal {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Another process has the journal open.
    #[error("{} is in use by another process; wait for it, or choose another --out", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// A journal has runs and is not to be resumed.
    #[error("{} already has runs: continue with --resume, or choose another --out", path.display())]
    HasRuns {
        /// The journal.
        path: PathBuf,
    },
    /// The data set of an experiment is missing.
    #[error(
        "there is no {}: give the folder of the data sets with --data or PHEX_DATA, or run an experiment on generated data with --quick", path.display()
    )]
    NoData {
        /// What was looked for.
        path: PathBuf,
    },
    /// A data set does not match its description.
    #[error("{}: {message}", path.display())]
    WrongData {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A signal stopped the runs.
    #[error("interrupted; the same command with --resume continues")]
    Interrupted,
    /// A run failed.
    #[error("a run failed: {message}")]
    Broken {
        /// Why.
        message: String,
    },
}
