//! Learns the strengths of relations.
//!
//! A few parameters `φ ≥ 0` determine the cost of every soft relation. Hard relations stay hard.
//! The gradient of a parameter is the sum of the gradients of the relations tied to it, plus that
//! of a prior `λ/2 Σ (φ − given)²`. [`Strengths::step`] projects onto `φ ≥ 0`. Each operation costs
//! O(relations).

use serde::{Deserialize, Serialize};

use crate::graph::{RelationGraph, RelationKind, Semantics, Strength};
use crate::model::{Model, Relation};
use crate::{Error, Named};

/// Which relations share a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// All relations: one factor on the given costs.
    Scale,
    /// The relations of one kind, hierarchy or exclusion: one factor on the given costs per kind.
    #[default]
    Kind,
    /// No relations: one cost per relation.
    Relation,
}

impl Named for Tie {
    const WHAT: &'static str = "tie";
    const CHOICES: &'static [(&'static str, Tie)] =
        &[("scale", Tie::Scale), ("kind", Tie::Kind), ("relation", Tie::Relation)];
}

/// The costs of a graph's soft relations, expressed by a few parameters.
///
/// ```
/// use phex::graph::{GraphBuilder, Strength};
/// use phex::learn::{Strengths, Tie};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("dog", "puppy", Some(Strength::W(2.0)));
/// let mut strengths = Strengths::new(builder.build()?, Tie::Relation)?;
/// strengths.set(&[1.5]);
/// assert_eq!(strengths.graph()?.hierarchy()[0].strength, Strength::W(1.5));
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Strengths {
    graph: RelationGraph,
    tie: Tie,
    /// The given cost of each term.
    given: Vec<f64>,
    /// The parameter of each term. Hard terms have none.
    parameter: Vec<Option<usize>>,
    names: Vec<String>,
    values: Vec<f64>,
}

impl Strengths {
    /// Starts from the strengths of a graph.
    ///
    /// # Errors
    /// [`Error::NothingToLearn`] when no relation is soft, or when dense semantics do not allow the
    /// tie. Any error of [`Model::new`].
    pub fn new(graph: RelationGraph, tie: Tie) -> Result<Strengths, Error> {
        let model = Model::new(&graph)?;
        let terms = terms(&model);
        if graph.semantics() == Semantics::Dense && tie != Tie::Scale {
            let reason = "with dense semantics a pair's cost follows from several relations; tie all \
                          strengths by one scale, or use sparse semantics";
            return Err(Error::NothingToLearn { reason });
        }
        let given: Vec<f64> = terms.iter().map(|(_, cost)| *cost).collect();
        let mut names: Vec<String> = Vec::new();
        let mut parameter = Vec::with_capacity(terms.len());
        let mut values = Vec::new();
        for (at, &(kind, cost)) in terms.iter().enumerate() {
            if cost == f64::INFINITY {
                parameter.push(None);
                continue;
            }
            let (name, start) = match (tie, kind) {
                (Tie::Scale, _) => (String::from("scale"), 1.0),
                (Tie::Kind, RelationKind::Hierarchy) => (String::from("hierarchy"), 1.0),
                (Tie::Kind, RelationKind::Exclusion) => (String::from("exclusion"), 1.0),
                (Tie::Relation, _) => (term_name(&model, at), cost),
            };
            let known = names.iter().position(|known| *known == name);
            let slot = match known.filter(|_| tie != Tie::Relation) {
                Some(slot) => slot,
                None => {
                    names.push(name);
                    values.push(start);
                    names.len() - 1
                }
            };
            parameter.push(Some(slot));
        }
        if names.is_empty() {
            let reason = "every relation is hard; give some relations a soft strength to start from, such as u=1";
            return Err(Error::NothingToLearn { reason });
        }
        Ok(Strengths { graph, tie, given, parameter, names, values })
    }

    /// The name of each parameter: `scale`, `hierarchy`, `exclusion`, or the relation.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many terms the model has, which is the length of a gradient with respect to costs.
    pub fn terms(&self) -> usize {
        self.given.len()
    }

    /// The parameters: factors on the given costs, or costs when nothing is tied.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Sets the parameters. Negative values become 0.
    ///
    /// # Panics
    /// When there is not one value per parameter.
    pub fn set(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.values.len(), "one value per parameter");
        self.values = values.iter().map(|value| value.max(0.0)).collect();
    }

    /// Adds a step to the parameters, and keeps them at 0 or above.
    ///
    /// # Panics
    /// When there is not one step per parameter.
    pub fn step(&mut self, step: &[f64]) {
        let moved: Vec<f64> = self.values.iter().zip(step).map(|(value, by)| value + by).collect();
        self.set(&moved);
    }

    /// Turns the gradient with respect to the cost of each term into that with respect to each
    /// parameter.
    ///
    /// # Panics
    /// When there is not one entry per term of the model.
    pub fn gradient(&self, by_term: &[f64]) -> Vec<f64> {
        assert_eq!(by_term.len(), self.given.len(), "one derivative per term");
        let mut gradient = vec![0.0; self.values.len()];
        for ((&slot, &given), &by_cost) in self.parameter.iter().zip(&self.given).zip(by_term) {
            if let Some(slot) = slot {
                gradient[slot] += if self.tie == Tie::Relation { by_cost } else { given * by_cost };
            }
        }
        gradient
    }

    /// The prior `weight/2 Σ (φ − given)²` and its gradient.
    pub fn prior(&self, weight: f64) -> (f64, Vec<f64>) {
        let away: Vec<f64> =
            self.values.iter().zip(self.start()).map(|(value, start)| value - start).collect();
        let loss = 0.5 * weight * away.iter().map(|d| d * d).sum::<f64>();
        (loss, away.into_iter().map(|d| weight * d).collect())
    }

    /// The parameters of the given graph.
    fn start(&self) -> Vec<f64> {
        let mut start = vec![1.0; self.values.len()];
        if self.tie == Tie::Relation {
            for (slot, &given) in self.parameter.iter().zip(&self.given) {
                if let Some(slot) = *slot {
                    start[slot] = given;
                }
            }
        }
        start
    }

    /// The graph with the current strengths. Untied strengths of a rule are written out as
    /// exclusions.
    ///
    /// # Errors
    /// [`Error::Strength`] when a parameter is NaN.
    pub fn graph(&self) -> Result<RelationGraph, Error> {
        if self.tie == Tie::Relation {
            let cost =
                |(slot, given): (&Option<usize>, &f64)| slot.map_or(*given, |at| self.values[at]);
            let costs: Vec<f64> = self.parameter.iter().zip(&self.given).map(cost).collect();
            return self.graph.with_costs(&costs);
        }
        self.graph.map_strengths(|kind, strength| {
            if strength.is_hard() {
                return strength;
            }
            let wanted = match (self.tie, kind) {
                (Tie::Kind, RelationKind::Hierarchy) => "hierarchy",
                (Tie::Kind, RelationKind::Exclusion) => "exclusion",
                _ => "scale",
            };
            let slot = self.names.iter().position(|name| name == wanted);
            Strength::W(strength.cost() * slot.map_or(1.0, |slot| self.values[slot]))
        })
    }
}

/// The kind and the cost of each term of a model.
fn terms(model: &Model) -> Vec<(RelationKind, f64)> {
    if let Some(dense) = model.dense() {
        let edges = dense.edge_cost.iter().map(|&cost| (RelationKind::Hierarchy, cost));
        let families = dense.family_cost.iter().map(|&cost| (RelationKind::Exclusion, cost));
        return edges.chain(families).collect();
    }
    let term = |relation: &Relation| match relation {
        Relation::Hierarchy { cost, .. } => (RelationKind::Hierarchy, *cost),
        Relation::Exclusion { cost, .. } | Relation::Group { cost, .. } => {
            (RelationKind::Exclusion, *cost)
        }
        // Graphs have no such terms, and their four costs are not one strength.
        Relation::Pair { .. } => (RelationKind::Exclusion, f64::INFINITY),
    };
    model.relations().iter().map(term).collect()
}

/// A relation in words.
fn term_name(model: &Model, at: usize) -> String {
    let Some(relation) = model.relations().get(at) else { return format!("term {at}") };
    let names: Vec<&str> =
        relation.labels().iter().map(|id| model.names()[id.index()].as_str()).collect();
    match relation {
        Relation::Hierarchy { .. } => format!("{} > {}", names[0], names[1]),
        _ => names.join(" | "),
    }
}
