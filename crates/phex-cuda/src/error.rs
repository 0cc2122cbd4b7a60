//! What can go wrong on the way to a GPU, and what to do about it.

use phex::infer::Method;

/// An error of the CUDA engines.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver library is not on this machine.
    #[error("no CUDA driver was found (libcuda); install the NVIDIA driver, or use the processor")]
    NoDriver,
    /// The driver sees no GPU, or not this one.
    #[error("there is no CUDA device {ordinal}: the driver sees {count}")]
    NoDevice {
        /// The device that was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver is older than what the kernels are compiled with.
    #[error(
        "the CUDA driver is too old: it speaks CUDA {driver}, the compiler library CUDA {library}; \
         update the driver, or use the processor"
    )]
    DriverTooOld {
        /// What the driver speaks.
        driver: String,
        /// What NVRTC writes.
        library: String,
    },
    /// The compiler of kernels is not on this machine.
    #[error(
        "no NVRTC library was found (libnvrtc), which compiles the kernels; install the CUDA toolkit or \
         the package that holds it, or use the processor"
    )]
    NoCompiler,
    /// A kernel did not compile: a fault of phex, or a GPU that it does not know.
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
        "the GPU is out of memory: {needed} bytes were asked for, {free} are free; take fewer rows at a \
         time, or free memory"
    )]
    OutOfMemory {
        /// What was asked for.
        needed: usize,
        /// What is free.
        free: usize,
    },
    /// There is no kernel for this model or option.
    #[error("`{method}` does not run on the GPU here: {why}; use the processor, or another method")]
    Unsupported {
        /// The engine.
        method: Method,
        /// Why not.
        why: String,
    },
    /// There is no kernel for what was asked for beside marginals and log Z.
    #[error("the GPU gives probabilities and log Z, and no {what}; use the processor for those")]
    Beyond {
        /// What was asked for.
        what: &'static str,
    },
    /// Memory of another size than the rows need.
    #[error("{what}: {given} bytes were given, {needed} are needed")]
    Size {
        /// Which memory.
        what: &'static str,
        /// What was given.
        given: usize,
        /// What is needed.
        needed: usize,
    },
    /// The block has another number of labels than the model.
    #[error("rows have {given} scores, but the model has {labels} labels")]
    Columns {
        /// Scores a row.
        given: usize,
        /// Labels of the model.
        labels: usize,
    },
    /// A call of the driver failed.
    #[error("CUDA: {call} failed: {what}")]
    Driver {
        /// The call.
        call: &'static str,
        /// What the driver says.
        what: String,
    },
    /// The engine on the processor failed.
    #[error(transparent)]
    Model(#[from] phex::Error),
}
