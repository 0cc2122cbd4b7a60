//! Losses and gradients on the device.
//!
//! Joint loss: one launch over free and clamped rows, then one sweep over rows × labels. Marginal loss: a free pass, a pass
//! over the labels that are clamped alone, and a pass in doubles over the rows whose labels go together. Derivative of
//! marginals: two passes in doubles in one launch. The rules are those of [`phex::learn`]; `gradients.cu` has the equations.

use phex::learn::{DIFFERENCE_STEP, FEW_LABELS, IMPROBABLE};

use crate::Error;
use crate::device::Stream;
use crate::engine::{CudaEngine, check_workspace};
use crate::kernels::PassMemory;
use crate::memory::{Carver, clear_count};
use crate::program::{KernelArguments, KernelSource, LaunchShape};
use crate::rows::{DeviceCall, DeviceRows, Precision, RawRows};

const FILES: &[&str] = &[include_str!("../kernels/gradients.cu")];

/// Threads per block, which has one row.
const THREADS: u32 = 256;

/// Labels of all rows for which the marginal loss is computed at a time: they are numbered by integers of 32 bits.
const MOST_LABELS: usize = 1 << 28;

/// A batch to train on, as addresses in device memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossBatch {
    /// Scores: rows × labels.
    pub scores: u64,
    /// Evidence: rows × labels bytes, 1 on, 0 off, −1 unknown.
    pub evidence: u64,
    /// One weight per row, or the address 0.
    pub weights: u64,
    /// Where the weighted loss of each row goes.
    pub losses: u64,
    /// Where the gradient of their sum by the scores goes: rows × labels.
    pub gradient: u64,
    /// Where the status of each row goes, as an `i32`: see [`DeviceStatus`](crate::DeviceStatus).
    pub status: u64,
    /// The number of rows.
    pub rows: usize,
}

/// A batch of gradients by the marginals, as addresses in device memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct CovarianceBatch {
    /// Scores: rows × labels.
    pub scores: u64,
    /// Evidence: rows × labels bytes, 1 on, 0 off, −1 unknown; or the address 0.
    pub evidence: u64,
    /// The gradient by each marginal: rows × labels.
    pub slopes: u64,
    /// Where the gradient by each score goes: rows × labels.
    pub gradient: u64,
    /// Where the status of each row goes, as an `i32`: see [`DeviceStatus`](crate::DeviceStatus).
    pub status: u64,
    /// The number of rows.
    pub rows: usize,
}

/// The layout of `Batch` in `gradients.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawBatch {
    scores: u64,
    evidence: u64,
    weights: u64,
    losses: u64,
    gradient: u64,
    status: u64,
    rows: i32,
    labels: i32,
}

/// The layout of `PassAnswers` in `gradients.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawPassAnswers {
    marginals: u64,
    log_partition: u64,
    status: u64,
}

/// The layout of `MovedRows` in `gradients.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawMovedRows {
    scores: u64,
    factors: u64,
    marginals: u64,
    status: u64,
}

/// The layout of `MarginalTerms` in `gradients.cu`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct RawMarginalTerms {
    alone: u64,
    together: u64,
    sums: u64,
    log_partition: u64,
    status: u64,
}

/// The memory of a pass whose answers stay on the device.
#[derive(Clone, Copy)]
struct InnerPass {
    answers: RawPassAnswers,
    memory: PassMemory,
}

/// The memory of passes over moved rows.
#[derive(Clone, Copy)]
struct MovedPass {
    raw: RawMovedRows,
    pass: InnerPass,
}

/// The memory of the marginal loss.
#[derive(Clone, Copy)]
struct MarginalMemory {
    free: InnerPass,
    terms: RawMarginalTerms,
    alone: PassMemory,
    moved: MovedPass,
}

impl CudaEngine {
    fn carve_inner(&self, carver: &mut Carver, rows: usize, precision: Precision) -> InnerPass {
        InnerPass {
            answers: RawPassAnswers {
                marginals: carver.take(rows * self.labels() * precision.bytes()),
                log_partition: carver.take(8 * rows),
                status: carver.take(4 * rows),
            },
            memory: self.carve_pass(carver, rows, rows, precision),
        }
    }

    fn carve_moved(&self, carver: &mut Carver, rows: usize) -> MovedPass {
        let scores = carver.take(2 * rows * self.labels() * 8);
        let factors = carver.take(8 * rows);
        let pass = self.carve_inner(carver, 2 * rows, Precision::Double);
        let RawPassAnswers { marginals, status, .. } = pass.answers;
        MovedPass { raw: RawMovedRows { scores, factors, marginals, status }, pass }
    }

    fn carve_marginal(
        &self,
        carver: &mut Carver,
        rows: usize,
        precision: Precision,
    ) -> MarginalMemory {
        let all = rows * self.labels();
        MarginalMemory {
            free: self.carve_inner(carver, rows, precision),
            terms: RawMarginalTerms {
                alone: carver.take(4 * (all + 1)),
                together: carver.take(4 * (2 * rows + 1)),
                sums: carver.take(8 * all),
                log_partition: carver.take(8 * all),
                status: carver.take(4 * all),
            },
            alone: self.carve_pass(carver, rows, all, precision),
            moved: self.carve_moved(carver, rows),
        }
    }

    /// Rows of a batch for which the marginal loss is computed at a time.
    fn marginal_part(&self, rows: usize) -> usize {
        rows.min(MOST_LABELS / self.labels().max(1)).max(1)
    }

    /// Bytes of working memory that [`CudaEngine::joint_loss`] needs.
    pub fn joint_loss_bytes(&self, rows: usize, precision: Precision) -> usize {
        Carver::measure(|carver| self.carve_inner(carver, 2 * rows, precision))
    }

    /// Bytes of working memory that [`CudaEngine::marginal_loss`] needs.
    pub fn marginal_loss_bytes(&self, rows: usize, precision: Precision) -> usize {
        let rows = self.marginal_part(rows);
        Carver::measure(|carver| self.carve_marginal(carver, rows, precision))
    }

    /// Bytes of working memory that [`CudaEngine::covariance`] needs.
    pub fn covariance_bytes(&self, rows: usize) -> usize {
        Carver::measure(|carver| self.carve_moved(carver, rows))
    }

    /// Enqueues the joint loss, `−log p(all evidence of a row)`, and its gradient by the scores. Rows without an answer
    /// have a gradient of 0, and a loss of infinity if they are impossible, otherwise NaN.
    ///
    /// # Errors
    /// [`Error::Size`] when the workspace is too small; [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn joint_loss(&self, batch: LossBatch, call: DeviceCall) -> Result<(), Error> {
        let rows = batch.rows;
        check_workspace(call.workspace, self.joint_loss_bytes(rows, call.precision))?;
        let mut carver = Carver::new(call.workspace.address);
        let pass = self.carve_inner(&mut carver, 2 * rows, call.precision);
        let half = rows as i32;
        let raw = RawRows {
            score_rows: half,
            evidence_rows: half,
            clamped_from: half,
            ..pass.rows(batch.scores, batch.evidence, 2 * rows)
        };
        let raw_batch = batch.raw(self.labels());
        let arguments = KernelArguments::default().with(&raw_batch).with(&pass.answers);
        // SAFETY: as the caller promises, and the workspace has the size of the pass; the arguments are those of the
        // kernel.
        unsafe {
            self.enqueue(raw, call.precision, pass.memory, call.stream)?;
            self.launch("joint_loss", call, rows, arguments)
        }
    }

    /// Enqueues the marginal loss, `−Σ log p(evidence of a label)` over the labels of a row, and its gradient by the
    /// scores. For exact engines; otherwise like [`CudaEngine::joint_loss`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] for approximate engines; [`Error::Size`], [`Error::Driver`], [`Error::Compile`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn marginal_loss(&self, batch: LossBatch, call: DeviceCall) -> Result<(), Error> {
        self.check_exact()?;
        let needed = self.marginal_loss_bytes(batch.rows, call.precision);
        check_workspace(call.workspace, needed)?;
        let part = self.marginal_part(batch.rows);
        for first in (0..batch.rows).step_by(part) {
            let rows = part.min(batch.rows - first);
            // SAFETY: as the caller promises; parts use the workspace one after another, in the order of the stream.
            unsafe { self.marginal_loss_of(batch.part(first, rows, self, call), call)? };
        }
        Ok(())
    }

    /// # Safety
    /// As for [`CudaEngine::infer`].
    unsafe fn marginal_loss_of(&self, batch: LossBatch, call: DeviceCall) -> Result<(), Error> {
        let DeviceCall { precision, stream, workspace } = call;
        let rows = batch.rows;
        let memory = self.carve_marginal(&mut Carver::new(workspace.address), rows, precision);
        let MarginalMemory { free, terms, alone, moved } = memory;
        let raw_batch = batch.raw(self.labels());
        let arguments = || {
            let arguments = KernelArguments::default().with(&raw_batch).with(&free.answers);
            arguments.with(&terms).with(&moved.raw)
        };
        let single_labels = DeviceRows {
            scores: batch.scores,
            evidence: batch.evidence,
            marginals: 0,
            log_partition: terms.log_partition,
            status: terms.status,
            rows,
        };
        let single_labels =
            RawRows { sums: terms.sums, ..RawRows::from(single_labels).only(terms.alone) };
        // SAFETY: as the caller promises, and the workspace has the size of the passes; the arguments are those of the
        // kernels.
        unsafe {
            self.device.bind()?;
            clear_count(terms.alone, stream)?;
            clear_count(terms.together, stream)?;
            self.enqueue(free.rows(batch.scores, 0, rows), precision, free.memory, stream)?;
            self.launch("marginal_split", call, rows, arguments())?;
            self.enqueue(single_labels, precision, alone, stream)?;
            // The labels that go together are those of a free row: nothing is clamped.
            let together = moved.rows(0, rows).only(terms.together);
            self.enqueue_moved(moved, together, stream)?;
            self.launch("marginal_loss", call, rows, arguments())
        }
    }

    /// Enqueues the way from the gradient by the marginals to that by the scores. For exact engines.
    ///
    /// # Errors
    /// As for [`CudaEngine::marginal_loss`].
    ///
    /// # Safety
    /// As for [`CudaEngine::infer`].
    pub unsafe fn covariance(&self, batch: CovarianceBatch, call: DeviceCall) -> Result<(), Error> {
        self.check_exact()?;
        let CovarianceBatch { scores, evidence, slopes, gradient, status, rows } = batch;
        check_workspace(call.workspace, self.covariance_bytes(rows))?;
        let moved = self.carve_moved(&mut Carver::new(call.workspace.address), rows);
        let batch = LossBatch { scores, evidence, gradient, status, rows, weights: 0, losses: 0 };
        let raw_batch = batch.raw(self.labels());
        let arguments = || KernelArguments::default().with(&raw_batch);
        // SAFETY: as the caller promises; the arguments are those of the kernels.
        unsafe {
            self.launch("covariance_move", call, rows, arguments().with(&slopes).with(&moved.raw))?;
            self.enqueue_moved(moved, moved.rows(evidence, rows), call.stream)?;
            self.launch("covariance_gradient", call, rows, arguments().with(&moved.raw))
        }
    }

    /// # Safety
    /// As for [`CudaEngine::infer`].
    unsafe fn enqueue_moved(
        &self,
        moved: MovedPass,
        rows: RawRows,
        stream: Stream,
    ) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        unsafe { self.enqueue(rows, Precision::Double, moved.pass.memory, stream) }
    }

    /// # Safety
    /// As for [`CudaEngine::infer`]; the arguments must be those of the kernel.
    unsafe fn launch(
        &self,
        name: &'static str,
        call: DeviceCall,
        rows: usize,
        arguments: KernelArguments<'_>,
    ) -> Result<(), Error> {
        let types = [call.precision, Precision::Double];
        let source = KernelSource::new(name, FILES, types, THREADS)
            .define("STEP", format!("{DIFFERENCE_STEP:e}"))
            .define("IMPROBABLE", format!("{IMPROBABLE:e}"))
            .define("FEW_LABELS", FEW_LABELS);
        self.device.bind()?;
        let kernel = self.device.kernel(&source)?;
        let shape = LaunchShape { blocks: rows.min(1 << 16), threads: THREADS, shared: 0 };
        // SAFETY: as the caller promises.
        unsafe { kernel.launch(shape, call.stream, arguments) }
    }

    fn check_exact(&self) -> Result<(), Error> {
        if self.is_exact() {
            return Ok(());
        }
        let why = String::from("derivatives of marginals need an exact engine; use the joint loss");
        Err(Error::Unsupported { method: self.engine.plan().method, why })
    }
}

impl LossBatch {
    fn raw(&self, labels: usize) -> RawBatch {
        let LossBatch { scores, evidence, weights, losses, gradient, status, rows } = *self;
        let (rows, labels) = (rows as i32, labels as i32);
        RawBatch { scores, evidence, weights, losses, gradient, status, rows, labels }
    }

    /// Some of its rows.
    fn part(&self, first: usize, rows: usize, engine: &CudaEngine, call: DeviceCall) -> LossBatch {
        let after = |address: u64, bytes: usize| address + (first * bytes) as u64;
        let (labels, number) = (engine.labels(), call.precision.bytes());
        LossBatch {
            scores: after(self.scores, labels * number),
            evidence: after(self.evidence, labels),
            weights: if self.weights == 0 { 0 } else { after(self.weights, number) },
            losses: after(self.losses, number),
            gradient: after(self.gradient, labels * number),
            status: after(self.status, 4),
            rows,
        }
    }
}

impl InnerPass {
    fn rows(&self, scores: u64, evidence: u64, rows: usize) -> RawRows {
        let RawPassAnswers { marginals, log_partition, status } = self.answers;
        DeviceRows { scores, evidence, marginals, log_partition, status, rows }.into()
    }
}

impl MovedPass {
    /// Both halves of the moved rows, with the evidence of `rows` rows or none.
    fn rows(&self, evidence: u64, rows: usize) -> RawRows {
        let both = self.pass.rows(self.raw.scores, evidence, 2 * rows);
        RawRows { evidence_rows: rows as i32, ..both }
    }
}
