//! Rows of the processor through a device: copied there, answered, copied back.
//!
//! Where the device has too little memory for all rows they go in parts, halved until they fit. Rows whose
//! numbers leave even the range of doubles, and those that no state agrees with, are answered by the engine
//! of the processor, so that the answers are its own in every case.

use phex::infer::compiled::Compiled;
use phex::infer::{Block, Diagnosis, Evidence, Posterior, RowStatus, Trust, Want};

use crate::Error;
use crate::buffer::Buffer;
use crate::engine::{CudaEngine, Kernel};
use crate::rows::{Carver, DeviceNumber, DeviceRows, Status};

/// Rows that go to the device at a time, at most.
const MOST: usize = 1 << 18;

/// What comes back of some rows.
struct Raw {
    log_partition: Vec<f64>,
    status: Vec<i32>,
    residual: Vec<f64>,
    iterations: Vec<i32>,
    converged: Vec<i32>,
}

impl CudaEngine {
    /// Answers for a block of rows of the processor: marginals and log Z, as [`phex::infer::Engine::run`]
    /// would to the rounding of the type.
    ///
    /// # Errors
    /// [`Error::Columns`]; [`Error::OutOfMemory`] when not even a few rows fit; [`Error::Driver`].
    pub fn run<T: DeviceNumber>(&self, block: &Block<'_, T>) -> Result<Posterior<T>, Error> {
        let labels = self.labels();
        if block.labels() != labels {
            return Err(Error::Columns { given: block.labels(), labels });
        }
        let rows = block.rows();
        let mut posterior = Posterior {
            labels,
            marginals: vec![<T as phex::numeric::Scalar>::ZERO; rows * labels],
            log_partition: Vec::with_capacity(rows),
            expectations: None,
            entropy: None,
            standard_errors: None,
            status: Vec::with_capacity(rows),
            trust: Vec::with_capacity(rows),
        };
        let mut part = rows.clamp(1, MOST);
        let mut first = 0;
        while first < rows {
            let some = first..rows.min(first + part);
            let marginals = &mut posterior.marginals[some.start * labels..some.end * labels];
            match self.run_part(&block.slice(some.clone()), marginals) {
                Ok(raw) => {
                    self.take(&block.slice(some.clone()), raw, &mut posterior)?;
                    first = some.end;
                }
                Err(Error::OutOfMemory { .. }) if part > 64 => part /= 2,
                Err(error) => return Err(error),
            }
        }
        self.answer_rest(block, &mut posterior)?;
        Ok(posterior)
    }

    fn run_part<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        marginals: &mut [T],
    ) -> Result<Raw, Error> {
        let (device, rows, labels) = (&self.device, block.rows(), self.labels());
        let stream = device.stream();
        let number = T::PRECISION.bytes();
        let evidence = self.evidence(block);
        let scores = Buffer::new(device, rows * labels * number)?;
        let known = evidence.as_ref().map(|known| Buffer::new(device, known.len())).transpose()?;
        let out = Buffer::new(device, rows * labels * number)?;
        let log_partition = Buffer::new(device, 8 * rows)?;
        let status = Buffer::new(device, 4 * rows)?;
        let workspace = Buffer::new(device, self.infer_bytes(rows, T::PRECISION))?;
        let all: Vec<T> = (0..rows).flat_map(|row| block.row(row)).copied().collect();
        scores.fill(stream, &all)?;
        if let (Some(buffer), Some(known)) = (&known, &evidence) {
            buffer.fill(stream, known)?;
        }
        let places = self.places(&mut Carver::new(workspace.pointer), rows, T::PRECISION);
        let device_rows = DeviceRows {
            scores: scores.pointer,
            evidence: known.as_ref().map_or(0, |known| known.pointer),
            marginals: out.pointer,
            log_partition: log_partition.pointer,
            status: status.pointer,
            rows,
        };
        // SAFETY: the buffers have the sizes of the rows and live until the results have been read.
        unsafe { self.enqueue(device_rows.into(), T::PRECISION, places, stream)? };
        out.read(stream, marginals)?;
        let mut raw = Raw {
            log_partition: vec![0.0; rows],
            status: vec![0; rows],
            residual: Vec::new(),
            iterations: Vec::new(),
            converged: Vec::new(),
        };
        log_partition.read(stream, &mut raw.log_partition)?;
        status.read(stream, &mut raw.status)?;
        if self.sends_messages() {
            raw.residual = vec![0.0; rows];
            (raw.iterations, raw.converged) = (vec![0; rows], vec![0; rows]);
            let answers = places.answers;
            workspace.read_at(stream, answers.residual, &mut raw.residual)?;
            workspace.read_at(stream, answers.iterations, &mut raw.iterations)?;
            workspace.read_at(stream, answers.converged, &mut raw.converged)?;
        }
        Ok(raw)
    }

    /// Whether rows have iterations and a residual.
    fn sends_messages(&self) -> bool {
        matches!(&*self.kernel, Kernel::Lbp(_) | Kernel::Blocks(_))
    }

    fn evidence<T: DeviceNumber>(&self, block: &Block<'_, T>) -> Option<Vec<i8>> {
        let all =
            (0..block.rows()).flat_map(|row| (0..self.labels()).map(move |label| (row, label)));
        let known: Vec<i8> = all.map(|(row, label)| block.evidence(row, label).code()).collect();
        known.iter().any(|&entry| entry != Evidence::Unknown.code()).then_some(known)
    }

    /// Reads status and trust.
    fn take<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        raw: Raw,
        posterior: &mut Posterior<T>,
    ) -> Result<(), Error> {
        let exact = !self.sends_messages();
        for (row, &code) in raw.status.iter().enumerate() {
            let usable = |score: &T| score.to_f64().abs() <= 1e30;
            posterior.status.push(match Status::from_code(code) {
                Status::Answered => RowStatus::Answered,
                Status::BadScore => {
                    let label = block.row(row).iter().position(|score| !usable(score)).unwrap_or(0);
                    RowStatus::BadScore { label }
                }
                // Both are looked at again by the processor.
                Status::OutOfRange | Status::Impossible => RowStatus::Impossible,
            });
            posterior.log_partition.push(raw.log_partition[row]);
            posterior.trust.push(if exact {
                Trust::Exact
            } else {
                Trust::Approximate(Diagnosis {
                    iterations: raw.iterations[row] as u32,
                    converged: raw.converged[row] != 0,
                    residual: raw.residual[row],
                    ..Diagnosis::default()
                })
            });
        }
        Ok(())
    }

    /// Rows that the device left: the engine of the processor answers them.
    fn answer_rest<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        posterior: &mut Posterior<T>,
    ) -> Result<(), Error> {
        if let (Kernel::Lbp(lbp), Compiled::Messages(messages)) =
            (&*self.kernel, self.engine.compiled())
            && lbp.is_hard()
        {
            // Arc consistency is the processor's.
            for row in 0..block.rows() {
                if posterior.status[row] == RowStatus::Answered && !messages.is_possible(block, row)
                {
                    posterior.status[row] = RowStatus::Impossible;
                    posterior.log_partition[row] = f64::NEG_INFINITY;
                    self.clear(posterior, row);
                }
            }
            return Ok(());
        }
        if let Compiled::Joined(joined) = self.engine.compiled() {
            // Evidence may contradict the pairs, of which the forest does not know; the processor says so below.
            for row in 0..block.rows() {
                let answered = posterior.status[row] == RowStatus::Answered;
                if answered && !joined.is_possible(block, row) {
                    posterior.status[row] = RowStatus::Impossible;
                }
            }
        }
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

    fn clear<T: DeviceNumber>(&self, posterior: &mut Posterior<T>, row: usize) {
        let labels = self.labels();
        posterior.marginals[row * labels..(row + 1) * labels]
            .fill(<T as phex::numeric::Scalar>::NAN);
    }
}
