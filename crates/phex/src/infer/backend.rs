//! Where an engine answers: on the processor, or on a device that it is brought to.
//!
//! Losses, training and prediction ask a [`Backend`], so that they need not know of devices. An [`Engine`]
//! is one itself; an [`Accelerator`] makes another of it.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Block, Engine, Number, Posterior, Want};
use crate::Error;

/// What answers blocks of rows: an [`Engine`], or an engine on a device. `run` of `dyn Backend` takes either
/// type of numbers.
pub trait Backend: Debug + Send + Sync {
    /// The engine of the processor, with its model and its plan.
    fn engine(&self) -> &Engine;

    /// [`Engine::run`] in singles.
    ///
    /// # Errors
    /// As [`Engine::run`]; [`Error::Device`].
    fn run_single(&self, block: &Block<'_, f32>, want: Want) -> Result<Posterior<f32>, Error>;

    /// [`Engine::run`] in doubles.
    ///
    /// # Errors
    /// As [`Backend::run_single`].
    fn run_double(&self, block: &Block<'_, f64>, want: Want) -> Result<Posterior<f64>, Error>;
}

impl dyn Backend + '_ {
    /// Answers for a block of rows, as [`Engine::run`] to the rounding of the type.
    ///
    /// # Errors
    /// As [`Engine::run`]; [`Error::Device`].
    pub fn run<T: Number>(&self, block: &Block<'_, T>, want: Want) -> Result<Posterior<T>, Error> {
        T::run(self, block, want)
    }
}

// Compiled once, here: the kernels are large, and crates that use them need not compile them again.
impl Backend for Engine {
    fn engine(&self) -> &Engine {
        self
    }

    fn run_single(&self, block: &Block<'_, f32>, want: Want) -> Result<Posterior<f32>, Error> {
        self.run_block(block, want)
    }

    fn run_double(&self, block: &Block<'_, f64>, want: Want) -> Result<Posterior<f64>, Error> {
        self.run_block(block, want)
    }
}

/// A device that engines can be brought to.
pub trait Accelerator: Debug + Send + Sync {
    /// The engine there, to be asked for this. What it cannot answer it refuses here, before any row comes.
    ///
    /// # Errors
    /// [`Error::Device`], which says what cannot be done there and what to do.
    fn move_engine(&self, engine: &Engine, want: Want) -> Result<Arc<dyn Backend>, Error>;
}
