//! Rows on the device: what a call is given, and what a launch reads and writes.

use phex::infer::Number;

use crate::device::Stream;
use crate::memory::Plain;

/// The type of scores and marginals in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Precision {
    /// Bytes per number.
    pub fn bytes(self) -> usize {
        match self {
            Precision::Single => 4,
            Precision::Double => 8,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Precision::Single => "float",
            Precision::Double => "double",
        }
    }
}

/// `f32` or `f64`, as numbers of rows on a device.
#[allow(private_bounds)] // Sealed: the two types of the kernels.
pub trait DeviceNumber: Number + Plain {
    /// Which of the two.
    const PRECISION: Precision;
}

impl DeviceNumber for f32 {
    const PRECISION: Precision = Precision::Single;
}

impl DeviceNumber for f64 {
    const PRECISION: Precision = Precision::Double;
}

/// How a call on device memory runs.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCall {
    /// The type of scores, marginals, weights, losses and gradients.
    pub precision: Precision,
    /// Working memory: at least as large as the matching `…_bytes` method says.
    pub workspace: Workspace,
    /// The stream on which the work is enqueued.
    pub stream: Stream,
}

/// Working memory of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workspace {
    /// Its address on the device.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: usize,
}

/// Rows for [`CudaEngine::infer`](crate::CudaEngine::infer), as addresses in device memory. Scores and marginals are
/// rows × labels of the same type.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceRows {
    /// Scores.
    pub scores: u64,
    /// Evidence: rows × labels bytes, 1 on, 0 off, −1 unknown; or the address 0.
    pub evidence: u64,
    /// Where the marginals go.
    pub marginals: u64,
    /// Where log Z goes: one double per row.
    pub log_partition: u64,
    /// Where the status of each row goes, as an `i32`: see [`DeviceStatus`].
    pub status: u64,
    /// The number of rows.
    pub rows: usize,
}

/// What became of a row, as kernels write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceStatus {
    /// Answered.
    Answered,
    /// Its numbers leave the range of doubles. It is NaN on the device; the CPU can answer it.
    OutOfRange,
    /// No legal state agrees with the evidence.
    Impossible,
    /// A score is NaN, infinite or beyond [`phex::numeric::SCORE_LIMIT`], or a code of evidence is not 1, 0 or −1.
    BadScore,
}

impl DeviceStatus {
    /// Reads what a kernel wrote.
    pub fn from_code(code: i32) -> DeviceStatus {
        match code {
            0 => DeviceStatus::Answered,
            2 => DeviceStatus::Impossible,
            3 => DeviceStatus::BadScore,
            _ => DeviceStatus::OutOfRange,
        }
    }
}

/// The layout of `Rows` in `common.cu`, which explains the fields.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawRows {
    pub(crate) scores: u64,
    pub(crate) evidence: u64,
    pub(crate) marginals: u64,
    pub(crate) log_partition: u64,
    pub(crate) status: u64,
    pub(crate) count: u64,
    pub(crate) listed: u64,
    pub(crate) again: u64,
    pub(crate) sums: u64,
    /// The number of rows; where only the device knows that, the number to expect, by which a launch is sized.
    pub(crate) rows: i32,
    pub(crate) clamped_from: i32,
    pub(crate) score_rows: i32,
    pub(crate) evidence_rows: i32,
}

impl RawRows {
    /// Only the rows of a list in device memory: their number, then their indices.
    pub(crate) fn only(self, list: u64) -> RawRows {
        RawRows { count: list, listed: list + 4, ..self }
    }
}

impl From<DeviceRows> for RawRows {
    fn from(rows: DeviceRows) -> RawRows {
        RawRows {
            scores: rows.scores,
            evidence: rows.evidence,
            marginals: rows.marginals,
            log_partition: rows.log_partition,
            status: rows.status,
            count: 0,
            listed: 0,
            again: 0,
            sums: 0,
            rows: rows.rows as i32,
            clamped_from: 0,
            score_rows: rows.rows as i32,
            evidence_rows: rows.rows as i32,
        }
    }
}
