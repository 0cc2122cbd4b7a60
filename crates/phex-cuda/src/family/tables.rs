//! The records of a plan as the kernels read them.

use phex::infer::compiled::{Forest, Kind, Plan};

use super::schedule::{Form, cells, form, needs};
use crate::buffer::{Offset, Plain, Tables};

pub(super) type Parent = [i32; 16];
pub(super) type Unit = [i32; 20];
pub(super) type Step = [i32; 16];
pub(super) type Chunk = [i32; 3];

// SAFETY: arrays of integers.
unsafe impl Plain for Parent {}
// SAFETY: arrays of integers.
unsafe impl Plain for Unit {}
// SAFETY: arrays of integers.
unsafe impl Plain for Chunk {}

/// The tables of one type of arithmetic.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) values: Offset,
    pub(super) bias: Offset,
    pub(super) units: Offset,
}

/// The constants in one type of arithmetic; none when edges are so strong, and not hard, that it does not hold
/// their weights.
pub(super) fn weights<T: Plain>(
    tables: &mut Tables,
    forest: &Forest<'_>,
    limit: f64,
    round: impl Fn(f64) -> T,
) -> Option<Weights> {
    let plan = forest.plan;
    let too_small = |weight: f64| weight.is_finite() && weight < -limit;
    if plan.steps.iter().any(|step| too_small(plan.log_weights[step.fall])) {
        return None;
    }
    let value = |&log: &f64| if log.is_finite() { log.max(-limit).exp() } else { log.exp() };
    let values: Vec<T> = plan.log_weights.iter().map(|log| round(value(log))).collect();
    let bias: Vec<T> = forest.bias.iter().map(|&bias| round(bias)).collect();
    let first = |from: usize, width: usize| {
        let found = plan.log_weights[from..=from + width].iter().position(|&log| too_small(log));
        found.map_or(i32::MAX, |at| at as i32)
    };
    let unit = |unit: &phex::infer::compiled::Unit| -> Unit {
        let int = |value: usize| value as i32;
        // The m-th child to turn on pays q^(m − 1).
        let turned = first(unit.turns, unit.width).saturating_add(1);
        [
            int(unit.steps.start),
            int(unit.steps.end),
            i32::from(unit.shared),
            int(unit.width),
            int(unit.most_layers),
            int(unit.layers),
            int(unit.total),
            int(unit.product),
            int(unit.product_layers),
            int(unit.moves.start),
            int(unit.moves.end),
            int(unit.turns),
            int(unit.falls),
            turned,
            first(unit.falls, unit.width),
            int(cells(plan, unit)),
            int(needs(plan, unit)),
            form(plan, unit) as i32,
            int(plan.nodes[plan.steps[unit.steps.start].node].message),
            0,
        ]
    };
    let units: Vec<Unit> = plan.units.iter().map(unit).collect();
    Some(Weights {
        values: tables.add(&values),
        bias: tables.add(&bias),
        units: tables.add(&units),
    })
}

pub(super) fn parent(plan: &Plan, at: usize) -> Parent {
    let node = &plan.nodes[at];
    let int = |value: usize| value as i32;
    let unit = &plan.units[node.units.start];
    let first = plan.nodes[plan.steps[unit.steps.start].node].message;
    [
        node.label.map_or(-1, int),
        int(node.message),
        int(node.outside),
        int(node.weight),
        int(node.layers),
        int(node.units.start),
        int(node.units.end),
        int(node.own.start),
        int(node.own.end),
        i32::from(node.same_layers),
        simple(plan, node),
        int(unit.steps.len()),
        int(unit.steps.start),
        int(first),
        int(unit.turns),
        int(unit.falls),
    ]
}

/// The most children of a label that is done in registers, with one layer and with two.
const SIMPLE: [usize; 2] = [8, 6];

/// How many layers a label has whose children are one set that is done in registers; else 0.
pub(super) fn simple(plan: &Plan, node: &phex::infer::compiled::Node) -> i32 {
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
        (1, Form::Plain) => 1,
        (2, Form::Dual) => 2,
        _ => 0,
    }
}

pub(super) fn steps<'a>(
    plan: &'a Plan,
    unit: &'a phex::infer::compiled::Unit,
) -> impl Iterator<Item = Step> + 'a {
    let int = |value: usize| value as i32;
    plan.steps[unit.steps.clone()].iter().map(move |step| {
        let node = &plan.nodes[step.node];
        let kind = match step.kind {
            Kind::Plain => 0,
            Kind::Dual => 1,
            Kind::General => 2,
        };
        [
            node.label.map_or(-1, int),
            int(node.message),
            if node.units.is_empty() { -1 } else { int(node.outside) },
            int(node.layers),
            int(step.input - unit.cells),
            int(step.input_width),
            int(step.input_layers),
            int(step.output - unit.cells),
            int(step.width),
            int(step.layers),
            kind,
            int(step.moves.start),
            int(step.moves.end),
            int(step.fall),
            0,
            0,
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::forest;
    use super::*;

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
                assert_eq!(simple(plan, node), if family { layers } else { 0 }, "{size} children");
            }
        }
    }
}
