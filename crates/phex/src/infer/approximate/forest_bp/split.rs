//! Splits a model into a forest that `family` solves exactly, and the relations outside it.
//!
//! Each label keeps its strongest parent. Among equals it keeps the parent with the most children
//! that exclude the label, because those exclusions are then within the family. The exclusions of a
//! family become disjoint sets in which every pair costs the same, largest first. The rest becomes
//! residual pairs: second parents, exclusions between families, and sets that overlap.

use std::collections::{BTreeMap, HashMap};

use crate::graph::LabelId;
use crate::infer::Unfit;
use crate::model::{Model, Relation};

/// A relation between two labels that the forest does not cover.
#[derive(Debug, Clone, PartialEq)]
pub struct Residual {
    /// The smaller label.
    pub a: usize,
    /// The larger label.
    pub b: usize,
    /// `costs[x_a][x_b]`, finite or `∞`.
    pub costs: [[f64; 2]; 2],
}

/// Where the expected violations of a relation, or of one of its pairs, are read from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ViolationSource {
    /// A relation of the forest.
    Forest(usize),
    /// Both labels of a residual pair on. For a hierarchy edge: its child on without its parent.
    Residual { pair: usize, child: Option<usize> },
    /// This label on: the child of a hierarchy edge within a one-of group.
    Label(usize),
}

/// A model in two parts.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) forest: Model,
    pub(super) residual: Vec<Residual>,
    /// For each relation of the model, the sources whose sum is its violations.
    pub(super) sources: Vec<Vec<ViolationSource>>,
}

/// Models with more pairs of exclusion groups are refused.
const MAX_PAIRS: usize = 4_000_000;

type Pair = (usize, usize);

/// The remaining pairs, merged.
struct Leftover {
    at: BTreeMap<Pair, usize>,
    pairs: Vec<Residual>,
    /// The one-of group of each label.
    group: Vec<Option<usize>>,
}

impl Leftover {
    /// Whether the labels are never on together. What they would cost is then never paid, and a
    /// message about it would be wrong.
    fn apart(&self, a: usize, b: usize) -> bool {
        self.group[a].is_some() && self.group[a] == self.group[b]
    }

    fn add(&mut self, a: usize, b: usize, costs: [[f64; 2]; 2]) -> usize {
        let (a, b, costs) = if a < b {
            (a, b, costs)
        } else {
            (b, a, [[costs[0][0], costs[1][0]], [costs[0][1], costs[1][1]]])
        };
        let at = *self.at.entry((a, b)).or_insert_with(|| {
            self.pairs.push(Residual { a, b, costs: [[0.0; 2]; 2] });
            self.pairs.len() - 1
        });
        let sums = self.pairs[at].costs.iter_mut().flatten();
        sums.zip(costs.iter().flatten()).for_each(|(sum, cost)| *sum += cost);
        at
    }
}

/// An exclusion of a model: relation, labels, cost of a pair.
type Exclusive = (usize, Vec<usize>, f64);

impl Split {
    pub(super) fn new(model: &Model) -> Result<Split, Unfit> {
        if model.dense().is_some() {
            let words = "it cannot handle dense semantics on a forest, for which `count` is exact";
            return Err(Unfit::Shape(words.to_owned()));
        }
        let parent = strongest_parents(model);
        let mut relations = Vec::new();
        let mut group = vec![None; model.len()];
        for (at, one_of) in model.one_of().iter().enumerate() {
            one_of.labels.iter().for_each(|id| group[id.index()] = Some(at));
        }
        let mut bias = model.bias().to_vec();
        let mut leftover = Leftover { at: BTreeMap::new(), pairs: Vec::new(), group };
        let mut sources = vec![Vec::new(); model.relations().len()];
        let mut exclusive: Vec<Exclusive> = Vec::new();
        let mut pairs = 0;
        for (at, relation) in model.relations().iter().enumerate() {
            let ids = |labels: &[LabelId]| labels.iter().map(|id| id.index()).collect::<Vec<_>>();
            match relation {
                Relation::Hierarchy { parent: above, child, cost } => {
                    if parent[child.index()] == Some(above.index()) {
                        sources[at].push(ViolationSource::Forest(relations.len()));
                        relations.push(relation.clone());
                    } else if leftover.apart(above.index(), child.index()) && cost.is_finite() {
                        // The parent is off whenever the child is on.
                        bias[child.index()] -= cost;
                        sources[at].push(ViolationSource::Label(child.index()));
                    } else {
                        let costs = [[0.0, *cost], [0.0, 0.0]];
                        let pair = leftover.add(above.index(), child.index(), costs);
                        let child = Some(child.index());
                        sources[at].push(ViolationSource::Residual { pair, child });
                    }
                }
                Relation::Exclusion { a, b, cost } => {
                    exclusive.push((at, ids(&[*a, *b]), *cost));
                    pairs += 1;
                }
                Relation::Group { labels, cost } => {
                    exclusive.push((at, ids(labels), *cost));
                    pairs += labels.len() * labels.len() / 2;
                }
                Relation::Pair { a, b, costs } => {
                    let pair = leftover.add(a.index(), b.index(), *costs);
                    sources[at].push(ViolationSource::Residual { pair, child: None });
                }
            }
        }
        if pairs > MAX_PAIRS {
            let needs = format!("{pairs} pairs of labels in exclusion groups");
            return Err(Unfit::Budget { needs });
        }
        let sets = counted_sets(&exclusive, &parent);
        assign(&exclusive, &sets, &mut relations, &mut leftover, &mut sources);
        if relations.is_empty() {
            let words =
                "the graph has no hierarchy or exclusions from which to build an exact forest";
            return Err(Unfit::Shape(words.to_owned()));
        }
        let forest = Model::from_parts(
            model.names().to_vec(),
            bias,
            model.constant(),
            relations,
            model.one_of().to_vec(),
        );
        Ok(Split { forest, residual: leftover.pairs, sources })
    }
}

/// The parent of each label by its strongest edge. Among several, it is the parent shared with the
/// most labels that exclude this one, and among those the first.
fn strongest_parents(model: &Model) -> Vec<Option<usize>> {
    let n = model.len();
    let mut strongest = vec![f64::NEG_INFINITY; n];
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); n];
    for relation in model.relations() {
        if let Relation::Hierarchy { parent, child, cost } = relation {
            let child = child.index();
            if *cost > strongest[child] {
                strongest[child] = *cost;
                parents[child].clear();
            }
            if *cost == strongest[child] {
                parents[child].push(parent.index());
            }
        }
    }
    let mut near: HashMap<usize, Vec<usize>> = HashMap::new();
    for relation in model.relations() {
        let labels = match relation {
            Relation::Exclusion { a, b, .. } => vec![a.index(), b.index()],
            Relation::Group { labels, .. } => labels.iter().map(|id| id.index()).collect(),
            Relation::Hierarchy { .. } | Relation::Pair { .. } => continue,
        };
        for &label in labels.iter().filter(|&&label| parents[label].len() > 1) {
            near.entry(label).or_default().extend(labels.iter().filter(|&&other| other != label));
        }
    }
    let choose = |label: usize| {
        let shared = |parent: usize| {
            let others = near.get(&label).map_or(&[][..], Vec::as_slice);
            others.iter().filter(|&&other| parents[other].contains(&parent)).count()
        };
        // Takes the first of the largest; `max_by_key` alone would take the last.
        parents[label].iter().copied().rev().max_by_key(|&parent| shared(parent))
    };
    (0..n).map(choose).collect()
}

/// A set of siblings that the forest counts, and the cost of a pair.
struct Counted {
    labels: Vec<usize>,
    cost: f64,
}

/// Disjoint sets of siblings from the exclusions, largest first.
fn counted_sets(exclusive: &[Exclusive], parent: &[Option<usize>]) -> Vec<Counted> {
    let mut candidates: Vec<Counted> = Vec::new();
    for (_, labels, cost) in exclusive {
        let mut families: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        labels.iter().for_each(|&label| families.entry(parent[label]).or_default().push(label));
        let large = families.into_values().filter(|labels| labels.len() > 1);
        candidates.extend(large.map(|labels| Counted { labels, cost: *cost }));
    }
    // Pairs that form a clique without being declared as a set grow into one.
    grow_cliques(&mut candidates);
    candidates.sort_by_key(|set| std::cmp::Reverse(set.labels.len()));
    let mut taken = vec![false; parent.len()];
    let mut sets = Vec::new();
    for mut set in candidates {
        set.labels.retain(|&label| !taken[label]);
        if set.labels.len() > 1 {
            set.labels.iter().for_each(|&label| taken[label] = true);
            set.labels.sort_unstable();
            sets.push(set);
        }
    }
    sets
}

/// For pairs of equal cost among the same siblings, adds the cliques that a greedy search finds.
fn grow_cliques(candidates: &mut Vec<Counted>) {
    let mut near: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
    for set in candidates.iter().filter(|set| set.labels.len() == 2) {
        let (a, b) = (set.labels[0], set.labels[1]);
        near.entry(a).or_default().push((b, set.cost));
        near.entry(b).or_default().push((a, set.cost));
    }
    let mut order: Vec<usize> = near.keys().copied().collect();
    order.sort_by_key(|label| (std::cmp::Reverse(near[label].len()), *label));
    let joined = |a: usize, b: usize, cost: f64| near[&a].contains(&(b, cost));
    let mut used: std::collections::HashSet<usize> = std::collections::HashSet::new();
    for &start in &order {
        if used.contains(&start) {
            continue;
        }
        let cost = near[&start][0].1;
        let mut clique = vec![start];
        let mut others: Vec<usize> =
            near[&start].iter().filter(|n| n.1 == cost).map(|n| n.0).collect();
        others.sort_by_key(|label| (std::cmp::Reverse(near[label].len()), *label));
        others.dedup();
        for other in others {
            if !used.contains(&other) && clique.iter().all(|&member| joined(member, other, cost)) {
                clique.push(other);
            }
        }
        if clique.len() > 2 {
            used.extend(&clique);
            candidates.push(Counted { labels: clique, cost });
        }
    }
}

/// Assigns every pair of every exclusion to its counted set, or to the leftovers.
fn assign(
    exclusive: &[Exclusive],
    sets: &[Counted],
    relations: &mut Vec<Relation>,
    leftover: &mut Leftover,
    sources: &mut [Vec<ViolationSource>],
) {
    let mut set_of: HashMap<usize, usize> = HashMap::new();
    for (at, set) in sets.iter().enumerate() {
        set.labels.iter().for_each(|&label| {
            set_of.insert(label, at);
        });
    }
    let same_set =
        |a: usize, b: usize| set_of.get(&a).copied().filter(|at| set_of.get(&b) == Some(at));
    // A set that is exactly one relation needs no pairs.
    let whole = |labels: &[usize], cost: f64| {
        let set = same_set(labels[0], labels[1])?;
        let mut sorted = labels.to_vec();
        sorted.sort_unstable();
        (sets[set].labels == sorted && sets[set].cost == cost).then_some(set)
    };
    let mut written: Vec<Option<usize>> = vec![None; sets.len()];
    for (_, labels, cost) in exclusive {
        if let Some(set) = whole(labels, *cost)
            && written[set].is_none()
        {
            written[set] = Some(relations.len());
            relations.push(exclusion(labels, *cost));
        }
    }
    // The other sets are all pairs of their labels, each with its own expectation.
    let mut pair_at: HashMap<Pair, usize> = HashMap::new();
    for (set, _) in sets.iter().zip(&written).filter(|(_, written)| written.is_none()) {
        for (i, &a) in set.labels.iter().enumerate() {
            for &b in &set.labels[i + 1..] {
                pair_at.insert((a, b), relations.len());
                relations.push(exclusion(&[a, b], set.cost));
            }
        }
    }
    // If a set charges too much or too little for a pair, the difference is settled once.
    let mut due: BTreeMap<Pair, f64> = BTreeMap::new();
    for set in sets {
        for (i, &a) in set.labels.iter().enumerate() {
            set.labels[i + 1..].iter().for_each(|&b| {
                due.insert((a, b), -set.cost);
            });
        }
    }
    for (relation, labels, cost) in exclusive {
        if let Some(set) = whole(labels, *cost)
            && let Some(at) = written[set].filter(|_| sources[*relation].is_empty())
            && pays(&mut due, labels, *cost)
        {
            sources[*relation].push(ViolationSource::Forest(at));
            continue;
        }
        for (i, &a) in labels.iter().enumerate() {
            for &b in &labels[i + 1..] {
                let pair = (a.min(b), a.max(b));
                if leftover.apart(a, b) {
                    continue;
                }
                match due.get_mut(&pair) {
                    Some(rest) if *rest == -*cost || (*rest < 0.0 && rest.is_finite()) => {
                        // Infinite costs cancel only when they are equal.
                        *rest = if rest.is_finite() { *rest + cost } else { 0.0 };
                    }
                    _ => {
                        leftover.add(a, b, [[0.0, 0.0], [0.0, *cost]]);
                    }
                }
                let source = match pair_at.get(&pair) {
                    Some(&at) => ViolationSource::Forest(at),
                    None => {
                        let pair = leftover.add(a, b, [[0.0; 2]; 2]);
                        ViolationSource::Residual { pair, child: None }
                    }
                };
                sources[*relation].push(source);
            }
        }
    }
    for ((a, b), rest) in due {
        if rest != 0.0 && !leftover.apart(a, b) {
            leftover.add(a, b, [[0.0, 0.0], [0.0, rest]]);
        }
    }
}

/// Subtracts the cost of an exclusion from what is due for each of its pairs, if all of it is due.
fn pays(due: &mut BTreeMap<Pair, f64>, labels: &[usize], cost: f64) -> bool {
    let mut pairs = Vec::new();
    for (i, &a) in labels.iter().enumerate() {
        labels[i + 1..].iter().for_each(|&b| pairs.push((a.min(b), a.max(b))));
    }
    if !pairs.iter().all(|pair| due.get(pair) == Some(&-cost)) {
        return false;
    }
    pairs.into_iter().for_each(|pair| {
        due.insert(pair, 0.0);
    });
    true
}

fn exclusion(labels: &[usize], cost: f64) -> Relation {
    let ids: Vec<LabelId> = labels.iter().copied().map(LabelId::from).collect();
    match ids[..] {
        [a, b] => Relation::Exclusion { a, b, cost },
        _ => Relation::Group { labels: ids, cost },
    }
}
