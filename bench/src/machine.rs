//! What the numbers were measured on, and how.

use std::time::Instant;

use serde::Serialize;

/// The machine and the version.
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
            processor: model.unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The most memory that this process has used, in MiB; 0 where the system does not say.
pub(crate) fn peak_mib() -> f64 {
    status_mib("VmHWM:")
}

/// The memory that this process uses now, in MiB; 0 where the system does not say.
pub(crate) fn resident_mib() -> f64 {
    status_mib("VmRSS:")
}

fn status_mib(entry: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(entry));
    let kib: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// CPU seconds of all threads of this process; `None` where the system does not say.
fn cpu_seconds() -> Option<f64> {
    let nanoseconds = |task: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    Some(1e-9 * tasks.map(nanoseconds).sum::<Option<f64>>()?)
}

/// Microseconds a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// The best and the median of the repetitions, by the clock.
    pub(crate) best: f64,
    pub(crate) median: f64,
    /// The mean CPU time: where others share the core, nearer to the truth than the clock.
    pub(crate) cpu: Option<f64>,
}

/// Times the closure: the best and the median of a few repetitions, in microseconds a row.
pub(crate) fn time(rows: usize, work: impl FnMut()) -> (f64, f64) {
    let Timing { best, median, .. } = time_for(rows, 0.0, work);
    (best, median)
}

/// As [`time`], repeated for this many seconds at least.
pub(crate) fn time_for(rows: usize, seconds: f64, mut work: impl FnMut()) -> Timing {
    work();
    let (begin, cpu_begin) = (Instant::now(), cpu_seconds());
    let mut times = Vec::new();
    while times.len() < 5 || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64() * 1e6 / rows as f64);
    }
    let calls = (times.len() * rows) as f64;
    let cpu = cpu_begin.and_then(|begin| Some((cpu_seconds()? - begin) * 1e6 / calls));
    times.sort_by(f64::total_cmp);
    Timing { best: times[0], median: times[times.len() / 2], cpu }
}
