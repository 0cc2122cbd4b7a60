//! How many rows and warps a block has, for many rows and for few.
//!
//! A block of 32 rows has a row in each lane, and its work is the same whether the rows are there or not: 256 rows would
//! use 8 multiprocessors. Narrow blocks have fewer rows and several labels of a level in a warp instead, so that all
//! multiprocessors have work and each has less of it.

use super::LANES;
use crate::rows::Precision;

/// How `family` spreads rows over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlockRows {
    /// Blocks of 32 rows.
    #[default]
    Wide,
    /// As few rows a block as let every multiprocessor have a block: 2, 4, 8, 16 or 32.
    Auto,
    /// So many rows a block: 2, 4, 8, 16 or 32; other numbers are rounded up.
    Fixed(usize),
}

impl BlockRows {
    /// What the environment asks for: `PHEX_CUDA_BLOCK_ROWS` is `auto` or a number. Otherwise wide blocks.
    pub fn from_environment() -> BlockRows {
        let text = std::env::var("PHEX_CUDA_BLOCK_ROWS").unwrap_or_default();
        match (text.as_str(), text.parse()) {
            ("auto", _) => BlockRows::Auto,
            (_, Ok(rows)) => BlockRows::Fixed(rows),
            _ => BlockRows::Wide,
        }
    }
}

/// The form of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Form {
    /// Rows of a block.
    pub(super) rows: usize,
    pub(super) warps: usize,
    /// Blocks that a multiprocessor is to hold, in single precision.
    held: usize,
    /// The warps that get more of the shared memory, for larger families: their parts of it in thousandths.
    pub(super) large: &'static [usize],
}

impl Form {
    /// Blocks of a multiprocessor: in doubles half as many fit, for a line of shared memory is twice as long.
    pub(super) fn resident(self, real: Precision) -> usize {
        if real == Precision::Double { self.held.div_ceil(2) } else { self.held }
    }
}

const fn few(rows: usize) -> Form {
    Form { rows, warps: 16, held: 1, large: &[183, 183, 78, 78, 78] }
}

/// For many rows; for few, where all warps of a multiprocessor work on the same ones; then narrow blocks.
pub(super) const FORMS: [Form; 6] = [
    Form { rows: LANES, warps: 8, held: 2, large: &[370, 157, 157] },
    few(LANES),
    few(16),
    few(8),
    few(4),
    few(2),
];

/// The place in [`FORMS`] for so many rows.
pub(super) fn choose(setting: BlockRows, rows: usize, multiprocessors: usize) -> usize {
    let rows_of_block = match setting {
        BlockRows::Wide => LANES,
        BlockRows::Auto => rows.div_ceil(multiprocessors).next_power_of_two(),
        BlockRows::Fixed(rows) => rows.next_power_of_two(),
    };
    match rows_of_block.clamp(2, LANES) {
        LANES => usize::from(rows.div_ceil(LANES) <= multiprocessors),
        some => FORMS.iter().position(|form| form.rows == some).unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_spread_over_all_multiprocessors() {
        let rows = |setting, rows| FORMS[choose(setting, rows, 132)].rows;
        let auto: Vec<usize> =
            [1, 256, 512, 2000, 4096, 65536].map(|n| rows(BlockRows::Auto, n)).into();
        assert_eq!(auto, [2, 2, 4, 16, 32, 32]);
        assert_eq!(rows(BlockRows::Wide, 1), 32);
        assert_eq!(rows(BlockRows::Fixed(3), 1000), 4);
        assert_eq!(
            (choose(BlockRows::Wide, 4096, 132), choose(BlockRows::Wide, 65536, 132)),
            (1, 0)
        );
    }
}
