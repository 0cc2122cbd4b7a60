//! Reads the hard relations of a model as logical constraints.

use super::{Model, Relation};
use crate::graph::closure::{ExclusiveSet, Logic, SetSource};
use crate::graph::{LabelId, Topology};

impl Model {
    /// The hard relations as constraints, or the reason why they cannot be read as such.
    pub(crate) fn hard_logic(&self) -> Result<Logic, String> {
        let mut edges: Vec<(LabelId, LabelId)> = Vec::new();
        let mut sets: Vec<Vec<LabelId>> = Vec::new();
        let hard = |cost: f64| cost == f64::INFINITY;
        for relation in &self.relations {
            match relation {
                Relation::Hierarchy { parent, child, cost } if hard(*cost) => {
                    edges.push((*parent, *child));
                }
                Relation::Exclusion { a, b, cost } if hard(*cost) => sets.push(vec![*a, *b]),
                Relation::Group { labels, cost } if hard(*cost) => sets.push(labels.clone()),
                Relation::Pair { a, b, costs } if costs.iter().flatten().any(|&c| hard(c)) => {
                    let (a, b) = (&self.names[a.index()], &self.names[b.index()]);
                    return Err(format!("the pair of `{a}` and `{b}` forbids some of its states"));
                }
                _ => {}
            }
        }
        if let Some(dense) = &self.dense {
            let mut families: Vec<Vec<LabelId>> = vec![Vec::new(); self.len() + 1];
            for (label, parent) in dense.parent.iter().enumerate() {
                let label = LabelId::from(label);
                families[parent.map_or(self.len(), LabelId::index)].push(label);
                if let Some(parent) = parent
                    && hard(dense.edge_cost[label.index()])
                {
                    edges.push((*parent, label));
                }
            }
            let costs = families.into_iter().zip(&dense.family_cost);
            sets.extend(costs.filter(|(set, cost)| hard(**cost) && set.len() > 1).map(|(s, _)| s));
        }
        edges.sort_unstable();
        edges.dedup();
        let topology = Topology::new(self.len(), edges.iter().copied());
        if topology.len() != self.len() {
            return Err(String::from("the hierarchy has a cycle"));
        }
        let groups: Vec<Vec<LabelId>> =
            self.one_of.iter().map(|group| group.labels.clone()).collect();
        let sorted = |mut labels: Vec<LabelId>| {
            labels.sort_unstable();
            ExclusiveSet { labels, source: SetSource::Rule }
        };
        let one_of = groups.iter().filter(|group| group.len() > 1).cloned().enumerate();
        let one_of =
            one_of.map(|(at, labels)| ExclusiveSet { labels, source: SetSource::OneOf(at) });
        let sets = sets.into_iter().map(sorted).chain(one_of).collect();
        Ok(Logic::new(topology, sets, groups))
    }
}
