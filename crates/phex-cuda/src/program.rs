//! Kernels: `.cu` files of this crate, compiled by NVRTC for the GPU at hand when a model needs them.

use std::ffi::{CStr, CString, c_int, c_void};

use cudarc::driver::{result, sys};
use cudarc::nvrtc;

use crate::Error;
use crate::device::{Stream, failed};

/// A compiled kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) raw: sys::CUfunction,
    /// Registers a thread.
    pub(crate) registers: i32,
    /// Bytes of local memory a thread: what did not fit the registers.
    pub(crate) spilled: i32,
}

// SAFETY: a handle of the driver, which any thread may use.
unsafe impl Send for Function {}
// SAFETY: as above; it never changes.
unsafe impl Sync for Function {}

/// The text of a kernel with its settings.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) kernel: &'static str,
    pub(crate) files: &'a [&'static str],
    /// `NAME` or `NAME=value`.
    pub(crate) defines: Vec<String>,
}

/// The version of the compiler. The oldest driver that loads what it writes is that of the same major version.
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

impl Source<'_> {
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.kernel, self.defines.join(" "))
    }

    /// Everything that the machine code depends on.
    pub(crate) fn text(&self, architecture: &str, (major, minor): (i32, i32)) -> String {
        let settings = self.options(architecture).join(" ");
        format!("{} NVRTC {major}.{minor} {settings}\n{}", self.kernel, self.files.join("\n"))
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
        let text = CString::new(self.files.join("\n")).map_err(|fault| error(fault.to_string()))?;
        let name = CString::new(format!("{}.cu", self.kernel)).unwrap_or_default();
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
    // SAFETY: the buffer has the size that the library asked for.
    unsafe { nvrtc::sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()) }.result()?;
    Ok(image)
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) blocks: usize,
    pub(crate) threads: u32,
    pub(crate) shared: usize,
}

/// Arguments of a kernel, as the driver takes them: pointers to values.
#[derive(Default)]
pub(crate) struct Arguments<'a> {
    pointers: Vec<*mut c_void>,
    values: std::marker::PhantomData<&'a ()>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn with<T: Copy>(mut self, value: &'a T) -> Arguments<'a> {
        self.pointers.push(std::ptr::from_ref(value).cast_mut().cast());
        self
    }
}

impl Function {
    /// Puts the kernel on a stream.
    ///
    /// # Safety
    /// The arguments must be those of the kernel, in order and of the same layout, and the memory that they
    /// point to must be live, large enough, and used by nothing else until the stream has come to its end.
    pub(crate) unsafe fn launch(
        &self,
        shape: Shape,
        stream: Stream,
        mut arguments: Arguments<'_>,
    ) -> Result<(), Error> {
        if shape.blocks == 0 {
            return Ok(());
        }
        let grid = (shape.blocks as u32, 1, 1);
        // SAFETY: by the caller's word; values of arguments are copied by the call.
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
