//! From tensors of any strides, device and type to the inputs of the core.

use candle_core::{DType, Device, Tensor, WithDType};
use phex::infer::{Evidence, Number};
use phex::model::Model;
use phex::numeric::{SCORE_LIMIT, Scalar};

use crate::Error;

/// Logits in CPU memory, in single or double precision; still on the tape.
pub(crate) fn logits(tensor: &Tensor, labels: usize) -> Result<Tensor, Error> {
    if tensor.rank() != 2 || tensor.dims()[1] != labels {
        let expected = format!("rows × {labels} labels");
        return Err(Error::Shape { what: "the logits", expected, found: tensor.dims().to_vec() });
    }
    let tensor = tensor.to_device(&Device::Cpu)?;
    match tensor.dtype() {
        DType::F32 | DType::F64 => Ok(tensor),
        DType::F16 | DType::BF16 => Ok(tensor.to_dtype(DType::F32)?),
        found => Err(Error::Precision { found }),
    }
}

/// The numbers of a matrix of logits, row by row. A number that is not finite is an error even in rows
/// without targets, because it means that the network has diverged.
pub(crate) fn scores<T: Number + WithDType>(
    logits: &Tensor,
    model: &Model,
) -> Result<Vec<T>, Error> {
    let scores: Vec<T> = logits.flatten_all()?.to_vec1()?;
    let usable = |&score: &T| Scalar::to_f64(score).abs() <= SCORE_LIMIT;
    match scores.iter().position(|score| !usable(score)) {
        None => Ok(scores),
        Some(at) => {
            let (row, label) = (at / model.len(), model.names()[at % model.len()].clone());
            Err(phex::Error::BadScore { row, label }.into())
        }
    }
}

/// Targets as evidence: 1 is on, 0 is off, −1 is unknown.
pub(crate) fn targets(tensor: &Tensor, logits: &Tensor) -> Result<Vec<Evidence>, Error> {
    if tensor.dims() != logits.dims() {
        let expected = format!("{:?}, the shape of the logits", logits.dims());
        return Err(Error::Shape { what: "the targets", expected, found: tensor.dims().to_vec() });
    }
    let labels = logits.dims().last().copied().unwrap_or(1).max(1);
    let entry = |(at, value): (usize, f64)| {
        let (row, column) = (at / labels, at % labels);
        Evidence::from_number(value).ok_or(Error::Target { row, column, value })
    };
    doubles(tensor)?.into_iter().enumerate().map(entry).collect()
}

/// One weight per row.
pub(crate) fn weights(tensor: &Tensor, rows: usize) -> Result<Vec<f64>, Error> {
    if tensor.dims() != [rows] {
        let expected = format!("[{rows}], one weight per row of the logits");
        let found = tensor.dims().to_vec();
        return Err(Error::Shape { what: "the row weights", expected, found });
    }
    let weights = doubles(tensor)?;
    match weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        None => Ok(weights),
        Some(row) => Err(Error::Weight { row, value: weights[row] }),
    }
}

/// All numbers of a tensor as doubles.
pub(crate) fn doubles(tensor: &Tensor) -> Result<Vec<f64>, Error> {
    let tensor = tensor.detach().to_device(&Device::Cpu)?.to_dtype(DType::F64)?;
    Ok(tensor.flatten_all()?.to_vec1()?)
}
