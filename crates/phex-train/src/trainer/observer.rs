//! Observing a run: progress after each step, a record after each epoch, checkpoints to keep.

use super::EpochRecord;
use crate::Error;
use crate::checkpoint::Checkpoint;

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The name of the stage.
    pub stage: &'a str,
    /// The epoch, counted from 1 over all stages, and the largest possible number of epochs.
    pub epoch: (usize, usize),
    /// The step in the epoch, and how many it has.
    pub step: (usize, usize),
    /// The mean loss of the epoch so far.
    pub loss: f64,
}

/// What to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continue.
    Continue,
    /// Save a checkpoint and continue.
    Save,
    /// Save a checkpoint and stop.
    Stop,
}

/// Observes a run.
pub trait Observer {
    /// Called after each step.
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        Flow::Continue
    }

    /// Called after each epoch.
    fn epoch(&mut self, _: &EpochRecord) {}

    /// Keeps a checkpoint: called after each epoch and when [`Observer::progress`] requests it.
    ///
    /// # Errors
    /// Whatever prevents writing it; the run ends with this error.
    fn save(&mut self, _: &Checkpoint) -> Result<(), Error> {
        Ok(())
    }
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
