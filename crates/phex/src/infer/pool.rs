//! Buffers that runs give back: fresh memory is slow, for each page of it is first cleared.

use std::sync::Mutex;

/// Buffers that are free.
#[derive(Debug)]
pub(crate) struct Pool<B>(Mutex<Vec<B>>);

impl<B> Default for Pool<B> {
    fn default() -> Pool<B> {
        Pool(Mutex::new(Vec::new()))
    }
}

impl<B> Pool<B> {
    /// Some that are free.
    pub(crate) fn take(&self) -> Option<B> {
        self.0.lock().ok()?.pop()
    }

    /// Frees some.
    pub(crate) fn give_back(&self, buffers: B) {
        if let Ok(mut free) = self.0.lock() {
            free.push(buffers);
        }
    }
}
