//! The tables of a forest that depend on the type of arithmetic, and the places of its labels.

use phex::infer::compiled::{ForestProgram, SiblingUnit};

use super::fold::FoldedPlan;
use super::records::{UnitRecord, first_message, in_registers, value_place};
use super::units::{cells, form, is_large, needs};
use crate::memory::{Plain, TableBuilder, TableOffset};
use crate::rows::Precision;

/// The tables of one type of arithmetic.
#[derive(Debug)]
pub(super) struct ForestWeights {
    pub(super) values: TableOffset,
    pub(super) bias: TableOffset,
    pub(super) units: TableOffset,
    /// How many totals and how many scales of products are kept.
    pub(super) totals: usize,
    pub(super) scales: usize,
}

/// Where totals and scales of products lie. Labels that are always done in registers have none.
struct KeptTotals {
    /// By place in the plan.
    totals: Vec<usize>,
    total_count: usize,
    /// By unit.
    scales: Vec<usize>,
    scale_count: usize,
}

fn kept_totals(plan: &ForestProgram, real: Precision) -> KeptTotals {
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
    KeptTotals { totals, total_count, scales, scale_count }
}

/// The constants in one type of arithmetic. `None` if the type does not hold the weight of an edge that is not hard.
pub(super) fn weights<T: Plain>(
    tables: &mut TableBuilder,
    (plan, bias): (&ForestProgram, &[f64]),
    real: Precision,
    round: impl Fn(f64) -> T,
) -> Option<ForestWeights> {
    let limit = if real == Precision::Double { 600.0 } else { 80.0 };
    let kept = kept_totals(plan, real);
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
    let record = |(index, unit): (usize, &SiblingUnit)| -> UnitRecord {
        let int = |value: usize| value as i32;
        UnitRecord {
            steps: [int(unit.steps.start), int(unit.steps.end)],
            shared: i32::from(unit.shared),
            width: int(unit.width),
            most_layers: int(unit.most_layers),
            layers: int(unit.layers),
            total: int(kept.totals[unit.total]),
            product: int(kept.totals[unit.product]),
            product_layers: int(unit.product_layers),
            moves: [int(unit.moves.start), int(unit.moves.end)],
            turns: int(unit.turns),
            falls: int(unit.falls),
            // The m-th child to turn on pays q^(m − 1).
            clamped_turn: first(unit.turns, unit.width).saturating_add(1),
            clamped_fall: first(unit.falls, unit.width),
            cells: int(cells(plan, unit)),
            needs: int(needs(plan, unit)),
            form: form(plan, unit) as i32,
            first_message: int(first_message(plan, unit)),
            scales: int(kept.scales[index]),
            large: i32::from(is_large(plan, unit)),
            unused: [0; 3],
        }
    };
    let units: Vec<UnitRecord> = plan.units.iter().enumerate().map(record).collect();
    Some(ForestWeights {
        values: tables.add(&values),
        bias: tables.add(&bias),
        units: tables.add(&units),
        totals: kept.total_count,
        scales: kept.scale_count,
    })
}

/// In a label's first slot: its group does not allow it to be off.
const NEVER_OFF: usize = 1 << 30;

/// In a label's first slot: it is a leaf of a folded set, and the slot is where the messages of the set are.
const MEMBER: usize = 1 << 29;

/// Where the numbers of labels lie.
pub(super) struct LabelPlaces {
    /// The weights of each label off and on. Its marginal will replace the first; that of a member the second.
    pub(super) slots: Vec<[i32; 2]>,
    /// How many numbers a row has with those places.
    pub(super) messages: usize,
    /// For each set: its messages, the weight of the edge below a parent that is off or −1, its members from and to.
    pub(super) sets: Vec<[i32; 4]>,
    /// Where the weights on of members are.
    pub(super) members: Vec<i32>,
}

/// Finds a place for the numbers of each label.
///
/// A state that no group allows has no place in the plan. It gets one here: the marginal replaces the weight off, which must
/// be 0; and a label of a group is weighed in the place of its weight on.
pub(super) fn label_places(folded: &FoldedPlan) -> LabelPlaces {
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
    LabelPlaces { slots, messages, sets, members }
}

/// The labels of one-of groups in chunks of at most a tile, as `model.cu` reads them.
pub(super) struct GroupTables {
    /// Whether each label is in a group.
    pub(super) grouped: Vec<i32>,
    /// Where the weights on of their labels are.
    pub(super) places: Vec<i32>,
    /// The group of each chunk, and its places from and to.
    pub(super) chunks: Vec<[i32; 3]>,
    /// Where the chunks of each group start.
    pub(super) starts: Vec<i32>,
}

pub(super) fn group_tables(groups: &[Vec<usize>], slots: &[[i32; 2]], tile: usize) -> GroupTables {
    let mut tables = GroupTables {
        grouped: vec![0; slots.len()],
        places: Vec::new(),
        chunks: Vec::new(),
        starts: vec![0],
    };
    groups.iter().flatten().for_each(|&label| tables.grouped[label] = 1);
    for (group, labels) in groups.iter().enumerate() {
        for some in labels.chunks(tile) {
            let from = tables.places.len() as i32;
            tables.places.extend(some.iter().map(|&label| slots[label][1]));
            tables.chunks.push([group as i32, from, tables.places.len() as i32]);
        }
        tables.starts.push(tables.chunks.len() as i32);
    }
    tables
}
