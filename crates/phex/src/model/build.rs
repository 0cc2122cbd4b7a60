//! Builds a model from a graph.
//!
//! Under sparse semantics the model charges for every relation as declared, and for the minimal
//! exclusive sets of a rule.
//!
//! Under dense semantics the model charges for every implied pair. A chain of relations is as
//! strong as its weakest link, and the strongest chain counts. A rule names all its pairs itself.
//! So a pair is hard exactly when hard relations imply it, and the legal states are those of the
//! graph. (Charging a label's own edge for every ancestor would be simpler, but it would make a
//! soft link hard below a hard one. On forests with one strength for the hierarchy both definitions
//! agree.)
//!
//! On forests with one strength for the hierarchy, and exclusions of whole families that are not
//! stronger, the implied pairs stay implicit ([`DenseForest`]). On other graphs they are written
//! out, which costs memory in proportion to their number.

use std::collections::{BTreeMap, HashMap};

use super::{DenseForest, Model, OneOfGroup, Relation};
use crate::Error;
use crate::graph::{ExclusionRule, LabelId, RelationGraph, Semantics};

/// Graphs with more implied pairs than this are refused.
const MAX_PAIRS: u64 = 4_000_000;

impl Model {
    /// The model of a graph.
    ///
    /// # Errors
    /// [`Error::TooManyPairs`] for dense semantics on a large graph that is not a forest of
    /// exclusive families. [`Error::NoLegalState`] when the one-of groups cannot be satisfied.
    pub fn new(graph: &RelationGraph) -> Result<Model, Error> {
        let names = graph.labels().iter().map(|label| label.name.clone()).collect::<Vec<_>>();
        let one_of = graph.one_of().iter();
        let one_of = one_of
            .map(|group| OneOfGroup { name: group.name.clone(), labels: group.labels.clone() })
            .collect::<Vec<_>>();
        if !one_of.is_empty() && !crate::graph::closure::Logic::hard(graph).is_satisfiable()? {
            return Err(Error::NoLegalState);
        }
        let bias = vec![0.0; graph.len()];
        let mut model =
            Model { names, bias, constant: 0.0, relations: Vec::new(), one_of, dense: None };
        match graph.semantics() {
            Semantics::Sparse => model.relations = sparse_relations(graph),
            Semantics::Dense => match dense_forest(graph) {
                Some(dense) => model.dense = Some(dense),
                None => model.relations = dense_relations(graph)?,
            },
        }
        Ok(model)
    }

    /// A model with any pairwise costs, which need not come from a label graph.
    ///
    /// # Panics
    /// When a relation names a label that is out of range, or when `bias` does not have one entry
    /// per name.
    pub fn from_parts(
        names: Vec<String>,
        bias: Vec<f64>,
        constant: f64,
        relations: Vec<Relation>,
        one_of: Vec<OneOfGroup>,
    ) -> Model {
        assert_eq!(names.len(), bias.len(), "one bias per label");
        let in_range =
            |relation: &Relation| relation.labels().iter().all(|label| label.index() < names.len());
        assert!(relations.iter().all(in_range), "every relation names labels of the model");
        Model { names, bias, constant, relations, one_of, dense: None }
    }
}

fn exclusion(labels: &[LabelId], cost: f64) -> Relation {
    match *labels {
        [a, b] => Relation::Exclusion { a, b, cost },
        _ => Relation::Group { labels: labels.to_vec(), cost },
    }
}

fn sparse_relations(graph: &RelationGraph) -> Vec<Relation> {
    let hierarchy = graph.hierarchy().iter().map(|edge| Relation::Hierarchy {
        parent: edge.parent,
        child: edge.child,
        cost: edge.strength.cost(),
    });
    let exclusions =
        graph.exclusions().iter().map(|item| exclusion(&item.labels, item.strength.cost()));
    let cost = graph.rule().map_or(0.0, |declared| declared.strength.cost());
    let rule = graph.rule_sets().into_iter().map(|set| exclusion(&set, cost));
    hierarchy.chain(exclusions).chain(rule).collect()
}

/// The implicit form of dense semantics. The graph must be a forest in which whole families exclude
/// each other, or nothing does, and no chain may be weaker than the exclusion at its top.
fn dense_forest(graph: &RelationGraph) -> Option<DenseForest> {
    let topology = graph.topology();
    if !topology.is_forest() {
        return None;
    }
    let n = graph.len();
    let parent: Vec<Option<LabelId>> =
        graph.ids().map(|id| topology.parents(id).first().copied()).collect();
    let mut edge_cost = vec![0.0; n];
    for edge in graph.hierarchy() {
        edge_cost[edge.child.index()] = edge.strength.cost();
    }
    let mut family_cost = vec![0.0; n + 1];
    if let Some(declared) = graph.rule() {
        family_cost.fill(declared.strength.cost());
        if declared.rule == ExclusionRule::Siblings {
            family_cost[n] = 0.0;
        }
    }
    for item in graph.exclusions() {
        let above = parent[item.labels[0].index()];
        let mut family: Vec<LabelId> = match above {
            Some(above) => topology.children(above).to_vec(),
            None => graph.roots().collect(),
        };
        family.sort_unstable();
        if family != item.labels {
            return None;
        }
        let slot = &mut family_cost[above.map_or(n, LabelId::index)];
        *slot = slot.max(item.strength.cost());
    }
    let hierarchy = graph.hierarchy().first().map_or(f64::INFINITY, |edge| edge.strength.cost());
    let uniform = graph.hierarchy().iter().all(|edge| edge.strength.cost() == hierarchy);
    // An exclusion reaches lower pairs through chains, so it must not be stronger than the chains.
    // Pairs that a rule names itself need no chain.
    let direct = graph.rule().filter(|declared| declared.rule != ExclusionRule::Siblings);
    let direct = direct.map_or(0.0, |declared| declared.strength.cost());
    let strongest = family_cost.iter().copied().fold(0.0, f64::max);
    let fits = uniform && (strongest <= hierarchy || strongest <= direct);
    fits.then_some(DenseForest { parent, edge_cost, family_cost })
}

/// Writes out every implied pair.
fn dense_relations(graph: &RelationGraph) -> Result<Vec<Relation>, Error> {
    let n = graph.len() as u64;
    let too_many = Error::TooManyPairs {
        operation: "dense semantics on a graph that is not a forest of exclusive families",
        pairs: n * n / 2,
        limit: MAX_PAIRS,
        help: "use sparse semantics, or give each label one parent and each kind of relation one strength",
    };
    if graph.rule().is_some() && n * n / 2 > MAX_PAIRS {
        return Err(too_many);
    }
    let below = chains_below(graph);
    let mut relations = Vec::new();
    for parent in graph.ids() {
        let children = below[parent.index()].iter().filter(|(child, _)| *child != parent);
        relations.extend(children.map(|&(child, cost)| Relation::Hierarchy {
            parent,
            child,
            cost,
        }));
    }
    let rule = graph.rule().map_or(0.0, |declared| declared.strength.cost());
    // A rule names its pairs itself. Lower pairs follow through chains, as from any exclusion.
    let mut strongest: HashMap<(LabelId, LabelId), f64> =
        graph.rule_pairs().into_iter().map(|pair| (pair, rule)).collect();
    let declared = graph.exclusions().iter();
    let sets = declared.map(|item| (item.labels.clone(), item.strength.cost()));
    for (labels, cost) in sets.chain(graph.rule_sets().into_iter().map(|set| (set, rule))) {
        for (at, a) in labels.iter().enumerate() {
            for b in &labels[at + 1..] {
                for &(i, to_a) in &below[a.index()] {
                    for &(j, to_b) in below[b.index()].iter().filter(|(j, _)| *j != i) {
                        let slot = strongest.entry((i.min(j), i.max(j))).or_insert(0.0);
                        *slot = slot.max(cost.min(to_a).min(to_b));
                    }
                }
                if (strongest.len() + relations.len()) as u64 > MAX_PAIRS {
                    return Err(too_many);
                }
            }
        }
    }
    let mut pairs: Vec<_> = strongest.into_iter().collect();
    pairs.sort_by_key(|&(pair, _)| pair);
    relations.extend(pairs.into_iter().map(|((a, b), cost)| Relation::Exclusion { a, b, cost }));
    Ok(relations)
}

/// For each label, the labels that it subsumes (itself first, at infinite cost), each with the
/// strength of the strongest chain to it. A chain is as strong as its weakest edge.
fn chains_below(graph: &RelationGraph) -> Vec<Vec<(LabelId, f64)>> {
    let topology = graph.topology();
    let mut below: Vec<Vec<(LabelId, f64)>> = vec![Vec::new(); graph.len()];
    for &label in topology.order().iter().rev() {
        let mut found: BTreeMap<LabelId, f64> = BTreeMap::new();
        for &child in topology.children(label) {
            let edge = topology.edge(label, child).map(|edge| &graph.hierarchy()[edge]);
            let first = edge.map_or(0.0, |edge| edge.strength.cost());
            for &(id, rest) in &below[child.index()] {
                let slot = found.entry(id).or_insert(0.0);
                *slot = slot.max(first.min(rest));
            }
        }
        let own = std::iter::once((label, f64::INFINITY));
        below[label.index()] = own.chain(found).collect();
    }
    below
}

impl DenseForest {
    /// Counts violations: for each label, how many of its ancestors are off while it is on; then
    /// for each family, how many incomparable pairs that are on have their lowest common ancestor
    /// there. The last entry counts pairs in different trees. Costs O(on labels² · depth).
    pub fn violations(&self, state: &[bool]) -> Vec<f64> {
        let n = self.parent.len();
        let path = |label: usize| {
            let above = std::iter::successors(self.parent[label], |id| self.parent[id.index()]);
            std::iter::once(label).chain(above.map(LabelId::index))
        };
        let mut violations = vec![0.0; 2 * n + 1];
        let on: Vec<usize> = (0..n).filter(|&label| state[label]).collect();
        for (at, &label) in on.iter().enumerate() {
            violations[label] = path(label).filter(|&above| !state[above]).count() as f64;
            let above: Vec<usize> = path(label).collect();
            for &other in &on[..at] {
                match path(other).find(|id| above.contains(id)) {
                    Some(id) if id == label || id == other => {}
                    Some(id) => violations[n + id] += 1.0,
                    None => violations[2 * n] += 1.0,
                }
            }
        }
        violations
    }

    /// Every implied pair that has a cost, written out. Costs O(labels² · depth) in all.
    pub fn relations(&self) -> impl Iterator<Item = Relation> + '_ {
        let n = self.parent.len();
        let path = |label: usize| {
            std::iter::successors(self.parent[label], |id| self.parent[id.index()])
                .map(LabelId::index)
        };
        (0..n).flat_map(move |label| {
            let mut found = Vec::new();
            let child = LabelId::from(label);
            let cost = self.edge_cost[label];
            found.extend(path(label).filter(|_| cost != 0.0).map(|above| Relation::Hierarchy {
                parent: LabelId::from(above),
                child,
                cost,
            }));
            let above: Vec<usize> = std::iter::once(label).chain(path(label)).collect();
            for other in 0..label {
                let mut meets = std::iter::once(other).chain(path(other));
                let family = match meets.find(|id| above.contains(id)) {
                    Some(id) if id == label || id == other => continue,
                    Some(id) => id,
                    None => n,
                };
                let cost = self.family_cost[family];
                if cost != 0.0 {
                    found.push(Relation::Exclusion { a: LabelId::from(other), b: child, cost });
                }
            }
            found
        })
    }

    /// The cost of a state.
    pub fn cost(&self, state: &[bool]) -> f64 {
        let costs = self.edge_cost.iter().chain(&self.family_cost);
        let violated = self.violations(state).into_iter().zip(costs).filter(|(v, _)| *v > 0.0);
        violated.map(|(violations, cost)| violations * cost).sum()
    }
}
