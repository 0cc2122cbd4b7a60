//! Which warp of a block does which labels, and how much shared memory each has.
//!
//! Levels are done one after another with a barrier between them, so the parents of a level are shared out such that the
//! warps end together; large families go to the warps that have more shared memory.

use std::collections::HashMap;

use phex::infer::compiled::{Kind, Plan, Step, Unit};

use super::LANES;
use crate::buffer::{Offset, Tables};
use crate::rows::Precision;

/// The schedule of a shape in one type of arithmetic.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) regions: Offset,
    pub(super) up: [Offset; 2],
    pub(super) down: [Offset; 2],
    /// Lines of shared memory a block.
    pub(super) lines: usize,
    /// Numbers of a warp that do not fit: of each lane.
    pub(super) wide: usize,
}

/// Shares out the shared memory of a block and the parents of each level.
pub(super) fn schedule(
    tables: &mut Tables,
    plan: &Plan,
    (warps, resident, large): (usize, usize, &[usize]),
    real: Precision,
    shared_bytes: usize,
    levels: [&Vec<Vec<usize>>; 2],
) -> Schedule {
    // In doubles a multiprocessor holds half the blocks: a line is twice as long.
    let resident = if real == Precision::Double { resident.div_ceil(2) } else { resident };
    let all = (shared_bytes / resident - 2048) / (LANES * real.bytes());
    let widest = plan.units.iter().map(|unit| needs(plan, unit)).max().unwrap_or(0);
    let even = all / warps;
    let mut lines = vec![even; warps];
    if widest > even {
        let parts: usize = large.iter().map(|part| part * all / 1000).sum();
        lines.fill((all - parts) / (warps - large.len()));
        large.iter().zip(&mut lines).for_each(|(part, lines)| *lines = part * all / 1000);
    }
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
        let (starts, order) = share_out(plan, levels, &lines);
        [tables.add(&starts), tables.add(&order)]
    });
    Schedule { regions: tables.add(&regions), up, down, lines: next, wide }
}

/// Far more than any family costs.
const NEVER: usize = 1 << 24;

/// The parents of each level and warp: the dearest first, each to the warp that is done with it first.
pub(super) fn share_out(
    plan: &Plan,
    levels: &[Vec<usize>],
    lines: &[usize],
) -> (Vec<i32>, Vec<i32>) {
    let most = lines.iter().copied().max().unwrap_or(0);
    let cost = |place: usize, lines: usize| {
        let units = &plan.units[plan.nodes[plan.parents[place]].units.clone()];
        let cost = |unit: &Unit| {
            let needs = needs(plan, unit);
            // Eight lanes at a time take four rounds; memory beyond shared memory is far slower.
            let rounds = match needs {
                _ if needs <= lines => 1,
                _ if needs <= 4 * lines => 4,
                _ if needs > 4 * most => 40,
                // It fits another warp's part: only what fits none has memory elsewhere.
                _ => NEVER,
            };
            rounds * (60 + 40 * unit.steps.len() + 8 * cells(plan, unit))
        };
        units.iter().map(cost).sum::<usize>()
    };
    let (mut starts, mut all) = (vec![0i32], Vec::new());
    for level in levels {
        let mut level = level.clone();
        level.sort_by_key(|&place| std::cmp::Reverse(cost(place, usize::MAX / 8)));
        let mut load = vec![0usize; lines.len()];
        let mut shares: Vec<Vec<i32>> = vec![Vec::new(); lines.len()];
        for place in level {
            let end = |&warp: &usize| load[warp] + cost(place, lines[warp]);
            let Some(warp) = (0..lines.len()).min_by_key(end) else { continue };
            load[warp] = end(&warp);
            shares[warp].push(place as i32);
        }
        for share in shares {
            all.extend(share);
            starts.push(all.len() as i32);
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
            let (starts, order) = share_out(forest.plan, levels, &[500, 50, 50, 50]);
            assert_eq!(starts.len(), 4 * levels.len() + 1);
            let mut all = order.clone();
            all.sort_unstable();
            assert_eq!(all, (0..forest.plan.parents.len() as i32).collect::<Vec<_>>());
        }
    }
}
