//! Bounds the search for a junction tree.
//!
//! One counter runs through the whole search: the cover of the exclusions, the elimination orders
//! and the lists of legal states. It counts steps of a nanosecond or two, and not time, so the same
//! model always gets the same tree. Covers and orders may use a quarter of the steps, so that enough
//! are left to list the states of the best order.

/// Why a search ended without a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// No steps are left.
    Steps,
    /// The tree has more states or needs more memory than the budget allows.
    Size,
}

/// Counts the steps of a search.
#[derive(Debug)]
pub(super) struct Work {
    left: u64,
    /// How many of the steps are kept for what comes later.
    kept: u64,
}

impl Work {
    /// A search of this many steps, of which three quarters are kept until [`Work::release`].
    pub(super) fn new(steps: f64) -> Work {
        let left = steps as u64;
        Work { left, kept: left / 4 * 3 }
    }

    /// Makes all remaining steps available.
    pub(super) fn release(&mut self) {
        self.kept = 0;
    }

    /// Takes some steps.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Halt> {
        self.left = self.left.saturating_sub(steps as u64);
        if self.left > self.kept { Ok(()) } else { Err(Halt::Steps) }
    }
}
