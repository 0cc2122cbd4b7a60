//! A GPU: found, opened, and asked for memory and kernels.
//!
//! The driver and NVRTC are loaded when a device is first opened; until then nothing is. The device's
//! primary context is used, the one that other libraries in the process (PyTorch) use too, so pointers and
//! streams can be shared with them.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};

use crate::Error;
use crate::cache::Cache;
use crate::program::{self, Function, Source};

/// An opened GPU. Cheap to clone, safe to share between threads.
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ordinal: usize,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    name: String,
    architecture: String,
    /// The version of NVRTC.
    compiler: (i32, i32),
    cache: Cache,
    multiprocessors: usize,
    shared_bytes: usize,
    functions: Mutex<HashMap<String, Function>>,
}

// SAFETY: contexts, streams and functions of the driver may be used from any thread; `bind` makes the context
// current in the thread that calls.
unsafe impl Send for Inner {}
// SAFETY: as above; the only thing that changes is behind a mutex.
unsafe impl Sync for Inner {}

/// A queue of work on a device: a raw stream of the driver, such as another library's. Zero is the default
/// stream of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream(pub u64);

impl Stream {
    pub(crate) fn raw(self) -> sys::CUstream {
        self.0 as usize as sys::CUstream
    }
}

/// Names the call that failed.
pub(crate) fn failed(call: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| {
        let text = |found: Result<&std::ffi::CStr, DriverError>| {
            found.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let what = format!("{} ({})", text(error.error_string()), text(error.error_name()));
        Error::Driver { call, what }
    }
}

impl Device {
    /// Opens a GPU by its number.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::NoCompiler`], [`Error::DriverTooOld`], each saying
    /// what is missing.
    pub fn open(ordinal: usize) -> Result<Device, Error> {
        // SAFETY: looks for the library, and nothing else.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        match result::init() {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => {
                return Err(Error::NoDevice { ordinal, count: 0 });
            }
            other => other.map_err(failed("cuInit"))?,
        }
        let count = result::device::get_count().map_err(failed("cuDeviceGetCount"))?;
        let count = usize::try_from(count).unwrap_or(0);
        if ordinal >= count {
            return Err(Error::NoDevice { ordinal, count });
        }
        let compiler = program::check_versions()?;
        let handle = result::device::get(ordinal as i32).map_err(failed("cuDeviceGet"))?;
        // SAFETY: the handle is of this driver; the context is released when the device is dropped.
        let context = unsafe { result::primary_ctx::retain(handle) }
            .map_err(failed("cuDevicePrimaryCtxRetain"))?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(failed("cuCtxSetCurrent"))?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(failed("cuStreamCreate"))?;
        let attribute = |which| {
            // SAFETY: the handle is of this driver.
            unsafe { result::device::get_attribute(handle, which) }
                .map_err(failed("cuDeviceGetAttribute"))
        };
        use sys::CUdevice_attribute_enum as Attribute;
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Device(Arc::new(Inner {
            ordinal,
            handle,
            context,
            stream,
            name: result::device::get_name(handle).map_err(failed("cuDeviceGetName"))?,
            architecture: format!("sm_{major}{minor}"),
            compiler,
            cache: Cache::from_environment(),
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1),
            shared_bytes: usize::try_from(shared).unwrap_or(48 * 1024),
            functions: Mutex::default(),
        })))
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// What the driver calls it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> usize {
        self.0.multiprocessors
    }

    /// Bytes of shared memory that a block may have.
    pub fn shared_bytes(&self) -> usize {
        self.0.shared_bytes
    }

    /// Bytes of memory that are free, and of all.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        self.bind()?;
        result::mem_get_info().map_err(failed("cuMemGetInfo"))
    }

    /// The device's own stream: for callers that have none.
    pub fn stream(&self) -> Stream {
        Stream(self.0.stream as usize as u64)
    }

    /// Waits until everything on a stream is done.
    pub fn synchronise(&self, stream: Stream) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: the stream is the device's own, or the caller's live one.
        unsafe { result::stream::synchronize(stream.raw()) }.map_err(failed("cuStreamSynchronize"))
    }

    /// Makes the context current in this thread.
    pub(crate) fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context is retained for as long as this device lives.
        unsafe { result::ctx::set_current(self.0.context) }.map_err(failed("cuCtxSetCurrent"))
    }

    /// A kernel that this device has loaded before.
    pub(crate) fn loaded(&self, source: &Source<'_>) -> Option<Function> {
        let functions = self.0.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.get(&source.key()).copied()
    }

    /// A kernel, compiled unless it was before: by this program, or by another that kept it on disk.
    pub(crate) fn function(&self, source: &Source<'_>) -> Result<Function, Error> {
        if let Some(function) = self.loaded(source) {
            return Ok(function);
        }
        self.bind()?;
        let text = source.text(&self.0.architecture, self.0.compiler);
        // What the driver does not take is compiled again.
        let kept = self.0.cache.read(&text).and_then(|image| self.load(source, &image).ok());
        let function = match kept {
            Some(function) => function,
            None => {
                let image = source.compile(&self.0.architecture)?;
                let function = self.load(source, &image)?;
                self.0.cache.write(&text, &image);
                function
            }
        };
        let mut functions = self.0.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.insert(source.key(), function);
        Ok(function)
    }

    /// Several kernels, those that are missing compiled at the same time.
    pub(crate) fn functions(&self, sources: &[Source<'_>]) -> Result<Vec<Function>, Error> {
        let missing = sources.iter().filter(|source| self.loaded(source).is_none()).count();
        if missing < 2 {
            return sources.iter().map(|source| self.function(source)).collect();
        }
        std::thread::scope(|scope| {
            let start = |source| scope.spawn(move || self.function(source));
            let started: Vec<_> = sources.iter().map(start).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Function, Error>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect()
        })
    }

    fn load(&self, source: &Source<'_>, image: &[u8]) -> Result<Function, Error> {
        // SAFETY: the image is a whole one, by the compiler; modules live as long as the context.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }
            .map_err(failed("cuModuleLoadData"))?;
        let name = CString::new(source.kernel).unwrap_or_default();
        // SAFETY: the module was just loaded.
        let raw = unsafe { result::module::get_function(module, name) }
            .map_err(failed("cuModuleGetFunction"))?;
        use sys::CUfunction_attribute_enum as Attribute;
        let read = |which| {
            // SAFETY: the function was just found.
            unsafe { result::function::get_function_attribute(raw, which) }
                .map_err(failed("cuFuncGetAttribute"))
        };
        let fixed = read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let most = self.0.shared_bytes as i32 - fixed;
        let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was just found.
        unsafe { result::function::set_function_attribute(raw, limit, most) }
            .map_err(failed("cuFuncSetAttribute"))?;
        Ok(Function {
            raw,
            registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            spilled: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: nothing uses them any more; a failure on the way out has no one to go to.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.handle);
        }
    }
}
