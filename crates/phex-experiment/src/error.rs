//! The errors of this crate.

use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The core refuses.
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
        /// What the system says.
        source: std::io::Error,
    },
    /// The description of an experiment is not what it should be.
    #[error("{name}: {message}")]
    Specification {
        /// The experiment or its file.
        name: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A line of a journal cannot be read.
    #[error(
        "{}:{line}: {message}; remove the line, or the file to begin anew", path.display()
    )]
    Journal {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A journal is there already and nobody said that it is to be continued.
    #[error("{} has runs already: continue it with --resume, or choose another --out", path.display())]
    HasRuns {
        /// The journal.
        path: PathBuf,
    },
    /// The data set of an experiment is not there.
    #[error(
        "there is no {}: give the folder of the data sets with --data or PHEX_DATA, or add --quick to run on generated data", path.display()
    )]
    NoData {
        /// What was looked for.
        path: PathBuf,
    },
    /// A data set is not what its description says.
    #[error("{}: {message}", path.display())]
    WrongData {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Someone asked to stop.
    #[error("interrupted; the same command with --resume goes on where it stopped")]
    Interrupted,
    /// A run broke.
    #[error("a run broke: {message}")]
    Broken {
        /// What it said.
        message: String,
    },
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}
