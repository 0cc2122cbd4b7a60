//! The schedule of a block: how its warps divide shared memory, and which labels each warp does.

use phex::infer::compiled::ForestProgram;

use super::records::in_registers;
use super::rounds::{ParentCosts, WarpRounds, share_out};
use super::shapes::BlockForm;
use super::{LANES, TILE};
use crate::memory::{TableBuilder, TableOffset};
use crate::rows::Precision;

/// The schedule of the warps of a block, for one form of blocks and one type of arithmetic.
#[derive(Debug)]
pub(super) struct WarpSchedule {
    pub(super) regions: TableOffset,
    pub(super) rounds: TableOffset,
    pub(super) starts: TableOffset,
    pub(super) awaited: TableOffset,
    pub(super) warps: usize,
    /// Lines of shared memory per block.
    pub(super) lines: usize,
    /// Numbers per lane that a warp needs in global memory, because they do not fit.
    pub(super) wide: usize,
}

/// What a schedule is made for.
pub(super) struct ScheduleInput<'a> {
    pub(super) plan: &'a ForestProgram,
    pub(super) form: BlockForm,
    pub(super) real: Precision,
    /// Numbers of a row that stay in shared memory.
    pub(super) resident: usize,
    /// The parents by height and by depth.
    pub(super) levels: [&'a [Vec<usize>]; 2],
}

/// Divides the shared memory of a block, and the parents of each level. `None` if the block's numbers do not fit.
pub(super) fn schedule(
    tables: &mut TableBuilder,
    input: &ScheduleInput<'_>,
    shared_bytes: usize,
) -> Option<WarpSchedule> {
    let (form, real) = (input.form, input.real);
    let all = (shared_bytes / form.blocks_held(real) - 2048) / (LANES * real.bytes());
    let own = (input.resident * form.rows).div_ceil(LANES);
    let simple = in_registers(input.plan, real, form.groups());
    let parents = ParentCosts { plan: input.plan, simple: &simple, groups: form.groups() };
    let rest = all.checked_sub(own)?;
    let (lines, pool) = if form.groups() > 1 {
        // A lane of a large family has at most eight counts.
        if parents.most_counts() >= 8 * form.groups() {
            return None;
        }
        let tile = tile(form, real);
        let lines = vec![tile; form.warps];
        // Tiles are transposed before and after the rounds. Labels that share rounds have their cells in the same place.
        let taken = form.warps * if parents.share_rounds() { tile } else { 0 };
        if form.warps * tile > rest || parents.most_lines() > rest - taken {
            return None;
        }
        (lines, own + taken..own + rest)
    } else {
        (regions(form, real, rest, parents.widest())?, 0..0)
    };
    let big = lines.iter().copied().max().unwrap_or(0);
    let mut next = own;
    let regions: Vec<[i32; 2]> = lines
        .iter()
        .map(|&lines| {
            next += lines;
            [(next - lines) as i32, lines as i32]
        })
        .collect();
    // What does not fit any warp's part, even eight lanes at a time, has global memory. Rounds alone fit the pool.
    let is_wide = form.groups() == 1 && parents.widest() > 4 * big;
    let wide = if is_wide { parents.widest() } else { 0 };
    let WarpRounds { starts, entries, awaited, end } =
        share_out(&parents, input.levels, &lines, pool);
    let (starts, rounds) = (tables.add(&starts), tables.add(&entries));
    let (regions, awaited) = (tables.add(&regions), tables.add(&awaited));
    let (warps, lines) = (lines.len(), next.max(end));
    Some(WarpSchedule { regions, rounds, starts, awaited, warps, lines, wide })
}

/// Lines that a tile of scores and evidence takes while a warp transposes it.
fn tile(form: BlockForm, real: Precision) -> usize {
    TILE * (form.rows + 1) / LANES + (TILE * form.rows).div_ceil(LANES * real.bytes())
}

/// The lines of shared memory of each warp, from all lines of the block. Each has at least as many as a tile takes; if that
/// does not fit, there are fewer warps.
fn regions(form: BlockForm, real: Precision, all: usize, widest: usize) -> Option<Vec<usize>> {
    let tile = tile(form, real);
    let warps = form.warps.min(all / tile);
    if warps == 0 {
        return None;
    }
    let large = &form.large[..form.large.len().min(warps - 1)];
    let even = all / warps;
    let mut lines = vec![even; warps];
    if widest <= even || large.is_empty() {
        return Some(lines);
    }
    let parts: usize = large.iter().map(|part| part * all / 1000).sum();
    lines.fill(all.saturating_sub(parts) / (warps - large.len()));
    large.iter().zip(&mut lines).for_each(|(part, lines)| *lines = part * all / 1000);
    if lines.iter().any(|&lines| lines < tile) {
        let (rest, sum) = (all.saturating_sub(warps * tile), large.iter().sum::<usize>());
        lines.fill(tile);
        large.iter().zip(&mut lines).for_each(|(part, lines)| *lines += part * rest / sum);
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::super::shapes::FORMS;
    use super::*;

    #[test]
    fn every_warp_has_room_for_a_tile() {
        for form in FORMS {
            for real in [Precision::Single, Precision::Double] {
                // From 48 KB, the least of any GPU, to more than any has.
                for shared in [49_152, 65_536, 101_376, 166_912, 232_448, 1 << 20] {
                    for widest in [1, 60, 500, 100_000] {
                        let all = (shared / form.blocks_held(real) - 2048) / (LANES * real.bytes());
                        let lines = match form.groups() {
                            1 => regions(form, real, all, widest),
                            _ => continue,
                        };
                        assert!(lines.is_some());
                        let lines = lines.unwrap_or_default();
                        let tile = tile(form, real);
                        assert!(lines.iter().all(|&lines| lines >= tile), "{form:?} {shared}");
                        assert!(lines.iter().sum::<usize>() <= all, "{form:?} {shared}");
                    }
                }
            }
        }
    }
}
