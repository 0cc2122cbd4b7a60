//! Engines on a GPU, for Python: each method takes the addresses of tensors by name and enqueues its work on a stream.
//!
//! Nothing is copied, allocated or waited for. `phex.torch` allocates outputs and working memory as tensors, so PyTorch's
//! allocator, streams and CUDA graphs manage them.
#![allow(unsafe_code)] // Addresses of another library's tensors.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use phex_cuda::{
    CovarianceBatch, Device, DeviceCall, DeviceRows, LossBatch, Precision, Stream, Workspace,
};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::errors::Failure;

/// A compiled model on a GPU. `phex.torch` uses it for tensors on that GPU.
///
/// Tensors are given by their addresses. They must be contiguous, on this GPU, and alive until the stream has finished the
/// work. Scores, marginals, weights, losses and gradients are float64 if `double` is true, otherwise float32; evidence is
/// int8; the log-partition is float64; status is int32. `workspace` is an address and a number of bytes.
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

fn call(double: bool, (address, bytes): (u64, usize), stream: u64) -> DeviceCall {
    DeviceCall {
        precision: precision(double),
        workspace: Workspace { address, bytes },
        stream: Stream(stream),
    }
}

#[pymethods]
#[allow(clippy::too_many_arguments)] // Keywords of one launch each.
impl CudaEngine {
    /// Moves an engine to the GPU of this number.
    #[new]
    fn new(py: Python<'_>, engine: &Engine, ordinal: usize) -> Result<CudaEngine, Failure> {
        let compile = || -> Result<_, Failure> {
            Ok(phex_cuda::CudaEngine::new(&device(ordinal)?, engine.inner())?)
        };
        Ok(CudaEngine(py.detach(compile)?))
    }

    /// Whether its answers are exact, which derivatives of marginals need.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    /// Bytes of working memory that `infer` needs.
    fn infer_bytes(&self, rows: usize, double: bool) -> usize {
        self.0.infer_bytes(rows, precision(double))
    }

    /// Bytes of working memory that `joint_loss` needs.
    fn joint_loss_bytes(&self, rows: usize, double: bool) -> usize {
        self.0.joint_loss_bytes(rows, precision(double))
    }

    /// Bytes of working memory that `marginal_loss` needs.
    fn marginal_loss_bytes(&self, rows: usize, double: bool) -> usize {
        self.0.marginal_loss_bytes(rows, precision(double))
    }

    /// Bytes of working memory that `covariance` needs.
    fn covariance_bytes(&self, rows: usize) -> usize {
        self.0.covariance_bytes(rows)
    }

    /// Enqueues inference: marginals, log-partition and status of rows.
    #[pyo3(signature = (*, scores, evidence, marginals, log_partition, status, rows, double, workspace, stream))]
    fn infer(
        &self,
        py: Python<'_>,
        scores: u64,
        evidence: Option<u64>,
        marginals: u64,
        log_partition: u64,
        status: u64,
        rows: usize,
        double: bool,
        workspace: (u64, usize),
        stream: u64,
    ) -> Result<(), Failure> {
        let evidence = evidence.unwrap_or(0);
        let rows = DeviceRows { scores, evidence, marginals, log_partition, status, rows };
        // SAFETY: the caller gives addresses as the class demands.
        Ok(py.detach(|| unsafe { self.0.infer(rows, call(double, workspace, stream)) })?)
    }

    /// Enqueues the joint loss of rows and the gradient of their sum by the scores.
    #[pyo3(signature = (*, scores, evidence, weights, losses, gradient, status, rows, double, workspace, stream))]
    fn joint_loss(
        &self,
        py: Python<'_>,
        scores: u64,
        evidence: u64,
        weights: Option<u64>,
        losses: u64,
        gradient: u64,
        status: u64,
        rows: usize,
        double: bool,
        workspace: (u64, usize),
        stream: u64,
    ) -> Result<(), Failure> {
        let weights = weights.unwrap_or(0);
        let batch = LossBatch { scores, evidence, weights, losses, gradient, status, rows };
        // SAFETY: the caller gives addresses as the class demands.
        Ok(py.detach(|| unsafe { self.0.joint_loss(batch, call(double, workspace, stream)) })?)
    }

    /// Enqueues the marginal loss of rows and the gradient of their sum by the scores.
    #[pyo3(signature = (*, scores, evidence, weights, losses, gradient, status, rows, double, workspace, stream))]
    fn marginal_loss(
        &self,
        py: Python<'_>,
        scores: u64,
        evidence: u64,
        weights: Option<u64>,
        losses: u64,
        gradient: u64,
        status: u64,
        rows: usize,
        double: bool,
        workspace: (u64, usize),
        stream: u64,
    ) -> Result<(), Failure> {
        let weights = weights.unwrap_or(0);
        let batch = LossBatch { scores, evidence, weights, losses, gradient, status, rows };
        // SAFETY: the caller gives addresses as the class demands.
        Ok(py.detach(|| unsafe { self.0.marginal_loss(batch, call(double, workspace, stream)) })?)
    }

    /// Enqueues the way from the gradient by the marginals (`slopes`) to that by the scores.
    #[pyo3(signature = (*, scores, evidence, slopes, gradient, status, rows, double, workspace, stream))]
    fn covariance(
        &self,
        py: Python<'_>,
        scores: u64,
        evidence: Option<u64>,
        slopes: u64,
        gradient: u64,
        status: u64,
        rows: usize,
        double: bool,
        workspace: (u64, usize),
        stream: u64,
    ) -> Result<(), Failure> {
        let evidence = evidence.unwrap_or(0);
        let batch = CovarianceBatch { scores, evidence, slopes, gradient, status, rows };
        // SAFETY: the caller gives addresses as the class demands.
        Ok(py.detach(|| unsafe { self.0.covariance(batch, call(double, workspace, stream)) })?)
    }
}
