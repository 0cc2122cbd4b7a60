//! Runs side by side, each kept as soon as it is done.
//!
//! A run is one thread's: runs are shared out, not their parts, so what a run finds does not depend on
//! how many run at a time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phex_train::{Flow, Observer, Progress};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::journal::Journal;
use crate::stopwatch::Stopwatch;

/// Told how an experiment goes on.
pub trait Watch: Sync {
    /// A part with so many runs begins; so many of them were run before.
    fn part(&self, _name: &str, _runs: usize, _before: usize) {}

    /// A run is done.
    fn run(&self, _description: &str, _seconds: f64) {}
}

/// Some jobs of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Whether its jobs run one after another, because they are timed.
    pub alone: bool,
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(name: &'a str) -> Part<'a> {
        Part { name, alone: false }
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Runs jobs and keeps what they answer.
pub struct Runner<'a> {
    journal: Mutex<Journal>,
    threads: usize,
    watch: &'a dyn Watch,
    stop: &'a AtomicBool,
    /// Of the processor, for the runs that were asked for, whenever they ran.
    /// By their description, for parts of an experiment ask for the same runs.
    seconds: Mutex<BTreeMap<String, f64>>,
}

impl<'a> Runner<'a> {
    /// Runs `threads` jobs at a time until `stop` is set.
    pub fn new(
        journal: Journal,
        threads: usize,
        watch: &'a dyn Watch,
        stop: &'a AtomicBool,
    ) -> Runner<'a> {
        Runner {
            journal: Mutex::new(journal),
            threads: threads.max(1),
            watch,
            stop,
            seconds: Mutex::default(),
        }
    }

    /// The answers of some jobs in their order; those in the journal are not run again. `work` is told when
    /// to stop.
    ///
    /// # Errors
    /// The first error of a job; [`Error::Interrupted`] when it was stopped.
    pub fn run<'p, J, A>(
        &self,
        part: impl Into<Part<'p>>,
        jobs: &[J],
        work: impl Fn(&J, &AtomicBool) -> Result<A, Error> + Sync,
    ) -> Result<Vec<A>, Error>
    where
        J: Serialize + Sync,
        A: Serialize + DeserializeOwned + Send,
    {
        let Part { name, alone } = part.into();
        let threads = if alone { 1 } else { self.threads };
        let describe = |job: &J| {
            serde_json::to_value(job).map_err(|error| Error::Broken { message: error.to_string() })
        };
        let keys = jobs.iter().map(describe).collect::<Result<Vec<_>, Error>>()?;
        let mut answers: Vec<Option<A>> = {
            let journal = self.journal()?;
            let known = |key: &serde_json::Value| {
                journal.answer(key).map(|(answer, seconds)| {
                    self.spend(key.to_string(), seconds.cost());
                    answer
                })
            };
            keys.iter().map(known).collect()
        };
        let open: Vec<usize> = (0..jobs.len()).filter(|&at| answers[at].is_none()).collect();
        self.watch.part(name, jobs.len(), jobs.len() - open.len());
        let next = AtomicUsize::new(0);
        // One job that fails ends the others too.
        let failed = AtomicBool::new(false);
        let worker = || -> Result<Vec<(usize, A)>, Error> {
            let broken =
                |error: rayon::ThreadPoolBuildError| Error::Broken { message: error.to_string() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(broken)?;
            let mut found = Vec::new();
            while let Some(&at) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                if failed.load(Ordering::Relaxed) {
                    break;
                }
                // Timed where it runs: the one thread of the pool does all of it.
                let timed = || {
                    let watch = Stopwatch::start();
                    work(&jobs[at], self.stop).map(|answer| (answer, watch.read()))
                };
                let (answer, seconds) = pool.install(timed).inspect_err(|_| {
                    failed.store(true, Ordering::Relaxed);
                })?;
                self.journal()?.keep(keys[at].clone(), &answer, seconds)?;
                self.spend(keys[at].to_string(), seconds.cost());
                self.watch.run(&keys[at].to_string(), seconds.wall);
                found.push((at, answer));
            }
            Ok(found)
        };
        let results: Vec<Result<Vec<(usize, A)>, Error>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let broken = || Error::Broken { message: String::from("it panicked") };
            workers.into_iter().map(|worker| worker.join().map_err(|_| broken())?).collect()
        });
        for result in results {
            for (at, answer) in result? {
                answers[at] = Some(answer);
            }
        }
        let missing = || Error::Broken { message: String::from("it gave no answer") };
        answers.into_iter().map(|answer| answer.ok_or_else(missing)).collect()
    }

    /// The processor seconds of all runs that were asked for, whenever they ran, each counted once.
    pub fn seconds(&self) -> f64 {
        self.seconds.lock().map_or(f64::NAN, |seconds| seconds.values().sum())
    }

    fn spend(&self, run: String, cost: f64) {
        if let Ok(mut seconds) = self.seconds.lock() {
            seconds.insert(run, cost);
        }
    }

    fn journal(&self) -> Result<std::sync::MutexGuard<'_, Journal>, Error> {
        let broken = |_| Error::Broken { message: String::from("the journal is lost") };
        self.journal.lock().map_err(broken)
    }
}

/// Ends training when a flag is set.
#[derive(Debug)]
pub(crate) struct Stopper<'a>(pub(crate) &'a AtomicBool);

impl Observer for Stopper<'_> {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_the_journal_are_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let stop = AtomicBool::new(false);
        let count = AtomicUsize::new(0);
        let square = |job: &u64, _: &AtomicBool| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(job * job)
        };
        let runner = Runner::new(Journal::open(&path, false).unwrap(), 2, &Unwatched, &stop);
        assert_eq!(runner.run("squares", &[3, 1, 2], square).unwrap(), [9, 1, 4]);
        drop(runner);
        let runner = Runner::new(Journal::open(&path, true).unwrap(), 2, &Unwatched, &stop);
        assert_eq!(runner.run("squares", &[1, 2, 3, 4], square).unwrap(), [1, 4, 9, 16]);
        assert_eq!(count.load(Ordering::Relaxed), 4);
        let before = runner.seconds();
        assert_eq!(runner.run("the same again", &[4, 2], square).unwrap(), [16, 4]);
        assert_eq!(runner.seconds(), before);
        stop.store(true, Ordering::Relaxed);
        let stopped = runner.run("squares", &[5], square).unwrap_err();
        assert!(matches!(stopped, Error::Interrupted), "{stopped}");
    }
}
