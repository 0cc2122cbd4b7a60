//! Losses and gradients of rows of the processor, through a device.

use phex::infer::{Block, RowStatus};
use phex::learn::Loss;

use crate::Error;
use crate::buffer::Buffer;
use crate::engine::CudaEngine;
use crate::gradients::Training;
use crate::rows::{DeviceNumber, Status};

/// Losses and gradients of a block of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// The weighted loss of each row: infinite where hard relations do not allow what is observed.
    pub losses: Vec<f64>,
    /// The derivative of their sum by each logit: rows × labels.
    pub logits: Vec<T>,
    /// What became of each row.
    pub status: Vec<RowStatus>,
}

impl CudaEngine {
    /// The loss and the gradient of a block of rows whose evidence is what was observed; `weights` multiply
    /// the losses of rows.
    ///
    /// # Errors
    /// [`Error::Columns`]; [`Error::Unsupported`] for the marginal loss of approximate engines;
    /// [`Error::OutOfMemory`]; [`Error::Driver`].
    pub fn gradients<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        weights: Option<&[T]>,
        loss: Loss,
    ) -> Result<Gradients<T>, Error> {
        let (device, rows, labels) = (self.device(), block.rows(), self.labels());
        if block.labels() != labels {
            return Err(Error::Columns { given: block.labels(), labels });
        }
        if let Some(weights) = weights.filter(|weights| weights.len() != rows) {
            return Err(Error::Columns { given: weights.len(), labels: rows });
        }
        let (stream, number) = (device.stream(), T::PRECISION.bytes());
        let all: Vec<T> = (0..rows).flat_map(|row| block.row(row)).copied().collect();
        let places = (0..rows).flat_map(|row| (0..labels).map(move |label| (row, label)));
        let known: Vec<i8> = places.map(|(row, label)| block.evidence(row, label).code()).collect();
        let scores = Buffer::of(device, &all)?;
        let evidence = Buffer::of(device, &known)?;
        let weights = weights.map(|weights| Buffer::of(device, weights)).transpose()?;
        let losses = Buffer::new(device, rows * number)?;
        let gradient = Buffer::new(device, rows * labels * number)?;
        let status = Buffer::new(device, 4 * rows)?;
        let bytes = match loss {
            Loss::Joint => self.joint_bytes(rows, T::PRECISION),
            Loss::Marginal => self.marginal_bytes(rows, T::PRECISION),
        };
        let workspace = Buffer::new(device, bytes)?;
        let workspace_at = (workspace.pointer, workspace.bytes());
        let batch = Training {
            scores: scores.pointer,
            evidence: evidence.pointer,
            weights: weights.as_ref().map_or(0, |weights| weights.pointer),
            losses: losses.pointer,
            gradient: gradient.pointer,
            status: status.pointer,
            rows,
        };
        // SAFETY: the buffers have the sizes of the rows and live until the results have been read.
        unsafe {
            match loss {
                Loss::Joint => self.joint_loss(batch, T::PRECISION, workspace_at, stream)?,
                Loss::Marginal => self.marginal_loss(batch, T::PRECISION, workspace_at, stream)?,
            }
        }
        let zero = <T as phex::numeric::Scalar>::ZERO;
        let (mut out, mut logits) = (vec![zero; rows], vec![zero; rows * labels]);
        let mut codes = vec![0i32; rows];
        losses.read(stream, &mut out)?;
        gradient.read(stream, &mut logits)?;
        status.read(stream, &mut codes)?;
        let usable = |score: &T| score.to_f64().abs() <= 1e30;
        let status = codes.iter().enumerate().map(|(row, &code)| match Status::from_code(code) {
            Status::Answered => RowStatus::Answered,
            Status::BadScore => {
                let label = block.row(row).iter().position(|score| !usable(score)).unwrap_or(0);
                RowStatus::BadScore { label }
            }
            Status::OutOfRange | Status::Impossible => RowStatus::Impossible,
        });
        let status = status.collect();
        Ok(Gradients { losses: out.iter().map(|loss| loss.to_f64()).collect(), logits, status })
    }
}
