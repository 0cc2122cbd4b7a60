//! Engines on a GPU, for Python: addresses of tensors and a stream in, work on the stream out.
//!
//! Nothing is copied, allocated or waited for: `phex.torch` allocates outputs and working memory as tensors, so that
//! PyTorch's allocator, streams and CUDA graphs know of them.
#![allow(unsafe_code)] // Addresses of another library's tensors.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use phex_cuda::{Covariance, Device, DeviceRows, Precision, Stream, Training};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors::Failure;

/// A compiled model on a GPU. `phex.torch` uses it for tensors that are there.
#[pyclass(frozen, module = "phex._core")]
#[derive(Debug)]
pub(crate) struct CudaEngine(phex_cuda::CudaEngine);

/// The devices that are open, by number.
fn device(ordinal: usize) -> Result<Device, Failure> {
    static OPEN: OnceLock<Mutex<HashMap<usize, Device>>> = OnceLock::new();
    let open = OPEN.get_or_init(Mutex::default);
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&ordinal) {
        return Ok(device.clone());
    }
    let device = Device::open(ordinal)?;
    open.insert(ordinal, device.clone());
    Ok(device)
}

fn precision(double: bool) -> Precision {
    if double { Precision::Double } else { Precision::Single }
}

/// Addresses, in the order in which they are given.
type Addresses = [u64; 6];

#[pymethods]
impl CudaEngine {
    /// Brings an engine to the GPU of this number.
    #[new]
    fn new(py: Python<'_>, engine: &Engine, ordinal: usize) -> Result<CudaEngine, Failure> {
        let compile = || -> Result<_, Failure> {
            Ok(phex_cuda::CudaEngine::new(&device(ordinal)?, engine.inner())?)
        };
        Ok(CudaEngine(py.detach(compile)?))
    }

    /// Whether its answers are exact: derivatives of marginals need that.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    /// Bytes of working memory for `infer`, `joint`, `marginal` or `covariance` of so many rows.
    fn bytes(&self, task: &str, rows: usize, double: bool) -> Result<usize, Failure> {
        let precision = precision(double);
        Ok(match task {
            "infer" => self.0.infer_bytes(rows, precision),
            "joint" => self.0.joint_bytes(rows, precision),
            "marginal" => self.0.marginal_bytes(rows, precision),
            "covariance" => self.0.covariance_bytes(rows),
            _ => return Err(Failure::input(format!("`{task}` is no task of a GPU engine"))),
        })
    }

    /// Puts a task on a stream. The addresses of `infer` are those of scores, evidence (or 0), marginals, log-partition
    /// (doubles), status (int32) and nothing; of `joint` and `marginal` scores, evidence, weights (or 0), losses,
    /// gradient and status; of `covariance` scores, evidence (or 0), slopes, gradient, status and nothing.
    #[pyo3(signature = (task, addresses, rows, double, workspace, stream))]
    #[allow(clippy::too_many_arguments)] // One launch.
    fn enqueue(
        &self,
        py: Python<'_>,
        task: &str,
        addresses: Addresses,
        rows: usize,
        double: bool,
        workspace: (u64, usize),
        stream: u64,
    ) -> Result<(), Failure> {
        let (precision, stream) = (precision(double), Stream(stream));
        let [a, b, c, d, e, f] = addresses;
        let training = Training {
            scores: a,
            evidence: b,
            weights: c,
            losses: d,
            gradient: e,
            status: f,
            rows,
        };
        let device_rows =
            DeviceRows { scores: a, evidence: b, marginals: c, log_partition: d, status: e, rows };
        let covariance =
            Covariance { scores: a, evidence: b, slopes: c, gradient: d, status: e, rows };
        py.detach(|| {
            // SAFETY: the caller gives addresses of live, contiguous tensors of the device with the sizes of the rows, and
            // their library's allocator keeps their memory for the stream they were made on.
            unsafe {
                match task {
                    "infer" => self.0.infer(device_rows, precision, workspace, stream),
                    "joint" => self.0.joint_loss(training, precision, workspace, stream),
                    "marginal" => self.0.marginal_loss(training, precision, workspace, stream),
                    _ => self.0.covariance(covariance, precision, workspace, stream),
                }
            }
        })?;
        Ok(())
    }
}
