//! The records of a plan as the kernels read them.

use phex::infer::compiled::{Kind, Plan};

use super::fold::Folded;
use super::units::{Form, cells, form, is_large, needs};
use crate::buffer::{Offset, Plain, Tables};
use crate::rows::Precision;

pub(super) type Parent = [i32; 16];
pub(super) type Unit = [i32; 24];
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
    /// How many totals and scales of products are kept.
    pub(super) totals: usize,
    pub(super) scales: usize,
}

/// The most children of a label that is done in registers, with one layer and with two, where a warp has so many labels at
/// a time.
pub(super) fn most_in_registers(groups: usize) -> [usize; 2] {
    if groups > 1 { NARROW } else { SIMPLE }
}

/// Which parents are done in registers, where a warp has so many labels at a time: none in doubles, for whose cells there
/// are too few.
pub(super) fn in_registers(plan: &Plan, real: Precision, groups: usize) -> Vec<bool> {
    let is_simple = |&at: &usize| {
        let node = &plan.nodes[at];
        let size = plan.units[node.units.start].steps.len();
        simple(plan, node) > 0 && size <= most_in_registers(groups)[usize::from(node.layers > 1)]
    };
    plan.parents.iter().map(|at| real == Precision::Single && is_simple(at)).collect()
}

/// Where totals and scales of products lie: only labels that are not always done in registers have some.
struct Kept {
    /// By place in the plan.
    totals: Vec<usize>,
    total_count: usize,
    /// By unit.
    scales: Vec<usize>,
    scale_count: usize,
}

fn kept(plan: &Plan, real: Precision) -> Kept {
    let (mut used, mut scales, mut scale_count) =
        (vec![false; plan.totals], vec![0; plan.units.len()], 0);
    for (&at, simple) in plan.parents.iter().zip(in_registers(plan, real, 2)) {
        if simple {
            continue;
        }
        let units = plan.nodes[at].units.clone();
        for index in units.clone() {
            let unit = &plan.units[index];
            used[unit.total..unit.total + 2 * unit.layers].fill(true);
            used[unit.product..unit.product + 2 * unit.product_layers].fill(true);
            scales[index] = scale_count;
            scale_count += if index > units.start { 2 } else { 0 };
        }
    }
    let mut total_count = 0;
    let place = |used: &bool| {
        total_count += usize::from(*used);
        total_count - usize::from(*used)
    };
    let totals = used.iter().map(place).collect();
    Kept { totals, total_count, scales, scale_count }
}

/// The constants in one type of arithmetic; none when edges are so strong, and not hard, that it does not hold
/// their weights.
pub(super) fn weights<T: Plain>(
    tables: &mut Tables,
    (plan, bias): (&Plan, &[f64]),
    real: Precision,
    round: impl Fn(f64) -> T,
) -> Option<Weights> {
    let limit = if real == Precision::Double { 600.0 } else { 80.0 };
    let kept = kept(plan, real);
    let too_small = |weight: f64| weight.is_finite() && weight < -limit;
    if plan.steps.iter().any(|step| too_small(plan.log_weights[step.fall])) {
        return None;
    }
    let value = |&log: &f64| if log.is_finite() { log.max(-limit).exp() } else { log.exp() };
    let values: Vec<T> = plan.log_weights.iter().map(|log| round(value(log))).collect();
    let bias: Vec<T> = bias.iter().map(|&bias| round(bias)).collect();
    let first = |from: usize, width: usize| {
        let found = plan.log_weights[from..=from + width].iter().position(|&log| too_small(log));
        found.map_or(i32::MAX, |at| at as i32)
    };
    let unit = |(index, unit): (usize, &phex::infer::compiled::Unit)| -> Unit {
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
            int(kept.totals[unit.total]),
            int(kept.totals[unit.product]),
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
            int(kept.scales[index]),
            i32::from(is_large(plan, unit)),
            0,
            0,
            0,
        ]
    };
    let units: Vec<Unit> = plan.units.iter().enumerate().map(unit).collect();
    Some(Weights {
        values: tables.add(&values),
        bias: tables.add(&bias),
        units: tables.add(&units),
        totals: kept.total_count,
        scales: kept.scale_count,
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
        int(node.weight),
        int(node.layers),
        int(node.units.start),
        int(node.units.end),
        int(node.own.start),
        int(node.own.end),
        i32::from(node.same_layers),
        0,
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
/// The same where the lanes of a warp have several labels: more goes by counts across lanes.
pub(super) const NARROW: [usize; 2] = [6, 4];

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

/// Where the marginal of a label goes: in the place of its weight off, which for a leaf is its first message.
fn value_place(node: &phex::infer::compiled::Node) -> usize {
    if node.units.is_empty() { node.message } else { node.weight }
}

/// In a label's first slot: no group lets it be off.
const NEVER_OFF: usize = 1 << 30;

/// In a label's first slot, which is then where the messages are of the set that it is in: a leaf of a folded set.
const MEMBER: usize = 1 << 29;

/// Where the numbers of labels lie.
pub(super) struct Places {
    /// The weights of each label off and on. The marginal will take the place of the first; of a member that of the second.
    pub(super) slots: Vec<[i32; 2]>,
    /// How many numbers a row has with those places.
    pub(super) messages: usize,
    /// Of each set: its messages, the weight of the edge below a parent that is off or -1, and its members from and to.
    pub(super) sets: Vec<[i32; 4]>,
    /// Where the weights on of members are.
    pub(super) members: Vec<i32>,
}

/// A state that no group allows has no place in the plan. The marginal will take that of the weight off, so it has one all the
/// same, which must be 0; and a label of a group is weighed in that of the weight on, so it has one of its own.
pub(super) fn places(folded: &Folded) -> Places {
    let plan = &folded.plan;
    let (mut slots, mut messages) = (vec![[0; 2]; plan.slots.len()], plan.messages);
    let mut is_member = vec![false; plan.slots.len()];
    let (mut sets, mut members) = (Vec::new(), Vec::new());
    for set in &folded.sets {
        let (message, from) = (plan.nodes[set.node].message, members.len() as i32);
        for &label in &set.labels {
            is_member[label] = true;
            slots[label] = [(message | MEMBER) as i32, messages as i32];
            members.push(messages as i32);
            messages += 1;
        }
        let fall = set.fall.map_or(-1, |fall| fall as i32);
        sets.push([message as i32, fall, from, members.len() as i32]);
    }
    for node in &plan.nodes {
        let Some(label) = node.label.filter(|&label| !is_member[label]) else { continue };
        let [off, mut on] = plan.slots[label];
        if on == 0 {
            on = messages;
            messages += 1;
        }
        let flag = if off == 0 { NEVER_OFF } else { 0 };
        slots[label] = [(value_place(node) | flag) as i32, on as i32];
    }
    Places { slots, messages, sets, members }
}

/// In a child's entry: its messages have two layers.
const OPEN: usize = 1 << 30;

/// In the place of a child's weights: it has none, being a leaf or a parent that was folded.
const LEAF: i32 = -1;
const FOLDED: i32 = -2;

/// The child of a step as units of one stream read it.
pub(super) fn child(
    plan: &Plan,
    is_folded: &[bool],
    step: &phex::infer::compiled::Step,
) -> [i32; 2] {
    let node = &plan.nodes[step.node];
    let layers = if node.layers == 2 { OPEN } else { 0 };
    let weight = match node.units.is_empty() {
        _ if is_folded[step.node] => FOLDED,
        true => LEAF,
        false => node.weight as i32,
    };
    [(node.message | layers) as i32, weight]
}

pub(super) fn steps<'a>(
    plan: &'a Plan,
    is_folded: &'a [bool],
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
            int(value_place(node)),
            int(node.message),
            i32::from(!node.units.is_empty()),
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
            i32::from(is_folded[step.node]),
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
