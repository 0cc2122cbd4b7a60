//! Runs the rows of a block side by side, in registers of lanes.
//!
//! Engines whose kernel is generic in the number of lanes call this with two instances of it. All
//! lanes run the same operations in the same order, so a row has the same bits alone and among
//! others.

use std::ops::Range;

use crate::infer::{Answers, Block, Number};

/// When no more rows than this are left they run one by one, which is cheaper than idle lanes.
const FEW: usize = 2;

/// The rows of each register. Those of a register of one run one by one.
pub(crate) fn registers(rows: usize, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = next;
        let left = rows - first;
        next += if left <= FEW { left.min(1) } else { left.min(lanes) };
        (left > 0).then_some(first..next)
    })
}

/// Runs all rows of a block. `one` runs a single row and `many` runs up to `lanes` rows.
pub(crate) fn run_in_registers<E, T: Number>(
    engine: &E,
    block: &Block<'_, T>,
    answers: &mut Answers<'_, T>,
    lanes: usize,
    one: impl Fn(&E, &Block<'_, T>, Range<usize>, &mut Answers<'_, T>),
    many: impl Fn(&E, &Block<'_, T>, Range<usize>, &mut Answers<'_, T>),
) {
    for rows in registers(block.rows(), lanes) {
        if rows.len() == 1 {
            one(engine, block, rows, answers);
        } else {
            many(engine, block, rows, answers);
        }
    }
}
