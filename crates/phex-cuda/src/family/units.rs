//! How the kernel computes the units of a plan, and how much memory they need.

use phex::infer::compiled::{ForestProgram, JoinStep, SiblingUnit, StepKind};

use super::records::NARROW;

/// How the cells of a unit are computed. The numbers are those of `model.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitForm {
    /// By the list of steps.
    General,
    /// One stream, no layers.
    Plain,
    /// One stream, with the layers of one open group, which multiply like dual numbers; no group is completed.
    Dual,
}

/// The form of a unit.
pub(super) fn form(plan: &ForestProgram, unit: &SiblingUnit) -> UnitForm {
    let layers_of = |step: &JoinStep| plan.nodes[step.node].layers;
    let plain =
        |step: &JoinStep| step.kind == StepKind::Plain && step.width == step.input_width + 1;
    let dual = |step: &JoinStep| {
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
        true if steps.iter().all(plain) => UnitForm::Plain,
        true if unit.layers == 2 && steps.iter().all(dual) => UnitForm::Dual,
        _ => UnitForm::General,
    }
}

/// Whether a unit's counts are spread over lanes where a block has few rows. That does not depend on the rows, so that sums
/// always have the same order.
pub(super) fn is_large(plan: &ForestProgram, unit: &SiblingUnit) -> bool {
    match form(plan, unit) {
        UnitForm::General => false,
        UnitForm::Plain => unit.steps.len() > NARROW[0],
        UnitForm::Dual => unit.steps.len() > NARROW[1],
    }
}

/// Numbers per row that such a unit needs: cells in fours, and scales.
pub(super) fn needs_of_large(unit: &SiblingUnit) -> usize {
    let size = unit.steps.len();
    let fours: usize = (0..size).map(|child| child / 4 + 1).sum();
    4 * fours * unit.most_layers + size
}

/// The number of cells of a unit.
pub(super) fn cells(plan: &ForestProgram, unit: &SiblingUnit) -> usize {
    if form(plan, unit) == UnitForm::Dual {
        return (unit.steps.len() + 1) * (unit.steps.len() + 2);
    }
    let streams = if unit.shared { 1 } else { 2 };
    let last = &plan.steps[unit.steps.end - 1];
    last.output + streams * last.layers * last.width - unit.cells
}

/// Numbers per lane that a unit needs in a warp's own memory: cells, scales, backward cells, and a second set of these if
/// children join by the list of moves.
pub(super) fn needs(plan: &ForestProgram, unit: &SiblingUnit) -> usize {
    let twice = usize::from(form(plan, unit) == UnitForm::General);
    let sets = (1 + usize::from(!unit.shared)) * (1 + twice);
    cells(plan, unit) + unit.steps.len() + sets * unit.most_layers * unit.width
}
