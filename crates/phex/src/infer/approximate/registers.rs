//! Runs the rows of a block side by side, in registers of lanes.
//!
//! Engines whose kernel is generic in the number of lanes call this with two instances of it. All
//! lanes run the same operations in the same order, so a row has the same bits alone and among
//! others.

use std::ops::Range;

use crate::infer::{Answers, Block, Number};

/// When no more rows than this are left they run one by one, which is cheaper than idle lanes.
const FEW: usize = 2;

/// Runs all rows of a block. `one` runs a single row and `many` runs up to `lanes` rows.
pub(crate) fn run_in_registers<E, T: Number>(
    engine: &E,
    block: &Block<'_, T>,
    answers: &mut Answers<'_, T>,
    lanes: usize,
    one: impl Fn(&E, &Block<'_, T>, Range<usize>, &mut Answers<'_, T>),
    many: impl Fn(&E, &Block<'_, T>, Range<usize>, &mut Answers<'_, T>),
) {
    let mut first = 0;
    while first < block.rows() {
        let left = block.rows() - first;
        if left <= FEW {
            one(engine, block, first..first + 1, answers);
            first += 1;
        } else {
            let next = first + left.min(lanes);
            many(engine, block, first..next, answers);
            first = next;
        }
    }
}
