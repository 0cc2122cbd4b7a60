//! The rows `A q ≤ b` of a part of the graph.
//!
//! Row `k` is `Σ_{i ∈ K} q_i ≤ q_a`, or `≤ 1` without an upper label `a`, or `=`. In `A` it has `+1`
//! on `K` and `−1` on `a`. A soft row may be violated: each unit costs its cap, so its multiplier
//! lies between 0 and the cap. A soft set of `m` exclusive labels stands for the rows `Σ q ≤ j`,
//! `j = 1 .. m − 1`, each with the same cap. They have the same labels, so they are one row here,
//! whose multiplier runs through `m − 1` segments: in segment `j` the limit is `j`.
//!
//! Rows are in the order of their upper labels from the top. So whoever lowers the members of one
//! row after another never breaks a row that came before.

use super::super::compile::{Families, NONE};
use crate::lists::Lists;

/// One row, before the rows are put in order.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::reconcile) struct Inequality {
    /// Ascending.
    pub(in crate::reconcile) members: Vec<u32>,
    pub(in crate::reconcile) upper: u32,
    pub(in crate::reconcile) equal: bool,
    /// What a unit of violation costs: infinite for hard rows.
    pub(in crate::reconcile) cap: f64,
}

/// The rows of a part, over its labels.
#[derive(Debug, Clone)]
pub(in crate::reconcile) struct RowSystem {
    /// The column of each label.
    pub(in crate::reconcile) labels: Vec<u32>,
    /// The weight of each label in the loss.
    pub(in crate::reconcile) weights: Vec<f64>,
    pub(in crate::reconcile) members: Lists<u32>,
    pub(in crate::reconcile) upper: Vec<u32>,
    pub(in crate::reconcile) equal: Vec<bool>,
    pub(in crate::reconcile) cap: Vec<f64>,
}

impl RowSystem {
    /// Puts rows in order. `place` says how far from the top each label is.
    pub(in crate::reconcile) fn new(
        labels: Vec<u32>,
        weights: Vec<f64>,
        mut rows: Vec<Inequality>,
        place: &[u32],
    ) -> RowSystem {
        let level = |row: &Inequality| match row.upper {
            NONE => 0,
            upper => 1 + u64::from(place[upper as usize]),
        };
        let order = |a: &Inequality, b: &Inequality| {
            let soft = |row: &Inequality| row.cap < f64::INFINITY;
            level(a)
                .cmp(&level(b))
                .then(soft(a).cmp(&soft(b)))
                .then(b.equal.cmp(&a.equal))
                .then_with(|| a.members.cmp(&b.members))
        };
        rows.sort_by(order);
        // The same soft relation twice costs twice. A hard one twice is one.
        rows.dedup_by(|next, kept| {
            let same = next.members == kept.members && next.upper == kept.upper;
            let hard = next.cap == f64::INFINITY;
            let twice = same && hard == (kept.cap == f64::INFINITY);
            if twice && !hard {
                kept.cap += next.cap;
            }
            twice
        });
        let members: Vec<Vec<u32>> = rows.iter().map(|row| row.members.clone()).collect();
        RowSystem {
            labels,
            weights,
            members: Lists::new(&members),
            upper: rows.iter().map(|row| row.upper).collect(),
            equal: rows.iter().map(|row| row.equal).collect(),
            cap: rows.iter().map(|row| row.cap).collect(),
        }
    }

    /// The rows of a forest with sibling groups.
    pub(in crate::reconcile) fn of_forest(forest: &Families) -> RowSystem {
        let rows = (0..forest.groups())
            .filter(|&g| !forest.is_free(g))
            .map(|g| Inequality {
                members: forest.members(g).map(|node| node as u32).collect(),
                upper: forest.parent[g],
                equal: forest.equal[g],
                cap: f64::INFINITY,
            })
            .collect();
        let place: Vec<u32> = (0..forest.nodes() as u32).collect();
        RowSystem::new(forest.labels.clone(), forest.weights.clone(), rows, &place)
    }

    /// The rows of softmax heads on the levels of a forest: all are equations.
    pub(in crate::reconcile) fn of_heads(forest: &Families) -> RowSystem {
        let mut forest = forest.clone();
        forest.equal.fill(true);
        RowSystem::of_forest(&forest)
    }

    /// How many rows there are.
    pub(in crate::reconcile) fn len(&self) -> usize {
        self.upper.len()
    }

    /// Whether a row must hold.
    #[inline(always)]
    pub(in crate::reconcile) fn is_hard(&self, row: usize) -> bool {
        self.cap[row] == f64::INFINITY
    }

    /// What the members of a row may add up to at most, apart from its upper label: 1 or 0.
    #[inline(always)]
    pub(in crate::reconcile) fn base(&self, row: usize) -> f64 {
        if self.upper[row] == NONE { 1.0 } else { 0.0 }
    }

    /// How many segments the multiplier of a soft row has. 0 for a hard row.
    #[inline(always)]
    pub(in crate::reconcile) fn segments(&self, row: usize) -> usize {
        if self.is_hard(row) {
            0
        } else if self.upper[row] == NONE {
            self.members.of(row).len().saturating_sub(1)
        } else {
            1
        }
    }

    /// The largest multiplier of a row, and the smallest.
    #[inline(always)]
    pub(in crate::reconcile) fn range(&self, row: usize) -> (f64, f64) {
        let low = if self.equal[row] { f64::NEG_INFINITY } else { 0.0 };
        let high = match self.segments(row) {
            0 => f64::INFINITY,
            segments => segments as f64 * self.cap[row],
        };
        (low, high)
    }

    /// The share of a multiplier in the dual value: `bᵀλ`, with the limit of each segment.
    pub(in crate::reconcile) fn price(&self, row: usize, multiplier: f64) -> f64 {
        let segments = self.segments(row);
        if segments < 2 {
            return self.base(row) * multiplier;
        }
        let cap = self.cap[row];
        let full = (multiplier / cap).floor().clamp(0.0, segments as f64 - 1.0);
        cap * full * (full + 1.0) / 2.0 + (multiplier - full * cap) * (full + 1.0)
    }
}
