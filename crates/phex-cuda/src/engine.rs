//! A compiled model on a device.

use std::sync::Arc;

use phex::infer::compiled::Compiled;
use phex::infer::{Engine, Method};

use crate::Error;
use crate::blocks::Blocks;
use crate::device::{Device, Stream, failed};
use crate::family::{BlockRows, Family};
use crate::lbp::{Lbp, RawAnswers};
use crate::rows::{Carver, DeviceRows, Precision, RawRows};
use crate::star::Star;
use crate::states::States;

/// The kernels behind an engine.
#[derive(Debug)]
pub(crate) enum Kernel {
    Blocks(Box<Blocks>),
    Family(Box<Family>),
    Lbp(Box<Lbp>),
    Star(Star),
    States(States),
}

/// A model compiled for a device: the engine of the processor with its plan as tables in device memory.
/// Cheap to clone, safe to share between threads.
#[derive(Debug, Clone)]
pub struct CudaEngine {
    pub(crate) device: Device,
    pub(crate) engine: Engine,
    pub(crate) kernel: Arc<Kernel>,
}

/// Addresses of an inference pass within a workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    again: u64,
    pub(crate) answers: RawAnswers,
    scratch: u64,
}

impl CudaEngine {
    /// Brings a compiled engine to a device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when there is no kernel for its method or options, saying why;
    /// [`Error::OutOfMemory`].
    pub fn new(device: &Device, engine: &Engine) -> Result<CudaEngine, Error> {
        CudaEngine::with_block_rows(device, engine, BlockRows::from_environment())
    }

    /// As [`CudaEngine::new`], with a word on how `family` spreads rows over the device.
    ///
    /// # Errors
    /// As for [`CudaEngine::new`].
    pub fn with_block_rows(
        device: &Device,
        engine: &Engine,
        block_rows: BlockRows,
    ) -> Result<CudaEngine, Error> {
        let method = engine.plan().method;
        let kernel = match engine.compiled() {
            Compiled::Family(forest) => {
                Kernel::Family(Box::new(Family::new(device, &forest, block_rows)?))
            }
            Compiled::Joined(joined) => {
                let options = &engine.options().messages;
                Kernel::Blocks(Box::new(Blocks::new(device, &joined, options, block_rows)?))
            }
            Compiled::Messages(messages) => {
                let options = &engine.options().messages;
                Kernel::Lbp(Box::new(Lbp::new(device, messages.network, options)?))
            }
            Compiled::Classes(view) => Kernel::Star(Star::new(device, &view)?),
            Compiled::States(list) => Kernel::States(States::new(device, &list)?),
            Compiled::Other => {
                let why = match method {
                    Method::Family => "a cap leaves counts out",
                    _ => "it has no CUDA kernel; family, blocks, star, lbp and states have",
                };
                return Err(Error::Unsupported { method, why: why.to_owned() });
            }
        };
        Ok(CudaEngine { device: device.clone(), engine: engine.clone(), kernel: Arc::new(kernel) })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The engine of the processor.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How many labels a row has.
    pub fn labels(&self) -> usize {
        self.engine.model().len()
    }

    /// Whether its answers are exact.
    pub fn is_exact(&self) -> bool {
        self.engine.plan().exact
    }

    /// Compiles the kernels for so many rows, so that the first pass does not, and a CUDA graph can be
    /// captured. Returns registers and spilled bytes a thread of each.
    pub fn prepare(&self, rows: usize, precision: Precision) -> Result<Vec<(i32, i32)>, Error> {
        let device = &self.device;
        let functions = match &*self.kernel {
            Kernel::Blocks(blocks) => blocks.prepare(device, rows, precision)?,
            Kernel::Family(family) => family.prepare(device, rows, precision)?,
            Kernel::Lbp(lbp) => vec![lbp.prepare(device, rows, precision)?],
            Kernel::Star(star) => vec![star.prepare(device, precision)?],
            Kernel::States(states) => vec![states.prepare(device, precision)?],
        };
        Ok(functions.iter().map(|function| (function.registers, function.spilled)).collect())
    }

    pub(crate) fn places(&self, carver: &mut Carver, rows: usize, precision: Precision) -> Places {
        let again = carver.take(4 * (rows + 1));
        let answers = RawAnswers {
            residual: carver.take(8 * rows),
            iterations: carver.take(4 * rows),
            converged: carver.take(4 * rows),
        };
        let scratch = carver.take(match &*self.kernel {
            Kernel::Blocks(blocks) => blocks.workspace(rows),
            Kernel::Family(family) => family.workspace(rows, precision),
            Kernel::Lbp(lbp) => lbp.workspace(rows, precision),
            Kernel::Star(star) => star.workspace(rows, precision),
            Kernel::States(states) => states.workspace(rows, precision),
        });
        Places { again, answers, scratch }
    }

    /// Bytes of working memory that [`CudaEngine::infer`] needs for so many rows.
    pub fn infer_bytes(&self, rows: usize, precision: Precision) -> usize {
        let mut carver = Carver::new(0);
        self.places(&mut carver, rows, precision);
        carver.taken()
    }

    /// Puts inference on rows in device memory on a stream, and returns at once. Nothing is allocated and
    /// nothing waits, so it may be captured in a CUDA graph once it is prepared.
    ///
    /// # Errors
    /// [`Error::Size`] when the workspace is too small, [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// All addresses must be of live memory of this device, large enough for the rows, and used by nothing
    /// else until the stream has come to its end.
    pub unsafe fn infer(
        &self,
        rows: DeviceRows,
        precision: Precision,
        workspace: (u64, usize),
        stream: Stream,
    ) -> Result<(), Error> {
        check("the workspace", workspace.1, self.infer_bytes(rows.rows, precision))?;
        let places = self.places(&mut Carver::new(workspace.0), rows.rows, precision);
        // SAFETY: by the caller's word, and the workspace has the size that the places take.
        unsafe { self.enqueue(rows.into(), precision, places, stream) }
    }

    /// # Safety
    /// As for `infer`, of all addresses of the rows and places.
    pub(crate) unsafe fn enqueue(
        &self,
        rows: RawRows,
        precision: Precision,
        places: Places,
        stream: Stream,
    ) -> Result<(), Error> {
        if rows.rows == 0 {
            return Ok(());
        }
        let device = &self.device;
        device.bind()?;
        // SAFETY: by the caller's word.
        unsafe {
            match &*self.kernel {
                Kernel::Blocks(blocks) => {
                    blocks.enqueue(device, rows, precision, places.answers, places.scratch, stream)
                }
                Kernel::Family(family) => {
                    if family.lists(rows.rows as usize, precision) {
                        cudarc::driver::result::memset_d8_async(places.again, 0, 4, stream.raw())
                            .map_err(failed("cuMemsetD8Async"))?;
                    }
                    family.enqueue(device, rows, precision, places.again, places.scratch, stream)
                }
                Kernel::Lbp(lbp) => {
                    lbp.enqueue(device, rows, precision, places.answers, places.scratch, stream)
                }
                Kernel::Star(star) => star.enqueue(device, rows, precision, places.scratch, stream),
                Kernel::States(states) => {
                    states.enqueue(device, rows, precision, places.scratch, stream)
                }
            }
        }
    }
}

pub(crate) fn check(what: &'static str, given: usize, needed: usize) -> Result<(), Error> {
    if given < needed { Err(Error::Size { what, given, needed }) } else { Ok(()) }
}
