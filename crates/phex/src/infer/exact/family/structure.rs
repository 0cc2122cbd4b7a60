//! Recognises a forest with counted sets of siblings in the relations of a model.

use std::collections::HashMap;

use super::Unfit;
use crate::graph::LabelId;
use crate::model::{Model, Relation};

/// Siblings whose pairs all cost the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountedSet {
    /// In ascending order.
    pub(super) labels: Vec<usize>,
    pub(super) cost: f64,
    /// Whether some relation is a single pair of a larger set. Then each pair has its own
    /// expectation.
    pub(super) by_pairs: bool,
}

/// Where the expected violations of a relation are read from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SiblingReading {
    /// The edge above this label.
    Edge(usize),
    /// The pairs that are on in this counted set.
    Count(usize),
    /// The probability that both of these are on, in this counted set.
    Pair(usize, usize, usize),
}

/// The forest.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    /// The families: the children of each label, and last the roots.
    pub(super) children: Vec<Vec<usize>>,
    /// What each label pays when its parent is off.
    pub(super) edge_cost: Vec<f64>,
    pub(super) sets: Vec<CountedSet>,
    /// The sets of each family.
    pub(super) sets_of: Vec<Vec<usize>>,
    /// Where to read each relation.
    pub(super) sources: Vec<SiblingReading>,
    /// Labels in an order that puts children before parents.
    pub(super) order: Vec<usize>,
}

/// The exclusions of one family: `(labels ascending, cost, relation)`.
type Exclusions = Vec<(Vec<usize>, f64, usize)>;

impl Structure {
    pub(super) fn recognise(model: &Model) -> Result<Structure, Unfit> {
        let n = model.len();
        let name = |label: usize| model.names()[label].as_str();
        if model.dense().is_some() {
            return Err(Unfit::Shape(
                "it cannot handle dense semantics, which charge for pairs across families"
                    .to_owned(),
            ));
        }
        let mut parent: Vec<Option<usize>> = vec![None; n];
        let mut edge_cost = vec![0.0; n];
        let mut sources = vec![SiblingReading::Edge(0); model.relations().len()];
        for (at, relation) in model.relations().iter().enumerate() {
            if let Relation::Hierarchy { parent: above, child, cost } = relation {
                let (above, child) = (above.index(), child.index());
                if let Some(other) = parent[child].filter(|&other| other != above) {
                    return Err(Unfit::Shape(format!(
                        "{} has two parents, {} and {}",
                        name(child),
                        name(other),
                        name(above)
                    )));
                }
                parent[child] = Some(above);
                edge_cost[child] += cost;
                sources[at] = SiblingReading::Edge(child);
            }
        }
        let mut children = vec![Vec::new(); n + 1];
        (0..n).for_each(|label| children[parent[label].unwrap_or(n)].push(label));
        let order = children_first(&children);
        if order.len() < n {
            let reached: std::collections::HashSet<usize> = order.into_iter().collect();
            let lost = (0..n).find(|label| !reached.contains(label)).unwrap_or(0);
            return Err(Unfit::Shape(format!("{} is on a cycle", name(lost))));
        }
        let mut families: HashMap<usize, Exclusions> = HashMap::new();
        for (at, relation) in model.relations().iter().enumerate() {
            let (labels, cost) = match relation {
                Relation::Hierarchy { .. } => continue,
                Relation::Exclusion { a, b, cost } => (vec![*a, *b], *cost),
                Relation::Group { labels, cost } => (labels.clone(), *cost),
                Relation::Pair { a, b, .. } => {
                    return Err(Unfit::Shape(format!(
                        "{} and {} have a table of costs, not a hierarchy edge or an exclusion",
                        name(a.index()),
                        name(b.index())
                    )));
                }
            };
            let mut labels: Vec<usize> = labels.into_iter().map(LabelId::index).collect();
            labels.sort_unstable();
            let size = labels.len();
            labels.dedup();
            let Some(&first) = labels.first().filter(|_| labels.len() == size) else {
                return Err(Unfit::Shape(
                    "an exclusion is empty or names a label twice".to_owned(),
                ));
            };
            if let Some(&other) = labels.iter().find(|&&label| parent[label] != parent[first]) {
                return Err(Unfit::Shape(format!(
                    "{} excludes {}, which has a different parent",
                    name(first),
                    name(other)
                )));
            }
            families.entry(parent[first].unwrap_or(n)).or_default().push((labels, cost, at));
        }
        let mut structure = Structure {
            children,
            edge_cost,
            sets: Vec::new(),
            sets_of: vec![Vec::new(); n + 1],
            sources,
            order,
        };
        let mut families: Vec<_> = families.into_iter().collect();
        families.sort_by_key(|family| family.0);
        for (family, exclusions) in families {
            structure.count(family, exclusions, &name)?;
        }
        Ok(structure)
    }

    /// Splits the exclusions of a family into disjoint counted sets.
    fn count<'a>(
        &mut self,
        family: usize,
        exclusions: Exclusions,
        name: &dyn Fn(usize) -> &'a str,
    ) -> Result<(), Unfit> {
        // Sets that share a label must be one set, or all pairs of one set.
        let mut component: HashMap<usize, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for (labels, _, _) in &exclusions {
            let mut joined: Vec<usize> = labels.clone();
            let mut old: Vec<usize> =
                labels.iter().filter_map(|label| component.get(label).copied()).collect();
            old.sort_unstable();
            old.dedup();
            old.iter().for_each(|&at| joined.append(&mut members[at]));
            joined.sort_unstable();
            joined.dedup();
            joined.iter().for_each(|&label| {
                component.insert(label, members.len());
            });
            members.push(joined);
        }
        let mut by_component: Vec<Exclusions> = vec![Vec::new(); members.len()];
        for exclusion in exclusions {
            by_component[component[&exclusion.0[0]]].push(exclusion);
        }
        for (labels, exclusions) in members.into_iter().zip(by_component) {
            if labels.is_empty() {
                continue;
            }
            let at = self.sets.len();
            let cost = if exclusions.iter().all(|exclusion| exclusion.0 == labels) {
                exclusions
                    .iter()
                    .for_each(|exclusion| self.sources[exclusion.2] = SiblingReading::Count(at));
                exclusions.iter().map(|exclusion| exclusion.1).sum()
            } else {
                self.clique(at, &labels, &exclusions, name)?
            };
            let by_pairs = exclusions[0].0 != labels;
            self.sets.push(CountedSet { labels, cost, by_pairs });
            self.sets_of[family].push(at);
        }
        Ok(())
    }

    /// The cost of a pair, if the exclusions are all pairs of the labels at one cost.
    fn clique<'a>(
        &mut self,
        at: usize,
        labels: &[usize],
        exclusions: &Exclusions,
        name: &dyn Fn(usize) -> &'a str,
    ) -> Result<f64, Unfit> {
        let mut cost: HashMap<(usize, usize), f64> = HashMap::new();
        for (pair, value, relation) in exclusions {
            let [a, b] = pair[..] else {
                let list: Vec<&str> = labels.iter().take(4).map(|&label| name(label)).collect();
                let list = list.join(", ");
                return Err(Unfit::Shape(format!("exclusion sets overlap among {list}")));
            };
            *cost.entry((a, b)).or_default() += value;
            let place = |label| labels.partition_point(|&other| other < label);
            self.sources[*relation] = SiblingReading::Pair(at, place(a), place(b));
        }
        let first = cost[&(exclusions[0].0[0], exclusions[0].0[1])];
        for (i, &a_label) in labels.iter().enumerate() {
            for &b_label in &labels[i + 1..] {
                let (a, b) = (name(a_label), name(b_label));
                let difference = match cost.get(&(a_label, b_label)) {
                    Some(&value) if value == first => continue,
                    Some(_) => format!("{a} excludes {b} at a different cost"),
                    None => format!("{a} does not exclude {b}"),
                };
                return Err(Unfit::Shape(format!("{difference}, unlike their siblings")));
            }
        }
        Ok(first)
    }
}

/// The labels that can be reached from the roots, children before parents, one family after
/// another.
fn children_first(children: &[Vec<usize>]) -> Vec<usize> {
    let root = children.len() - 1;
    let mut order = Vec::with_capacity(root);
    let mut stack = vec![(root, 0)];
    while let Some((label, next)) = stack.pop() {
        if let Some(&child) = children[label].get(next) {
            stack.push((label, next + 1));
            stack.push((child, 0));
        } else if label != root {
            order.push(label);
        }
    }
    order
}
