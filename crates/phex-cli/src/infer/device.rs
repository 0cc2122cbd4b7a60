//! Where rows are answered: on the processor or on a GPU.

use anyhow::{Context as _, bail};
use phex::infer::{Engine, Evidence, Posterior, Want};
use phex_cuda::{CudaEngine, Device, DeviceNumber};

use super::{answer, block, piece};
use crate::args::{DeviceArgument, InferCommand};

/// Rows that go to a GPU at a time: it takes thousands at once.
const DEVICE_ROWS: usize = 1 << 16;

/// What answers rows.
pub(super) enum Runner {
    Processor,
    Gpu(Box<CudaEngine>),
}

impl Runner {
    pub(super) fn of(command: &InferCommand, engine: &Engine) -> anyhow::Result<Runner> {
        if command.device == DeviceArgument::Cpu {
            return Ok(Runner::Processor);
        }
        if command.bounds || command.standard_errors.is_some() {
            bail!("--bounds and --standard-errors run on the processor: leave out --device cuda");
        }
        let device = Device::open(0).context("--device cuda")?;
        let engine = CudaEngine::new(&device, engine).context("--device cuda")?;
        Ok(Runner::Gpu(Box::new(engine)))
    }

    /// Rows that are in memory at a time.
    pub(super) fn piece(&self, labels: usize) -> usize {
        match self {
            Runner::Processor => piece(labels),
            Runner::Gpu(_) => ((1 << 27) / labels.max(1)).clamp(64, DEVICE_ROWS),
        }
    }

    pub(super) fn answer<T: DeviceNumber>(
        &self,
        engine: &Engine,
        scores: &[T],
        evidence: Option<&[Evidence]>,
        want: Want,
    ) -> anyhow::Result<Posterior<T>> {
        match self {
            Runner::Processor => answer(engine, scores, evidence, want),
            Runner::Gpu(gpu) => Ok(gpu.run(&block(engine.model().len(), scores, evidence))?),
        }
    }
}
