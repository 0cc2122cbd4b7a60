//! Errors of the CUDA engines. Each message says what to do.

use phex::infer::Method;

/// An error of the CUDA engines.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver library is not on this machine.
    #[error("no CUDA driver was found (libcuda); install the NVIDIA driver, or use the CPU")]
    NoDriver,
    /// The driver sees no GPU, or not this one.
    #[error("there is no CUDA device {ordinal}: the driver sees {count}")]
    NoDevice {
        /// The requested device.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver is older than the compiler of the kernels.
    #[error(
        "the CUDA driver is too old: it supports CUDA {driver}, but the compiler library (NVRTC) is of CUDA \
         {library}; update the driver, or use the CPU"
    )]
    DriverTooOld {
        /// The version that the driver supports.
        driver: String,
        /// The version of NVRTC.
        library: String,
    },
    /// The compiler of the kernels is not on this machine.
    #[error(
        "the NVRTC library, which compiles the kernels, was not found (libnvrtc); install the CUDA toolkit or a \
         package that contains it, or use the CPU"
    )]
    NoCompiler,
    /// A kernel did not compile: a bug of phex, or a GPU that it does not support.
    #[error("the kernel `{kernel}` did not compile for {architecture}: {log}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// The kind of GPU.
        architecture: String,
        /// What the compiler said.
        log: String,
    },
    /// The memory of the GPU is used up.
    #[error(
        "the GPU is out of memory: {needed} bytes are needed, {free} are free; use fewer rows at a time, or free \
         memory"
    )]
    OutOfMemory {
        /// The bytes that are needed.
        needed: usize,
        /// The bytes that are free.
        free: usize,
    },
    /// There is no kernel for this model or option.
    #[error("`{method}` cannot run on the GPU: {why}; use the CPU, or another method")]
    Unsupported {
        /// The engine.
        method: Method,
        /// Why not.
        why: String,
    },
    /// A request for more than marginals and log Z.
    #[error("the GPU computes probabilities and log Z, but no {what}; use the CPU for those")]
    Unavailable {
        /// What was requested.
        what: &'static str,
    },
    /// Memory that is too small for the rows.
    #[error("{what}: {given} bytes were given, {needed} are needed")]
    Size {
        /// Which memory.
        what: &'static str,
        /// Its size.
        given: usize,
        /// The size that is needed.
        needed: usize,
    },
    /// The block has another number of labels than the model.
    #[error("rows have {given} scores, but the model has {labels} labels")]
    Columns {
        /// Scores per row.
        given: usize,
        /// Labels of the model.
        labels: usize,
    },
    /// There is not one weight for each row.
    #[error("there are {given} weights for {rows} rows")]
    Weights {
        /// The number of weights.
        given: usize,
        /// The number of rows.
        rows: usize,
    },
    /// A call of the driver failed.
    #[error("CUDA: {call} failed: {what}")]
    Driver {
        /// The call.
        call: &'static str,
        /// What the driver says.
        what: String,
    },
    /// The engine of the CPU failed.
    #[error(transparent)]
    Model(#[from] phex::Error),
}
