//! Rows of the host: copied to the device, answered there, and copied back.
//!
//! Where the device has too little memory for all rows, they go in parts, halved until they fit. The engine of the CPU
//! answers rows whose numbers leave even the range of doubles, and rows that no state agrees with, so that every answer
//! is one that the CPU would give.

use phex::infer::compiled::Compiled;
use phex::infer::{Block, Diagnosis, Evidence, Posterior, RowStatus, Trust, Want};
use phex::numeric::{SCORE_LIMIT, Scalar};

use crate::Error;
use crate::device::Device;
use crate::engine::CudaEngine;
use crate::memory::{Carver, DeviceMemory};
use crate::rows::{DeviceNumber, DeviceRows, DeviceStatus};

/// Rows that go to the device at a time, at most.
const MOST_ROWS: usize = 1 << 18;
/// A part of no more rows than this is not halved again: the device is out of memory.
const LEAST_ROWS: usize = 64;

/// The answers to some rows as kernels wrote them, except the marginals. The last three are empty without a diagnosis.
struct RawAnswers {
    log_partition: Vec<f64>,
    status: Vec<i32>,
    residual: Vec<f64>,
    iterations: Vec<i32>,
    converged: Vec<i32>,
}

/// A block of rows in device memory.
pub(crate) struct UploadedBlock {
    pub(crate) scores: DeviceMemory,
    pub(crate) evidence: Option<DeviceMemory>,
}

impl UploadedBlock {
    pub(crate) fn new<T: DeviceNumber>(
        device: &Device,
        block: &Block<'_, T>,
    ) -> Result<UploadedBlock, Error> {
        let scores: Vec<T> = (0..block.rows()).flat_map(|row| block.row(row)).copied().collect();
        let places =
            (0..block.rows()).flat_map(|row| (0..block.labels()).map(move |label| (row, label)));
        let codes: Vec<i8> = places.map(|(row, label)| block.evidence(row, label).code()).collect();
        let has_evidence = codes.iter().any(|&code| code != Evidence::Unknown.code());
        Ok(UploadedBlock {
            scores: DeviceMemory::of(device, &scores)?,
            evidence: has_evidence.then(|| DeviceMemory::of(device, &codes)).transpose()?,
        })
    }

    /// The address of the evidence, or 0.
    pub(crate) fn evidence_address(&self) -> u64 {
        self.evidence.as_ref().map_or(0, DeviceMemory::address)
    }
}

/// The status of a row from the code of a kernel. The CPU looks at rows that are out of range.
pub(crate) fn row_status<T: DeviceNumber>(code: i32, scores: &[T]) -> RowStatus {
    match DeviceStatus::from_code(code) {
        DeviceStatus::Answered => RowStatus::Answered,
        DeviceStatus::BadScore => {
            let usable = |score: &T| score.to_f64().abs() <= SCORE_LIMIT;
            RowStatus::BadScore {
                label: scores.iter().position(|score| !usable(score)).unwrap_or(0),
            }
        }
        DeviceStatus::OutOfRange | DeviceStatus::Impossible => RowStatus::Impossible,
    }
}

impl CudaEngine {
    /// Answers a block of rows of the host: marginals and log Z, as [`phex::infer::Engine::run`] would, to the rounding
    /// of the type.
    ///
    /// # Errors
    /// [`Error::Columns`]; [`Error::OutOfMemory`] when not even a few rows fit; [`Error::Driver`].
    pub fn run<T: DeviceNumber>(&self, block: &Block<'_, T>) -> Result<Posterior<T>, Error> {
        self.check_columns(block)?;
        let (rows, labels) = (block.rows(), self.labels());
        let mut posterior = Posterior {
            labels,
            marginals: vec![<T as Scalar>::ZERO; rows * labels],
            log_partition: Vec::with_capacity(rows),
            expectations: None,
            entropy: None,
            standard_errors: None,
            status: Vec::with_capacity(rows),
            trust: Vec::with_capacity(rows),
        };
        let mut part = rows.clamp(1, MOST_ROWS);
        let mut first = 0;
        while first < rows {
            let some = first..rows.min(first + part);
            let marginals = &mut posterior.marginals[some.start * labels..some.end * labels];
            match self.run_part(&block.slice(some.clone()), marginals) {
                Ok(answers) => {
                    self.append(&block.slice(some.clone()), answers, &mut posterior);
                    first = some.end;
                }
                Err(Error::OutOfMemory { .. }) if part > LEAST_ROWS => part /= 2,
                Err(error) => return Err(error),
            }
        }
        self.find_contradictions(block, &mut posterior);
        self.answer_impossible(block, &mut posterior)?;
        Ok(posterior)
    }

    pub(crate) fn check_columns<T: DeviceNumber>(&self, block: &Block<'_, T>) -> Result<(), Error> {
        let (given, labels) = (block.labels(), self.labels());
        if given == labels { Ok(()) } else { Err(Error::Columns { given, labels }) }
    }

    fn run_part<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        marginals: &mut [T],
    ) -> Result<RawAnswers, Error> {
        let (device, rows, stream) = (&self.device, block.rows(), self.device.stream());
        let input = UploadedBlock::new(device, block)?;
        let out = DeviceMemory::new(device, size_of_val(marginals))?;
        let log_partition = DeviceMemory::new(device, 8 * rows)?;
        let status = DeviceMemory::new(device, 4 * rows)?;
        let workspace = DeviceMemory::new(device, self.infer_bytes(rows, T::PRECISION))?;
        let mut carver = Carver::new(workspace.address());
        let memory = self.carve_pass(&mut carver, rows, rows, T::PRECISION);
        let device_rows = DeviceRows {
            scores: input.scores.address(),
            evidence: input.evidence_address(),
            marginals: out.address(),
            log_partition: log_partition.address(),
            status: status.address(),
            rows,
        };
        // SAFETY: the memory has the sizes of the rows and lives until the results have been read.
        unsafe { self.enqueue(device_rows.into(), T::PRECISION, memory, stream)? };
        out.read(stream, marginals)?;
        let diagnosed = if self.kernels.has_diagnosis() { rows } else { 0 };
        let mut answers = RawAnswers {
            log_partition: vec![0.0; rows],
            status: vec![0; rows],
            residual: vec![0.0; diagnosed],
            iterations: vec![0; diagnosed],
            converged: vec![0; diagnosed],
        };
        log_partition.read(stream, &mut answers.log_partition)?;
        status.read(stream, &mut answers.status)?;
        let at = memory.diagnosis;
        workspace.read_at(stream, at.residual, &mut answers.residual)?;
        workspace.read_at(stream, at.iterations, &mut answers.iterations)?;
        workspace.read_at(stream, at.converged, &mut answers.converged)?;
        Ok(answers)
    }

    /// Appends log Z, status and trust of some rows.
    fn append<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        answers: RawAnswers,
        posterior: &mut Posterior<T>,
    ) {
        for (row, &code) in answers.status.iter().enumerate() {
            posterior.status.push(row_status(code, block.row(row)));
            posterior.trust.push(if self.kernels.has_diagnosis() {
                Trust::Approximate(Diagnosis {
                    iterations: answers.iterations[row] as u32,
                    converged: answers.converged[row] != 0,
                    residual: answers.residual[row],
                    ..Diagnosis::default()
                })
            } else {
                Trust::Exact
            });
        }
        posterior.log_partition.extend(answers.log_partition);
    }

    /// Marks rows whose evidence contradicts hard relations, where kernels do not notice.
    fn find_contradictions<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        posterior: &mut Posterior<T>,
    ) {
        if !self.kernels.misses_contradictions() {
            return;
        }
        let compiled = self.engine.compiled();
        for (row, status) in posterior.status.iter_mut().enumerate() {
            let is_possible = match &compiled {
                Compiled::Messages(messages) => messages.is_possible(block, row),
                Compiled::Joined(joined) => joined.is_possible(block, row),
                _ => true,
            };
            if *status == RowStatus::Answered && !is_possible {
                *status = RowStatus::Impossible;
            }
        }
    }

    /// Has the engine of the CPU answer the rows that the device could not.
    fn answer_impossible<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        posterior: &mut Posterior<T>,
    ) -> Result<(), Error> {
        let labels = self.labels();
        for row in 0..block.rows() {
            if posterior.status[row] != RowStatus::Impossible {
                continue;
            }
            let one = self.engine.run(&block.slice(row..row + 1), Want::default())?;
            posterior.marginals[row * labels..(row + 1) * labels].copy_from_slice(&one.marginals);
            posterior.log_partition[row] = one.log_partition[0];
            (posterior.status[row], posterior.trust[row]) = (one.status[0], one.trust[0]);
        }
        Ok(())
    }
}
