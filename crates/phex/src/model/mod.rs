//! The model: one distribution over label sets, defined by a graph and the strengths of its
//! relations.
//!
//! `p(x) ∝ exp( Σᵢ (ℓᵢ + bᵢ) xᵢ − Σ_r cost_r(x) ) · Π_g [exactly one label of g is on]`
//!
//! Here `x ∈ {0, 1}ⁿ` are the labels. The scores `ℓ` are logits (log-odds) and come with each row
//! of data. `b` is a fixed bias, which is zero for label graphs. A relation costs nothing unless it
//! is violated:
//!
//! | [`Relation`] | violations `v(x)` |
//! |---|---|
//! | `Hierarchy` | `x_child (1 − x_parent)` |
//! | `Exclusion` | `x_a x_b` |
//! | `Group` | `C(m, 2)` for `m` members on: one cardinality factor, never k² edges |
//! | `Pair` | a table of four costs, for models that are not label graphs |
//!
//! The cost of a relation is `w · v(x)`, where `w = ∞` allows no violation (`∞ · 0 = 0`). One-of
//! groups are always hard.
//!
//! Evaluating one state costs O(labels + members of relations), and O(on labels² · depth) for a
//! dense forest.

mod build;
mod ising;
mod logic;

use crate::graph::LabelId;

pub use ising::Ising;

/// One term of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// A child that is on while its parent is off costs `cost`.
    Hierarchy {
        /// The more general label.
        parent: LabelId,
        /// The more specific label.
        child: LabelId,
        /// In `[0, ∞]`.
        cost: f64,
    },
    /// Two labels that are on together cost `cost`.
    Exclusion {
        /// One label.
        a: LabelId,
        /// The other.
        b: LabelId,
        /// In `[0, ∞]`.
        cost: f64,
    },
    /// Each pair of these labels that is on together costs `cost`.
    Group {
        /// Three or more distinct labels.
        labels: Vec<LabelId>,
        /// In `[0, ∞]`.
        cost: f64,
    },
    /// A cost for each of the four states of two labels.
    Pair {
        /// One label.
        a: LabelId,
        /// The other.
        b: LabelId,
        /// `costs[x_a][x_b]`, each finite or `∞`.
        costs: [[f64; 2]; 2],
    },
}

impl Relation {
    /// The labels of the relation.
    pub fn labels(&self) -> Vec<LabelId> {
        match self {
            Relation::Hierarchy { parent, child, .. } => vec![*parent, *child],
            Relation::Exclusion { a, b, .. } | Relation::Pair { a, b, .. } => vec![*a, *b],
            Relation::Group { labels, .. } => labels.clone(),
        }
    }

    /// How often a state violates the relation. For a `Pair`: 1 when both labels are on.
    pub fn violations(&self, on: impl Fn(LabelId) -> bool) -> f64 {
        let both = |a, b| f64::from(u8::from(on(a) && on(b)));
        match self {
            Relation::Hierarchy { parent, child, .. } => {
                f64::from(u8::from(on(*child) && !on(*parent)))
            }
            Relation::Exclusion { a, b, .. } | Relation::Pair { a, b, .. } => both(*a, *b),
            Relation::Group { labels, .. } => {
                let m = labels.iter().filter(|&&label| on(label)).count() as f64;
                m * (m - 1.0) / 2.0
            }
        }
    }

    /// The cost of a state.
    pub fn cost(&self, on: impl Fn(LabelId) -> bool) -> f64 {
        if let Relation::Pair { a, b, costs } = self {
            return costs[usize::from(on(*a))][usize::from(on(*b))];
        }
        let cost = match self {
            Relation::Hierarchy { cost, .. }
            | Relation::Exclusion { cost, .. }
            | Relation::Group { cost, .. } => *cost,
            Relation::Pair { .. } => 0.0,
        };
        let violations = self.violations(on);
        if violations == 0.0 { 0.0 } else { cost * violations }
    }
}

/// A frozen model: labels, relations with their costs, and one-of groups.
///
/// ```
/// use phex::{graph::GraphBuilder, graph::Strength, model::Model};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("dog", "puppy", Some(Strength::U(0.5)));
/// let model = Model::new(&builder.build()?)?;
/// // A puppy that is not a dog costs w = 4u.
/// assert_eq!(model.log_weight(&[0.0, 0.0], &[false, true]), -2.0);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub(crate) names: Vec<String>,
    pub(crate) bias: Vec<f64>,
    pub(crate) constant: f64,
    pub(crate) relations: Vec<Relation>,
    pub(crate) one_of: Vec<OneOfGroup>,
    pub(crate) dense: Option<DenseForest>,
}

/// Labels of which exactly one is on.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOfGroup {
    /// The name of the group.
    pub name: String,
    /// Its labels, ascending.
    pub labels: Vec<LabelId>,
}

/// Dense semantics on a forest: every implied pair has a cost, but the pairs are not written out.
///
/// A label that is on pays `edge_cost` for each ancestor that is off (one cost for all labels). Two
/// incomparable labels that are on pay the `family_cost` of their lowest common ancestor.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseForest {
    /// The parent of each label.
    pub parent: Vec<Option<LabelId>>,
    /// What each label pays per ancestor that is off.
    pub edge_cost: Vec<f64>,
    /// What a pair with this lowest common ancestor pays. The last entry is for pairs in different
    /// trees.
    pub family_cost: Vec<f64>,
}

impl Model {
    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names of the labels, in the order of the columns of a score table.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The relations, in the order of pair expectations.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The one-of groups.
    pub fn one_of(&self) -> &[OneOfGroup] {
        &self.one_of
    }

    /// A fixed addition to the score of each label.
    pub fn bias(&self) -> &[f64] {
        &self.bias
    }

    /// A fixed addition to every log-weight.
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// The implicit form of dense semantics, if the graph uses it.
    pub fn dense(&self) -> Option<&DenseForest> {
        self.dense.as_ref()
    }

    /// How many terms have an expected number of violations: the relations, or the labels and
    /// families of a dense forest (see [`DenseForest::violations`]).
    pub fn terms(&self) -> usize {
        if self.dense.is_some() { 2 * self.len() + 1 } else { self.relations.len() }
    }

    /// How often a state violates each term.
    ///
    /// # Panics
    /// When the state does not have one entry per label.
    pub fn violations(&self, state: &[bool]) -> Vec<f64> {
        assert_eq!(state.len(), self.len(), "one entry per label");
        if let Some(dense) = &self.dense {
            return dense.violations(state);
        }
        let on = |id: LabelId| state[id.index()];
        self.relations.iter().map(|relation| relation.violations(on)).collect()
    }

    /// Whether no relation is soft.
    pub fn is_hard(&self) -> bool {
        let hard = |cost: f64| cost == f64::INFINITY || cost == 0.0;
        let relations = self.relations.iter().all(|relation| match relation {
            Relation::Hierarchy { cost, .. }
            | Relation::Exclusion { cost, .. }
            | Relation::Group { cost, .. } => hard(*cost),
            Relation::Pair { costs, .. } => costs.iter().flatten().all(|&cost| hard(cost)),
        });
        let dense = |dense: &DenseForest| {
            dense.edge_cost.iter().chain(&dense.family_cost).all(|&cost| hard(cost))
        };
        relations && self.dense.as_ref().is_none_or(dense)
    }

    /// The log-weight of a state under these scores. It is minus infinity when the state is not
    /// legal.
    ///
    /// # Panics
    /// When the slices do not have one entry per label.
    pub fn log_weight(&self, scores: &[f64], state: &[bool]) -> f64 {
        assert!(scores.len() == self.len() && state.len() == self.len());
        let on = |id: LabelId| state[id.index()];
        let exactly_one =
            |group: &OneOfGroup| group.labels.iter().filter(|&&label| on(label)).count() == 1;
        if !self.one_of.iter().all(exactly_one) {
            return f64::NEG_INFINITY;
        }
        let scores = scores.iter().zip(&self.bias).zip(state);
        let score: f64 = scores.filter(|(_, on)| **on).map(|((score, bias), _)| score + bias).sum();
        let cost: f64 = self.relations.iter().map(|relation| relation.cost(on)).sum();
        let dense = self.dense.as_ref().map_or(0.0, |dense| dense.cost(state));
        self.constant + score - cost - dense
    }
}
