//! Which warp of a block does which labels, and how much shared memory each has.
//!
//! Levels are done one after another with a barrier between them, so the parents of a level are shared out such that the
//! warps end together; large families go to the warps that have more shared memory. Where a block has few rows, the lanes
//! of a warp have several parents at a time, a round: those next to each other in size, so that they take the same steps.

use std::collections::HashMap;

use phex::infer::compiled::{Kind, Plan, Step, Unit};

use super::shapes::Form as BlockForm;
use super::{LANES, TILE};
use crate::buffer::{Offset, Tables};
use crate::rows::Precision;

/// The schedule of a shape in one type of arithmetic.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) regions: Offset,
    pub(super) up: [Offset; 2],
    pub(super) down: [Offset; 2],
    pub(super) warps: usize,
    /// Lines of shared memory a block.
    pub(super) lines: usize,
    /// Numbers of a warp that do not fit: of each lane.
    pub(super) wide: usize,
}

/// Shares out the shared memory of a block and the parents of each level.
pub(super) fn schedule(
    tables: &mut Tables,
    plan: &Plan,
    form: BlockForm,
    real: Precision,
    shared_bytes: usize,
    levels: [&Vec<Vec<usize>>; 2],
) -> Schedule {
    let all = (shared_bytes / form.resident(real) - 2048) / (LANES * real.bytes());
    let widest = plan.units.iter().map(|unit| needs(plan, unit)).max().unwrap_or(0);
    let lines = regions(form, real, all, widest);
    let big = lines.iter().copied().max().unwrap_or(0);
    let mut next = 0;
    let regions: Vec<[i32; 2]> = lines
        .iter()
        .map(|&lines| {
            next += lines;
            [(next - lines) as i32, lines as i32]
        })
        .collect();
    let wide = if widest > 4 * big { widest } else { 0 };
    let [up, down] = levels.map(|levels| {
        let (starts, order) = share_out(plan, levels, &lines, LANES / form.rows);
        [tables.add(&starts), tables.add(&order)]
    });
    Schedule { regions: tables.add(&regions), up, down, warps: lines.len(), lines: next, wide }
}

/// Lines of shared memory of each warp, of so many of the block. None has fewer than a tile of scores and evidence takes,
/// which warps turn at the same time; where they would not fit, there are fewer warps.
fn regions(form: BlockForm, real: Precision, all: usize, widest: usize) -> Vec<usize> {
    let tile = TILE + 1 + (TILE / real.bytes()).max(1);
    let warps = form.warps.min(all / tile).max(1);
    let large = &form.large[..form.large.len().min(warps - 1)];
    let even = all / warps;
    let mut lines = vec![even; warps];
    if widest <= even || large.is_empty() {
        return lines;
    }
    let parts: usize = large.iter().map(|part| part * all / 1000).sum();
    lines.fill(all.saturating_sub(parts) / (warps - large.len()));
    large.iter().zip(&mut lines).for_each(|(part, lines)| *lines = part * all / 1000);
    if lines.iter().any(|&lines| lines < tile) {
        let (rest, sum) = (all.saturating_sub(warps * tile), large.iter().sum::<usize>());
        lines.fill(tile);
        large.iter().zip(&mut lines).for_each(|(part, lines)| *lines += part * rest / sum);
    }
    lines
}

/// Far more than any family costs.
const NEVER: usize = 1 << 24;

/// In a round's entries: no parent.
const NONE: usize = (1 << 28) - 1;

/// Where the cells of a round lie, as the kernel has it: in shared memory, there eight lanes at a time, or in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Near = 0,
    ByEight = 1,
    Far = 2,
}

/// The mode of a round that needs so many numbers a lane on a warp with so many lines; none where it fits another warp's
/// part: only what fits none has memory elsewhere.
fn mode(needs: usize, lines: usize, most: usize) -> Option<Mode> {
    match needs {
        _ if needs <= lines => Some(Mode::Near),
        _ if needs <= 4 * lines => Some(Mode::ByEight),
        _ if needs > 4 * most => Some(Mode::Far),
        _ => None,
    }
}

/// The rounds of each level and warp, `groups` parents each: the dearest first, each to the warp that is done with it
/// first.
pub(super) fn share_out(
    plan: &Plan,
    levels: &[Vec<usize>],
    lines: &[usize],
    groups: usize,
) -> (Vec<i32>, Vec<i32>) {
    let most = lines.iter().copied().max().unwrap_or(0);
    let units = |place: usize| &plan.units[plan.nodes[plan.parents[place]].units.clone()];
    let work = |unit: &Unit| 60 + 40 * unit.steps.len() + 8 * cells(plan, unit);
    let alone = |place: usize| units(place).iter().map(work).sum::<usize>();
    // With one parent a round each unit has its own mode, with several the round has one.
    let unit_cost = |unit: &Unit, needs: usize, lines: usize| {
        let rounds = match mode(needs, lines, most) {
            Some(Mode::Near) => 1,
            // Eight lanes at a time take four rounds; memory beyond shared memory is far slower.
            Some(Mode::ByEight) => 4,
            Some(Mode::Far) => 40,
            None => NEVER,
        };
        rounds * work(unit)
    };
    let needed = |place: usize| units(place).iter().map(|unit| needs(plan, unit)).max();
    let cost = |round: &[usize], lines: usize| match *round {
        [place] if groups == 1 => {
            let all = units(place).iter();
            all.map(|unit| unit_cost(unit, needs(plan, unit), lines)).sum::<usize>()
        }
        _ => {
            let needs = round.iter().filter_map(|&place| needed(place)).max().unwrap_or(0);
            let all = round.iter().map(|&place| {
                units(place).iter().map(|unit| unit_cost(unit, needs, lines)).sum::<usize>()
            });
            all.max().unwrap_or(0)
        }
    };
    let (mut starts, mut all) = (vec![0i32], Vec::new());
    for level in levels {
        let mut level = level.clone();
        level.sort_by_key(|&place| std::cmp::Reverse(alone(place)));
        let mut load = vec![0usize; lines.len()];
        let mut shares: Vec<Vec<i32>> = vec![Vec::new(); lines.len()];
        for round in level.chunks(groups) {
            let end = |&warp: &usize| load[warp] + cost(round, lines[warp]);
            let Some(warp) = (0..lines.len()).min_by_key(end) else { continue };
            load[warp] = end(&warp);
            let needs = round.iter().filter_map(|&place| needed(place)).max().unwrap_or(0);
            let mode = if groups == 1 { Some(Mode::Near) } else { mode(needs, lines[warp], most) };
            let above = (mode.unwrap_or(Mode::Far) as i32) << 28;
            let entry = |at: usize| above | round.get(at).copied().unwrap_or(NONE) as i32;
            shares[warp].extend((0..groups).map(entry));
        }
        for share in shares {
            all.extend(share);
            starts.push((all.len() / groups) as i32);
        }
    }
    (starts, all)
}

/// The parents by height and by depth, as places among the parents.
pub(super) fn levels(plan: &Plan) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut height = vec![0usize; plan.nodes.len()];
    let mut depth = height.clone();
    let place: HashMap<usize, usize> =
        plan.parents.iter().enumerate().map(|(place, &node)| (node, place)).collect();
    let children = |node: usize| {
        let units = &plan.units[plan.nodes[node].units.clone()];
        units.iter().flat_map(|unit| &plan.steps[unit.steps.clone()]).map(|step| step.node)
    };
    for &node in &plan.parents {
        height[node] = children(node).map(|child| height[child] + 1).max().unwrap_or(0);
    }
    for &node in plan.parents.iter().rev() {
        children(node).for_each(|child| depth[child] = depth[node] + 1);
    }
    let by = |level: &[usize]| {
        let mut all: Vec<Vec<usize>> = Vec::new();
        for &node in &plan.parents {
            all.resize_with(all.len().max(level[node] + 1), Vec::new);
            all[level[node]].push(place[&node]);
        }
        all.retain(|some| !some.is_empty());
        all
    };
    (by(&height), by(&depth))
}

/// How a unit's cells are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// By the list of steps.
    General,
    /// One stream, no layers.
    Plain,
    /// One stream, layers of one open group that multiply like dual numbers; none is completed.
    Dual,
}

/// The form of a unit.
pub(super) fn form(plan: &Plan, unit: &Unit) -> Form {
    let layers_of = |step: &Step| plan.nodes[step.node].layers;
    let plain = |step: &Step| step.kind == Kind::Plain && step.width == step.input_width + 1;
    let dual = |step: &Step| {
        let moves = match (step.input_layers, layers_of(step)) {
            (1, 1) => 1,
            (1, 2) | (2, 1) => 2,
            (2, 2) => 3,
            _ => return false,
        };
        step.layers == step.input_layers.max(layers_of(step))
            && step.moves.len() == moves
            && step.width == step.input_width + 1
    };
    let steps = &plan.steps[unit.steps.clone()];
    match unit.shared {
        true if steps.iter().all(plain) => Form::Plain,
        true if unit.layers == 2 && steps.iter().all(dual) => Form::Dual,
        _ => Form::General,
    }
}

/// How many cells a unit fills.
pub(super) fn cells(plan: &Plan, unit: &Unit) -> usize {
    if form(plan, unit) == Form::Dual {
        return (unit.steps.len() + 1) * (unit.steps.len() + 2);
    }
    let streams = if unit.shared { 1 } else { 2 };
    let last = &plan.steps[unit.steps.end - 1];
    last.output + streams * last.layers * last.width - unit.cells
}

/// Numbers a lane that a unit needs of a warp's own memory: cells, scales, backward cells, and a second set of these where
/// children join by the list of moves.
pub(super) fn needs(plan: &Plan, unit: &Unit) -> usize {
    let twice = usize::from(form(plan, unit) == Form::General);
    let sets = (1 + usize::from(!unit.shared)) * (1 + twice);
    cells(plan, unit) + unit.steps.len() + sets * unit.most_layers * unit.width
}

#[cfg(test)]
mod tests {
    use super::super::shapes::FORMS;
    use super::super::tests::forest;
    use super::*;

    #[test]
    fn every_parent_of_every_level_has_one_warp() {
        let engine = forest(false);
        let phex::infer::compiled::Compiled::Family(forest) = engine.compiled() else {
            panic!("a forest")
        };
        let (up, down) = levels(forest.plan);
        for levels in [&up, &down] {
            for groups in [1, 4, 16] {
                let (starts, order) = share_out(forest.plan, levels, &[500, 50, 50, 50], groups);
                assert_eq!(starts.len(), 4 * levels.len() + 1);
                assert_eq!(*starts.last().unwrap() as usize * groups, order.len());
                let parents = order.iter().map(|&entry| entry as usize & NONE);
                let mut all: Vec<usize> = parents.filter(|&place| place != NONE).collect();
                all.sort_unstable();
                assert_eq!(all, (0..forest.plan.parents.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_warp_has_room_for_a_tile() {
        for form in FORMS {
            for (real, tile) in [(Precision::Single, 41), (Precision::Double, 37)] {
                // From 48 KB, the least that a GPU has, to more than any.
                for shared in [49_152, 65_536, 101_376, 166_912, 232_448, 1 << 20] {
                    for widest in [1, 60, 500, 100_000] {
                        let all = (shared / form.resident(real) - 2048) / (LANES * real.bytes());
                        let lines = regions(form, real, all, widest);
                        assert!(lines.iter().all(|&lines| lines >= tile), "{form:?} {shared}");
                        assert!(lines.iter().sum::<usize>() <= all, "{form:?} {shared}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_round_has_one_mode_that_all_its_parents_fit() {
        let engine = forest(false);
        let phex::infer::compiled::Compiled::Family(forest) = engine.compiled() else {
            panic!("a forest")
        };
        let (plan, lines) = (forest.plan, [60, 20, 20, 20]);
        let (starts, order) = share_out(plan, &levels(plan).0, &lines, 8);
        for (at, span) in starts.windows(2).enumerate() {
            for round in order[8 * span[0] as usize..8 * span[1] as usize].chunks(8) {
                let room = lines[at % 4] * [1, 4, usize::MAX / 500][(round[0] >> 28) as usize];
                for &entry in round {
                    assert_eq!(entry >> 28, round[0] >> 28);
                    if entry as usize & NONE == NONE {
                        continue;
                    }
                    let node = &plan.nodes[plan.parents[entry as usize & NONE]];
                    let units = &plan.units[node.units.clone()];
                    assert!(units.iter().all(|unit| needs(plan, unit) <= room));
                }
            }
        }
    }
}
