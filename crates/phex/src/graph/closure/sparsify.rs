//! Finds the fewest relations with the same legal states.
//!
//! Without dead labels and one-of groups the answer is unique:
//! * Hierarchy: the transitive reduction. An edge is dropped when another parent of the child is
//!   below this parent.
//! * Exclusions: a pair is dropped when a pair above it is exclusive as well. Above means that each
//!   of its labels is an ancestor of, or equal to, a label of the pair.
//!
//! Whole sets are handled as sets: a set is split into pairs only where some of its pairs are
//! dropped. The cost is O(n · depth) on a tree.
//!
//! Dead labels and one-of groups imply more. On such graphs every remaining relation is tried in
//! turn and dropped when the others imply it. In the end no single relation can be dropped, but the
//! result is not unique.

use std::collections::{BTreeMap, HashMap, HashSet};

use fixedbitset::FixedBitSet;

use super::super::topology::{Topology, Walk};
use super::super::{
    Exclusion, Hierarchy, LabelId, RelationGraph, RuleDeclaration, Semantics, SourceLocation,
    Strength,
};
use super::entail::decided;
use super::logic::{ExclusiveSet, Logic, SetSource};
use super::rules;
use super::solve::Solver;
use crate::Error;

/// With dead labels or one-of groups, at most this many pairs are tried one by one.
const MAX_PAIRS: u64 = 5_000_000;

/// Relations of which none can be dropped without changing the legal states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinimalRelations {
    /// Edges `(parent, child)`, ascending.
    pub hierarchy: Vec<(LabelId, LabelId)>,
    /// Exclusive sets of two or more labels. No pair is in two of them. One-of groups, and pairs
    /// inside one, are not included.
    pub exclusive: Vec<Vec<LabelId>>,
}

impl MinimalRelations {
    /// How many exclusion pairs there are.
    pub fn exclusion_pairs(&self) -> u64 {
        let pairs = |set: &Vec<LabelId>| (set.len() as u64) * (set.len() as u64 - 1) / 2;
        self.exclusive.iter().map(pairs).sum()
    }
}

impl Logic {
    /// The fewest relations with the same legal states.
    ///
    /// # Errors
    /// [`Error::Budget`] when many one-of groups interlock. [`Error::TooManyPairs`] when there are
    /// dead labels or one-of groups and too many pairs would have to be tried.
    pub fn minimal_relations(&self) -> Result<MinimalRelations, Error> {
        let topology = &self.topology;
        let kept = self.edges().filter(|&(parent, child)| {
            let mut others = topology.parents(child).iter();
            !others.any(|&other| other != parent && topology.subsumes(parent, other))
        });
        let hierarchy = kept.collect();
        let mut exclusive = Vec::new();
        let mut walk = Walk::new(self.len());
        for (at, set) in self.sets.iter().enumerate() {
            if !matches!(set.source, SetSource::OneOf(_)) {
                let gone = self.redundant_pairs(at, &mut walk);
                split(&set.labels, &gone, &mut exclusive);
            }
        }
        let mut minimal = MinimalRelations { hierarchy, exclusive };
        let dead = self.conflicted_labels();
        if !self.groups.is_empty() || !dead.is_clear() {
            minimal = self.try_each(minimal, &dead)?;
        }
        minimal.hierarchy.sort_unstable();
        Ok(minimal)
    }

    /// Labels with ancestors that exclude each other. They are dead regardless of the one-of
    /// groups.
    ///
    /// A label with one parent and no exclusion of its own shares the fate of its parent. Every
    /// other label costs a walk over its ancestors.
    pub(in crate::graph) fn conflicted_labels(&self) -> FixedBitSet {
        let mut solver = Solver::new(self);
        let mut conflicted = FixedBitSet::with_capacity(self.len());
        for &label in self.topology.order() {
            let parents = self.topology.parents(label);
            let inherits = parents.iter().any(|parent| conflicted.contains(parent.index()));
            let own = parents.len() > 1 || !self.sets_of(label).is_empty();
            if inherits || (own && solver.conflict(&[label]).is_some()) {
                conflicted.insert(label.index());
            }
        }
        conflicted
    }

    /// Whether a pair that is in set `at` and in set `other` is left to `other`.
    fn yields_to(&self, at: usize, other: usize) -> bool {
        let rank = |set: usize| {
            let one_of = matches!(self.sets[set].source, SetSource::OneOf(_));
            (!one_of, self.sets[set].labels.len() == 2, set)
        };
        rank(other) < rank(at)
    }

    /// The pairs of a set that follow from pairs above them, or that are in another set.
    fn redundant_pairs(&self, at: usize, walk: &mut Walk) -> HashSet<(LabelId, LabelId)> {
        let topology = &self.topology;
        let members = &self.sets[at].labels;
        // For each other set, its labels that are above members, and which members those are.
        let mut above: HashMap<u32, BTreeMap<LabelId, Vec<usize>>> = HashMap::new();
        for (place, &member) in members.iter().enumerate() {
            for &label in walk.reach([member], |id| topology.parents(id)) {
                for &set in self.sets_of(label) {
                    if set as usize != at || label != member {
                        above.entry(set).or_default().entry(label).or_default().push(place);
                    }
                }
            }
        }
        // A member excludes labels of its own set that are above other members. (Those members are
        // dead.)
        if let Some(own) = above.get_mut(&(at as u32)) {
            for (place, &member) in members.iter().enumerate() {
                own.entry(member).or_default().push(place);
            }
        }
        let mut gone = PlacePairs::new(members.len());
        for (&set, labels) in above.iter().filter(|(_, labels)| labels.len() > 1) {
            let yields = set as usize != at && self.yields_to(at, set as usize);
            let labels: Vec<_> = labels.iter().collect();
            for (first, &(&a, below_a)) in labels.iter().enumerate() {
                for &(&b, below_b) in &labels[first + 1..] {
                    for &i in below_a {
                        for &j in below_b.iter().filter(|&&j| j != i) {
                            if yields || (a, b) != (members[i], members[j]) {
                                gone.insert(i, j);
                            }
                        }
                    }
                }
            }
        }
        gone.pairs()
            .map(|(i, j)| (members[i].min(members[j]), members[i].max(members[j])))
            .collect()
    }

    /// Drops relations one by one as long as the rest implies them.
    fn try_each(
        &self,
        minimal: MinimalRelations,
        dead: &FixedBitSet,
    ) -> Result<MinimalRelations, Error> {
        let pairs_of = |set: &[LabelId]| {
            let set = set.to_vec();
            (0..set.len()).flat_map(move |i| {
                let set = set.clone();
                (i + 1..set.len()).map(move |j| vec![set[i], set[j]])
            })
        };
        let bound = minimal.exclusion_pairs();
        if bound > MAX_PAIRS {
            return Err(Error::TooManyPairs {
                operation: "sparsifying a graph with dead labels or one-of groups",
                pairs: bound,
                limit: MAX_PAIRS,
                help: "remove the dead labels first; `check` lists them",
            });
        }
        let topology = Topology::new(self.len(), minimal.hierarchy.iter().copied());
        let one_of = self.sets.iter().filter(|set| matches!(set.source, SetSource::OneOf(_)));
        let mut sets: Vec<ExclusiveSet> = one_of.cloned().collect();
        let fixed = sets.len();
        for set in &minimal.exclusive {
            let source = SetSource::Rule;
            sets.extend(pairs_of(set).map(|labels| ExclusiveSet { labels, source }));
        }
        let logic = Logic::new(topology, sets, self.groups.clone());
        let mut solver = Solver::new(&logic);
        let concerned = |a: LabelId, b: LabelId| {
            !self.groups.is_empty() || dead.contains(a.index()) || dead.contains(b.index())
        };
        let mut hierarchy = Vec::new();
        let mut gone = HashSet::new();
        for (at, set) in logic.sets.iter().enumerate().skip(fixed) {
            let (a, b) = (set.labels[0], set.labels[1]);
            solver.without_set(at, true);
            if concerned(a, b) && !decided(&solver.ask(&[a, b], &[]))? {
                gone.insert((a, b));
            } else {
                solver.without_set(at, false);
            }
        }
        for &(parent, child) in &minimal.hierarchy {
            solver.without_edge(parent, child, true);
            let implied = concerned(parent, child) && !decided(&solver.ask(&[child], &[parent]))?;
            if !implied {
                solver.without_edge(parent, child, false);
                hierarchy.push((parent, child));
            }
        }
        let mut exclusive = Vec::new();
        for set in &minimal.exclusive {
            split(set, &gone, &mut exclusive);
        }
        Ok(MinimalRelations { hierarchy, exclusive })
    }
}

/// Sets of more labels than this have no bit per pair.
const MAX_BITS: usize = 1 << 14;

/// Pairs of places in a set. A bit per pair, because sets that overlap name each pair many times.
enum PlacePairs {
    Bits(FixedBitSet, usize),
    Hashed(HashSet<(usize, usize)>),
}

impl PlacePairs {
    fn new(places: usize) -> PlacePairs {
        match places {
            // Grows with the first pair, since most sets lose none.
            0..=MAX_BITS => PlacePairs::Bits(FixedBitSet::new(), places),
            _ => PlacePairs::Hashed(HashSet::new()),
        }
    }

    fn insert(&mut self, i: usize, j: usize) {
        let (i, j) = (i.min(j), i.max(j));
        match self {
            PlacePairs::Bits(bits, places) => {
                if bits.is_empty() {
                    bits.grow(*places * *places);
                }
                bits.insert(i * *places + j);
            }
            PlacePairs::Hashed(pairs) => {
                pairs.insert((i, j));
            }
        }
    }

    fn pairs(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        match self {
            PlacePairs::Bits(bits, places) => {
                Box::new(bits.ones().map(move |at| (at / places, at % places)))
            }
            PlacePairs::Hashed(pairs) => Box::new(pairs.iter().copied()),
        }
    }
}

/// Splits a set around the pairs that are dropped: one set of the labels that lose none, and pairs.
fn split(labels: &[LabelId], gone: &HashSet<(LabelId, LabelId)>, into: &mut Vec<Vec<LabelId>>) {
    let touched: HashSet<LabelId> = if gone.is_empty() {
        HashSet::new()
    } else {
        let inside: HashSet<LabelId> = labels.iter().copied().collect();
        let both = gone.iter().filter(|(a, b)| inside.contains(a) && inside.contains(b));
        both.flat_map(|&(a, b)| [a, b]).collect()
    };
    let core: Vec<LabelId> = labels.iter().copied().filter(|id| !touched.contains(id)).collect();
    for (at, &a) in labels.iter().enumerate() {
        for &b in &labels[at + 1..] {
            if touched.is_empty() {
                break;
            }
            let pair = (a.min(b), a.max(b));
            if (touched.contains(&a) || touched.contains(&b)) && !gone.contains(&pair) {
                into.push(vec![pair.0, pair.1]);
            }
        }
    }
    if core.len() > 1 {
        into.push(core);
    }
}

impl RelationGraph {
    /// The graph with the fewest hard relations and the same legal states. Soft relations stay as
    /// they are, unless no legal state violates them.
    ///
    /// Rules become explicit exclusion groups. The distribution is unchanged, because only hard
    /// relations that others imply, and soft relations that are never violated, are dropped.
    ///
    /// # Errors
    /// As [`Logic::minimal_relations`].
    pub fn sparsify(&self) -> Result<RelationGraph, Error> {
        let logic = Logic::hard(self);
        let minimal = logic.minimal_relations()?;
        let mut solver = Solver::new(&logic);
        let places: HashMap<(LabelId, LabelId), &Hierarchy> =
            self.hierarchy.iter().map(|edge| ((edge.parent, edge.child), edge)).collect();
        let mut hierarchy: Vec<Hierarchy> =
            minimal.hierarchy.iter().map(|pair| places[pair].clone()).collect();
        for edge in self.hierarchy.iter().filter(|edge| !edge.strength.is_hard()) {
            if decided(&solver.ask(&[edge.child], &[edge.parent]))? {
                hierarchy.push(edge.clone());
            }
        }
        let names: HashMap<&[LabelId], &Exclusion> =
            self.exclusions.iter().map(|exclusion| (&*exclusion.labels, exclusion)).collect();
        let hard = |labels: &Vec<LabelId>| match names.get(&**labels) {
            Some(exclusion) if exclusion.strength.is_hard() => (*exclusion).clone(),
            _ => explicit(labels.clone(), Strength::Hard, SourceLocation::default()),
        };
        let mut exclusions: Vec<Exclusion> = minimal.exclusive.iter().map(hard).collect();
        exclusions.sort_by(|a, b| a.labels.cmp(&b.labels));
        for soft in self.exclusions.iter().filter(|exclusion| !exclusion.strength.is_hard()) {
            let mut pairs = pairs(&soft.labels);
            if pairs.try_fold(false, |any, (a, b)| {
                Ok::<_, Error>(any || decided(&solver.ask(&[a, b], &[]))?)
            })? {
                exclusions.push(soft.clone());
            }
        }
        let rule = self.write_out_soft_rule(&mut exclusions);
        Ok(self.with_relations(hierarchy, exclusions, rule))
    }

    /// Adds the minimal sets of a soft rule to the exclusions, and returns the rule if it stays.
    ///
    /// A soft rule charges for its minimal pairs, which depend on the edges as declared. Once the
    /// pairs are written out, the model stays the same when edges are added or dropped.
    pub(super) fn write_out_soft_rule(
        &self,
        exclusions: &mut Vec<Exclusion>,
    ) -> Option<RuleDeclaration> {
        let soft = self.rule.clone().filter(|declared| !declared.strength.is_hard())?;
        if self.semantics == Semantics::Dense {
            return Some(soft);
        }
        let RuleDeclaration { rule, strength, place } = soft;
        let mut at: HashMap<Vec<LabelId>, usize> =
            exclusions.iter().enumerate().map(|(at, e)| (e.labels.clone(), at)).collect();
        for labels in rules::minimal_sets(rule, &self.topology) {
            // Sets that occur twice pay twice.
            if let Some(&twin) = at.get(&labels) {
                let cost = exclusions[twin].strength.cost() + strength.cost();
                exclusions[twin].strength = Strength::W(cost);
            } else {
                at.insert(labels.clone(), exclusions.len());
                exclusions.push(explicit(labels, strength, place.clone()));
            }
        }
        None
    }
}

fn explicit(labels: Vec<LabelId>, strength: Strength, place: SourceLocation) -> Exclusion {
    Exclusion { name: None, labels, strength, place }
}

/// All pairs of a list.
pub(super) fn pairs(labels: &[LabelId]) -> impl Iterator<Item = (LabelId, LabelId)> + '_ {
    let from = move |at: usize| labels[at + 1..].iter().map(move |&b| (labels[at], b));
    (0..labels.len()).flat_map(from)
}
