//! A compiled model on a device.

use std::sync::Arc;

use phex::infer::Engine;

use crate::Error;
use crate::device::{Device, Stream};
use crate::family::BlockRows;
use crate::kernels::{self, EngineKernels, EnginePass, PassMemory, RawDiagnosis};
use crate::memory::Carver;
use crate::rows::{DeviceCall, DeviceRows, Precision, RawRows, Workspace};

/// A compiled model on a device: the engine of the CPU, with its plan as tables in device memory. Cheap to clone, safe to
/// share between threads.
///
/// The unsafe methods enqueue work on memory of the device and return at once: they allocate nothing and wait for
/// nothing, so a CUDA graph can capture them once their kernels are compiled ([`CudaEngine::prepare`]).
#[derive(Debug, Clone)]
pub struct CudaEngine {
    pub(crate) device: Device,
    pub(crate) engine: Engine,
    pub(crate) kernels: Arc<dyn EngineKernels>,
}

impl CudaEngine {
    /// Moves a compiled engine to a device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when there is no kernel for its method or options, saying why;
    /// [`Error::OutOfMemory`].
    pub fn new(device: &Device, engine: &Engine) -> Result<CudaEngine, Error> {
        CudaEngine::with_block_rows(device, engine, BlockRows::from_environment())
    }

    /// Like [`CudaEngine::new`], choosing how `family` distributes rows over blocks.
    ///
    /// # Errors
    /// As for [`CudaEngine::new`].
    pub fn with_block_rows(
        device: &Device,
        engine: &Engine,
        block_rows: BlockRows,
    ) -> Result<CudaEngine, Error> {
        let kernels = kernels::load(device, engine, block_rows)?.into();
        Ok(CudaEngine { device: device.clone(), engine: engine.clone(), kernels })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The engine of the CPU.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The number of labels of a row.
    pub fn labels(&self) -> usize {
        self.engine.model().len()
    }

    /// Whether its answers are exact.
    pub fn is_exact(&self) -> bool {
        self.engine.plan().exact
    }

    /// Compiles the kernels for a number of rows, so that the first pass does not have to. Returns registers and spilled
    /// bytes per thread of each.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Driver`].
    pub fn prepare(&self, rows: usize, precision: Precision) -> Result<Vec<(i32, i32)>, Error> {
        let kernels = self.kernels.prepare(&self.device, rows, precision)?;
        Ok(kernels.iter().map(|kernel| (kernel.registers, kernel.spilled)).collect())
    }

    /// Carves the working memory of a pass over at most `capacity` rows, of which about `rows` are expected.
    pub(crate) fn carve_pass(
        &self,
        carver: &mut Carver,
        rows: usize,
        capacity: usize,
        precision: Precision,
    ) -> PassMemory {
        let diagnosed = if self.kernels.has_diagnosis() { capacity } else { 0 };
        PassMemory {
            again: carver.take(4 * (capacity + 1)),
            diagnosis: RawDiagnosis {
                residual: carver.take(8 * diagnosed),
                iterations: carver.take(4 * diagnosed),
                converged: carver.take(4 * diagnosed),
            },
            scratch: carver.take(self.kernels.scratch_bytes(rows, precision)),
        }
    }

    /// Bytes of working memory that [`CudaEngine::infer`] needs for a number of rows.
    pub fn infer_bytes(&self, rows: usize, precision: Precision) -> usize {
        Carver::measure(|carver| self.carve_pass(carver, rows, rows, precision))
    }

    /// Enqueues inference on rows in device memory.
    ///
    /// # Errors
    /// [`Error::Size`] when the workspace is too small, [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// All addresses must be of live memory of this device that is large enough for the rows. Nothing else may use the
    /// memory until the stream has finished this work.
    pub unsafe fn infer(&self, rows: DeviceRows, call: DeviceCall) -> Result<(), Error> {
        check_workspace(call.workspace, self.infer_bytes(rows.rows, call.precision))?;
        let mut carver = Carver::new(call.workspace.address);
        let memory = self.carve_pass(&mut carver, rows.rows, rows.rows, call.precision);
        // SAFETY: as the caller promises, and the workspace has the size of the pass.
        unsafe { self.enqueue(rows.into(), call.precision, memory, call.stream) }
    }

    /// # Safety
    /// As for `infer`, for all addresses of the rows and of the memory.
    pub(crate) unsafe fn enqueue(
        &self,
        rows: RawRows,
        precision: Precision,
        memory: PassMemory,
        stream: Stream,
    ) -> Result<(), Error> {
        if rows.rows == 0 {
            return Ok(());
        }
        self.device.bind()?;
        // SAFETY: as the caller promises.
        unsafe {
            self.kernels.enqueue(&self.device, &EnginePass { rows, precision, memory, stream })
        }
    }
}

pub(crate) fn check_workspace(workspace: Workspace, needed: usize) -> Result<(), Error> {
    let given = workspace.bytes;
    if given < needed { Err(Error::Size { what: "the workspace", given, needed }) } else { Ok(()) }
}
