//! Watching a run: a bar or lines for people, checkpoints for the machine, signals.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use phex_train::{Checkpoint, EpochRecord, Error, Flow, Metric, Observer, Progress};

use crate::args::RunArguments;

/// Parts of an epoch that a bar tells apart.
const PARTS: u64 = 1000;
/// Short epochs are not kept more often than this: a checkpoint costs a write to the disk.
const OFTEN: Duration = Duration::from_secs(1);

/// Watches a run.
pub(crate) struct Watch {
    bar: Option<ProgressBar>,
    verbose: bool,
    metric: Metric,
    checkpoint: PathBuf,
    every: Duration,
    saved: Instant,
    /// Whether the next checkpoint was asked for.
    wanted: bool,
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// What is said begins with `about`, unless that is empty.
    pub(crate) fn new(
        arguments: &RunArguments,
        checkpoint: PathBuf,
        metric: Metric,
        about: &str,
    ) -> Watch {
        let seen = !arguments.quiet && !arguments.verbose && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{prefix}{bar:30} {msg} {eta}").ok();
        let bar = style.filter(|_| seen).map(|style| {
            let space = if about.is_empty() { "" } else { " " };
            let prefix = format!("{about}{space}");
            ProgressBar::new(1).with_style(style).with_prefix(prefix)
        });
        Watch {
            bar,
            verbose: arguments.verbose,
            metric,
            checkpoint,
            every: Duration::try_from_secs_f64(arguments.checkpoint_every).unwrap_or(Duration::MAX),
            saved: Instant::now(),
            wanted: false,
            stop: crate::interrupt::flag(),
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Watch {
    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        if let Some(bar) = &self.bar {
            let (epoch, epochs) = progress.epoch;
            let (step, steps) = progress.step;
            bar.set_length(epochs as u64 * PARTS);
            let part = step as u64 * PARTS / steps.max(1) as u64;
            bar.set_position((epoch as u64 - 1) * PARTS + part);
            let (stage, loss) = (progress.stage, progress.loss);
            bar.set_message(format!("{stage}, epoch {epoch} of {epochs}, loss {loss:.4}"));
        }
        let stop = self.stop.load(Ordering::Relaxed);
        self.wanted = stop || self.saved.elapsed() >= self.every;
        match (stop, self.wanted) {
            (true, _) => Flow::Stop,
            (_, true) => Flow::Save,
            _ => Flow::Continue,
        }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        if !self.verbose {
            return;
        }
        let EpochRecord { stage, epoch, training_loss, seconds, .. } = record;
        let mut line = format!("{stage}, epoch {epoch}: loss {training_loss:.4}");
        if let Some(loss) = record.validation_loss {
            line.push_str(&format!(", validation loss {loss:.4}"));
        }
        if let Some(value) = record.validation_metric.filter(|_| self.metric != Metric::Loss) {
            line.push_str(&format!(", {} {value:.4}", self.metric.name()));
        }
        eprintln!("{line} ({seconds:.1} s)");
    }

    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if !self.wanted && self.saved.elapsed() < OFTEN.min(self.every) {
            return Ok(());
        }
        if let Some(folder) = self.checkpoint.parent() {
            std::fs::create_dir_all(folder).map_err(|source| phex_io::Error::Write {
                path: folder.display().to_string(),
                source,
            })?;
        }
        checkpoint.write(&self.checkpoint)?;
        (self.wanted, self.saved) = (false, Instant::now());
        Ok(())
    }
}
