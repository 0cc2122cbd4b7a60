//! How the kernel does the units of a plan, and what memory they need.

use phex::infer::compiled::{Kind, Plan, Step, Unit};

use super::tables::NARROW;

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

/// Whether a unit's counts go across lanes where a block has few rows: the same families whatever the rows, so that sums have
/// one order.
pub(super) fn is_large(plan: &Plan, unit: &Unit) -> bool {
    match form(plan, unit) {
        Form::General => false,
        Form::Plain => unit.steps.len() > NARROW[0],
        Form::Dual => unit.steps.len() > NARROW[1],
    }
}

/// Numbers a row that such a unit needs, as the kernel lays them out: cells by fours, and scales.
pub(super) fn needs_of_large(unit: &Unit) -> usize {
    let size = unit.steps.len();
    let fours: usize = (0..size).map(|child| child / 4 + 1).sum();
    4 * fours * unit.most_layers + size
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
