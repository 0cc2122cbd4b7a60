//! How many rows and warps a block has, for many rows and for few, and whether their numbers lie in shared memory.
//!
//! Shared memory is ten times faster than the second-level cache, so a block has as many rows as fit there, at least 2. The
//! fewer the rows, the more labels of a level a warp has at a time. The rows of a model that is too large lie in global
//! memory, 32 per block; so do many rows if fewer than 8 would fit. With few rows, blocks have fewer of them, so that all
//! multiprocessors have work.

use super::LANES;
use crate::rows::Precision;

/// How `family` distributes rows over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlockRows {
    /// According to the number of rows and the size of the model.
    #[default]
    Auto,
    /// Blocks of 32 rows in global memory.
    Global,
    /// This many rows per block, in shared memory: 2, 4 or 8; other numbers are rounded up. Fewer if they do not fit.
    Fixed(usize),
}

impl BlockRows {
    /// The setting of `PHEX_CUDA_BLOCK_ROWS`, which is `global` or a number. Otherwise `Auto`.
    pub fn from_environment() -> BlockRows {
        let text = std::env::var("PHEX_CUDA_BLOCK_ROWS").unwrap_or_default();
        match (text.as_str(), text.parse()) {
            ("global", _) => BlockRows::Global,
            (_, Ok(rows)) => BlockRows::Fixed(rows),
            _ => BlockRows::Auto,
        }
    }
}

/// The form of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockForm {
    /// Rows per block.
    pub(super) rows: usize,
    pub(super) warps: usize,
    /// Blocks per multiprocessor, in single precision.
    held: usize,
    /// The shares of shared memory, in thousandths, of the warps that get more than the others, for larger families. In
    /// blocks of fewer than 32 rows the families decide instead.
    pub(super) large: &'static [usize],
}

impl BlockForm {
    /// Whether the numbers of its rows lie in shared memory. Those of 32 rows would fit only for small models.
    pub(super) fn is_resident(self) -> bool {
        self.rows < LANES
    }

    /// Blocks per multiprocessor. In doubles half as many fit, because a line of shared memory is twice as long.
    pub(super) fn blocks_held(self, real: Precision) -> usize {
        if real == Precision::Double { self.held.div_ceil(2) } else { self.held }
    }

    /// Labels that a warp has at a time.
    pub(super) fn groups(self) -> usize {
        LANES / self.rows
    }
}

const fn resident(rows: usize, warps: usize, held: usize) -> BlockForm {
    BlockForm { rows, warps, held, large: &[] }
}

/// In global memory, for many rows and for few. Then in shared memory, beginning with that of small models, of which a
/// multiprocessor holds several blocks.
pub(super) const FORMS: [BlockForm; 6] = [
    BlockForm { rows: LANES, warps: 8, held: 2, large: &[370, 157, 157] },
    BlockForm { rows: LANES, warps: 16, held: 1, large: &[183, 183, 78, 78, 78] },
    resident(8, 4, 4),
    resident(8, 16, 1),
    resident(4, 16, 1),
    resident(2, 16, 1),
];

/// The most rows of a block in shared memory.
const MOST: usize = 8;

/// The index in [`FORMS`] of the form for a number of rows, among those that fit the model.
pub(super) fn choose(
    setting: BlockRows,
    rows: usize,
    multiprocessors: usize,
    fits: impl Fn(usize) -> bool,
) -> usize {
    let wanted = match setting {
        BlockRows::Global => 0,
        BlockRows::Auto => rows.div_ceil(multiprocessors).next_power_of_two().clamp(2, MOST),
        BlockRows::Fixed(rows) => rows.next_power_of_two().clamp(2, MOST),
    };
    let is_many = rows.div_ceil(LANES) > multiprocessors;
    let is_chosen = |&place: &usize| {
        let form = FORMS[place];
        form.is_resident() && form.rows <= wanted && (form.held == 1 || is_many) && fits(place)
    };
    let chosen = (0..FORMS.len()).find(is_chosen);
    // Many rows are faster in global memory than in shared memory a few at a time.
    let is_slow =
        |&place: &usize| setting == BlockRows::Auto && is_many && FORMS[place].rows < MOST;
    chosen.filter(|place| !is_slow(place)).unwrap_or(usize::from(!is_many))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_spread_over_all_multiprocessors() {
        let form = |setting, rows, most| {
            FORMS[choose(setting, rows, 132, |place| FORMS[place].rows <= most)]
        };
        let auto =
            |most| [1, 256, 512, 2000, 4096, 65536].map(|n| form(BlockRows::Auto, n, most).rows);
        assert_eq!(auto(32), [2, 2, 4, 8, 8, 8]);
        assert_eq!(auto(4), [2, 2, 4, 4, 4, 32]);
        assert!(form(BlockRows::Auto, 65536, 8).is_resident());
        assert_eq!(auto(1), [32; 6]);
        assert!(!form(BlockRows::Auto, 65536, 1).is_resident());
        assert!(!form(BlockRows::Global, 1, 32).is_resident());
        assert_eq!(form(BlockRows::Fixed(3), 1000, 32).rows, 4);
        let warps = |rows| form(BlockRows::Auto, rows, 32).warps;
        assert_eq!((warps(4096), warps(65536)), (16, 4));
    }
}
