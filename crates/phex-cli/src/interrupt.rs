//! Ctrl-C and termination: long work stops between two pieces, so that half-written files go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

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

/// True once a signal came, for work that looks at it by itself.
pub(crate) fn flag() -> Arc<AtomicBool> {
    ASKED.clone()
}

/// An error once a signal came.
pub(crate) fn check() -> anyhow::Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        anyhow::bail!("interrupted; nothing was written");
    }
    Ok(())
}
