//! Engines with one row per block: in shared memory where it fits, otherwise in the block's part of global memory.

use crate::device::Device;
use crate::program::LaunchShape;

/// Threads per block.
pub(crate) const THREADS: u32 = 256;

/// Blocks per multiprocessor, where memory allows so many.
const RESIDENT: usize = 8;

/// Shared memory that a kernel has beside the row.
const FIXED_SHARED: usize = 1024;

/// Where rows of one size lie, and how many blocks share them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowBlocks {
    multiprocessors: usize,
    shared_bytes: usize,
}

impl RowBlocks {
    pub(crate) fn new(device: &Device) -> RowBlocks {
        RowBlocks { multiprocessors: device.multiprocessors(), shared_bytes: device.shared_bytes() }
    }

    /// Whether a row fits shared memory.
    pub(crate) fn fits(&self, row_bytes: usize) -> bool {
        row_bytes + FIXED_SHARED <= self.shared_bytes
    }

    fn blocks(&self, rows: usize) -> usize {
        rows.min(self.multiprocessors * RESIDENT)
    }

    /// Bytes of global memory for rows that do not fit.
    pub(crate) fn scratch_bytes(&self, rows: usize, row_bytes: usize) -> usize {
        if self.fits(row_bytes) { 0 } else { self.blocks(rows) * row_bytes }
    }

    pub(crate) fn shape(&self, rows: usize, row_bytes: usize) -> LaunchShape {
        let shared = if self.fits(row_bytes) { row_bytes } else { 0 };
        LaunchShape { blocks: self.blocks(rows), threads: THREADS, shared }
    }
}
