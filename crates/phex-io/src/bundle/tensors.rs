//! Named arrays of numbers, in safetensors files: a JSON header, then the bytes.
//!
//! Before the library reads the header, it is limited to 1 MiB and its claims to the length of the
//! file. Tensors are written in a fixed order, so that equal numbers give equal files.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::files::output::Output;

/// How many bytes the header may have at most.
const MAX_HEADER: u64 = 1 << 20;
/// How many bytes the numbers may have at most: those of 2³⁰ weights with the memory of their optimiser.
const MAX_DATA: u64 = 16 << 30;
/// The key of the metadata in the header.
const METADATA: &str = "__metadata__";

/// The numbers of a tensor, row after row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TensorData {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Bytes.
    U8(Vec<u8>),
    /// Whole numbers.
    I64(Vec<i64>),
}

impl TensorData {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            TensorData::F32(values) => values.len(),
            TensorData::F64(values) => values.len(),
            TensorData::U8(values) => values.len(),
            TensorData::I64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn dtype(&self) -> Dtype {
        match self {
            TensorData::F32(_) => Dtype::F32,
            TensorData::F64(_) => Dtype::F64,
            TensorData::U8(_) => Dtype::U8,
            TensorData::I64(_) => Dtype::I64,
        }
    }

    fn read(dtype: Dtype, bytes: &[u8]) -> Option<TensorData> {
        Some(match dtype {
            Dtype::F32 => TensorData::F32(numbers(bytes, f32::from_le_bytes)),
            Dtype::F64 => TensorData::F64(numbers(bytes, f64::from_le_bytes)),
            Dtype::U8 => TensorData::U8(bytes.to_vec()),
            Dtype::I64 => TensorData::I64(numbers(bytes, i64::from_le_bytes)),
            _ => return None,
        })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            TensorData::F32(values) => {
                values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
            TensorData::F64(values) => {
                values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
            TensorData::U8(values) => out.write_all(values),
            TensorData::I64(values) => {
                values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))
            }
        }
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| number(*chunk)).collect()
}

/// Numbers with a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// The numbers; their count is the product of the shape.
    pub data: TensorData,
}

impl Tensor {
    /// A tensor of single precision.
    pub fn f32(shape: &[usize], values: Vec<f32>) -> Tensor {
        Tensor { shape: shape.to_vec(), data: TensorData::F32(values) }
    }

    /// A tensor of double precision.
    pub fn f64(shape: &[usize], values: Vec<f64>) -> Tensor {
        Tensor { shape: shape.to_vec(), data: TensorData::F64(values) }
    }
}

/// Writes tensors and metadata to a safetensors file, which appears once it is complete.
///
/// # Errors
/// When the number of values of a tensor does not match its shape, names and metadata have more than
/// 1 MiB, or the file cannot be written.
pub fn write_tensors(
    path: &Path,
    tensors: &BTreeMap<String, Tensor>,
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let wrong = |message: String| Error::Bundle { path: path.display().to_string(), message };
    // The widest numbers come first, so that all are aligned to their size.
    let mut order: Vec<(&String, &Tensor)> = tensors.iter().collect();
    order.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.data.dtype().bitsize()));
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert(METADATA.to_owned(), json!(metadata));
    }
    let mut start = 0;
    for (name, tensor) in &order {
        let numbers = tensor.shape.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        if numbers != Some(tensor.data.len()) || name.as_str() == METADATA {
            let (found, shape) = (tensor.data.len(), &tensor.shape);
            return Err(wrong(format!(
                "the tensor `{name}` has {found} numbers for the shape {shape:?}"
            )));
        }
        let dtype = tensor.data.dtype();
        let end = start + tensor.data.len() * dtype.bitsize() / 8;
        let info = TensorInfo { dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
        let info = serde_json::to_value(info).map_err(|error| wrong(error.to_string()))?;
        header.insert((*name).clone(), info);
        start = end;
    }
    let mut header =
        serde_json::to_vec(&Value::Object(header)).map_err(|error| wrong(error.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > MAX_HEADER {
        return Err(wrong(format!(
            "names and metadata have {} bytes; 1 MiB is allowed",
            header.len()
        )));
    }
    let write = || -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 18, Output::create(path)?);
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        order.iter().try_for_each(|(_, tensor)| tensor.data.write(&mut out))?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    };
    write().map_err(|source| Error::Write { path: path.display().to_string(), source })
}

/// Reads the tensors and the metadata of a safetensors file.
///
/// # Errors
/// When the file cannot be read, is damaged, or has a tensor of a type that [`TensorData`] lacks.
#[allow(clippy::type_complexity)]
pub fn read_tensors(
    path: &Path,
) -> Result<(BTreeMap<String, Tensor>, BTreeMap<String, String>), Error> {
    let name = path.display().to_string();
    let bytes = read_checked(path).map_err(|source| Error::Read { path: name.clone(), source })?;
    let wrong = |message: String| Error::Bundle {
        path: name.clone(),
        message: format!("the file is damaged or not a safetensors file: {message}"),
    };
    let bytes = bytes.map_err(wrong)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let Some(data) = TensorData::read(view.dtype(), view.data()) else {
            let kind = format!("{:?}", view.dtype());
            return Err(wrong(format!("the tensor `{name}` is of type {kind}, which is not read")));
        };
        tensors.insert(name.to_owned(), Tensor { shape: view.shape().to_vec(), data });
    }
    let (_, header) =
        SafeTensors::read_metadata(&bytes).map_err(|error| wrong(error.to_string()))?;
    let metadata: HashMap<String, String> = header.metadata().clone().unwrap_or_default();
    Ok((tensors, metadata.into_iter().collect()))
}

/// An entry of the header, as far as it is checked before the library reads it.
#[derive(Deserialize)]
#[serde(untagged)]
enum HeaderEntry {
    Tensor { data_offsets: (u64, u64) },
    Other(serde::de::IgnoredAny),
}

/// The bytes of a file, once its header is short enough and its claims fit the file.
fn read_checked(path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(8).read_to_end(&mut bytes)?;
    let Some(length) = bytes.first_chunk().map(|length| u64::from_le_bytes(*length)) else {
        return Ok(Err(String::from("it ends in its first bytes")));
    };
    if length > MAX_HEADER {
        return Ok(Err(format!("the header claims {length} bytes, and 1 MiB is allowed")));
    }
    Read::by_ref(&mut file).take(length).read_to_end(&mut bytes)?;
    let header = serde_json::from_slice::<HashMap<String, HeaderEntry>>(&bytes[8..]);
    let entries = match header {
        Ok(entries) => entries,
        Err(error) => return Ok(Err(format!("the header: {error}"))),
    };
    let data = size.saturating_sub(8 + length);
    for (name, entry) in entries {
        // The library adds offsets without checking for overflow.
        if let HeaderEntry::Tensor { data_offsets: (start, end) } = entry
            && (start > end || end > data)
        {
            return Ok(Err(format!("the tensor `{name}` is not inside the file")));
        }
    }
    if data > MAX_DATA {
        return Ok(Err(format!("it has {data} bytes, and {MAX_DATA} are allowed")));
    }
    // A device has no size, so nothing more is read of it.
    file.take(data).read_to_end(&mut bytes)?;
    Ok(Ok(bytes))
}
