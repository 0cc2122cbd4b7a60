//! Losses and gradients on the device.
//!
//! Joint loss: free and clamped rows in one launch, then one pass over rows × labels. Marginal loss and the
//! derivative of marginals: the covariance of the labels times a slope, by the difference of two passes in
//! doubles in one launch (header of `gradients.cu`).

use crate::Error;
use crate::device::{Device, Stream};
use crate::engine::{CudaEngine, Places, check};
use crate::program::{Arguments, Function, Shape, Source};
use crate::rows::{Carver, DeviceRows, Precision, RawRows};

const FILES: [&str; 2] =
    [include_str!("../kernels/common.cu"), include_str!("../kernels/gradients.cu")];

const THREADS: u32 = 256;

/// A batch to train on, as addresses in device memory. Numbers are of the precision asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Training {
    /// Rows × labels.
    pub scores: u64,
    /// Rows × labels bytes: 1 on, 0 off, −1 unknown.
    pub evidence: u64,
    /// A weight a row, or 0.
    pub weights: u64,
    /// Where the weighted loss of each row goes.
    pub losses: u64,
    /// Where the gradient of their sum goes: rows × labels.
    pub gradient: u64,
    /// Where the status of each row goes: an `i32` each.
    pub status: u64,
    /// How many rows.
    pub rows: usize,
}

/// The way back through marginals, as addresses in device memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Covariance {
    /// Rows × labels.
    pub scores: u64,
    /// Rows × labels bytes, or 0.
    pub evidence: u64,
    /// The gradient by each marginal: rows × labels.
    pub slopes: u64,
    /// Where the gradient by each score goes.
    pub gradient: u64,
    /// Where the status of each row goes.
    pub status: u64,
    /// How many rows.
    pub rows: usize,
}

/// Memory of a pass whose answers stay on the device.
#[derive(Clone, Copy)]
struct Pass {
    marginals: u64,
    log_partition: u64,
    status: u64,
    places: Places,
}

/// Memory of the difference of two passes.
#[derive(Clone, Copy)]
struct Moved {
    scores: u64,
    factors: u64,
    pass: Pass,
}

impl CudaEngine {
    fn pass(&self, carver: &mut Carver, rows: usize, precision: Precision) -> Pass {
        Pass {
            marginals: carver.take(rows * self.labels() * precision.bytes()),
            log_partition: carver.take(8 * rows),
            status: carver.take(4 * rows),
            places: self.places(carver, rows, precision),
        }
    }

    fn moved(&self, carver: &mut Carver, rows: usize) -> Moved {
        Moved {
            scores: carver.take(2 * rows * self.labels() * 8),
            factors: carver.take(8 * rows),
            pass: self.pass(carver, 2 * rows, Precision::Double),
        }
    }

    /// Bytes of working memory of [`CudaEngine::joint_loss`].
    pub fn joint_bytes(&self, rows: usize, precision: Precision) -> usize {
        let mut carver = Carver::new(0);
        self.pass(&mut carver, 2 * rows, precision);
        carver.taken()
    }

    /// Bytes of working memory of [`CudaEngine::marginal_loss`].
    pub fn marginal_bytes(&self, rows: usize, precision: Precision) -> usize {
        let mut carver = Carver::new(0);
        self.pass(&mut carver, rows, precision);
        carver.take(rows * self.labels() * 8);
        self.moved(&mut carver, rows);
        carver.taken()
    }

    /// Bytes of working memory of [`CudaEngine::covariance`].
    pub fn covariance_bytes(&self, rows: usize) -> usize {
        let mut carver = Carver::new(0);
        self.moved(&mut carver, rows);
        carver.taken()
    }

    /// Minus the log-probability of everything observed of each row, and its gradient by the scores: put on a
    /// stream, nothing allocated, nothing waited for. Rows without an answer have a gradient of 0, and a
    /// loss of infinity (impossible) or NaN.
    ///
    /// # Errors
    /// [`Error::Size`] when the workspace is too small; [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn joint_loss(
        &self,
        batch: Training,
        precision: Precision,
        workspace: (u64, usize),
        stream: Stream,
    ) -> Result<(), Error> {
        let rows = batch.rows;
        check("the workspace", workspace.1, self.joint_bytes(rows, precision))?;
        let pass = self.pass(&mut Carver::new(workspace.0), 2 * rows, precision);
        let (half, labels) = (rows as i32, self.labels() as i32);
        let raw = RawRows {
            scored: half,
            known: half,
            clamped_from: half,
            ..pass.rows(batch.scores, batch.evidence, 2 * rows)
        };
        // SAFETY: by the caller's word, and the workspace has the size that the pass takes.
        unsafe { self.enqueue(raw, precision, pass.places, stream)? };
        let function = function(&self.device, "joint", precision)?;
        let arguments = Arguments::default().with(&pass.marginals).with(&pass.log_partition);
        let arguments = arguments.with(&pass.status).with(&batch.weights).with(&batch.losses);
        let arguments =
            arguments.with(&batch.gradient).with(&batch.status).with(&half).with(&labels);
        // SAFETY: the arguments are those of `joint`.
        unsafe { function.launch(shape(rows), stream, arguments) }
    }

    /// The sum of minus the log-probability of each observed label, the paper's loss, and its gradient by
    /// the scores. For exact engines; otherwise as [`CudaEngine::joint_loss`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] by approximate engines; [`Error::Size`], [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn marginal_loss(
        &self,
        batch: Training,
        precision: Precision,
        workspace: (u64, usize),
        stream: Stream,
    ) -> Result<(), Error> {
        self.exact()?;
        let rows = batch.rows;
        check("the workspace", workspace.1, self.marginal_bytes(rows, precision))?;
        let mut carver = Carver::new(workspace.0);
        let free = self.pass(&mut carver, rows, precision);
        let slopes = carver.take(rows * self.labels() * 8);
        let moved = self.moved(&mut carver, rows);
        let (count, labels) = (rows as i32, self.labels() as i32);
        let loss = function(&self.device, "marginal_loss", precision)?;
        let by_loss = function(&self.device, "move_by_loss", precision)?;
        // SAFETY: by the caller's word, and the workspace has the size that the passes take; the arguments are
        // those of the kernels.
        unsafe {
            self.enqueue(free.rows(batch.scores, 0, rows), precision, free.places, stream)?;
            let arguments = Arguments::default().with(&free.marginals).with(&batch.evidence);
            let arguments = arguments.with(&free.status).with(&batch.weights).with(&batch.losses);
            let arguments = arguments.with(&slopes).with(&count).with(&labels);
            loss.launch(shape(rows), stream, arguments)?;
            let arguments = Arguments::default().with(&batch.scores).with(&slopes);
            let arguments = arguments.with(&moved.scores).with(&moved.factors);
            by_loss.launch(shape(rows), stream, arguments.with(&count).with(&labels))?;
            // What is observed is a free row's: nothing is clamped.
            self.differences(moved, 0, batch.gradient, batch.status, rows, precision, stream)
        }
    }

    /// From the gradient by the marginals to that by the scores, for exact engines.
    ///
    /// # Errors
    /// As for [`CudaEngine::marginal_loss`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn covariance(
        &self,
        batch: Covariance,
        precision: Precision,
        workspace: (u64, usize),
        stream: Stream,
    ) -> Result<(), Error> {
        self.exact()?;
        let rows = batch.rows;
        check("the workspace", workspace.1, self.covariance_bytes(rows))?;
        let moved = self.moved(&mut Carver::new(workspace.0), rows);
        let (count, labels) = (rows as i32, self.labels() as i32);
        let by_slope = function(&self.device, "move_by_slope", precision)?;
        let arguments = Arguments::default().with(&batch.scores).with(&batch.slopes);
        let arguments =
            arguments.with(&moved.scores).with(&moved.factors).with(&count).with(&labels);
        // SAFETY: by the caller's word; the arguments are those of the kernel.
        unsafe {
            by_slope.launch(shape(rows), stream, arguments)?;
            let known = batch.evidence;
            self.differences(moved, known, batch.gradient, batch.status, rows, precision, stream)
        }
    }

    /// # Safety
    /// As for [`CudaEngine::infer`].
    #[allow(clippy::too_many_arguments)] // Addresses of one launch.
    unsafe fn differences(
        &self,
        moved: Moved,
        evidence: u64,
        gradient: u64,
        status: u64,
        rows: usize,
        precision: Precision,
        stream: Stream,
    ) -> Result<(), Error> {
        let (count, labels) = (rows as i32, self.labels() as i32);
        let raw = RawRows { known: count, ..moved.pass.rows(moved.scores, evidence, 2 * rows) };
        let function = function(&self.device, "difference", precision)?;
        let arguments = Arguments::default().with(&moved.pass.marginals).with(&moved.factors);
        let arguments = arguments.with(&moved.pass.status).with(&gradient).with(&status);
        // SAFETY: by the caller's word; the arguments are those of the kernel.
        unsafe {
            self.enqueue(raw, Precision::Double, moved.pass.places, stream)?;
            function.launch(shape(rows), stream, arguments.with(&count).with(&labels))
        }
    }

    fn exact(&self) -> Result<(), Error> {
        if self.is_exact() {
            return Ok(());
        }
        let why =
            String::from("derivatives of marginals need an exact engine; take the joint loss");
        Err(Error::Unsupported { method: self.engine.plan().method, why })
    }
}

impl Pass {
    fn rows(&self, scores: u64, evidence: u64, rows: usize) -> RawRows {
        let Pass { marginals, log_partition, status, .. } = *self;
        DeviceRows { scores, evidence, marginals, log_partition, status, rows }.into()
    }
}

fn shape(rows: usize) -> Shape {
    Shape { blocks: rows.min(1 << 16), threads: THREADS, shared: 0 }
}

fn function(
    device: &Device,
    kernel: &'static str,
    precision: Precision,
) -> Result<Function, Error> {
    let defines = vec![
        format!("SCORE={}", precision.name()),
        String::from("REAL=double"),
        format!("THREADS={THREADS}"),
    ];
    device.bind()?;
    device.function(&Source { kernel, files: &FILES, defines })
}
