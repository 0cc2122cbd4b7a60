//! The threads that engines run on.
//!
//! This is a separate pool and not rayon's global one. Its size can be changed, and a forked process (as
//! data loaders make) gets a new pool, because threads do not survive a fork.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::Failure;

struct Shared {
    count: Option<usize>,
    /// The pool, and the process that made it.
    pool: Option<(u32, Arc<ThreadPool>)>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { count: None, pool: None });

/// How many threads engines use.
#[pyfunction]
pub(crate) fn threads() -> usize {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.count.unwrap_or_else(default_count)
}

/// Sets how many threads engines use; `None` means one per core, or `RAYON_NUM_THREADS`.
///
/// Answers do not depend on it.
#[pyfunction]
pub(crate) fn set_threads(count: Option<i64>) -> Result<(), Failure> {
    let count = match count {
        Some(count @ ..1) => {
            let message = format!("{count} threads: give 1 or more, or None for one per core");
            return Err(Failure::Input(message));
        }
        Some(count) => usize::try_from(count).ok(),
        None => None,
    };
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.count = count;
    shared.pool = None;
    Ok(())
}

fn default_count() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    asked.filter(|&count| count > 0).unwrap_or_else(cores)
}

fn pool() -> Result<Arc<ThreadPool>, Failure> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, pool)) = shared.pool.as_ref().filter(|(made_by, _)| *made_by == process) {
        return Ok(Arc::clone(pool));
    }
    let count = shared.count.unwrap_or_else(default_count);
    let pool = ThreadPoolBuilder::new().num_threads(count).build();
    let pool = Arc::new(pool.map_err(|error| Failure::input(format!("no threads: {error}")))?);
    // A pool from before a fork is leaked, because joining its missing threads would never end.
    let stale = shared.pool.replace((process, Arc::clone(&pool)));
    stale.into_iter().filter(|stale| stale.0 != process).for_each(std::mem::forget);
    Ok(pool)
}

/// Runs engine work without the interpreter lock, on the pool.
pub(crate) fn detached<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send,
) -> Result<R, Failure> {
    let pool = pool()?;
    Ok(py.detach(|| pool.install(work)))
}
