//! Losses and gradients of rows of the host, computed on a device.

use phex::infer::{Block, RowStatus};
use phex::learn::{Loss, Objective};
use phex::numeric::Scalar;

use crate::Error;
use crate::engine::CudaEngine;
use crate::gradients::LossBatch;
use crate::host_rows::{UploadedBlock, row_status};
use crate::memory::DeviceMemory;
use crate::rows::{DeviceCall, DeviceNumber, DeviceStatus, Workspace};

/// Losses and gradients of a block of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceGradients<T> {
    /// The weighted loss of each row: infinite where hard relations do not allow its evidence.
    pub losses: Vec<f64>,
    /// The derivative of their sum by each logit: rows × labels.
    pub logits: Vec<T>,
    /// What became of each row.
    pub status: Vec<RowStatus>,
}

impl CudaEngine {
    /// The loss of a block of rows with evidence, and its gradient. `weights` multiply the losses of rows. The CPU
    /// computes rows whose numbers leave the range of doubles.
    ///
    /// # Errors
    /// [`Error::Columns`]; [`Error::Unsupported`] for the marginal loss of approximate engines;
    /// [`Error::OutOfMemory`]; [`Error::Driver`].
    pub fn gradients<T: DeviceNumber>(
        &self,
        block: &Block<'_, T>,
        weights: Option<&[T]>,
        loss: Loss,
    ) -> Result<DeviceGradients<T>, Error> {
        self.check_columns(block)?;
        let (device, rows, labels) = (self.device(), block.rows(), self.labels());
        if let Some(weights) = weights.filter(|weights| weights.len() != rows) {
            return Err(Error::Weights { given: weights.len(), rows });
        }
        let (stream, number) = (device.stream(), T::PRECISION.bytes());
        let UploadedBlock { scores, evidence } = UploadedBlock::new(device, block)?;
        let evidence = match evidence {
            Some(evidence) => evidence,
            None => DeviceMemory::of(device, &vec![-1i8; rows * labels])?,
        };
        let weight_memory = weights.map(|weights| DeviceMemory::of(device, weights)).transpose()?;
        let losses = DeviceMemory::new(device, rows * number)?;
        let gradient = DeviceMemory::new(device, rows * labels * number)?;
        let status = DeviceMemory::new(device, 4 * rows)?;
        let bytes = match loss {
            Loss::Joint => self.joint_loss_bytes(rows, T::PRECISION),
            Loss::Marginal => self.marginal_loss_bytes(rows, T::PRECISION),
        };
        let workspace = DeviceMemory::new(device, bytes)?;
        let batch = LossBatch {
            scores: scores.address(),
            evidence: evidence.address(),
            weights: weight_memory.as_ref().map_or(0, DeviceMemory::address),
            losses: losses.address(),
            gradient: gradient.address(),
            status: status.address(),
            rows,
        };
        let call = DeviceCall {
            precision: T::PRECISION,
            workspace: Workspace { address: workspace.address(), bytes },
            stream,
        };
        // SAFETY: the memory has the sizes of the rows and lives until the results have been read.
        unsafe {
            match loss {
                Loss::Joint => self.joint_loss(batch, call)?,
                Loss::Marginal => self.marginal_loss(batch, call)?,
            }
        }
        let (mut out, mut logits) =
            (vec![<T as Scalar>::ZERO; rows], vec![<T as Scalar>::ZERO; rows * labels]);
        let mut codes = vec![0i32; rows];
        losses.read(stream, &mut out)?;
        gradient.read(stream, &mut logits)?;
        status.read(stream, &mut codes)?;
        let mut found = DeviceGradients {
            losses: out.iter().map(|loss| loss.to_f64()).collect(),
            logits,
            status: (0..rows).map(|row| row_status(codes[row], block.row(row))).collect(),
        };
        for (row, _) in codes.iter().enumerate().filter(|(_, code)| is_out_of_range(**code)) {
            let weight = weights.map_or(1.0, |weights| weights[row].to_f64());
            let objective = Objective { loss, costs: false };
            let one = block.slice(row..row + 1);
            let one = phex::learn::gradients(self.engine(), &one, Some(&[weight]), objective)?;
            found.losses[row] = if weight == 0.0 { 0.0 } else { weight * one.losses[0] };
            found.logits[row * labels..(row + 1) * labels].copy_from_slice(&one.logits);
            found.status[row] = one.status[0];
        }
        Ok(found)
    }
}

fn is_out_of_range(code: i32) -> bool {
    DeviceStatus::from_code(code) == DeviceStatus::OutOfRange
}
