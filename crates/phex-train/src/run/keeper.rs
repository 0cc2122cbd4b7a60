//! Checkpoints while a run goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::trainer::{EpochRecord, Flow, Observer, Progress};
use crate::{Checkpoint, Error};

/// Epochs shorter than this do not each get a checkpoint, because writing one takes time.
const SHORTEST: Duration = Duration::from_secs(1);

/// Writes checkpoints at regular times, after epochs, and when the run stops. Everything else is passed
/// on to another observer, whose [`Flow::Stop`] stops the run.
pub struct CheckpointKeeper<'o> {
    path: PathBuf,
    every: Duration,
    saved: Instant,
    /// Whether the next checkpoint is due, however short the time since the last.
    due: bool,
    observer: &'o mut dyn Observer,
}

impl<'o> CheckpointKeeper<'o> {
    pub(super) fn new(
        path: PathBuf,
        every: Duration,
        observer: &'o mut dyn Observer,
    ) -> CheckpointKeeper<'o> {
        CheckpointKeeper { path, every, saved: Instant::now(), due: false, observer }
    }
}

impl Observer for CheckpointKeeper<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        let flow = self.observer.progress(progress);
        self.due = flow != Flow::Continue || self.saved.elapsed() >= self.every;
        match flow {
            Flow::Continue if self.due => Flow::Save,
            flow => flow,
        }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        self.observer.epoch(record);
    }

    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if !self.due && self.saved.elapsed() < SHORTEST.min(self.every) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            let path = || folder.display().to_string();
            std::fs::create_dir_all(folder)
                .map_err(|source| phex_io::Error::Write { path: path(), source })?;
        }
        checkpoint.write(&self.path)?;
        (self.due, self.saved) = (false, Instant::now());
        Ok(())
    }
}
