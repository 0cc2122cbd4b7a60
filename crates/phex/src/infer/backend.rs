//! Where an engine runs: on the CPU, or on a device that it is moved to.
//!
//! Losses, training and prediction call a [`Backend`], so that they do not depend on devices. An
//! [`Engine`] is a backend itself, and an [`Accelerator`] turns it into another one. What a backend
//! computes is a pass over rows, not a loss. So `learn` derives losses from free and clamped passes
//! on any device, and crates that train need no CUDA.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Block, Engine, Number, Posterior, Want};
use crate::Error;

/// Runs blocks of rows: an [`Engine`], or an engine on a device. `run` of `dyn Backend` accepts
/// both number types.
pub trait Backend: Debug + Send + Sync {
    /// The CPU engine, with its model and its plan.
    fn engine(&self) -> &Engine;

    /// [`Engine::run`] in single precision.
    ///
    /// # Errors
    /// As [`Engine::run`]; [`Error::Device`].
    fn run_single(&self, block: &Block<'_, f32>, want: Want) -> Result<Posterior<f32>, Error>;

    /// [`Engine::run`] in double precision.
    ///
    /// # Errors
    /// As [`Backend::run_single`].
    fn run_double(&self, block: &Block<'_, f64>, want: Want) -> Result<Posterior<f64>, Error>;
}

impl dyn Backend + '_ {
    /// Runs a block of rows. The result equals that of [`Engine::run`] up to rounding in this
    /// number type.
    ///
    /// # Errors
    /// As [`Engine::run`]; [`Error::Device`].
    pub fn run<T: Number>(&self, block: &Block<'_, T>, want: Want) -> Result<Posterior<T>, Error> {
        T::run(self, block, want)
    }
}

// The kernels are large. They are compiled once, here, so that crates that use them do not compile
// them again.
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

/// A device that engines can be moved to.
pub trait Accelerator: Debug + Send + Sync {
    /// Moves an engine to the device. `want` says which results will be requested later. An engine
    /// or result that the device does not support is rejected here, before any row is run.
    ///
    /// # Errors
    /// [`Error::Device`], which says what is not supported and what to do.
    fn move_engine(&self, engine: &Engine, want: Want) -> Result<Arc<dyn Backend>, Error>;
}
