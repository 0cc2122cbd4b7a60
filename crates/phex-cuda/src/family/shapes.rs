//! How many rows and warps a block has, for many rows and for few, and whether their numbers lie in shared memory.
//!
//! Shared memory answers ten times sooner than the second-level cache, so blocks have as many rows as fit there, down to 2;
//! the fewer the rows, the more labels of a level a warp has at a time. The rows of a model that is too large lie in global
//! memory, 32 a block, and so do many rows where fewer than 8 would fit. Where rows are few, blocks have fewer, so that all
//! multiprocessors have work.

use super::LANES;
use crate::rows::Precision;

/// How `family` spreads rows over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlockRows {
    /// By the number of rows and the size of the model.
    #[default]
    Auto,
    /// Blocks of 32 rows in global memory.
    Global,
    /// So many rows a block, in shared memory: 2, 4 or 8; other numbers are rounded up. Fewer if they do not fit.
    Fixed(usize),
}

impl BlockRows {
    /// What the environment asks for: `PHEX_CUDA_BLOCK_ROWS` is `global` or a number. Otherwise `Auto`.
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
pub(super) struct Form {
    /// Rows of a block.
    pub(super) rows: usize,
    pub(super) warps: usize,
    /// Blocks that a multiprocessor is to hold, in single precision.
    held: usize,
    /// The warps that get more of the shared memory, for larger families: their parts of it in thousandths. Blocks of fewer
    /// than 32 rows go by the families that there are instead.
    pub(super) large: &'static [usize],
}

impl Form {
    /// Whether the numbers of its rows lie in shared memory: those of 32 would not fit, or only of small models.
    pub(super) fn is_resident(self) -> bool {
        self.rows < LANES
    }

    /// Blocks of a multiprocessor: in doubles half as many fit, for a line of shared memory is twice as long.
    pub(super) fn blocks_held(self, real: Precision) -> usize {
        if real == Precision::Double { self.held.div_ceil(2) } else { self.held }
    }

    /// Labels that a warp has at a time.
    pub(super) fn groups(self) -> usize {
        LANES / self.rows
    }
}

const fn resident(rows: usize, warps: usize, held: usize) -> Form {
    Form { rows, warps, held, large: &[] }
}

/// In global memory, for many rows and for few; then in shared memory, small models first, of which a multiprocessor holds
/// several blocks.
pub(super) const FORMS: [Form; 6] = [
    Form { rows: LANES, warps: 8, held: 2, large: &[370, 157, 157] },
    Form { rows: LANES, warps: 16, held: 1, large: &[183, 183, 78, 78, 78] },
    resident(8, 4, 4),
    resident(8, 16, 1),
    resident(4, 16, 1),
    resident(2, 16, 1),
];

/// The most rows of a block in shared memory.
const MOST: usize = 8;

/// The place in [`FORMS`] for so many rows, of those that the model fits.
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
    // Many rows are done faster in global memory than few of them at a time in shared memory.
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
