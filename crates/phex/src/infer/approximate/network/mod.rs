//! The factor graph that the approximate engines share.
//!
//! Nodes are binary labels and one-of groups (each one node of k states). Factors are:
//!
//! | factor | nodes | energy |
//! |---|---|---|
//! | [`PairFactor`] | two binary labels | `costs[x_a][x_b]` |
//! | [`Link`] | a one-of group and a binary label | `costs[x]` where the group is in a listed state, else 0 |
//! | [`TableFactor`] | two one-of groups | `cost` at listed pairs of states, else 0 |
//! | [`Cardinality`] | labels and parts of one-of groups | `cost · C(m, 2)` for m members on |
//!
//! All relations between the same two nodes become one factor. Costs that depend on one label alone
//! are moved to its bias. So `log weight(x) = constant + Σ (ℓ + bias) x − Σ energies`, as before.
//!
//! Building costs O(relations). With [`GroupForm::Pairs`], exclusion groups cost k² pairs.

mod build;
mod frame;
mod implied;
mod support;
#[cfg(all(test, feature = "testkit"))]
mod tests;

pub(crate) use frame::Frame;
pub(crate) use implied::Implied;
pub(crate) use support::{Live, Support};

use crate::infer::GroupForm;
use crate::numeric::Scalar;

/// Two binary labels.
#[derive(Debug, Clone, PartialEq)]
pub struct PairFactor {
    /// The smaller label.
    pub a: usize,
    /// The larger.
    pub b: usize,
    /// `costs[x_a][x_b]`, finite or `∞`.
    pub costs: [[f64; 2]; 2],
}

/// A one-of group and a binary label.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The one-of group.
    pub group: usize,
    /// The binary label.
    pub label: usize,
    /// States of the group (ascending), each with the cost of the label off and on. Unlisted states
    /// cost nothing.
    pub entries: Vec<(usize, [f64; 2])>,
}

/// Two one-of groups.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFactor {
    /// The first group.
    pub a: usize,
    /// The second group.
    pub b: usize,
    /// State of `a`, state of `b` and their cost, ascending. Unlisted pairs cost nothing.
    pub entries: Vec<(usize, usize, f64)>,
}

/// Members of which each pair that is on costs the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Cardinality {
    /// The cost of each pair.
    pub cost: f64,
    /// Binary members.
    pub labels: Vec<usize>,
    /// One-of groups with some states as members. At most one of these is on.
    pub parts: Vec<GroupPart>,
}

impl Cardinality {
    /// How many members can be on at once.
    pub(crate) fn len(&self) -> usize {
        self.labels.len() + self.parts.len()
    }

    /// All members as labels, given the labels of the one-of groups.
    pub(crate) fn members<'a>(
        &'a self,
        groups: &'a [Vec<usize>],
    ) -> impl Iterator<Item = usize> + 'a {
        let parts = self.parts.iter();
        let states = parts.flat_map(|part| part.states.iter().map(|&s| groups[part.group][s]));
        self.labels.iter().copied().chain(states)
    }
}

/// Some states of a one-of group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPart {
    /// The group.
    pub group: usize,
    /// The states, ascending.
    pub states: Vec<usize>,
}

/// Where the probability that two labels are both on is read from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PairPlace {
    /// This pair factor.
    Pair(usize),
    /// This link, at this state of its group.
    Link(usize, usize),
    /// This table, at these states.
    Table(usize, usize, usize),
    /// The probability is 0, because both are states of one group.
    Never,
}

/// Where the expected violations of a relation are read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TermReading {
    /// Two labels: violated when both are on. A hierarchy edge: violated when its child is on
    /// without its parent.
    Both { place: PairPlace, child: Option<usize> },
    /// An exclusion group written as pairs.
    Pairs(Vec<PairPlace>),
    /// An exclusion group as one factor.
    Cardinality(usize),
}

/// A model as a factor graph.
#[derive(Debug, Clone)]
pub struct Network {
    /// How many labels the model has.
    pub labels: usize,
    /// A fixed addition to each score. It is `−∞` for states of one-of groups that are never on.
    pub bias: Vec<f64>,
    /// The log-weight when all labels are off and no cost is paid.
    pub constant: f64,
    /// The one-of group and state of each label that is in one. The other labels are binary nodes.
    pub state_of: Vec<Option<(usize, usize)>>,
    /// The labels of each one-of group: its states.
    pub groups: Vec<Vec<usize>>,
    /// Factors of two binary labels.
    pub pairs: Vec<PairFactor>,
    /// Factors of a group and a binary label.
    pub links: Vec<Link>,
    /// Factors of two groups.
    pub tables: Vec<TableFactor>,
    /// Exclusion groups that are counted.
    pub cardinalities: Vec<Cardinality>,
    /// One reading per relation of the model.
    pub(crate) terms: Vec<TermReading>,
}

impl Network {
    /// The binary labels.
    pub(crate) fn binary(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.labels).filter(|&label| self.state_of[label].is_none())
    }

    /// The number of entries of all factors, which is the cost of a sweep.
    pub(crate) fn entries(&self) -> usize {
        let links: usize = self.links.iter().map(|link| link.entries.len()).sum();
        let tables: usize = self.tables.iter().map(|table| table.entries.len()).sum();
        let states: usize = self.groups.iter().map(Vec::len).sum();
        let members: usize = self.cardinalities.iter().map(Cardinality::len).sum();
        self.labels + 2 * self.pairs.len() + links + tables + states + members
    }

    /// Moves the asymmetric part of pairs to the biases of labels. Each pair then costs something
    /// only where its labels differ, which is the Ising form. Applies only when no pair forbids
    /// states.
    pub(crate) fn symmetrise(&mut self) {
        if self.pairs.iter().any(|pair| pair.costs.iter().flatten().any(|cost| cost.is_infinite()))
        {
            return;
        }
        for pair in &mut self.pairs {
            let [[none, only_b], [only_a, both]] = pair.costs;
            let differ = (only_a + only_b - none - both) / 2.0;
            self.constant -= none;
            self.bias[pair.a] -= only_a - none - differ;
            self.bias[pair.b] -= only_b - none - differ;
            pair.costs = [[0.0, differ], [differ, 0.0]];
        }
    }

    /// Lists every cell of tables that have at most this many.
    pub(crate) fn fill_tables(&mut self, most: usize) {
        for table in &mut self.tables {
            let (rows, columns) = (self.groups[table.a].len(), self.groups[table.b].len());
            if rows * columns > most || table.entries.len() == rows * columns {
                continue;
            }
            let mut all: Vec<(usize, usize, f64)> =
                (0..rows * columns).map(|at| (at / columns, at % columns, 0.0)).collect();
            table.entries.iter().for_each(|&(s, t, cost)| all[s * columns + t].2 = cost);
            table.entries = all;
        }
    }

    /// Fills in the expected violations of every relation from the marginals of labels, the
    /// probability that both labels of a pair are on, and the expected number of pairs on in a
    /// cardinality factor.
    pub(crate) fn expectations<T: Scalar>(
        &self,
        marginal: impl Fn(usize) -> f64,
        both: impl Fn(PairPlace) -> f64,
        pairs_on: impl Fn(usize) -> f64,
        out: &mut [T],
    ) {
        let both = |place: PairPlace| if place == PairPlace::Never { 0.0 } else { both(place) };
        for (term, out) in self.terms.iter().zip(out) {
            *out = T::from_f64(match term {
                TermReading::Both { place, child: None } => both(*place),
                TermReading::Both { place, child: Some(child) } => {
                    (marginal(*child) - both(*place)).max(0.0)
                }
                TermReading::Pairs(places) => places.iter().map(|&place| both(place)).sum(),
                TermReading::Cardinality(factor) => pairs_on(*factor),
            });
        }
    }

    /// All places from which relations read a joint probability.
    pub(crate) fn places(&self) -> impl Iterator<Item = PairPlace> + '_ {
        self.terms.iter().flat_map(|term| match term {
            TermReading::Both { place, .. } => std::slice::from_ref(place).iter().copied(),
            TermReading::Pairs(places) => places.iter().copied(),
            TermReading::Cardinality(_) => [].iter().copied(),
        })
    }

    /// Whether some factor forbids states.
    pub(crate) fn is_hard(&self) -> bool {
        let hard = |cost: f64| cost == f64::INFINITY;
        self.pairs.iter().any(|pair| pair.costs.iter().flatten().any(|&cost| hard(cost)))
            || self.links.iter().any(|l| l.entries.iter().any(|e| e.1.iter().any(|&c| hard(c))))
            || self.tables.iter().any(|table| table.entries.iter().any(|entry| hard(entry.2)))
            || self.cardinalities.iter().any(|factor| hard(factor.cost))
    }
}
