//! How long a run takes, by the clock on the wall and by the processor.
//!
//! Processor time counts what the run's own thread did, so that it does not depend on who else uses the
//! machine. Where the system does not tell it, time on the wall stands in for it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Both times of a run, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seconds {
    /// On the wall.
    #[serde(rename = "seconds")]
    pub(crate) wall: f64,
    /// Of the processor; runs of earlier versions have none.
    #[serde(rename = "processor-seconds", default, skip_serializing_if = "Option::is_none")]
    pub(crate) processor: Option<f64>,
}

impl Seconds {
    /// What the run cost: its processor time, where that is known.
    pub(crate) fn cost(self) -> f64 {
        self.processor.unwrap_or(self.wall)
    }
}

/// Started on the thread that is timed, and read there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    wall: Instant,
    processor: Option<Duration>,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), processor: of_this_thread() }
    }

    pub(crate) fn read(&self) -> Seconds {
        let of_processor = |from| Some(of_this_thread()?.saturating_sub(from).as_secs_f64());
        Seconds {
            wall: self.wall.elapsed().as_secs_f64(),
            processor: self.processor.and_then(of_processor),
        }
    }
}

/// The processor time of the thread so far.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn of_this_thread() -> Option<Duration> {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn of_this_thread() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that sleeps takes no processor time to speak of.
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
    fn runs_of_earlier_versions_have_time_on_the_wall() {
        let seconds: Seconds = serde_json::from_str(r#"{"seconds": 2.5}"#).unwrap();
        assert_eq!(seconds.cost(), 2.5);
        let seconds = Seconds { processor: Some(1.5), ..seconds };
        assert_eq!(seconds.cost(), 1.5);
        let text = serde_json::to_string(&seconds).unwrap();
        assert_eq!(serde_json::from_str::<Seconds>(&text).unwrap(), seconds);
    }
}
