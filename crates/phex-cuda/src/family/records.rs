//! The records of a plan in the layout of the structures in `family/model.cu`.

use phex::infer::compiled::{ForestNode, ForestProgram, JoinStep, SiblingUnit, StepKind};

use super::units::{UnitForm, form};
use crate::memory::Plain;
use crate::rows::Precision;

/// A label with children, or the virtual root.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ParentRecord {
    /// −1 for the virtual root.
    label: i32,
    message: i32,
    weight: i32,
    layers: i32,
    units: [i32; 2],
    own: [i32; 2],
    same_layers: i32,
    unused: i32,
    /// 0, or how many layers it has if its children are one set that is done in registers.
    simple: i32,
    /// The children of its first unit, and the first of them.
    size: i32,
    children: i32,
    first_message: i32,
    turns: i32,
    falls: i32,
}

/// A counted set of children.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct UnitRecord {
    pub(super) steps: [i32; 2],
    pub(super) shared: i32,
    pub(super) width: i32,
    pub(super) most_layers: i32,
    pub(super) layers: i32,
    pub(super) total: i32,
    pub(super) product: i32,
    pub(super) product_layers: i32,
    pub(super) moves: [i32; 2],
    pub(super) turns: i32,
    pub(super) falls: i32,
    /// The first counts whose weights were cut off.
    pub(super) clamped_turn: i32,
    pub(super) clamped_fall: i32,
    pub(super) cells: i32,
    /// Numbers per lane of a warp's own memory.
    pub(super) needs: i32,
    /// A [`UnitForm`].
    pub(super) form: i32,
    pub(super) first_message: i32,
    /// Where the two scales of its product are.
    pub(super) scales: i32,
    /// Whether its counts are spread over lanes if it has a round alone.
    pub(super) large: i32,
    pub(super) unused: [i32; 3],
}

/// A child joins its unit. Cells are counted from the first of the unit.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct StepRecord {
    /// Where the child's marginal goes. Its weights lie there if it has children.
    value: i32,
    message: i32,
    /// Whether the child has children.
    parent: i32,
    child_layers: i32,
    input: i32,
    input_width: i32,
    input_layers: i32,
    output: i32,
    width: i32,
    layers: i32,
    kind: i32,
    moves: [i32; 2],
    fall: i32,
    /// Whether the child has folded leaves, which have no steps.
    folded: i32,
    unused: i32,
}

// SAFETY: structures of integers without padding.
unsafe impl Plain for ParentRecord {}
// SAFETY: as above.
unsafe impl Plain for UnitRecord {}
// SAFETY: as above.
unsafe impl Plain for StepRecord {}

fn int(value: usize) -> i32 {
    value as i32
}

fn ends(range: &std::ops::Range<usize>) -> [i32; 2] {
    [int(range.start), int(range.end)]
}

pub(super) fn parent(plan: &ForestProgram, at: usize) -> ParentRecord {
    let node = &plan.nodes[at];
    let unit = &plan.units[node.units.start];
    ParentRecord {
        label: node.label.map_or(-1, int),
        message: int(node.message),
        weight: int(node.weight),
        layers: int(node.layers),
        units: ends(&node.units),
        own: ends(&node.own),
        same_layers: i32::from(node.same_layers),
        unused: 0,
        simple: simple_layers(plan, node),
        size: int(unit.steps.len()),
        children: int(unit.steps.start),
        first_message: int(first_message(plan, unit)),
        turns: int(unit.turns),
        falls: int(unit.falls),
    }
}

/// Where the messages of a unit's first child are.
pub(super) fn first_message(plan: &ForestProgram, unit: &SiblingUnit) -> usize {
    plan.nodes[plan.steps[unit.steps.start].node].message
}

/// The most children of a label that is done in registers, with one layer and with two.
const SIMPLE: [usize; 2] = [8, 6];
/// The same where the lanes of a warp have several labels: larger families are spread over lanes.
pub(super) const NARROW: [usize; 2] = [6, 4];

/// The most children of a label that is done in registers, with one layer and with two, where a warp has `groups` labels at
/// a time.
pub(super) fn most_in_registers(groups: usize) -> [usize; 2] {
    if groups > 1 { NARROW } else { SIMPLE }
}

/// Which parents are done in registers where a warp has `groups` labels at a time. In doubles none is: there are too few
/// registers for their cells.
pub(super) fn in_registers(plan: &ForestProgram, real: Precision, groups: usize) -> Vec<bool> {
    let is_simple = |&at: &usize| {
        let node = &plan.nodes[at];
        let size = plan.units[node.units.start].steps.len();
        let most = most_in_registers(groups)[usize::from(node.layers > 1)];
        simple_layers(plan, node) > 0 && size <= most
    };
    plan.parents.iter().map(|at| real == Precision::Single && is_simple(at)).collect()
}

/// How many layers a label has if its children are one set that is done in registers; otherwise 0.
pub(super) fn simple_layers(plan: &ForestProgram, node: &ForestNode) -> i32 {
    let unit = &plan.units[node.units.start];
    let in_range = |from: usize| {
        let weights = &plan.log_weights[from..=from + unit.width];
        weights.iter().all(|&log| !log.is_finite() || log >= -80.0)
    };
    let fits = node.label.is_some() && node.units.len() == 1 && node.same_layers && unit.shared;
    if !fits
        || unit.steps.len() > SIMPLE[usize::from(node.layers > 1)]
        || !in_range(unit.turns)
        || !in_range(unit.falls)
    {
        return 0;
    }
    match (node.layers, form(plan, unit)) {
        (1, UnitForm::Plain) => 1,
        (2, UnitForm::Dual) => 2,
        _ => 0,
    }
}

/// Where the marginal of a label goes: in the place of its weight off, which for a leaf is its first message.
pub(super) fn value_place(node: &ForestNode) -> usize {
    if node.units.is_empty() { node.message } else { node.weight }
}

/// In a child's entry: its messages have two layers.
const OPEN: usize = 1 << 30;

/// In place of a child's weights: it has none, because it is a leaf, or a parent that was folded.
const LEAF: i32 = -1;
const FOLDED: i32 = -2;

/// The child of a step, as units of one stream read it: its messages and its weights.
pub(super) fn child(plan: &ForestProgram, is_folded: &[bool], step: &JoinStep) -> [i32; 2] {
    let node = &plan.nodes[step.node];
    let layers = if node.layers == 2 { OPEN } else { 0 };
    let weight = match node.units.is_empty() {
        _ if is_folded[step.node] => FOLDED,
        true => LEAF,
        false => int(node.weight),
    };
    [int(node.message | layers), weight]
}

pub(super) fn steps<'a>(
    plan: &'a ForestProgram,
    is_folded: &'a [bool],
    unit: &'a SiblingUnit,
) -> impl Iterator<Item = StepRecord> + 'a {
    plan.steps[unit.steps.clone()].iter().map(move |step| {
        let node = &plan.nodes[step.node];
        StepRecord {
            value: int(value_place(node)),
            message: int(node.message),
            parent: i32::from(!node.units.is_empty()),
            child_layers: int(node.layers),
            input: int(step.input - unit.cells),
            input_width: int(step.input_width),
            input_layers: int(step.input_layers),
            output: int(step.output - unit.cells),
            width: int(step.width),
            layers: int(step.layers),
            kind: match step.kind {
                StepKind::Plain => 0,
                StepKind::Dual => 1,
                StepKind::General => 2,
            },
            moves: ends(&step.moves),
            fall: int(step.fall),
            folded: i32::from(is_folded[step.node]),
            unused: 0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::forest;
    use super::*;

    #[test]
    fn records_have_the_sizes_of_the_kernels() {
        let sizes = [size_of::<ParentRecord>(), size_of::<UnitRecord>(), size_of::<StepRecord>()];
        assert_eq!(sizes, [64, 96, 64]);
    }

    #[test]
    fn small_families_are_done_in_registers() {
        for (one_of, most) in [(false, 8), (true, 6)] {
            let engine = forest(one_of);
            let phex::infer::compiled::Compiled::Family(forest) = engine.compiled() else {
                panic!("a forest")
            };
            let plan = forest.plan;
            for &at in &plan.parents {
                let node = &plan.nodes[at];
                let size = plan.units[node.units.start].steps.len();
                let family = node.label.is_some() && node.units.len() == 1 && size <= most;
                let layers = if one_of { 2 } else { 1 };
                let expected = if family { layers } else { 0 };
                assert_eq!(simple_layers(plan, node), expected, "{size} children");
            }
        }
    }
}
