//! Kernels: the `.cu` files of this crate, which NVRTC compiles for the GPU at hand when a model first needs them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt::Display;

use cudarc::driver::{result, sys};
use cudarc::nvrtc;

use crate::Error;
use crate::device::{Stream, failed};
use crate::rows::Precision;

const COMMON: &str = include_str!("../kernels/common.cu");

/// A compiled kernel that the driver has loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadedKernel {
    pub(crate) raw: sys::CUfunction,
    /// Registers per thread.
    pub(crate) registers: i32,
    /// Bytes of local memory per thread: what did not fit the registers.
    pub(crate) spilled: i32,
}

// SAFETY: a handle of the driver, which any thread may use.
unsafe impl Send for LoadedKernel {}
// SAFETY: as above; it never changes.
unsafe impl Sync for LoadedKernel {}

/// The text of a kernel and its settings.
#[derive(Debug)]
pub(crate) struct KernelSource {
    pub(crate) name: &'static str,
    files: &'static [&'static str],
    /// `NAME` or `NAME=value`.
    defines: Vec<String>,
}

/// The version of NVRTC. What it writes can be loaded by drivers from the same major version on.
pub(crate) fn check_versions() -> Result<(i32, i32), Error> {
    // SAFETY: looks for the library, and nothing else.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return Err(Error::NoCompiler);
    }
    let mut driver: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { sys::cuDriverGetVersion(&mut driver) }
        .result()
        .map_err(failed("cuDriverGetVersion"))?;
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: the pointers are to live integers.
    let found = unsafe { nvrtc::sys::nvrtcVersion(&mut major, &mut minor) };
    if found != nvrtc::sys::nvrtcResult::NVRTC_SUCCESS {
        return Err(Error::NoCompiler);
    }
    if driver / 1000 < major {
        return Err(Error::DriverTooOld {
            driver: format!("{}.{}", driver / 1000, driver % 1000 / 10),
            library: format!("{major}.{minor}"),
        });
    }
    Ok((major, minor))
}

/// The largest score of a type that is not refused.
fn score_limit(score: Precision) -> f64 {
    let limit = phex::numeric::SCORE_LIMIT;
    let single = limit as f32;
    match score {
        Precision::Double => limit,
        Precision::Single if f64::from(single) > limit => f64::from(single.next_down()),
        Precision::Single => f64::from(single),
    }
}

impl KernelSource {
    /// A kernel of `common.cu` and some files, with what every kernel is told: the types of scores and of the
    /// arithmetic, the threads of a block, and the limit of scores.
    pub(crate) fn new(
        name: &'static str,
        files: &'static [&'static str],
        [score, real]: [Precision; 2],
        threads: u32,
    ) -> KernelSource {
        KernelSource { name, files, defines: Vec::new() }
            .define("SCORE", score.name())
            .define("REAL", real.name())
            .define("THREADS", threads)
            .define("SCORE_LIMIT", format!("{:e}", score_limit(score)))
    }

    /// Defines a name.
    pub(crate) fn define(mut self, name: &str, value: impl Display) -> KernelSource {
        self.defines.push(format!("{name}={value}"));
        self
    }

    /// Defines a name without a value, if it is set.
    pub(crate) fn flag(mut self, name: &str, is_set: bool) -> KernelSource {
        if is_set {
            self.defines.push(name.to_owned());
        }
        self
    }

    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.name, self.defines.join(" "))
    }

    fn code(&self) -> String {
        [&[COMMON], self.files].concat().join("\n")
    }

    /// Everything that the machine code depends on.
    pub(crate) fn text(&self, architecture: &str, (major, minor): (i32, i32)) -> String {
        let settings = self.options(architecture).join(" ");
        format!("{} NVRTC {major}.{minor} {settings}\n{}", self.name, self.code())
    }

    fn options(&self, architecture: &str) -> Vec<String> {
        let mut options = vec![format!("--gpu-architecture={architecture}")];
        options.push(String::from("--std=c++17"));
        options.extend(self.defines.iter().map(|define| format!("-D{define}")));
        options
    }

    /// Machine code for this kind of GPU.
    pub(crate) fn compile(&self, architecture: &str) -> Result<Vec<u8>, Error> {
        let error = |log: String| Error::Compile {
            kernel: self.key(),
            architecture: architecture.to_owned(),
            log,
        };
        let text = CString::new(self.code()).map_err(|fault| error(fault.to_string()))?;
        let name = CString::new(format!("{}.cu", self.name)).unwrap_or_default();
        let program = nvrtc::result::create_program(&text, Some(&name))
            .map_err(|fault| error(format!("{fault:?}")))?;
        let options = self.options(architecture);
        // SAFETY: the program is live until it is destroyed below.
        let outcome = unsafe { nvrtc::result::compile_program(program, &options) };
        let image = match outcome {
            Ok(()) => machine_code(program).map_err(|fault| error(format!("{fault:?}"))),
            Err(_) => {
                // SAFETY: the program is live.
                let log = unsafe { nvrtc::result::get_program_log(program) }.unwrap_or_default();
                let bytes: Vec<u8> = log.iter().map(|&byte| byte as u8).collect();
                let text = CStr::from_bytes_until_nul(&bytes).map(|log| log.to_string_lossy());
                Err(error(text.map(String::from).unwrap_or_default()))
            }
        };
        // SAFETY: nothing uses the program after this.
        let _ = unsafe { nvrtc::result::destroy_program(program) };
        image
    }
}

fn machine_code(program: nvrtc::sys::nvrtcProgram) -> Result<Vec<u8>, nvrtc::result::NvrtcError> {
    let mut size = 0usize;
    // SAFETY: the program is live and the pointer is to a live integer.
    unsafe { nvrtc::sys::nvrtcGetCUBINSize(program, &mut size) }.result()?;
    let mut image = vec![0u8; size];
    // SAFETY: the buffer has the size that the library gave.
    unsafe { nvrtc::sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()) }.result()?;
    Ok(image)
}

/// The size of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchShape {
    pub(crate) blocks: usize,
    /// Threads per block.
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub(crate) shared: usize,
}

/// The arguments of a kernel as the driver expects them: pointers to values.
#[derive(Default)]
pub(crate) struct KernelArguments<'a> {
    pointers: Vec<*mut c_void>,
    values: std::marker::PhantomData<&'a ()>,
}

impl<'a> KernelArguments<'a> {
    pub(crate) fn with<T: Copy>(mut self, value: &'a T) -> KernelArguments<'a> {
        self.pointers.push(std::ptr::from_ref(value).cast_mut().cast());
        self
    }
}

impl LoadedKernel {
    /// Enqueues the kernel on a stream.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, in order and of the same layout. The memory that they point to
    /// must be live, large enough, and used by nothing else until the stream has reached this launch's end.
    pub(crate) unsafe fn launch(
        &self,
        shape: LaunchShape,
        stream: Stream,
        mut arguments: KernelArguments<'_>,
    ) -> Result<(), Error> {
        if shape.blocks == 0 {
            return Ok(());
        }
        let grid = (shape.blocks as u32, 1, 1);
        // SAFETY: as the caller promises; the call copies the values of the arguments.
        unsafe {
            result::launch_kernel(
                self.raw,
                grid,
                (shape.threads, 1, 1),
                shape.shared as u32,
                stream.raw(),
                &mut arguments.pointers,
            )
        }
        .map_err(failed("cuLaunchKernel"))
    }
}
