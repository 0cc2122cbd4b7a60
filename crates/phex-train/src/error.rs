//! The errors of this crate.

use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The core refuses. A row that contradicts hard relations is
    /// [`phex::Error::Contradiction`].
    #[error(transparent)]
    Core(#[from] phex::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] phex_io::Error),
    /// A setting is out of range, or does not fit another one.
    #[error("{setting}: {message}")]
    Setting {
        /// The setting, as in `config.json`: `optimiser.learning_rate`.
        setting: &'static str,
        /// What it may be.
        message: String,
    },
    /// The settings of labels do not say where the labels are.
    #[error("{message}")]
    Labels {
        /// What is wrong and what to do.
        message: &'static str,
    },
    /// The examples do not fit together, or do not fit the model.
    #[error("the examples cannot be used: {message}")]
    Examples {
        /// What is wrong and what to do.
        message: String,
    },
    /// The loss is not finite.
    #[error(
        "the loss is {loss} in epoch {epoch}; a smaller learning rate than {learning_rate} may help"
    )]
    Diverged {
        /// The loss.
        loss: f64,
        /// The epoch, counted from 1 over all stages.
        epoch: usize,
        /// The learning rate.
        learning_rate: f64,
    },
    /// A checkpoint cannot be read.
    #[error("{}: the checkpoint cannot be read: {source}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// A checkpoint belongs to another run.
    #[error("the checkpoint belongs to another run: {message}; use another folder, or remove it")]
    OtherRun {
        /// What differs.
        message: String,
    },
    /// A folder has the model of another run.
    #[error("{}: the folder has the model of another run", path.display())]
    OtherModel {
        /// The folder.
        path: PathBuf,
    },
    /// A folder cannot become the folder of a run.
    #[error("{}: {message}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A bundle is not what it should be.
    #[error("the model cannot be used: {message}")]
    Model {
        /// What is wrong.
        message: String,
    },
    /// The objective has no relations, and nothing else runs on a device.
    #[error(
        "only inference under relations runs on a device, and this objective is a baseline without relations; use the CPU"
    )]
    NothingToAccelerate,
    /// The observer stopped the run.
    #[error("interrupted; the same command continues from the checkpoint")]
    Interrupted,
}
