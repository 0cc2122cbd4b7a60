//! The k best label sets, from a solver for the best one under evidence.
//!
//! After the best set of a part of the space is known, the rest of that part is split by the first
//! label at which another set differs (Lawler 1972): at most n parts for each set found, each
//! solved once. O(k · n) calls of the solver.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::LabelSet;

/// The log-weights of off and on of each label; minus infinity forbids a state.
type Unary = [f64; 2];

struct Part {
    best: LabelSet,
    unary: Vec<Unary>,
    /// Labels before this one are fixed in this part.
    fixed: usize,
}

impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Part) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Part) -> Ordering {
        self.best.log_weight.total_cmp(&other.best.log_weight)
    }
}

/// The `k` best label sets, best first; `solve` returns the best one, if any is possible.
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
        open.push(Part { best, unary, fixed: 0 });
    }
    while let Some(Part { best, unary, fixed }) = open.pop() {
        if found.len() + 1 < k {
            let mut prefix = unary;
            for label in fixed..best.on.len() {
                let state = usize::from(best.on[label]);
                let mut part = prefix.clone();
                part[label][state] = f64::NEG_INFINITY;
                if part[label][1 - state] > f64::NEG_INFINITY
                    && let Some(best) = solve(&part)
                {
                    open.push(Part { best, unary: part, fixed: label + 1 });
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
