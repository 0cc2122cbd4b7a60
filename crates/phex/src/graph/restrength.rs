//! Copies a graph with other strengths.

use super::{Exclusion, Hierarchy, RelationGraph, Strength};
use crate::Error;

/// The kinds of relations that have a strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelationKind {
    /// A hierarchy edge.
    Hierarchy,
    /// An exclusion edge, an exclusion group or the exclusion rule.
    Exclusion,
}

impl RelationGraph {
    /// The same relations with new strengths. `new` computes each strength from the kind of the
    /// relation and its old strength.
    ///
    /// ```
    /// use phex::graph::{GraphBuilder, Strength};
    /// let mut builder = GraphBuilder::new();
    /// builder.hierarchy("dog", "puppy", None);
    /// let soft = builder.build()?.map_strengths(|_, _| Strength::U(0.5))?;
    /// assert_eq!(soft.hierarchy()[0].strength, Strength::U(0.5));
    /// # Ok::<(), phex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Strength`] when a new strength is out of range.
    pub fn map_strengths(
        &self,
        new: impl Fn(RelationKind, Strength) -> Strength,
    ) -> Result<RelationGraph, Error> {
        let change = |kind: RelationKind, strength: &mut Strength| -> Result<(), Error> {
            *strength = new(kind, *strength);
            match strength.fault() {
                None => Ok(()),
                Some(message) => Err(Error::Strength { message }),
            }
        };
        let mut graph = self.clone();
        for edge in &mut graph.hierarchy {
            change(RelationKind::Hierarchy, &mut edge.strength)?;
        }
        for item in &mut graph.exclusions {
            change(RelationKind::Exclusion, &mut item.strength)?;
        }
        if let Some(declared) = &mut graph.rule {
            change(RelationKind::Exclusion, &mut declared.strength)?;
        }
        Ok(graph)
    }

    /// The same relations with new strengths of the hierarchy. `new` computes each from its relation.
    ///
    /// # Errors
    /// [`Error::Strength`] when a new strength is out of range.
    pub fn map_hierarchy(
        &self,
        new: impl Fn(&Hierarchy) -> Strength,
    ) -> Result<RelationGraph, Error> {
        let mut graph = self.clone();
        for edge in &mut graph.hierarchy {
            edge.strength = new(edge);
            if let Some(message) = edge.strength.fault() {
                return Err(Error::Strength { message });
            }
        }
        Ok(graph)
    }

    /// The same relations, each with its own cost: hierarchy edges, exclusions, then the sets of
    /// the rule, which are written out.
    ///
    /// # Errors
    /// [`Error::Strength`] when a cost is out of range.
    pub(crate) fn with_costs(&self, costs: &[f64]) -> Result<RelationGraph, Error> {
        let strength = |cost: f64| match Strength::W(cost).fault() {
            None if cost == f64::INFINITY => Ok(Strength::Hard),
            None => Ok(Strength::W(cost)),
            Some(message) => Err(Error::Strength { message }),
        };
        let mut graph = self.clone();
        let mut costs = costs.iter().copied();
        let mut next = || strength(costs.next().unwrap_or(f64::NAN));
        for edge in &mut graph.hierarchy {
            edge.strength = next()?;
        }
        for item in &mut graph.exclusions {
            item.strength = next()?;
        }
        if let Some(declared) = graph.rule.take() {
            for labels in self.rule_sets() {
                let (name, place) = (None, declared.place.clone());
                graph.exclusions.push(Exclusion { name, labels, strength: next()?, place });
            }
        }
        Ok(graph)
    }
}
