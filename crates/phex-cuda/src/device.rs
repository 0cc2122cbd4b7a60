//! A GPU: opens it, loads its kernels, and waits for its streams.
//!
//! The driver and NVRTC are loaded when a device is first opened, not before. The device's primary context is used,
//! as other libraries in the process do (PyTorch), so pointers and streams can be shared with them.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};

use crate::Error;
use crate::cache::KernelCache;
use crate::program::{self, KernelSource, LoadedKernel};

/// An open GPU. Cheap to clone, safe to share between threads.
#[derive(Debug, Clone)]
pub struct Device(Arc<OpenDevice>);

#[derive(Debug)]
struct OpenDevice {
    ordinal: usize,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    name: String,
    architecture: String,
    /// The version of NVRTC.
    compiler: (i32, i32),
    cache: KernelCache,
    multiprocessors: usize,
    shared_bytes: usize,
    kernels: Mutex<HashMap<String, LoadedKernel>>,
}

// SAFETY: contexts, streams and functions of the driver may be used from any thread; `bind` makes the context
// current in the calling thread.
unsafe impl Send for OpenDevice {}
// SAFETY: as above; the only thing that changes is behind a mutex.
unsafe impl Sync for OpenDevice {}

/// A queue of work on a device: a raw stream of the driver, possibly of another library. Zero is the default stream of
/// the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stream(pub u64);

impl Stream {
    pub(crate) fn raw(self) -> sys::CUstream {
        self.0 as usize as sys::CUstream
    }
}

/// Turns an error of the driver into one that names the call.
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
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::NoCompiler`] or [`Error::DriverTooOld`]: each says what is
    /// missing.
    pub fn open(ordinal: usize) -> Result<Device, Error> {
        // SAFETY: only looks for the library.
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
        Ok(Device(Arc::new(OpenDevice {
            ordinal,
            handle,
            context,
            stream,
            name: result::device::get_name(handle).map_err(failed("cuDeviceGetName"))?,
            architecture: format!("sm_{major}{minor}"),
            compiler,
            cache: KernelCache::from_environment(),
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1),
            shared_bytes: usize::try_from(shared).unwrap_or(48 * 1024),
            kernels: Mutex::default(),
        })))
    }

    /// The number of the device.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// The name that the driver gives it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The number of multiprocessors.
    pub fn multiprocessors(&self) -> usize {
        self.0.multiprocessors
    }

    /// The most shared memory that a block may have, in bytes.
    pub fn shared_bytes(&self) -> usize {
        self.0.shared_bytes
    }

    /// Free memory and all memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        self.bind()?;
        result::mem_get_info().map_err(failed("cuMemGetInfo"))
    }

    /// The device's own stream, for callers that have none.
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
        // SAFETY: the context is retained while this device lives.
        unsafe { result::ctx::set_current(self.0.context) }.map_err(failed("cuCtxSetCurrent"))
    }

    /// A kernel that this device has loaded before.
    fn loaded(&self, source: &KernelSource) -> Option<LoadedKernel> {
        let kernels = self.0.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.get(&source.key()).copied()
    }

    /// A kernel. It is compiled unless this program has done so before, or another has stored it on disk.
    pub(crate) fn kernel(&self, source: &KernelSource) -> Result<LoadedKernel, Error> {
        if let Some(kernel) = self.loaded(source) {
            return Ok(kernel);
        }
        self.bind()?;
        let text = source.text(&self.0.architecture, self.0.compiler);
        // What the driver refuses is compiled again.
        let stored = self.0.cache.read(&text).and_then(|image| self.load(source, &image).ok());
        let kernel = match stored {
            Some(kernel) => kernel,
            None => {
                let image = source.compile(&self.0.architecture)?;
                let kernel = self.load(source, &image)?;
                self.0.cache.write(&text, &image);
                kernel
            }
        };
        let mut kernels = self.0.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.insert(source.key(), kernel);
        Ok(kernel)
    }

    /// Several kernels. Those that are missing are compiled at the same time.
    pub(crate) fn kernels(&self, sources: &[KernelSource]) -> Result<Vec<LoadedKernel>, Error> {
        let missing = sources.iter().filter(|source| self.loaded(source).is_none()).count();
        if missing < 2 {
            return sources.iter().map(|source| self.kernel(source)).collect();
        }
        std::thread::scope(|scope| {
            let start = |source| scope.spawn(move || self.kernel(source));
            let started: Vec<_> = sources.iter().map(start).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<LoadedKernel, Error>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect()
        })
    }

    fn load(&self, source: &KernelSource, image: &[u8]) -> Result<LoadedKernel, Error> {
        // SAFETY: the image is a complete one of the compiler; modules live as long as the context.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }
            .map_err(failed("cuModuleLoadData"))?;
        let name = CString::new(source.name).unwrap_or_default();
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
        Ok(LoadedKernel {
            raw,
            registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            spilled: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        })
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        // SAFETY: nothing uses them any more. Nobody could handle a failure here.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.handle);
        }
    }
}
