//! Showing a run: a progress bar or lines. A signal stops the run.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use phex_train::{EpochRecord, Flow, Metric, Observer, Progress};

use crate::args::RunArguments;
use crate::say::say;

/// Positions of the bar per epoch.
const POSITIONS: u64 = 1000;

/// Shows a run.
pub(crate) struct ProgressDisplay {
    bar: Option<ProgressBar>,
    verbose: bool,
    metric: Metric,
    stop: Arc<AtomicBool>,
}

impl ProgressDisplay {
    /// The bar begins with `about`, unless that is empty.
    pub(crate) fn new(arguments: &RunArguments, metric: Metric, about: &str) -> ProgressDisplay {
        let shown = !arguments.quiet && !arguments.verbose && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{prefix}{bar:30} {msg} {eta}").ok();
        let bar = style.filter(|_| shown).map(|style| {
            let space = if about.is_empty() { "" } else { " " };
            let prefix = format!("{about}{space}");
            ProgressBar::new(1).with_style(style).with_prefix(prefix)
        });
        let (verbose, stop) = (arguments.verbose, crate::interrupt::flag());
        ProgressDisplay { bar, verbose, metric, stop }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for ProgressDisplay {
    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        if let Some(bar) = &self.bar {
            let (epoch, epochs) = progress.epoch;
            let (step, steps) = progress.step;
            bar.set_length(epochs as u64 * POSITIONS);
            let part = step as u64 * POSITIONS / steps.max(1) as u64;
            bar.set_position((epoch as u64 - 1) * POSITIONS + part);
            let (stage, loss) = (progress.stage, progress.loss);
            bar.set_message(format!("{stage}, epoch {epoch} of {epochs}, loss {loss:.4}"));
        }
        if self.stop.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
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
            line.push_str(&format!(", {} {value:.4}", self.metric));
        }
        say(format_args!("{line} ({seconds:.1} s)"));
    }
}
