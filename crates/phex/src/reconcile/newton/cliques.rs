//! From relations to few strong rows.
//!
//! Weak rows cost gain: pairs `q_i + q_j ≤ 1` let any number of exclusive labels stay at one half.
//! So exclusive labels are covered by cliques, and each clique is bounded by a label above all of
//! them where there is one.
//!
//! 1. For each label, its children fall into cliques. Every hierarchy edge is in one such row.
//! 2. One-of groups are equations.
//! 3. Exclusive sets that no row contains are rows of their own. Pairs among them are bounded by
//!    the deepest label above both, and those with the same bound grow together to cliques.
//! 4. Rows that say less than another row are dropped.
//! 5. Soft relations are rows as they were declared.
//!
//! A clique grows by labels that are in an open pair with one of its members, even if other rows
//! exclude them from the rest. On ImageNet's 1860 labels this makes 94 rows of 1402 open pairs.
//! Growing by open pairs alone makes 1170, and as labels are then in many rows, a factorisation
//! takes 30 times as long.
//!
//! Two labels exclude each other if some set contains a label above each of them, and not the same
//! one. The sets above a label are listed once. No pair of a declared set is ever written out, and
//! searches that could take quadratic time have a budget; beyond it rows stay smaller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

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

    /// Drops rows whose labels a larger row with the same limit has too.
    fn drop_implied(&mut self) {
        let is_implied = |row: &Inequality| {
            let fewest = row.members.iter().min_by_key(|label| self.of[**label as usize].len());
            let others = fewest.map_or(&[][..], |label| &self.of[*label as usize]);
            others.iter().map(|&other| &self.rows[other as usize]).any(|other| {
                other.upper == row.upper
                    && other.members.len() > row.members.len()
                    && row.members.iter().all(|label| other.members.binary_search(label).is_ok())
            })
        };
        let implied: Vec<bool> =
            self.rows.iter().map(|row| !row.equal && is_implied(row)).collect();
        self.of.iter_mut().for_each(Vec::clear);
        for (row, _) in std::mem::take(&mut self.rows).into_iter().zip(implied).filter(|r| !r.1) {
            self.add(row.members, row.upper, row.equal, row.cap);
        }
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
        remaining(&mut exclusions, &topology, &mut found);
        found.drop_implied();
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
fn remaining(exclusions: &mut Exclusions<'_>, topology: &Topology, found: &mut Collected) {
    let mut budget = BUDGET;
    exclusions.budget = BUDGET;
    let mut sets: Vec<&[u32]> = exclusions.sets.clone();
    sets.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    let pairs = sets.partition_point(|set| set.len() > 2);
    let (large, pairs) = sets.split_at(pairs);
    for set in large {
        if !found.covers(set) {
            let upper = common_parent(topology, set, &mut budget);
            found.add(set.to_vec(), upper, false, f64::INFINITY);
        }
    }
    let mut open: BTreeMap<u32, OpenPairs> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| !found.covers(pair)) {
        let upper = common_parent(topology, pair, &mut budget);
        open.entry(upper).or_default().add(pair[0], pair[1]);
    }
    for (upper, mut pairs) in open {
        while let Some(clique) = pairs.take(exclusions) {
            found.add(clique, upper, false, f64::INFINITY);
        }
    }
}

/// Exclusive pairs that no row contains yet, below the same label: the partners of each label.
#[derive(Debug, Default)]
struct OpenPairs(BTreeMap<u32, BTreeSet<u32>>);

impl OpenPairs {
    fn add(&mut self, a: u32, b: u32) {
        self.0.entry(a).or_default().insert(b);
        self.0.entry(b).or_default().insert(a);
    }

    /// A clique around the first pair, whose pairs are open no more. Each new member has the most
    /// open pairs with those so far, and excludes all of them.
    fn take(&mut self, exclusions: &mut Exclusions<'_>) -> Option<Vec<u32>> {
        let (&first, partners) = self.0.first_key_value()?;
        let mut next = partners.first().copied();
        let mut clique = vec![first];
        // Who excludes all members, and in how many open pairs with them. Who does not, or is a
        // member, has none.
        let mut candidates: BTreeMap<u32, Option<usize>> =
            partners.iter().map(|&partner| (partner, Some(1))).collect();
        candidates.insert(first, None);
        while let Some(member) = next {
            for (&label, count) in candidates.iter_mut().filter(|(_, count)| count.is_some()) {
                if label == member || !self.exclude(exclusions, label, member) {
                    *count = None;
                }
            }
            clique.push(member);
            for &label in self.0.get(&member).into_iter().flatten() {
                let mut excludes =
                    || clique.iter().all(|&other| self.exclude(exclusions, label, other));
                let count = candidates.entry(label).or_insert_with(|| excludes().then_some(0));
                *count = count.map(|count| count + 1);
            }
            let open = candidates.iter().filter_map(|(&label, &count)| Some((count?, label)));
            next = open.max_by_key(|&(count, label)| (count, Reverse(label))).map(|best| best.1);
        }
        for &member in &clique {
            let partners = self.0.get_mut(&member)?;
            partners.retain(|partner| !clique.contains(partner));
            if partners.is_empty() {
                self.0.remove(&member);
            }
        }
        Some(clique)
    }

    /// Whether two labels exclude each other, as far as the budget of the search tells.
    fn exclude(&self, exclusions: &mut Exclusions<'_>, a: u32, b: u32) -> bool {
        let open = self.0.get(&a).is_some_and(|partners| partners.contains(&b));
        open || (exclusions.budget > 0 && exclusions.exclude(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::compile::component_of;
    use super::*;
    use crate::graph::{ExclusionRule, GraphBuilder};

    #[test]
    fn open_pairs_grow_by_labels_that_other_rows_exclude() {
        // `a` and `b` overlap in `d`, so each excludes the other's own children.
        let mut builder = GraphBuilder::new();
        for edge in ["r a", "r b", "a d", "b d", "a x", "a y", "b u", "b v"] {
            let (parent, child) = edge.split_once(' ').unwrap();
            builder.hierarchy(parent, child, None);
        }
        builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None);
        let graph = builder.build().unwrap();
        let part = component_of(&graph).unwrap();
        let system = RowSystem::of_component(&part, &vec![1.0; graph.len()]);
        let name = |label: u32| graph.name(LabelId(part.labels[label as usize]));
        let mut rows: Vec<String> = (0..system.len())
            .map(|row| {
                let members = system.members.of(row).iter().map(|&label| name(label));
                let members: Vec<&str> = members.collect();
                format!("{} <= {}", members.join(" + "), name(system.upper[row]))
            })
            .collect();
        rows.sort_unstable();
        // `a <= r` and `b <= r` are implied.
        assert_eq!(rows, ["a + u + v <= r", "b + x + y <= r", "d + u + v <= b", "d + x + y <= a"]);
    }
}
