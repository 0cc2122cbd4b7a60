//! Finds the `k` best label sets.
//!
//! This is max-product with lists. Each entry of the table holds up to `k` best log-weights, and
//! the list of a state is the `k` best sums of one element per input. Only weights are kept. The
//! choices behind the r-th best set are found again on the way down, by merging the lists of one
//! entry once more.
//!
//! The cost is O(states · inputs) for `k = 1`. Merging is skipped where even the best sum of a
//! state is below the k-th of its entry.

use super::Junction;
use super::rows::RowWeights;
use super::tables::Bag;
use crate::infer::{Block, LabelSet};

/// One way to reach an entry: its weight, the state, and the rank used from each input.
#[derive(Debug, Clone)]
struct Way {
    weight: f64,
    state: u32,
    ranks: Vec<u32>,
}

/// Up to `k` weights per entry, best first. An entry is filled in one go, so its list is
/// contiguous. The memory depends on how many sets exist, not on how many were requested.
struct BestLists {
    k: usize,
    weights: Vec<f64>,
    /// The start and length of each entry's list.
    place: Vec<(usize, usize)>,
}

impl BestLists {
    fn of(&self, entry: usize) -> &[f64] {
        let (start, length) = self.place[entry];
        &self.weights[start..start + length]
    }

    fn push(&mut self, entry: usize, weight: f64) {
        let (start, length) = &mut self.place[entry];
        if *length < self.k && weight > f64::NEG_INFINITY {
            if *length == 0 {
                *start = self.weights.len();
            }
            *length += 1;
            self.weights.push(weight);
        }
    }
}

/// Keeps the `k` best ways, best first. Among equals the earlier one stays.
fn keep(ways: &mut Vec<Way>, way: Way, k: usize) {
    let at = ways.partition_point(|other| other.weight >= way.weight);
    if at < k {
        ways.truncate(k - 1);
        ways.insert(at, way);
    }
}

impl Junction {
    /// The `k` best label sets of one row, best first. There may be fewer than `k`.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        if k == 0 || !self.possible {
            return Vec::new();
        }
        let mut filled = RowWeights::default();
        filled.fill(&self.network, block, row);
        let mut lists = BestLists {
            k,
            weights: Vec::with_capacity(self.tables.entries),
            place: vec![(0, 0); self.tables.entries],
        };
        // The labels of each variable, best first.
        let mut order = self.network.classes.clone();
        for (variable, labels) in order.iter_mut().enumerate() {
            let share = |label: u32| filled.share[label as usize];
            labels.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
            let [off, on] = filled.logarithms[variable];
            lists.push(2 * variable, off);
            labels.iter().for_each(|&label| lists.push(2 * variable + 1, on + share(label)));
        }
        for bag in &self.tables.bags {
            for segment in 0..bag.segments.len() - 1 {
                for way in self.ways(bag, segment, &lists) {
                    lists.push(bag.out + segment, way.weight);
                }
            }
        }
        let roots: Vec<usize> = self
            .tables
            .bags
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, bag)| bag.parent.is_none())
            .map(|(b, _)| b)
            .collect();
        // The roots together, as if they were the inputs of one more state.
        let inputs: Vec<usize> = roots.iter().map(|&b| self.tables.bags[b].out).collect();
        let mut ways = Vec::new();
        combine(&lists, inputs.iter().copied(), 0.0, 0, &mut ways);
        let constant = filled.offset + self.tables.constant;
        let set = |way: Way| {
            let on = self.trace(&roots, &way.ranks, &lists, &order);
            LabelSet { log_weight: way.weight + constant, on }
        };
        ways.into_iter().map(set).collect()
    }

    /// The best ways to an entry of a bag's separator.
    fn ways(&self, bag: &Bag, segment: usize, lists: &BestLists) -> Vec<Way> {
        let mut ways = Vec::new();
        for state in bag.segments[segment]..bag.segments[segment + 1] {
            let at = state as usize;
            let index = &bag.index[at * bag.inputs..(at + 1) * bag.inputs];
            let fixed = match bag.weight.is_empty() {
                true => 0.0,
                false => self.tables.weights.logarithm[bag.weight[at] as usize],
            };
            combine(lists, index.iter().map(|&entry| entry as usize), fixed, state, &mut ways);
        }
        ways
    }

    /// The label set for the given ranks of the roots.
    fn trace(
        &self,
        roots: &[usize],
        ranks: &[u32],
        lists: &BestLists,
        order: &[Vec<u32>],
    ) -> Vec<bool> {
        let mut on = vec![false; self.network.variable.len()];
        let mut open: Vec<(usize, usize, u32)> =
            roots.iter().zip(ranks).map(|(&b, &rank)| (b, 0, rank)).collect();
        while let Some((b, segment, rank)) = open.pop() {
            let bag = &self.tables.bags[b];
            let ways = self.ways(bag, segment, lists);
            let way = &ways[rank as usize];
            let entry = |input: usize| bag.index[way.state as usize * bag.inputs + input] as usize;
            for &(variable, input) in &bag.labels {
                if entry(input) % 2 == 1 {
                    let label = order[variable as usize][way.ranks[input] as usize];
                    on[label as usize] = true;
                }
            }
            for &(child, input) in &bag.children {
                let segment = entry(input) - self.tables.bags[child as usize].out;
                open.push((child as usize, segment, way.ranks[input]));
            }
        }
        on
    }
}

/// Merges the best sums of one element per input into the ways.
fn combine(
    lists: &BestLists,
    inputs: impl Iterator<Item = usize> + Clone,
    fixed: f64,
    state: u32,
    ways: &mut Vec<Way>,
) {
    let k = lists.k;
    let mut weight = fixed;
    for entry in inputs.clone() {
        match lists.of(entry).first() {
            Some(first) => weight += first,
            None => return,
        }
    }
    if ways.len() == k && ways[k - 1].weight >= weight {
        return;
    }
    let count = inputs.clone().count();
    if k == 1 {
        keep(ways, Way { weight, state, ranks: vec![0; count] }, 1);
        return;
    }
    // Goes through the inputs. Of each partial list, only the k best can be part of the k best.
    let mut partial = vec![Way { weight: fixed, state, ranks: Vec::with_capacity(count) }];
    for entry in inputs {
        let list = lists.of(entry);
        if let [only] = list {
            for way in &mut partial {
                way.weight += only;
                way.ranks.push(0);
            }
            continue;
        }
        let mut next: Vec<Way> = Vec::new();
        for (at, way) in partial.iter().enumerate() {
            // At least (at + 1)(rank + 1) sums are no worse than this one.
            for (rank, more) in list.iter().enumerate().take(k / (at + 1)) {
                let weight = way.weight + more;
                if next.len() == k && next[k - 1].weight >= weight {
                    break;
                }
                let mut ranks = way.ranks.clone();
                ranks.push(rank as u32);
                keep(&mut next, Way { weight, state, ranks }, k);
            }
        }
        partial = next;
    }
    partial.into_iter().for_each(|way| keep(ways, way, k));
}
