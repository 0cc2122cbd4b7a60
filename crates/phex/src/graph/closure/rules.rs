//! Turns exclusion rules into few exclusive sets.
//!
//! A rule stays a declaration in the graph, and this module computes the minimal sets that it
//! stands for. A pair that a rule makes exclusive is *minimal* when no pair above it is exclusive;
//! all other exclusive pairs follow from the minimal ones through the hierarchy. Let
//! `overlap(i, j)` hold when `i` and `j` have a common descendant (a label is its own descendant).
//!
//! * `no-common-descendant`: `{i, j}` is minimal iff they do not overlap, every parent of `i`
//!   overlaps `j`, and every parent of `j` overlaps `i`. (Overlap is monotone upwards, so the
//!   immediate parents suffice.) Such a pair has a common parent, or is a pair of roots, or one of
//!   the two has a parent that overlaps the other without being comparable to it. Otherwise the
//!   parents that *are* comparable could be followed, and they would descend forever without
//!   meeting. So the candidates are families, roots, and the children of incomparable overlapping
//!   pairs.
//! * `not-subsumed`: the same with "is comparable" in place of "overlaps", which leaves families
//!   and roots. But this rule is not monotone: a pair may have an exclusive pair diagonally above
//!   it although no pair one step above it is exclusive, so testing the immediate parents is not
//!   enough. Both labels of a candidate have the same ancestors, and these must form a chain.
//!   Otherwise two of them are incomparable, and they are an exclusive pair above the candidate.
//! * `siblings`: the pairs of a family that do not overlap. Siblings with a common descendant are
//!   left out, so that the rule makes no label impossible on a DAG.
//!
//! All children with a single parent form one exclusive set per family. Only labels with several
//! parents, and siblings that overlap, are examined pair by pair. On a tree this costs O(n).

use std::collections::{BTreeSet, HashMap, HashSet};

use fixedbitset::FixedBitSet;

use super::super::topology::{Topology, Walk};
use super::super::{ExclusionRule, LabelId, RelationGraph};

type Pair = (LabelId, LabelId);

fn ordered(a: LabelId, b: LabelId) -> Pair {
    if a < b { (a, b) } else { (b, a) }
}

/// Which incomparable labels have a common descendant.
pub(super) struct Overlaps<'t> {
    topology: &'t Topology,
    /// For each label, the incomparable labels that overlap it, ascending.
    partners: HashMap<LabelId, Vec<LabelId>>,
}

impl<'t> Overlaps<'t> {
    /// Collects the incomparable ancestors of every label with several parents. Costs O(Σ a²/64 ·
    /// a) for `a` ancestors of such labels, and nothing on a forest.
    pub(super) fn new(topology: &'t Topology) -> Overlaps<'t> {
        let mut incomparable: HashSet<Pair> = HashSet::new();
        let mut walk = Walk::new(topology.len());
        let mut local: HashMap<LabelId, usize> = HashMap::new();
        for &label in topology.order() {
            if topology.parents(label).len() < 2 {
                continue;
            }
            let mut above: Vec<LabelId> = walk
                .reach(topology.parents(label).iter().copied(), |id| topology.parents(id))
                .to_vec();
            above.sort_by_key(|&id| topology.depth(id));
            local.clear();
            local.extend(above.iter().enumerate().map(|(at, &id)| (id, at)));
            // Ancestors within `above`, as bits. Parents come first because they are less deep.
            let mut ancestors: Vec<FixedBitSet> = Vec::with_capacity(above.len());
            for (at, &id) in above.iter().enumerate() {
                let mut bits = FixedBitSet::with_capacity(above.len());
                for parent in topology.parents(id) {
                    let parent = local[parent];
                    bits.insert(parent);
                    bits.union_with(&ancestors[parent]);
                }
                for (other, &other_id) in above[..at].iter().enumerate() {
                    if !bits.contains(other) {
                        incomparable.insert(ordered(id, other_id));
                    }
                }
                ancestors.push(bits);
            }
        }
        let mut partners: HashMap<LabelId, Vec<LabelId>> = HashMap::new();
        for (a, b) in incomparable {
            partners.entry(a).or_default().push(b);
            partners.entry(b).or_default().push(a);
        }
        partners.values_mut().for_each(|list| list.sort_unstable());
        Overlaps { topology, partners }
    }

    fn partners(&self, label: LabelId) -> &[LabelId] {
        self.partners.get(&label).map_or(&[], Vec::as_slice)
    }

    pub(super) fn overlap(&self, a: LabelId, b: LabelId) -> bool {
        self.partners(a).binary_search(&b).is_ok() || self.topology.comparable(a, b)
    }
}

/// Decides whether a rule makes two labels exclusive.
pub(super) struct RuleTest<'t> {
    rule: ExclusionRule,
    topology: &'t Topology,
    overlaps: Overlaps<'t>,
}

impl<'t> RuleTest<'t> {
    pub(super) fn new(rule: ExclusionRule, topology: &'t Topology) -> RuleTest<'t> {
        RuleTest { rule, topology, overlaps: Overlaps::new(topology) }
    }

    /// Whether this rule's relation lets both labels be on together: comparable for `not-subsumed`,
    /// overlapping for the other rules.
    fn compatible(&self, a: LabelId, b: LabelId) -> bool {
        match self.rule {
            ExclusionRule::NotSubsumed => self.topology.comparable(a, b),
            _ => self.overlaps.overlap(a, b),
        }
    }

    fn siblings(&self, a: LabelId, b: LabelId) -> bool {
        let parents = self.topology.parents(b);
        self.topology.parents(a).iter().any(|parent| parents.contains(parent))
    }

    pub(super) fn exclusive(&self, a: LabelId, b: LabelId) -> bool {
        a != b
            && (self.rule != ExclusionRule::Siblings || self.siblings(a, b))
            && !self.compatible(a, b)
    }

    /// Whether the pair is exclusive and no pair above it is. (For `siblings`, every pair counts.)
    fn minimal(&self, a: LabelId, b: LabelId) -> bool {
        let covers = |child: LabelId, other: LabelId| {
            let mut parents = self.topology.parents(child).iter();
            parents.all(|&parent| self.compatible(parent, other))
        };
        match self.rule {
            ExclusionRule::Siblings => self.exclusive(a, b),
            ExclusionRule::NoCommonDescendant => {
                self.exclusive(a, b) && covers(a, b) && covers(b, a)
            }
            // Both labels have the same ancestors here, and two of these may exclude each other.
            ExclusionRule::NotSubsumed => {
                self.exclusive(a, b) && covers(a, b) && covers(b, a) && self.chain_above(a)
            }
        }
    }

    /// Whether the ancestors of a label are all comparable with each other.
    fn chain_above(&self, label: LabelId) -> bool {
        if self.topology.is_tree_above(label) {
            return true;
        }
        let mut walk = Walk::new(self.topology.len());
        let parents = self.topology.parents(label).iter().copied();
        let mut above = walk.reach(parents, |id| self.topology.parents(id)).to_vec();
        above.sort_by_key(|&id| self.topology.depth(id));
        above.windows(2).all(|pair| self.topology.subsumes(pair[0], pair[1]))
    }
}

/// The minimal exclusive sets of a rule: whole families and single pairs. No pair occurs twice.
pub(super) fn minimal_sets(rule: ExclusionRule, topology: &Topology) -> Vec<Vec<LabelId>> {
    let test = RuleTest::new(rule, topology);
    let mut sets = Vec::new();
    let mut pairs: BTreeSet<Pair> = BTreeSet::new();
    let mut shared: HashSet<Pair> = HashSet::new();
    let ids = || (0..topology.len()).map(LabelId::from);
    if rule != ExclusionRule::Siblings {
        let roots: Vec<LabelId> = ids().filter(|&id| topology.parents(id).is_empty()).collect();
        family(&test, &roots, |_| true, &mut sets, &mut pairs, &mut shared);
    }
    for parent in ids() {
        let only_child_of = |id: LabelId| topology.parents(id).len() == 1;
        let children = topology.children(parent);
        family(&test, children, only_child_of, &mut sets, &mut pairs, &mut shared);
    }
    if rule == ExclusionRule::NoCommonDescendant {
        for (&parent, others) in &test.overlaps.partners {
            for &child in topology.children(parent) {
                // Siblings were handled with their family.
                let minimal = others
                    .iter()
                    .filter(|&&other| !test.siblings(child, other) && test.minimal(child, other));
                pairs.extend(minimal.map(|&other| ordered(child, other)));
            }
        }
    }
    pairs.retain(|pair| !shared.contains(pair));
    sets.extend(pairs.into_iter().map(|(a, b)| vec![a, b]));
    sets
}

/// The minimal pairs within one family: one set that is as large as possible, and the rest pair by
/// pair.
///
/// Labels that are in no other family and overlap no sibling join the set without a check. The
/// others join when they form minimal pairs with all of it. A pair of labels with several parents
/// may already be in a set of another family.
fn family(
    test: &RuleTest<'_>,
    members: &[LabelId],
    plain: impl Fn(LabelId) -> bool,
    sets: &mut Vec<Vec<LabelId>>,
    pairs: &mut BTreeSet<Pair>,
    shared: &mut HashSet<Pair>,
) {
    if members.len() < 2 {
        return;
    }
    let inside: HashSet<LabelId> = members.iter().copied().collect();
    let overlaps =
        |member| test.overlaps.partners(member).iter().any(|other| inside.contains(other));
    let (mut set, rest): (Vec<LabelId>, Vec<LabelId>) =
        members.iter().partition(|&&member| plain(member) && !overlaps(member));
    // The plain members have the same parents, so what holds for two of them holds for all.
    if set.len() > 1 && !test.minimal(set[0], set[1]) {
        return;
    }
    for (at, &a) in rest.iter().enumerate() {
        let fresh: Vec<LabelId> = set
            .iter()
            .copied()
            .filter(|&b| test.minimal(a, b) && !shared.contains(&ordered(a, b)))
            .collect();
        if fresh.len() == set.len() {
            set.push(a);
        } else {
            pairs.extend(fresh.into_iter().map(|b| ordered(a, b)));
        }
        // Members that did not join have still to be paired with each other.
        let outside = rest[..at].iter().filter(|b| !set.contains(b));
        let paired = outside.filter(|&&b| test.minimal(a, b)).map(|&b| ordered(a, b));
        pairs.extend(paired.filter(|pair| !shared.contains(pair)).collect::<Vec<_>>());
    }
    let in_set: Vec<LabelId> = rest.iter().copied().filter(|id| set.contains(id)).collect();
    for (at, &a) in in_set.iter().enumerate() {
        shared.extend(in_set[at + 1..].iter().map(|&b| ordered(a, b)));
    }
    if set.len() > 1 {
        set.sort_unstable();
        sets.push(set);
    }
}

impl RelationGraph {
    /// The minimal exclusive sets of the exclusion rule: whole families and single pairs. No pair
    /// occurs twice. Empty without a rule.
    pub fn rule_sets(&self) -> Vec<Vec<LabelId>> {
        self.rule().map_or(Vec::new(), |declared| minimal_sets(declared.rule, self.topology()))
    }

    /// Every pair that the exclusion rule makes exclusive, smaller label first: up to n²/2 pairs.
    pub(crate) fn rule_pairs(&self) -> Vec<(LabelId, LabelId)> {
        let pairs = self.rule().map(|declared| all_pairs(declared.rule, self.topology()));
        pairs.unwrap_or_default().into_iter().map(|pair| (pair[0], pair[1])).collect()
    }
}

/// Every pair that a rule makes exclusive: up to n²/2 pairs.
pub(super) fn all_pairs(rule: ExclusionRule, topology: &Topology) -> Vec<Vec<LabelId>> {
    let test = RuleTest::new(rule, topology);
    let mut pairs = Vec::new();
    for a in 0..topology.len() {
        for b in a + 1..topology.len() {
            let (a, b) = (LabelId::from(a), LabelId::from(b));
            if test.exclusive(a, b) {
                pairs.push(vec![a, b]);
            }
        }
    }
    pairs
}
