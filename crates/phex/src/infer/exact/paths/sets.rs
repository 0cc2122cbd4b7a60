//! Single label sets of one row: the best ones, and samples.
//!
//! Best sets: each tree has a list of its `k` best paths. A node with trees below it combines their
//! lists with that of its parent; all other nodes share the list of their parent and differ in the
//! sum of their scores only. A list of pairs is merged in order with a heap. O(n + (t + 1) k log k)
//! for t trees, and O(n) for each set.
//!
//! Samples: each tree draws the end of a path in proportion to its weight, then the trees below the
//! path do. O(n) once, and O(n) for each sample.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::program::{NO_NODE, PathProgram};
use super::runner::PathRunner;
use crate::infer::{Block, Evidence, LabelSet};

/// Where paths may end in a row, given its evidence.
struct Allowed {
    /// By node.
    ends: Vec<bool>,
    /// By tree: whether it may be empty.
    empty: Vec<bool>,
}

impl Allowed {
    /// Trees after those that hang below them, as in the passes.
    fn new(program: &PathProgram, block: &Block<'_, f64>, row: usize) -> Allowed {
        let evidence = |node: usize| block.evidence(row, program.label_of[node] as usize);
        let is = |node: usize, what: Evidence| evidence(node) == what;
        let count = program.len();
        let mut on: Vec<bool> = (0..count).map(|node| is(node, Evidence::On)).collect();
        let mut off: Vec<bool> = (0..count).map(|node| is(node, Evidence::Off)).collect();
        let mut allowed =
            Allowed { ends: vec![false; count], empty: vec![false; program.trees.len()] };
        let mut found = vec![0u32; count];
        for bundle in program.bundles.iter().rev() {
            for tree in bundle.trees.clone() {
                let nodes = program.trees[tree].nodes.clone();
                // A label counts once, however many nodes it has.
                let is_first = |node: &usize| {
                    program.node_of[program.label_of[*node] as usize] as usize == *node
                };
                let needed = nodes.clone().filter(|&node| on[node]).filter(is_first).count() as u32;
                let disagrees = nodes.clone().any(|node| on[node] && off[node]);
                let mut possible = false;
                for node in nodes {
                    found[node] = u32::from(on[node]);
                    if program.parent[node] != NO_NODE {
                        let parent = program.parent[node] as usize;
                        found[node] += found[parent];
                        off[node] |= off[parent];
                    }
                    let may_end = program.is_end[node] && !off[node] && !disagrees;
                    allowed.ends[node] = may_end && found[node] == needed;
                    possible |= allowed.ends[node];
                }
                let may_be_empty = program.trees[tree].may_be_empty;
                allowed.empty[tree] = may_be_empty && needed == 0 && !disagrees;
                if let Some(above) = bundle.above {
                    on[above] |= needed > 0;
                    off[above] |= !possible && !allowed.empty[tree];
                }
            }
        }
        allowed
    }
}

/// A choice of paths in some trees.
#[derive(Debug, Clone, Copy)]
enum Choice {
    /// No path.
    Nothing,
    /// A path that ends at a node, and choices in the trees below it.
    Path { end: u32, below: u32 },
    /// Two choices in different trees.
    Both(u32, u32),
}

/// The best choices, best first: log-weights and places in [`BestChoices::choices`].
type Ranked = Vec<(f64, u32)>;

/// A candidate in a merge, by its weight.
struct Candidate {
    weight: f64,
    list: usize,
    place: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// Ties go to the candidate that comes first.
    fn cmp(&self, other: &Candidate) -> Ordering {
        let by_weight = self.weight.total_cmp(&other.weight);
        by_weight.then_with(|| (other.list, other.place).cmp(&(self.list, self.place)))
    }
}

struct BestChoices {
    choices: Vec<Choice>,
    k: usize,
}

impl BestChoices {
    fn add(&mut self, choice: Choice) -> u32 {
        self.choices.push(choice);
        (self.choices.len() - 1) as u32
    }

    /// The best sums of one item from each list.
    fn both(&mut self, a: &Ranked, b: &Ranked) -> Ranked {
        let mut heap = BinaryHeap::new();
        let candidate =
            |list: usize, place: usize| Some((a.get(list)?.0 + b.get(place)?.0, list, place));
        let mut best = Vec::new();
        let push = |heap: &mut BinaryHeap<Candidate>, list, place| {
            if let Some((weight, list, place)) = candidate(list, place) {
                heap.push(Candidate { weight, list, place });
            }
        };
        push(&mut heap, 0, 0);
        while let Some(Candidate { weight, list, place }) = heap.pop() {
            best.push((weight, self.add(Choice::Both(a[list].1, b[place].1))));
            if best.len() == self.k {
                break;
            }
            push(&mut heap, list, place + 1);
            if place == 0 {
                push(&mut heap, list + 1, 0);
            }
        }
        best
    }

    /// The best paths of a tree. `paths` has, for each end, its sum and the list of its choices below.
    fn paths(&mut self, empty: bool, paths: &[(f64, u32, usize)], lists: &[Ranked]) -> Ranked {
        let mut heap: BinaryHeap<Candidate> = paths
            .iter()
            .enumerate()
            .filter_map(|(list, &(sum, _, below))| {
                Some(Candidate { weight: sum + lists[below].first()?.0, list, place: 0 })
            })
            .collect();
        if empty {
            heap.push(Candidate { weight: 0.0, list: paths.len(), place: 0 });
        }
        let mut best = Vec::new();
        while let Some(Candidate { weight, list, place }) = heap.pop() {
            let choice = match paths.get(list) {
                None => Choice::Nothing,
                Some(&(sum, end, below)) => {
                    if let Some(next) = lists[below].get(place + 1) {
                        heap.push(Candidate { weight: sum + next.0, list, place: place + 1 });
                    }
                    Choice::Path { end, below: lists[below][place].1 }
                }
            };
            best.push((weight, self.add(choice)));
            if best.len() == self.k {
                break;
            }
        }
        best
    }
}

impl PathRunner {
    fn score(&self, scores: &[f64], node: usize) -> f64 {
        let label = self.program.label_of[node] as usize;
        scores[label] + self.bias.get(label).unwrap_or(&0.0)
    }

    fn turn_path_on(&self, end: u32, on: &mut [bool]) {
        let mut node = end;
        while node != NO_NODE {
            on[self.program.label_of[node as usize] as usize] = true;
            node = self.program.parent[node as usize];
        }
    }

    /// The `k` best label sets of one row, best first.
    pub(crate) fn best(&self, block: &Block<'_, f64>, row: usize, k: usize) -> Vec<LabelSet> {
        if k == 0 {
            return Vec::new();
        }
        let program = &self.program;
        let (scores, allowed) = (block.row(row), Allowed::new(program, block, row));
        let mut search = BestChoices { choices: vec![Choice::Nothing], k };
        // Lists that nodes refer to. The first is that of nodes with nothing below their path.
        let mut lists: Vec<Ranked> = vec![vec![(0.0, 0)]];
        let mut list_below: Vec<usize> = vec![0; program.len()];
        let mut sums = vec![0.0; program.len()];
        let mut all = vec![(0.0, 0)];
        for bundle in program.bundles.iter().rev() {
            let mut joined = vec![(0.0, 0)];
            for tree in bundle.trees.clone() {
                let mut paths = Vec::new();
                for node in program.trees[tree].nodes.clone() {
                    sums[node] = self.score(scores, node);
                    if program.parent[node] != NO_NODE {
                        let parent = program.parent[node] as usize;
                        sums[node] += sums[parent];
                        if list_below[parent] != 0 {
                            list_below[node] = match list_below[node] {
                                0 => list_below[parent],
                                own => {
                                    let both = search.both(&lists[list_below[parent]], &lists[own]);
                                    lists.push(both);
                                    lists.len() - 1
                                }
                            };
                        }
                    }
                    if allowed.ends[node] {
                        paths.push((sums[node], node as u32, list_below[node]));
                    }
                }
                let best = search.paths(allowed.empty[tree], &paths, &lists);
                joined = search.both(&joined, &best);
            }
            match bundle.above {
                Some(node) => {
                    lists.push(joined);
                    list_below[node] = lists.len() - 1;
                }
                None => all = joined,
            }
        }
        let set = |(weight, choice): (f64, u32)| {
            let mut on = vec![false; program.labels];
            let mut open = vec![choice];
            while let Some(choice) = open.pop() {
                match search.choices[choice as usize] {
                    Choice::Nothing => {}
                    Choice::Both(a, b) => open.extend([a, b]),
                    Choice::Path { end, below } => {
                        self.turn_path_on(end, &mut on);
                        open.push(below);
                    }
                }
            }
            LabelSet { log_weight: self.constant + weight, on }
        };
        all.into_iter().map(set).collect()
    }

    /// Label sets drawn from the distribution of one row. Empty when no state agrees with the
    /// evidence.
    pub(crate) fn sample(
        &self,
        block: &Block<'_, f64>,
        row: usize,
        count: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<bool>> {
        let program = &self.program;
        let Some(weights) = self.end_weights(block, row) else { return Vec::new() };
        let mut bundle_below = vec![usize::MAX; program.len()];
        for (at, bundle) in program.bundles.iter().enumerate() {
            bundle.above.iter().for_each(|&node| bundle_below[node] = at);
        }
        let mut draw = || {
            let mut on = vec![false; program.labels];
            let mut open = vec![0];
            while let Some(bundle) = open.pop() {
                for tree in program.bundles[bundle].trees.clone() {
                    let EndWeights { ends, cumulative } = &weights[tree];
                    let total = cumulative.last().copied().unwrap_or(0.0);
                    let drawn = uniform() * total;
                    let at = cumulative.partition_point(|&sum| sum <= drawn);
                    // Rounding may leave nothing beyond the last.
                    let mut node = ends[at.min(ends.len() - 1)];
                    if node != NO_NODE {
                        self.turn_path_on(node, &mut on);
                    }
                    while node != NO_NODE {
                        let below = bundle_below[node as usize];
                        if below != usize::MAX {
                            open.push(below);
                        }
                        node = program.parent[node as usize];
                    }
                }
            }
            on
        };
        (0..count).map(|_| draw()).collect()
    }

    /// The weights of the ends of each tree; `None` when no state agrees with the evidence.
    fn end_weights(&self, block: &Block<'_, f64>, row: usize) -> Option<Vec<EndWeights>> {
        let program = &self.program;
        let (scores, allowed) = (block.row(row), Allowed::new(program, block, row));
        let mut sums: Vec<f64> = (0..program.len()).map(|node| self.score(scores, node)).collect();
        let mut weights = vec![EndWeights::default(); program.trees.len()];
        for bundle in program.bundles.iter().rev() {
            for tree in bundle.trees.clone() {
                let mut ends: Vec<(u32, f64)> = Vec::new();
                if allowed.empty[tree] {
                    ends.push((NO_NODE, 0.0));
                }
                for node in program.trees[tree].nodes.clone() {
                    if program.parent[node] != NO_NODE {
                        sums[node] += sums[program.parent[node] as usize];
                    }
                    if allowed.ends[node] {
                        ends.push((node as u32, sums[node]));
                    }
                }
                let most = ends.iter().map(|end| end.1).fold(f64::NEG_INFINITY, f64::max);
                let mut total = 0.0;
                let cumulative = ends.iter().map(|&(_, sum)| {
                    total += (sum - most).exp();
                    total
                });
                let cumulative = cumulative.collect();
                let ends: Vec<u32> = ends.into_iter().map(|end| end.0).collect();
                match bundle.above {
                    // A path above it is not allowed, so its sum does not matter.
                    Some(_) if ends.is_empty() => {}
                    Some(node) => sums[node] += most + total.ln(),
                    None if ends.is_empty() => return None,
                    None => {}
                }
                weights[tree] = EndWeights { ends, cumulative };
            }
        }
        Some(weights)
    }

    /// The states of a program of one tree as lists of labels: those of state `k` are
    /// `on[start[k]..start[k + 1]]`. `None` for other programs, or when the lists are too long.
    pub(super) fn list_states(&self, most: usize) -> Option<(Vec<u32>, Vec<u32>)> {
        let program = &self.program;
        let [tree] = &program.trees[..] else { return None };
        let (mut start, mut on) = (vec![0u32], Vec::new());
        if tree.may_be_empty {
            start.push(0);
        }
        for end in (0..program.len()).filter(|&node| program.is_end[node]) {
            let mut node = end as u32;
            while node != NO_NODE {
                on.push(program.label_of[node as usize]);
                node = program.parent[node as usize];
            }
            if on.len() > most {
                return None;
            }
            start.push(on.len() as u32);
        }
        Some((start, on))
    }
}

/// The ends of a tree ([`NO_NODE`] for none) and the sums of their weights up to each.
#[derive(Debug, Clone, Default)]
struct EndWeights {
    ends: Vec<u32>,
    cumulative: Vec<f64>,
}
