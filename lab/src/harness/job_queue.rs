//! Runs side by side, each kept in the journal as soon as it is done.
//!
//! A job runs on one thread: jobs are distributed over threads, not their parts, so the answer of a job does not
//! depend on how many jobs run at a time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phex_train::{Flow, Observer, Progress};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::Journal;
use super::progress::RunProgress;
use super::timing::Stopwatch;
use crate::Error;

/// Some jobs that are run together.
#[derive(Debug, Clone, Copy)]
pub struct JobGroup<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Whether its jobs run one after another, because they are timed.
    pub alone: bool,
}

impl<'a> From<&'a str> for JobGroup<'a> {
    fn from(name: &'a str) -> JobGroup<'a> {
        JobGroup { name, alone: false }
    }
}

/// Runs jobs and keeps their answers.
pub struct JobQueue<'a> {
    journal: Mutex<Journal>,
    threads: usize,
    progress: &'a dyn RunProgress,
    stop: &'a AtomicBool,
    /// CPU seconds of the requested jobs, whenever they ran. By description, because groups may request the same
    /// job.
    seconds: Mutex<BTreeMap<String, f64>>,
}

impl<'a> JobQueue<'a> {
    /// Runs `threads` jobs at a time until `stop` is set.
    pub fn new(
        journal: Journal,
        threads: usize,
        progress: &'a dyn RunProgress,
        stop: &'a AtomicBool,
    ) -> JobQueue<'a> {
        JobQueue {
            journal: Mutex::new(journal),
            threads: threads.max(1),
            progress,
            stop,
            seconds: Mutex::default(),
        }
    }

    /// The answers of some jobs in their order. Jobs in the journal are not run again. `work` is given the flag that
    /// stops it.
    ///
    /// # Errors
    /// The first error of a job; [`Error::Interrupted`] if it was stopped.
    pub fn run<'g, J, A>(
        &self,
        group: impl Into<JobGroup<'g>>,
        jobs: &[J],
        work: impl Fn(&J, &AtomicBool) -> Result<A, Error> + Sync,
    ) -> Result<Vec<A>, Error>
    where
        J: Serialize + Sync,
        A: Serialize + DeserializeOwned + Send,
    {
        let JobGroup { name, alone } = group.into();
        let threads = if alone { 1 } else { self.threads };
        let keys = descriptions(jobs)?;
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
        self.progress.group(name, jobs.len(), jobs.len() - open.len());
        let next = AtomicUsize::new(0);
        // A job that fails also ends the others.
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
                // Timed on the one thread of the pool, which does all the work.
                let timed = || {
                    let stopwatch = Stopwatch::start();
                    work(&jobs[at], self.stop).map(|answer| (answer, stopwatch.read()))
                };
                let (answer, seconds) = pool.install(timed).inspect_err(|_| {
                    failed.store(true, Ordering::Relaxed);
                })?;
                self.journal()?.keep(keys[at].clone(), &answer, seconds)?;
                self.spend(keys[at].to_string(), seconds.cost());
                self.progress.run_done();
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

    /// The answers in the journal, without running anything.
    ///
    /// # Errors
    /// [`Error::Broken`] if a job cannot be described.
    pub fn answers<J: Serialize, A: DeserializeOwned>(
        &self,
        jobs: &[J],
    ) -> Result<Vec<Option<A>>, Error> {
        let journal = self.journal()?;
        let keys = descriptions(jobs)?;
        Ok(keys.iter().map(|key| journal.answer(key).map(|(answer, _)| answer)).collect())
    }

    /// The CPU seconds of all requested jobs, whenever they ran, each counted once.
    pub fn seconds(&self) -> f64 {
        self.seconds.lock().map_or(f64::NAN, |seconds| seconds.values().sum())
    }

    fn spend(&self, job: String, cost: f64) {
        if let Ok(mut seconds) = self.seconds.lock() {
            seconds.insert(job, cost);
        }
    }

    fn journal(&self) -> Result<std::sync::MutexGuard<'_, Journal>, Error> {
        let broken = |_| Error::Broken { message: String::from("the journal is lost") };
        self.journal.lock().map_err(broken)
    }
}

fn descriptions<J: Serialize>(jobs: &[J]) -> Result<Vec<serde_json::Value>, Error> {
    let describe = |job: &J| {
        serde_json::to_value(job).map_err(|error| Error::Broken { message: error.to_string() })
    };
    jobs.iter().map(describe).collect()
}

/// Ends training when a flag is set.
#[derive(Debug)]
pub(crate) struct StopObserver<'a>(pub(crate) &'a AtomicBool);

impl Observer for StopObserver<'_> {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::NoProgress;

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
        let queue = JobQueue::new(Journal::open(&path, false).unwrap(), 2, &NoProgress, &stop);
        assert_eq!(queue.run("squares", &[3, 1, 2], square).unwrap(), [9, 1, 4]);
        drop(queue);
        let queue = JobQueue::new(Journal::open(&path, true).unwrap(), 2, &NoProgress, &stop);
        assert_eq!(queue.run("squares", &[1, 2, 3, 4], square).unwrap(), [1, 4, 9, 16]);
        assert_eq!(count.load(Ordering::Relaxed), 4);
        let before = queue.seconds();
        assert_eq!(queue.run("the same again", &[4, 2], square).unwrap(), [16, 4]);
        assert_eq!(queue.seconds(), before);
        assert_eq!(queue.answers::<u64, u64>(&[2, 5]).unwrap(), [Some(4), None]);
        stop.store(true, Ordering::Relaxed);
        let stopped = queue.run("squares", &[5], square).unwrap_err();
        assert!(matches!(stopped, Error::Interrupted), "{stopped}");
    }
}
