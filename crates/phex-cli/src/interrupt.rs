//! Ctrl-C and termination: long work stops between two pieces, so that half-written files go.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Starts listening, for work that asks [`check`] often. The second signal ends the process at
/// once.
pub(crate) fn listen() {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler a signal ends the process as it always did.
    let _ = ctrlc::set_handler(handler);
}

/// An error once a signal came.
pub(crate) fn check() -> anyhow::Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        anyhow::bail!("interrupted; nothing was written");
    }
    Ok(())
}
