//! Time, memory and the machine that they were measured on.
//!
//! Repeated work is timed by [`repeat`]: the best and the median of the repetitions by wall-clock time, and the mean
//! CPU time. A run of an experiment is timed once, by a [`Stopwatch`] on its own thread, so that its CPU time does
//! not depend on who else uses the machine.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The machine and the version of phex.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    version: &'static str,
}

impl Machine {
    pub(crate) fn here() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        Machine {
            processor: model.unwrap_or("unknown CPU").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine { processor, cores, version } = self;
        write!(f, "version {version}, {processor}, {cores} cores")
    }
}

/// The most memory that this process has used, in MiB; 0 where the system does not tell.
pub(crate) fn peak_mib() -> f64 {
    status_mib("VmHWM:")
}

/// The memory that this process uses now, in MiB; 0 where the system does not tell.
pub(crate) fn resident_mib() -> f64 {
    status_mib("VmRSS:")
}

fn status_mib(entry: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(entry));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// CPU seconds of all threads of this process; `None` where the system does not tell.
fn process_cpu_seconds() -> Option<f64> {
    let nanoseconds = |task: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    Some(1e-9 * tasks.map(nanoseconds).sum::<Option<f64>>()?)
}

/// How often work is repeated: until both `least` repetitions are done and `seconds` have passed, but at most
/// `most` times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repetitions {
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) seconds: f64,
}

impl Repetitions {
    /// At least five times and for this many seconds.
    pub(crate) fn lasting(seconds: f64) -> Repetitions {
        Repetitions { least: 5, most: usize::MAX, seconds }
    }
}

/// Seconds of one repetition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// The best by wall-clock time.
    pub(crate) best: f64,
    /// The median by wall-clock time.
    pub(crate) median: f64,
    /// The mean CPU time: closer to the truth than wall-clock time if others share the core.
    pub(crate) cpu: Option<f64>,
}

impl Timing {
    /// The lesser of the best time and the mean CPU time.
    pub(crate) fn undisturbed(&self) -> f64 {
        self.best.min(self.cpu.unwrap_or(f64::MAX))
    }
}

/// Repeats work and times it; returns the last answer.
pub(crate) fn repeat<A, E>(
    repetitions: Repetitions,
    mut work: impl FnMut() -> Result<A, E>,
) -> Result<(A, Timing), E> {
    let Repetitions { least, most, seconds } = repetitions;
    let (begin, cpu_begin) = (Instant::now(), process_cpu_seconds());
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let answer = work()?;
        times.push(start.elapsed().as_secs_f64());
        let enough = times.len() >= least && begin.elapsed().as_secs_f64() >= seconds;
        if enough || times.len() >= most {
            let count = times.len() as f64;
            let cpu = cpu_begin.and_then(|begin| Some((process_cpu_seconds()? - begin) / count));
            times.sort_by(f64::total_cmp);
            return Ok((answer, Timing { best: times[0], median: times[times.len() / 2], cpu }));
        }
    }
}

/// Runs work once to warm up, then at least five times and for this many seconds.
pub(crate) fn time<A, E>(
    seconds: f64,
    mut work: impl FnMut() -> Result<A, E>,
) -> Result<Timing, E> {
    work()?;
    Ok(repeat(Repetitions::lasting(seconds), work)?.1)
}

/// All engines use one thread from now on.
pub(crate) fn use_one_thread() -> anyhow::Result<()> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?)
}

/// Both times of a run, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunSeconds {
    /// By the clock.
    #[serde(rename = "seconds")]
    pub(crate) wall: f64,
    /// Of the CPU; runs of earlier versions have none.
    #[serde(rename = "processor-seconds", default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<f64>,
}

impl RunSeconds {
    /// What the run cost: its CPU time, if that is known.
    pub(crate) fn cost(self) -> f64 {
        self.cpu.unwrap_or(self.wall)
    }
}

/// Times one run. It is started and read on the thread that does the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Option<Duration>,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu: thread_cpu_time() }
    }

    pub(crate) fn read(&self) -> RunSeconds {
        let since = |from| Some(thread_cpu_time()?.saturating_sub(from).as_secs_f64());
        RunSeconds { wall: self.wall.elapsed().as_secs_f64(), cpu: self.cpu.and_then(since) }
    }
}

/// The CPU time of this thread so far.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn thread_cpu_time() -> Option<Duration> {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn thread_cpu_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleeping thread takes hardly any CPU time.
    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn sleeping_costs_nothing() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(50));
        let seconds = watch.read();
        assert!(seconds.wall >= 0.05);
        assert!(seconds.cost() < seconds.wall, "{seconds:?}");
    }

    #[test]
    fn runs_of_earlier_versions_have_wall_clock_time() {
        let seconds: RunSeconds = serde_json::from_str(r#"{"seconds": 2.5}"#).unwrap();
        assert_eq!(seconds.cost(), 2.5);
        let seconds = RunSeconds { cpu: Some(1.5), ..seconds };
        assert_eq!(seconds.cost(), 1.5);
        let text = serde_json::to_string(&seconds).unwrap();
        assert_eq!(serde_json::from_str::<RunSeconds>(&text).unwrap(), seconds);
    }

    #[test]
    fn work_is_repeated_as_often_as_asked() {
        let mut count = 0;
        let mut work = || -> Result<usize, ()> {
            count += 1;
            Ok(count)
        };
        let at_most = |most| Repetitions { least: 1, most, seconds: 60.0 };
        assert_eq!(repeat(at_most(3), &mut work).unwrap().0, 3);
        let least = Repetitions { least: 4, most: 9, seconds: 0.0 };
        let (last, timing) = repeat(least, &mut work).unwrap();
        assert_eq!(last, 7);
        assert!(timing.best <= timing.median);
        assert!(repeat(at_most(2), || Err::<(), &str>("broken")).is_err());
    }
}
