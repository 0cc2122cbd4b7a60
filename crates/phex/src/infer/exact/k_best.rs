//! Finds the k best label sets, either with a solver for the best set under evidence, or for
//! independent labels.
//!
//! Once the best set of a part of the space is found, the rest of that part is split by the first
//! label at which another set differs (Lawler 1972). This gives at most n parts for each set found,
//! and each part is solved once: O(k · n) calls of the solver.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::graph::LabelId;
use crate::infer::LabelSet;

/// The log-weights of off and on for each label. Minus infinity forbids a state.
type Unary = [f64; 2];

struct Partition {
    best: LabelSet,
    unary: Vec<Unary>,
    /// Labels before this one are fixed in this part.
    fixed: usize,
}

impl PartialEq for Partition {
    fn eq(&self, other: &Partition) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Partition {}

impl PartialOrd for Partition {
    fn partial_cmp(&self, other: &Partition) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Partition {
    fn cmp(&self, other: &Partition) -> Ordering {
        self.best.log_weight.total_cmp(&other.best.log_weight)
    }
}

/// The `k` best label sets, best first. `solve` returns the best set, if any is possible.
pub(super) fn k_best(
    unary: Vec<Unary>,
    k: usize,
    solve: impl Fn(&[Unary]) -> Option<LabelSet>,
) -> Vec<LabelSet> {
    let mut found = Vec::new();
    let mut open = BinaryHeap::new();
    if k == 0 {
        return found;
    }
    if let Some(best) = solve(&unary) {
        open.push(Partition { best, unary, fixed: 0 });
    }
    while let Some(Partition { best, unary, fixed }) = open.pop() {
        if found.len() + 1 < k {
            let mut prefix = unary;
            for label in fixed..best.on.len() {
                let state = usize::from(best.on[label]);
                let mut part = prefix.clone();
                part[label][state] = f64::NEG_INFINITY;
                if part[label][1 - state] > f64::NEG_INFINITY
                    && let Some(best) = solve(&part)
                {
                    open.push(Partition { best, unary: part, fixed: label + 1 });
                }
                prefix[label][1 - state] = f64::NEG_INFINITY;
            }
        }
        found.push(best);
        if found.len() == k {
            break;
        }
    }
    found
}

/// The `k` best sets when the remaining labels are independent of each other. Each label takes the
/// better of its states (`[off, on]` log-weights), and the next sets flip the labels that lose
/// least.
pub(super) fn with_independent(
    base: LabelSet,
    labels: impl Iterator<Item = (LabelId, [f64; 2])>,
    k: usize,
) -> Vec<LabelSet> {
    let LabelSet { mut log_weight, mut on } = base;
    let mut losses: Vec<(f64, LabelId)> = Vec::new();
    for (id, [off, on_weight]) in labels {
        on[id.index()] = on_weight > off;
        log_weight += off.max(on_weight);
        let loss = (on_weight - off).abs();
        if loss < f64::INFINITY {
            losses.push((loss, id));
        }
    }
    losses.sort_by(|x, y| x.0.total_cmp(&y.0));
    let flipped = |(loss, flips): (f64, Vec<LabelId>)| {
        let mut on = on.clone();
        flips.iter().for_each(|id| on[id.index()] = !on[id.index()]);
        LabelSet { log_weight: log_weight - loss, on }
    };
    cheapest_subsets(&losses, k).into_iter().map(flipped).collect()
}

/// Sorts sets, best first, and keeps `k`.
pub(super) fn best_first(sets: &mut Vec<LabelSet>, k: usize) {
    sets.sort_by(|a, b| b.log_weight.total_cmp(&a.log_weight));
    sets.truncate(k);
}

/// The `k` subsets with the least total loss, cheapest first. `losses` must be ascending.
///
/// This is the classic heap over "last index, sum": from a subset whose largest index is `i`,
/// either add `i + 1` or replace `i` with `i + 1`.
fn cheapest_subsets(losses: &[(f64, LabelId)], k: usize) -> Vec<(f64, Vec<LabelId>)> {
    let mut found = vec![(0.0, Vec::new())];
    let mut open: Vec<(f64, Vec<usize>)> = Vec::new();
    if !losses.is_empty() {
        open.push((losses[0].0, vec![0]));
    }
    while found.len() < k {
        let Some(best) = (0..open.len()).min_by(|&a, &b| open[a].0.total_cmp(&open[b].0)) else {
            break;
        };
        let (loss, subset) = open.swap_remove(best);
        if let Some(&last) = subset.last()
            && last + 1 < losses.len()
        {
            let mut more = subset.clone();
            more.push(last + 1);
            open.push((loss + losses[last + 1].0, more));
            let mut moved = subset.clone();
            moved.pop();
            moved.push(last + 1);
            open.push((loss + losses[last + 1].0 - losses[last].0, moved));
        }
        found.push((loss, subset.iter().map(|&at| losses[at].1).collect()));
    }
    found.truncate(k);
    found
}
