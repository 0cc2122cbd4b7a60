//! The device as a [`Backend`]: losses, training and prediction run on it as on the CPU.
//!
//! A backend computes passes over rows, not losses. So `phex::learn` is the one home of losses on any device, and
//! `phex-train` needs no CUDA. The losses of [`CudaEngine`] are for tensors that are already on the GPU. Unsupported engines
//! and requests are rejected when an engine is moved to the device, before training.

use std::sync::Arc;

use phex::infer::{Accelerator, Backend, Block, Engine, Posterior, Want};

use crate::{CudaEngine, Device, DeviceNumber, Error};

impl Accelerator for Device {
    fn move_engine(&self, engine: &Engine, want: Want) -> Result<Arc<dyn Backend>, phex::Error> {
        check(want)?;
        Ok(Arc::new(CudaEngine::new(self, engine)?))
    }
}

impl Backend for CudaEngine {
    fn engine(&self) -> &Engine {
        CudaEngine::engine(self)
    }

    fn run_single(
        &self,
        block: &Block<'_, f32>,
        want: Want,
    ) -> Result<Posterior<f32>, phex::Error> {
        answer(self, block, want)
    }

    fn run_double(
        &self,
        block: &Block<'_, f64>,
        want: Want,
    ) -> Result<Posterior<f64>, phex::Error> {
        answer(self, block, want)
    }
}

fn answer<T: DeviceNumber>(
    engine: &CudaEngine,
    block: &Block<'_, T>,
    want: Want,
) -> Result<Posterior<T>, phex::Error> {
    check(want)?;
    Ok(engine.run(block)?)
}

fn check(want: Want) -> Result<(), Error> {
    let Want { expectations, entropy, standard_errors, bounds } = want;
    let unavailable = [
        (expectations, "expected violations of relations, from which strengths are learned"),
        (entropy, "entropies"),
        (standard_errors, "standard errors"),
        (bounds, "bounds on log Z"),
    ];
    match unavailable.into_iter().find(|(wanted, _)| *wanted) {
        Some((_, what)) => Err(Error::Unavailable { what }),
        None => Ok(()),
    }
}

/// Errors of the CPU engine stay as they are.
impl From<Error> for phex::Error {
    fn from(error: Error) -> phex::Error {
        match error {
            Error::Model(error) => error,
            Error::Columns { given, labels } => {
                phex::Error::Columns { expected: labels, found: given }
            }
            error => phex::Error::Device { source: Box::new(error) },
        }
    }
}
