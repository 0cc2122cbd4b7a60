//! The device of engines: the CPU, or a GPU, which is opened before any other work.

use std::sync::Arc;

use anyhow::Context as _;
use phex::graph::RelationGraph;
use phex::infer::{Backend, Engine, Options, Want};
use phex_train::{Config, Predictor, Trainer};

use crate::args::DeviceName;

/// Rows that go to a GPU at a time; it runs thousands in parallel.
const ROWS: usize = 1 << 16;

/// The device of engines.
pub(crate) struct Device {
    name: DeviceName,
    gpu: Option<phex_cuda::Device>,
}

impl Device {
    pub(crate) const CPU: Device = Device { name: DeviceName::Cpu, gpu: None };

    pub(crate) fn open(name: DeviceName) -> anyhow::Result<Device> {
        let gpu = match name {
            DeviceName::Cpu => None,
            DeviceName::Cuda(number) => {
                Some(phex_cuda::Device::open(number).with_context(|| flag(name))?)
            }
        };
        Ok(Device { name, gpu })
    }

    /// The name of the device, as an argument.
    pub(crate) fn name(&self) -> String {
        self.name.to_string()
    }

    /// Rows that are in memory at a time; `on_cpu` on the CPU.
    pub(crate) fn piece(&self, on_cpu: usize, labels: usize) -> usize {
        match self.gpu {
            Some(_) => ((1 << 27) / labels.max(1)).clamp(64, ROWS),
            None => on_cpu,
        }
    }

    /// Moves an engine to the device, which must support the requested answers.
    pub(crate) fn engine(&self, engine: &Engine, want: Want) -> anyhow::Result<Arc<dyn Backend>> {
        use phex::infer::Accelerator as _;
        match &self.gpu {
            Some(gpu) => gpu.move_engine(engine, want).with_context(|| flag(self.name)),
            None => Ok(Arc::new(engine.clone())),
        }
    }

    /// A predictor on the device.
    pub(crate) fn predictor<'m>(&self, predictor: Predictor<'m>) -> anyhow::Result<Predictor<'m>> {
        match &self.gpu {
            Some(gpu) => predictor.on(gpu).with_context(|| flag(self.name)),
            None => Ok(predictor),
        }
    }

    /// A run on the device.
    pub(crate) fn trainer<'d>(&self, trainer: Trainer<'d>) -> anyhow::Result<Trainer<'d>> {
        match &self.gpu {
            Some(gpu) => trainer.on(Arc::new(gpu.clone())).with_context(|| flag(self.name)),
            None => Ok(trainer),
        }
    }

    /// Checks that a run with these settings can train on the device.
    pub(crate) fn check(
        &self,
        config: &Config,
        graph: &RelationGraph,
        options: &Options,
    ) -> anyhow::Result<()> {
        match &self.gpu {
            Some(gpu) => config.check_on(gpu, graph, options).with_context(|| flag(self.name)),
            None => Ok(()),
        }
    }
}

fn flag(name: DeviceName) -> String {
    format!("--device {name}")
}
