//! A pool of buffers that later runs reuse, because fresh memory is slow: the system clears each
//! page first.

use std::sync::Mutex;

/// The free buffers.
#[derive(Debug)]
pub(crate) struct Pool<B>(Mutex<Vec<B>>);

impl<B> Default for Pool<B> {
    fn default() -> Pool<B> {
        Pool(Mutex::new(Vec::new()))
    }
}

impl<B> Pool<B> {
    /// Takes a free buffer, if there is one.
    pub(crate) fn take(&self) -> Option<B> {
        self.0.lock().ok()?.pop()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give_back(&self, buffers: B) {
        if let Ok(mut free) = self.0.lock() {
            free.push(buffers);
        }
    }
}
