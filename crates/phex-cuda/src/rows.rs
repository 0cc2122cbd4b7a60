//! Rows on the device: what a launch reads and writes.

use phex::infer::Number;

use crate::buffer::Plain;

/// The type of scores and marginals in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Precision {
    /// Bytes a number.
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

/// Rows in device memory, as addresses. Scores and marginals are rows × labels of the same type.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceRows {
    /// Scores.
    pub scores: u64,
    /// Evidence: rows × labels bytes, 1 on, 0 off, −1 unknown; or the address 0.
    pub evidence: u64,
    /// Where the marginals go.
    pub marginals: u64,
    /// Where log Z goes: a double a row.
    pub log_partition: u64,
    /// Where the status of each row goes, as an `i32`: see [`Status`].
    pub status: u64,
    /// How many rows.
    pub rows: usize,
}

/// What became of a row, as kernels write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Answered.
    Answered,
    /// Its numbers leave the range of doubles: NaN on the device; the processor answers it.
    OutOfRange,
    /// No legal state agrees with the evidence.
    Impossible,
    /// A score is NaN, infinite or beyond ±1e30.
    BadScore,
}

impl Status {
    /// Reads what a kernel wrote.
    pub fn from_code(code: i32) -> Status {
        match code {
            0 => Status::Answered,
            2 => Status::Impossible,
            3 => Status::BadScore,
            _ => Status::OutOfRange,
        }
    }
}

/// The layout of `Rows` in the kernels.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawRows {
    pub(crate) scores: u64,
    pub(crate) evidence: u64,
    pub(crate) marginals: u64,
    pub(crate) log_partition: u64,
    pub(crate) status: u64,
    pub(crate) listed: u64,
    pub(crate) again: u64,
    pub(crate) rows: i32,
    pub(crate) clamped_from: i32,
    pub(crate) scored: i32,
    pub(crate) known: i32,
}

impl From<DeviceRows> for RawRows {
    fn from(rows: DeviceRows) -> RawRows {
        RawRows {
            scores: rows.scores,
            evidence: rows.evidence,
            marginals: rows.marginals,
            log_partition: rows.log_partition,
            status: rows.status,
            listed: 0,
            again: 0,
            rows: rows.rows as i32,
            clamped_from: 0,
            scored: rows.rows as i32,
            known: rows.rows as i32,
        }
    }
}

/// Shares out a piece of device memory.
pub(crate) struct Carver {
    next: u64,
}

impl Carver {
    pub(crate) fn new(pointer: u64) -> Carver {
        Carver { next: pointer.next_multiple_of(256) }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> u64 {
        let at = self.next;
        self.next = (at + bytes as u64).next_multiple_of(256);
        at
    }

    /// What a carving from address 0 took.
    pub(crate) fn taken(&self) -> usize {
        // The first piece may start up to 255 bytes into the memory.
        self.next as usize + 256
    }
}
