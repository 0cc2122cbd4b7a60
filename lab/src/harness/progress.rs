//! Progress of runs: a bar for people, one line per minute for logs.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How often a log gets a line.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Is told how runs proceed.
pub trait RunProgress: Sync {
    /// A group of runs begins; some of them were done earlier.
    fn group(&self, _name: &str, _runs: usize, _done_earlier: usize) {}

    /// A run is done.
    fn run_done(&self) {}
}

/// Shows no progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl RunProgress for NoProgress {}

/// Shows progress on standard error.
#[derive(Debug)]
pub struct ConsoleProgress {
    quiet: bool,
    bar: Option<ProgressBar>,
    group: Mutex<LoggedGroup>,
}

/// What a log says of the group that runs now.
#[derive(Debug)]
struct LoggedGroup {
    name: String,
    runs: usize,
    done: usize,
    last_line: Instant,
}

impl ConsoleProgress {
    /// A bar if standard error is a terminal, else lines; nothing if `quiet`.
    pub fn new(quiet: bool) -> ConsoleProgress {
        let is_seen = !quiet && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}").ok();
        let bar = style.filter(|_| is_seen).map(|style| ProgressBar::new(1).with_style(style));
        let last_line = Instant::now();
        let group = LoggedGroup { name: String::new(), runs: 0, done: 0, last_line };
        ConsoleProgress { quiet, bar, group: Mutex::new(group) }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl RunProgress for ConsoleProgress {
    fn group(&self, name: &str, runs: usize, done_earlier: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(runs as u64);
            bar.set_position(done_earlier as u64);
            bar.reset_eta();
            bar.set_message(name.to_owned());
        } else if !self.quiet {
            eprintln!("{name}: {runs} runs, {done_earlier} done earlier");
        }
        if let Ok(mut group) = self.group.lock() {
            let (name, last_line) = (name.to_owned(), Instant::now());
            *group = LoggedGroup { name, runs, done: done_earlier, last_line };
        }
    }

    fn run_done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let Ok(mut group) = self.group.lock() else { return };
        group.done += 1;
        if !self.quiet && group.last_line.elapsed() > LOG_INTERVAL {
            group.last_line = Instant::now();
            eprintln!("{}: {} of {} runs", group.name, group.done, group.runs);
        }
    }
}
