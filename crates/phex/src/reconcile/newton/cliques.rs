//! From relations to few strong rows.
//!
//! Weak rows cost gain: pairs `q_i + q_j ≤ 1` let any number of exclusive labels stay at one half.
//! So exclusive labels are covered by cliques, and each clique is bounded by a label above all of
//! them where there is one.
//!
//! 1. For each label, its children fall into cliques. Every hierarchy edge is in one such row.
//! 2. One-of groups are equations.
//! 3. Exclusive sets that no row contains are rows of their own. Pairs among them first grow
//!    together to cliques below the same label.
//! 4. Soft relations are rows as they were declared.
//!
//! Two labels exclude each other if some set contains a label above each of them, and not the same
//! one. The sets above a label are listed once. No pair of a declared set is ever written out, and
//! searches that could take quadratic time have a budget; beyond it rows stay smaller.

use std::collections::{HashMap, HashSet};

use super::super::compile::{Component, Edge, NONE};
use super::system::{Inequality, RowSystem};
use crate::graph::{LabelId, Topology};

/// How many comparisons of labels are spent on growing cliques.
const BUDGET: usize = 20_000_000;

/// How many entries the lists of sets above labels may have together.
const MOST_ABOVE: usize = 10_000_000;

/// The exclusive sets above each label.
struct Exclusions<'a> {
    sets: Vec<&'a [u32]>,
    /// For each label, the sets that contain it or a label above it, and that label. Ascending.
    above: Vec<Vec<(u32, u32)>>,
    budget: usize,
}

impl<'a> Exclusions<'a> {
    fn new(part: &'a Component, topology: &Topology) -> Exclusions<'a> {
        let hard = part.sets.iter().filter(|set| set.cap == f64::INFINITY);
        let sets: Vec<&[u32]> = hard.map(|set| set.labels.as_slice()).collect();
        let mut above: Vec<Vec<(u32, u32)>> = vec![Vec::new(); part.labels.len()];
        for (at, set) in sets.iter().enumerate() {
            set.iter().for_each(|&label| above[label as usize].push((at as u32, label)));
        }
        let mut total: usize = above.iter().map(Vec::len).sum();
        for &label in topology.order() {
            let inherited: usize =
                topology.parents(label).iter().map(|parent| above[parent.index()].len()).sum();
            total += inherited;
            if total > MOST_ABOVE {
                break;
            }
            let mut mine = std::mem::take(&mut above[label.index()]);
            for parent in topology.parents(label) {
                mine.extend_from_slice(&above[parent.index()]);
            }
            mine.sort_unstable();
            mine.dedup();
            above[label.index()] = mine;
        }
        Exclusions { sets, above, budget: BUDGET }
    }

    /// Whether two labels are known to exclude each other.
    fn exclude(&mut self, a: u32, b: u32) -> bool {
        let (mine, other) = (&self.above[a as usize], &self.above[b as usize]);
        let (mut i, mut j) = (0, 0);
        while i < mine.len() && j < other.len() {
            self.budget = self.budget.saturating_sub(1);
            match mine[i].0.cmp(&other[j].0) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal if mine[i].1 != other[j].1 => return true,
                std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            }
        }
        false
    }

    /// Adds candidates that exclude all members so far, as long as the budget lasts.
    fn grow(&mut self, clique: &mut Vec<u32>, candidates: impl Iterator<Item = u32>) {
        for candidate in candidates {
            if self.budget == 0 {
                return;
            }
            if clique.iter().all(|&member| self.exclude(member, candidate)) {
                clique.push(candidate);
            }
        }
    }

    /// Splits labels into cliques.
    fn cliques(&mut self, labels: &[u32]) -> Vec<Vec<u32>> {
        let mut entries: Vec<(u32, u32, u32)> = labels
            .iter()
            .flat_map(|&label| self.above[label as usize].iter().map(move |&(s, v)| (s, v, label)))
            .collect();
        entries.sort_unstable();
        let mut runs: Vec<&[(u32, u32, u32)]> = entries.chunk_by(|a, b| a.0 == b.0).collect();
        let breadth = |run: &[(u32, u32, u32)]| run.chunk_by(|a, b| a.1 == b.1).count();
        runs.sort_by_key(|run| std::cmp::Reverse(breadth(run)));
        let mut free: HashSet<u32> = labels.iter().copied().collect();
        let mut cliques = Vec::new();
        for run in runs {
            let mut clique: Vec<u32> = Vec::new();
            for same in run.chunk_by(|a, b| a.1 == b.1) {
                clique.extend(same.iter().map(|entry| entry.2).find(|label| free.contains(label)));
            }
            if clique.len() < 2 {
                continue;
            }
            clique.iter().for_each(|label| {
                free.remove(label);
            });
            let before = clique.len();
            let others = labels.iter().copied().filter(|label| free.contains(label));
            self.grow(&mut clique, others);
            clique[before..].iter().for_each(|label| {
                free.remove(label);
            });
            cliques.push(clique);
        }
        cliques
            .extend(labels.iter().filter(|label| free.contains(label)).map(|&label| vec![label]));
        cliques
    }
}

/// The deepest label above all of these.
fn common_parent(topology: &Topology, labels: &[u32], budget: &mut usize) -> u32 {
    let first = LabelId::from(labels[0] as usize);
    let candidates = topology.ancestors(first);
    let fits = |&candidate: &LabelId| {
        labels.iter().all(|&label| {
            *budget = budget.saturating_sub(1);
            *budget > 0 && topology.subsumes(candidate, LabelId::from(label as usize))
        })
    };
    let common: Vec<LabelId> = candidates.into_iter().filter(fits).collect();
    let deepest = common.into_iter().max_by_key(|&id| (topology.depth(id), std::cmp::Reverse(id)));
    deepest.map_or(NONE, |id| id.0)
}

/// Rows found so far, and which rows each label is a member of.
struct Collected {
    rows: Vec<Inequality>,
    of: Vec<Vec<u32>>,
}

impl Collected {
    fn add(&mut self, mut members: Vec<u32>, upper: u32, equal: bool, cap: f64) {
        members.sort_unstable();
        if cap == f64::INFINITY {
            let at = self.rows.len() as u32;
            members.iter().for_each(|&label| self.of[label as usize].push(at));
        }
        self.rows.push(Inequality { members, upper, equal, cap });
    }

    /// Whether a row contains all these labels.
    fn covers(&self, labels: &[u32]) -> bool {
        let fewest = labels.iter().min_by_key(|label| self.of[**label as usize].len());
        let rows = fewest.map_or(&[][..], |label| &self.of[*label as usize]);
        rows.iter().any(|row| {
            let members = &self.rows[*row as usize].members;
            members.len() >= labels.len()
                && labels.iter().all(|label| members.binary_search(label).is_ok())
        })
    }
}

impl RowSystem {
    /// The rows of a component.
    pub(in crate::reconcile) fn of_component(part: &Component, weights: &[f64]) -> RowSystem {
        let n = part.labels.len();
        let pair =
            |edge: &Edge| (LabelId::from(edge.parent as usize), LabelId::from(edge.child as usize));
        let hard = part.edges.iter().filter(|edge| edge.cap == f64::INFINITY);
        let topology = Topology::new(n, hard.map(pair));
        let mut exclusions = Exclusions::new(part, &topology);
        let mut found = Collected { rows: Vec::new(), of: vec![Vec::new(); n] };
        for &parent in topology.order() {
            let children: Vec<u32> =
                topology.children(parent).iter().map(|child| child.0).collect();
            for clique in exclusions.cliques(&children) {
                found.add(clique, parent.0, false, f64::INFINITY);
            }
        }
        for group in &part.one_of {
            found.add(group.clone(), NONE, true, f64::INFINITY);
        }
        remaining(&exclusions.sets, &topology, &mut found);
        for edge in part.edges.iter().filter(|edge| edge.cap < f64::INFINITY) {
            found.add(vec![edge.child], edge.parent, false, edge.cap);
        }
        for set in part.sets.iter().filter(|set| set.cap < f64::INFINITY) {
            found.add(set.labels.clone(), NONE, false, set.cap);
        }
        // Soft edges count for the order too.
        let all = Topology::new(n, part.edges.iter().map(pair));
        let mut place = vec![0; n];
        for (at, label) in all.order().iter().enumerate() {
            place[label.index()] = at as u32;
        }
        let weights = part.labels.iter().map(|&label| weights[label as usize]).collect();
        RowSystem::new(part.labels.clone(), weights, found.rows, &place)
    }
}

/// Rows for the exclusive sets that no row contains.
fn remaining(sets: &[&[u32]], topology: &Topology, found: &mut Collected) {
    let mut budget = BUDGET;
    let mut sets: Vec<&[u32]> = sets.to_vec();
    sets.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    let pairs = sets.partition_point(|set| set.len() > 2);
    let (large, pairs) = sets.split_at(pairs);
    for set in large {
        if !found.covers(set) {
            let upper = common_parent(topology, set, &mut budget);
            found.add(set.to_vec(), upper, false, f64::INFINITY);
        }
    }
    // Only pairs that are still open grow together: a clique that repeats what other rows say
    // would make the factor dense.
    let ordered = |a: u32, b: u32| (a.min(b), a.max(b));
    let open: Vec<(u32, u32)> = pairs
        .iter()
        .filter(|pair| !found.covers(pair))
        .map(|pair| ordered(pair[0], pair[1]))
        .collect();
    let mut left: HashSet<(u32, u32)> = open.iter().copied().collect();
    let mut partners: HashMap<u32, Vec<u32>> = HashMap::new();
    for &(a, b) in &open {
        partners.entry(a).or_default().push(b);
        partners.entry(b).or_default().push(a);
    }
    for (a, b) in open {
        if !left.contains(&(a, b)) {
            continue;
        }
        let upper = common_parent(topology, &[a, b], &mut budget);
        let below = |label: u32| {
            let (upper, label) = (LabelId::from(upper as usize), LabelId::from(label as usize));
            upper.0 == NONE || topology.subsumes(upper, label)
        };
        let mut clique = vec![a, b];
        for &label in partners.get(&a).map_or(&[][..], Vec::as_slice) {
            budget = budget.saturating_sub(clique.len());
            let fits = |&member: &u32| left.contains(&ordered(member, label));
            if budget > 0 && below(label) && clique.iter().all(fits) {
                clique.push(label);
            }
        }
        for (at, &member) in clique.iter().enumerate() {
            for &other in &clique[..at] {
                left.remove(&ordered(member, other));
            }
        }
        found.add(clique, upper, false, f64::INFINITY);
    }
}
