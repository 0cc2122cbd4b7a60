//! Signals. Ctrl-C and termination: long work stops between two blocks, so that half-written files are removed. A limit
//! of file size: writing fails with an error, so that it is reported and half-written files are removed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Starts listening, for work that calls [`check`] often. A second signal ends the process at once.
pub(crate) fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler, a signal ends the process as usual.
    let _ = ctrlc::set_handler(handler);
}

/// Turns the signal for a file that is larger than allowed into an error of the write, in all threads that start later.
pub(crate) fn keep_limits_as_errors() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGXFSZ);
        // If it cannot be blocked, the signal ends the process as usual.
        let _ = signals.thread_block();
    }
}

/// Becomes true after a signal, for work that checks it directly.
pub(crate) fn flag() -> Arc<AtomicBool> {
    ASKED.clone()
}

/// An error after a signal.
pub(crate) fn check() -> anyhow::Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        anyhow::bail!("interrupted; nothing was written");
    }
    Ok(())
}
