//! The errors of this crate.

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The core refuses.
    #[error(transparent)]
    Core(#[from] phex::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] phex_io::Error),
    /// A setting is out of range.
    #[error("{field}: {message}")]
    Config {
        /// The setting.
        field: &'static str,
        /// What it may be.
        message: String,
    },
    /// The examples do not fit together, or not the model.
    #[error("the examples cannot be used: {message}")]
    Examples {
        /// What is wrong and what to do.
        message: String,
    },
    /// What is observed of a row contradicts hard relations.
    #[error(
        "row {row} ({observed}) contradicts the hard relations of the graph; correct the labels, soften the relations, or use the loss `marginal`"
    )]
    Impossible {
        /// The row, counted from 0.
        row: usize,
        /// Its observed labels.
        observed: String,
    },
    /// The loss is no number any more.
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
    /// A checkpoint belongs to another run.
    #[error(
        "the checkpoint belongs to another run: {message}; train into another folder, or remove it"
    )]
    OtherRun {
        /// What differs.
        message: String,
    },
    /// A bundle is not what it should be.
    #[error("the model cannot be used: {message}")]
    Model {
        /// What is wrong.
        message: String,
    },
    /// No relations take part, and nothing else runs on a device.
    #[error(
        "only inference under relations runs on a device, and this objective is a baseline without; use the processor"
    )]
    NothingToAccelerate,
    /// Someone asked to stop.
    #[error("interrupted; the same command goes on where it stopped")]
    Interrupted,
}
