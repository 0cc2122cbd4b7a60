//! What every engine on the device implements, and which compiled model goes to which engine.

use std::fmt::Debug;

use phex::infer::compiled::Compiled;
use phex::infer::{Engine, Method};

use crate::Error;
use crate::device::{Device, Stream};
use crate::family::{BlockRows, FamilyKernels};
use crate::forest_bp::ForestBpKernels;
use crate::lbp::LbpKernels;
use crate::program::LoadedKernel;
use crate::rows::{Precision, RawRows};
use crate::star::StarKernels;
use crate::states::StatesKernels;

/// The kernels of one engine, and a model's tables for them in device memory.
pub(crate) trait EngineKernels: Debug + Send + Sync {
    /// Compiles the kernels for a number of rows.
    fn prepare(
        &self,
        device: &Device,
        rows: usize,
        precision: Precision,
    ) -> Result<Vec<LoadedKernel>, Error>;

    /// Bytes of scratch memory for a number of rows.
    fn scratch_bytes(&self, rows: usize, precision: Precision) -> usize;

    /// Enqueues a pass.
    ///
    /// # Safety
    /// The addresses of the pass must be of live memory of the sizes that its rows need.
    unsafe fn enqueue(&self, device: &Device, pass: &EnginePass) -> Result<(), Error>;

    /// Whether rows get a diagnosis: iterations, a residual, and whether they have converged.
    fn has_diagnosis(&self) -> bool {
        false
    }

    /// Whether evidence may contradict hard relations without a kernel noticing. The CPU then checks.
    fn misses_contradictions(&self) -> bool {
        false
    }
}

/// One pass of an engine over rows in device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnginePass {
    pub(crate) rows: RawRows,
    pub(crate) precision: Precision,
    pub(crate) memory: PassMemory,
    pub(crate) stream: Stream,
}

/// The working memory of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassMemory {
    /// A number, and room for the indices of all rows.
    pub(crate) again: u64,
    pub(crate) diagnosis: RawDiagnosis,
    pub(crate) scratch: u64,
}

/// Where the diagnosis of each row goes: the layout of `Diagnosis` in `lbp/rows.cu`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawDiagnosis {
    /// Doubles.
    pub(crate) residual: u64,
    /// Integers.
    pub(crate) iterations: u64,
    /// Integers: not 0 where the row has converged.
    pub(crate) converged: u64,
}

/// Moves a compiled engine to a device.
///
/// # Errors
/// [`Error::Unsupported`] when there is no kernel for its method or options.
pub(crate) fn load(
    device: &Device,
    engine: &Engine,
    block_rows: BlockRows,
) -> Result<Box<dyn EngineKernels>, Error> {
    let (method, messages) = (engine.plan().method, &engine.options().messages);
    Ok(match engine.compiled() {
        Compiled::Family(forest) => Box::new(FamilyKernels::new(device, &forest, block_rows)?),
        Compiled::Joined(joined) => {
            Box::new(ForestBpKernels::new(device, &joined, messages, block_rows)?)
        }
        Compiled::Messages(found) => Box::new(LbpKernels::new(device, found.network, messages)?),
        Compiled::Classes(classes) => Box::new(StarKernels::new(device, &classes)?),
        Compiled::States(list) => Box::new(StatesKernels::new(device, &list)?),
        Compiled::Other => {
            let why = match method {
                Method::Family => "a cap leaves counts out",
                _ => "it has no CUDA kernel; family, forest-bp, star, lbp and states have",
            };
            return Err(Error::Unsupported { method, why: why.to_owned() });
        }
    })
}
