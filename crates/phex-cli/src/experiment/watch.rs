//! Progress of an experiment: a bar for people, a line a minute for logs.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use phex_experiment::Watch;

/// How often a log gets a line.
const OFTEN: Duration = Duration::from_secs(60);

/// Tells how far an experiment is.
pub(super) struct Bar {
    quiet: bool,
    bar: Option<ProgressBar>,
    part: Mutex<Part>,
}

/// What runs now, for logs.
struct Part {
    name: String,
    runs: usize,
    done: usize,
    told: Instant,
}

impl Bar {
    pub(super) fn new(quiet: bool) -> Bar {
        let seen = !quiet && std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {eta}").ok();
        let bar = style.filter(|_| seen).map(|style| ProgressBar::new(1).with_style(style));
        let part = Part { name: String::new(), runs: 0, done: 0, told: Instant::now() };
        Bar { quiet, bar, part: Mutex::new(part) }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Bar {
    fn part(&self, name: &str, runs: usize, before: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(runs as u64);
            bar.set_position(before as u64);
            bar.reset_eta();
            bar.set_message(name.to_owned());
        } else if !self.quiet {
            eprintln!("{name}: {runs} runs, {before} done before");
        }
        if let Ok(mut part) = self.part.lock() {
            *part = Part { name: name.to_owned(), runs, done: before, told: Instant::now() };
        }
    }

    fn run(&self, _: &str, _: f64) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let Ok(mut part) = self.part.lock() else { return };
        part.done += 1;
        if !self.quiet && part.told.elapsed() > OFTEN {
            part.told = Instant::now();
            eprintln!("{}: {} of {} runs", part.name, part.done, part.runs);
        }
    }
}
