//! Graphs and rows that aim at the weak spots of exact engines, and their answers by enumeration.
//!
//! A [`TruthTable`] lists the legal states of a small graph with their costs. The log-weight of a
//! state, `Σ scores − cost`, is summed without rounding (two doubles per sum), so that states whose
//! large scores nearly cancel are told apart. [`RowKind`] says what a row aims at.

use super::{HierarchyShape, Oracle, Random, RandomGraph};
use crate::graph::{ExclusionRule, RelationGraph, Semantics};
use crate::infer::Evidence;
use crate::model::Model;

/// The legal states of a graph, as bit masks with their costs.
#[derive(Debug, Clone)]
pub struct TruthTable {
    labels: usize,
    states: Vec<(u32, f64)>,
}

/// The exact answer for a row.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The log-partition.
    pub log_partition: f64,
    /// The marginals.
    pub marginals: Vec<f64>,
    /// The largest log-weight.
    pub best: f64,
}

impl TruthTable {
    /// Lists the states of a graph: by the definitions for sparse semantics, by
    /// [`Model::log_weight`] for dense semantics.
    pub fn new(graph: &RelationGraph, model: &Model) -> TruthTable {
        let labels = graph.len();
        let oracle = Oracle::new(graph);
        let zeros = vec![0.0; labels];
        let cost = |state: u32| match graph.semantics() {
            Semantics::Dense => {
                let on: Vec<bool> = (0..labels).map(|label| state >> label & 1 == 1).collect();
                -model.log_weight(&zeros, &on)
            }
            Semantics::Sparse => oracle.cost(state),
        };
        let states = (0..1u32 << labels).map(|state| (state, cost(state)));
        TruthTable { labels, states: states.filter(|state| state.1 < f64::INFINITY).collect() }
    }

    /// The legal states.
    pub fn states(&self) -> impl Iterator<Item = u32> {
        self.states.iter().map(|state| state.0)
    }

    /// The answer for a row. `None` when no state agrees with the evidence.
    pub fn answer(&self, scores: &[f64], evidence: &[Evidence]) -> Option<Truth> {
        let (mut on, mut off) = (0u32, 0u32);
        for (label, evidence) in evidence.iter().enumerate() {
            match evidence {
                Evidence::On => on |= 1 << label,
                Evidence::Off => off |= 1 << label,
                Evidence::Unknown => {}
            }
        }
        let agree = self.states.iter().filter(|(state, _)| state & on == on && state & off == 0);
        let weights: Vec<(u32, (f64, f64))> = agree
            .map(|&(state, cost)| {
                let labels = (0..self.labels).filter(|label| state >> label & 1 == 1);
                (state, labels.fold((-cost, 0.0), |sum, label| plus(sum, scores[label])))
            })
            .collect();
        let most =
            weights.iter().map(|weight| weight.1).reduce(|a, b| if b > a { b } else { a })?;
        let below = |weight: (f64, f64)| ((weight.0 - most.0) + (weight.1 - most.1)).exp();
        let total: f64 = weights.iter().map(|weight| below(weight.1)).sum();
        let mut marginals = vec![0.0; self.labels];
        for &(state, weight) in &weights {
            let labels = (0..self.labels).filter(|label| state >> label & 1 == 1);
            labels.for_each(|label| marginals[label] += below(weight) / total);
        }
        Some(Truth { log_partition: most.0 + (most.1 + total.ln()), marginals, best: most.0 })
    }
}

/// Adds a number to an unevaluated sum of two, whose second part is the rounding error of the first.
fn plus((high, low): (f64, f64), number: f64) -> (f64, f64) {
    let two_sum = |a: f64, b: f64| {
        let sum = a + b;
        let rest = sum - a;
        (sum, (a - (sum - rest)) + (b - rest))
    };
    let (sum, error) = two_sum(high, number);
    two_sum(sum, low + error)
}

/// What a row of scores aims at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKind {
    /// Normal scores of sizes from 0.5 to 40.
    Ordinary,
    /// Two to four legal states have nearly the same weight, although their scores have sizes from
    /// 10¹ to 10⁸.
    Cancelling,
    /// Evidence whose probability without it is down to 1e-300.
    Rare,
    /// Single scores of 10⁷ to 10²⁰ decide labels, and leave the others open.
    Decided,
}

/// A row that aims at something.
#[derive(Debug, Clone)]
pub struct AimedRow {
    /// What it aims at.
    pub kind: RowKind,
    /// One score per label.
    pub scores: Vec<f64>,
    /// One entry per label.
    pub evidence: Vec<Evidence>,
    /// The largest score that other scores may cancel. Rounding errors grow with it.
    pub size: f64,
}

/// A graph of 3 to 9 labels of any kind: trees, DAGs, classes × attributes, one-of groups over leaves,
/// sparse or dense semantics.
pub fn aimed_graph(seed: u64) -> RelationGraph {
    let mut random = Random::new(seed ^ 0x7275_7468);
    let labels = 3 + random.below(7);
    let any = RandomGraph::any(labels, seed);
    let drawn = match seed % 6 {
        0 | 1 => any,
        2 => RandomGraph { one_of: 1 + random.below(2), ..any },
        3 => RandomGraph {
            shape: HierarchyShape::Tree,
            exclusions: 0,
            groups: 0,
            rule: Some(ExclusionRule::Siblings),
            ..any
        },
        4 => RandomGraph { shape: HierarchyShape::Flat, groups: 0, one_of: 1, ..any },
        _ => RandomGraph { shape: HierarchyShape::Dag, one_of: 0, ..any },
    };
    let graph = drawn.draw();
    if seed % 4 != 3 {
        return graph;
    }
    let mut document = crate::graph::document::Document::from(&graph);
    document.semantics = Semantics::Dense;
    document.builder().build().unwrap_or(graph)
}

/// A row for a graph.
pub fn aimed_row(table: &TruthTable, random: &mut Random) -> AimedRow {
    let n = table.labels;
    let scale = [0.5, 2.0, 6.0, 40.0][random.below(4)];
    let mut row = AimedRow {
        kind: RowKind::Ordinary,
        scores: random.normals(n).into_iter().map(|score| score * scale).collect(),
        evidence: vec![Evidence::Unknown; n],
        size: 4.0 * scale,
    };
    if table.states.is_empty() {
        return row;
    }
    let legal = |random: &mut Random| table.states[random.below(table.states.len())].0;
    match random.below(8) {
        0 => {}
        1..=3 => {
            row.kind = RowKind::Cancelling;
            row.size = 10f64.powf(1.0 + 7.0 * random.next());
            let size = row.size;
            row.scores.iter_mut().for_each(|score| *score = size * (2.0 * random.next() - 1.0));
            let first = legal(random);
            for _ in 0..1 + random.below(3) {
                let other = legal(random);
                balance(&mut row.scores, first, other, 3.0 * random.normal(), random);
            }
        }
        4 | 5 => {
            row.kind = RowKind::Rare;
            row.size = 10f64.powf(1.0 + 1.8 * random.next());
            let target = legal(random);
            for label in 0..n {
                let on = target >> label & 1 == 1;
                if random.next() < 0.5 {
                    let against = row.size * random.next();
                    row.scores[label] += if on { -against } else { against };
                }
                if random.next() < 0.6 {
                    row.evidence[label] = Evidence::known(on);
                }
            }
        }
        _ => {
            row.kind = RowKind::Decided;
            for label in 0..n {
                if random.next() < 0.3 {
                    let size = 10f64.powf(7.0 + 13.0 * random.next());
                    row.scores[label] = if random.next() < 0.5 { size } else { -size };
                }
            }
            let sizes = row.scores.iter().map(|score| score.abs());
            // The exact sums of the table hold 30 digits, and those of engines 15.
            row.size = sizes.filter(|&size| size < 1e7).fold(1.0, f64::max);
        }
    }
    if row.kind != RowKind::Rare && random.next() < 0.3 {
        let target = legal(random);
        for label in 0..n {
            if random.next() < 0.2 {
                row.evidence[label] = Evidence::known(target >> label & 1 == 1);
            }
        }
    }
    row
}

/// Changes one score so that two states differ by `gap` in their scores.
fn balance(scores: &mut [f64], a: u32, b: u32, gap: f64, random: &mut Random) {
    let differ: Vec<usize> = (0..scores.len()).filter(|label| (a ^ b) >> label & 1 == 1).collect();
    if differ.is_empty() {
        return;
    }
    let at = differ[random.below(differ.len())];
    let sum = |state: u32| -> f64 {
        (0..scores.len()).filter(|l| *l != at && state >> l & 1 == 1).map(|l| scores[l]).sum()
    };
    let more = sum(a) - sum(b);
    scores[at] = if a >> at & 1 == 1 { gap - more } else { more - gap };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_scores_that_cancel_are_summed_exactly() {
        let sum = [1e20, 1.0, -1e20].into_iter().fold((0.25, 0.0), plus);
        assert_eq!(sum.0 + sum.1, 1.25);
    }
}
