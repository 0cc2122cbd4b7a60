//! Turns a model into variables and small factors.
//!
//! *Super-leaves*: labels of one one-of group that have the same relations to labels outside it are
//! interchangeable. Together they are one variable with the sum of their weights, and its marginal
//! is split in proportion to the weights. Relations inside a one-of group need no factor: two of
//! its labels are never on together, so only a bias remains.
//!
//! *Counters*: a set of `k` mutually exclusive labels costs `w · C(m, 2)` when `m` of them are on.
//! With `n_j` the number on among the first `j`, `C(m, 2) = Σ_j n_{j−1} y_j`. This is a chain of
//! small factors instead of k² edges.

use std::collections::HashMap;

use super::cover::{Clique, Taste, cover};
use super::work::{Halt, Work};
use crate::model::{Model, Relation};

/// How a factor assigns costs to the values of its scope.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FactorKind {
    /// `costs[a][b]`.
    Table([[f64; 2]; 2]),
    /// The costs `[off, on]` of one variable.
    Unary([f64; 2]),
    /// `(n, y)`: costs this number times `n · y`.
    Product(f64),
    /// `(n, y, next)`: `next = n + y`.
    Step,
    /// `(terms…, out)`: `out` is the sum of the terms.
    Sum,
    /// `(terms…)`: exactly one is on.
    One,
}

/// A factor over a few variables.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    pub(super) scope: Vec<u32>,
    pub(super) kind: FactorKind,
}

impl Factor {
    /// The cost of values of the scope. It is infinite where they are not legal.
    pub(super) fn cost(&self, value: impl Fn(usize) -> u16) -> f64 {
        let legal = |legal: bool| if legal { 0.0 } else { f64::INFINITY };
        let last = self.scope.len() - 1;
        match &self.kind {
            FactorKind::Table(costs) => costs[usize::from(value(0))][usize::from(value(1))],
            FactorKind::Unary(costs) => costs[usize::from(value(0))],
            FactorKind::Product(cost) => {
                let violations = f64::from(value(0)) * f64::from(value(1));
                if violations == 0.0 { 0.0 } else { cost * violations }
            }
            FactorKind::Step => legal(value(0) + value(1) == value(2)),
            FactorKind::Sum => legal((0..last).map(&value).sum::<u16>() == value(last)),
            FactorKind::One => legal((0..=last).map(&value).sum::<u16>() == 1),
        }
    }

    /// Whether some values are not legal.
    pub(super) fn is_hard(&self) -> bool {
        match &self.kind {
            FactorKind::Table(costs) => costs.iter().flatten().any(|cost| cost.is_infinite()),
            FactorKind::Unary(costs) => costs.iter().any(|cost| cost.is_infinite()),
            FactorKind::Product(cost) => cost.is_infinite(),
            FactorKind::Step | FactorKind::Sum | FactorKind::One => true,
        }
    }
}

/// The posterior quantity that gives the expected violations of one relation.
#[derive(Debug, Clone)]
pub(super) enum Query {
    /// None: the relation is never violated.
    Never,
    /// The probability of a label.
    Marginal(u32),
    /// The probability that the first label is on and the second has this value.
    Pair(u32, u32, bool),
    /// The expected products `n · y` of these pairs of variables.
    Products(Vec<(u32, u32)>),
    /// The expected number of pairs of these labels that are on.
    Labels(Vec<u32>),
}

/// A chain of counters over variables, in order.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// `(counter before, member, counter after)`.
    pub(super) steps: Vec<(u32, u32, Option<u32>)>,
}

/// Variables, factors and queries.
#[derive(Debug, Clone)]
pub(super) struct VariableNetwork {
    /// The number of values of each variable. The first ones are [`VariableNetwork::classes`].
    pub(super) domains: Vec<u16>,
    pub(super) factors: Vec<Factor>,
    pub(super) chains: Vec<Chain>,
    /// The labels of each label variable. A super-leaf has more than one.
    pub(super) classes: Vec<Vec<u32>>,
    /// The variable of each label.
    pub(super) variable: Vec<u32>,
    /// The bias of each label. It is minus infinity when the label can never be on.
    pub(super) bias: Vec<f64>,
    pub(super) constant: f64,
    /// The one-of groups: labels, and the variables that represent them.
    pub(super) groups: Vec<(Vec<u32>, Vec<u32>)>,
    /// One query per relation of the model.
    pub(super) queries: Vec<Query>,
}

/// A relation between two labels that no one-of group settles.
struct PairTerm {
    a: u32,
    b: u32,
    costs: [[f64; 2]; 2],
}

impl PairTerm {
    /// The table for two super-leaves of the given sizes. At most one label of each is on, so the
    /// table sums over all pairs of labels.
    fn summed(&self, sizes: [usize; 2]) -> PairTerm {
        let mut costs = [[0.0; 2]; 2];
        for (a, b, x, y) in (0..16).map(|bits| (bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3))
        {
            let times = |on: usize, state: usize, size: usize| match (on, state) {
                (1, 1) => 1,
                (0, 1) => 0,
                (1, _) => size - 1,
                _ => size,
            };
            // `a`, `b`: whether a label of each super-leaf is on. `x`, `y`: the states of two
            // labels.
            let times = times(a, x, sizes[0]) * times(b, y, sizes[1]);
            if times > 0 {
                costs[a][b] += times as f64 * self.costs[x][y];
            }
        }
        PairTerm { costs, ..*self }
    }

    /// The cost, if only "both on" has a cost and it is not negative.
    fn exclusion(&self) -> Option<f64> {
        let [[none, second], [first, both]] = self.costs;
        (none == 0.0 && first == 0.0 && second == 0.0 && both >= 0.0).then_some(both)
    }
}

/// How a label is related to others: role, other label or relation, costs.
type Trait = (u8, u32, [u64; 4]);

/// The relations before labels become variables.
struct Draft {
    one_of: Vec<Vec<u32>>,
    groups_of: Vec<Vec<u32>>,
    bias: Vec<f64>,
    constant: f64,
    pairs: Vec<PairTerm>,
    forced: Vec<u32>,
    /// Relation, labels, cost.
    sets: Vec<(usize, Vec<u32>, f64)>,
    queries: Vec<Query>,
}

impl Draft {
    fn new(model: &Model) -> Draft {
        let mut groups_of = vec![Vec::new(); model.len()];
        let mut one_of = Vec::new();
        for (at, group) in model.one_of().iter().enumerate() {
            let mut labels: Vec<u32> = group.labels.iter().map(|id| id.0).collect();
            labels.sort_unstable();
            labels.dedup();
            labels.iter().for_each(|&label| groups_of[label as usize].push(at as u32));
            one_of.push(labels);
        }
        let mut draft = Draft {
            one_of,
            groups_of,
            bias: model.bias().to_vec(),
            constant: model.constant(),
            pairs: Vec::new(),
            forced: Vec::new(),
            sets: Vec::new(),
            queries: Vec::new(),
        };
        for (at, relation) in model.relations().iter().enumerate() {
            let query = match relation {
                Relation::Hierarchy { parent, child, cost } => {
                    let query = draft.pair(child.0, parent.0, [[0.0, 0.0], [*cost, 0.0]]);
                    match query {
                        Query::Never => Query::Marginal(child.0),
                        _ if parent == child || cost.is_infinite() => Query::Never,
                        _ => Query::Pair(child.0, parent.0, false),
                    }
                }
                Relation::Exclusion { a, b, cost } => {
                    let query = draft.pair(a.0, b.0, [[0.0, 0.0], [0.0, *cost]]);
                    if cost.is_infinite() { Query::Never } else { query }
                }
                Relation::Pair { a, b, costs } => {
                    let query = draft.pair(a.0, b.0, *costs);
                    if costs[1][1] == f64::INFINITY { Query::Never } else { query }
                }
                Relation::Group { labels, cost } => draft.set(at, labels, *cost),
            };
            draft.queries.push(query);
        }
        draft
    }

    fn together(&self, a: u32, b: u32) -> bool {
        self.groups_of[a as usize].iter().any(|group| self.groups_of[b as usize].contains(group))
    }

    /// Adds a table of costs. The query is for "both on".
    fn pair(&mut self, a: u32, b: u32, costs: [[f64; 2]; 2]) -> Query {
        let [[none, second], [first, both]] = costs;
        if a == b {
            if none == f64::INFINITY {
                self.forced.push(a);
                self.bias[a as usize] -= both;
            } else if none != 0.0 || both != 0.0 {
                self.constant -= none;
                self.bias[a as usize] -= both - none;
            }
            return Query::Marginal(a);
        }
        let together = self.together(a, b);
        if together && none.is_finite() {
            self.constant -= none;
            self.bias[a as usize] -= first - none;
            self.bias[b as usize] -= second - none;
        } else if costs != [[0.0; 2]; 2] {
            self.pairs.push(PairTerm { a, b, costs });
        }
        if together { Query::Never } else { Query::Pair(a, b, true) }
    }

    fn set(&mut self, at: usize, labels: &[crate::graph::LabelId], cost: f64) -> Query {
        let labels: Vec<u32> = labels.iter().map(|id| id.0).collect();
        let inside =
            |group: &u32| labels.iter().all(|&l| self.groups_of[l as usize].contains(group));
        let Some(&first) = labels.first() else { return Query::Never };
        if self.groups_of[first as usize].iter().any(inside) {
            return Query::Never;
        }
        if cost != 0.0 {
            self.sets.push((at, labels.clone(), cost));
        }
        if cost.is_infinite() { Query::Never } else { Query::Labels(labels) }
    }

    /// The classes of interchangeable labels, ordered by first label.
    fn classes(&self) -> Vec<Vec<u32>> {
        let n = self.bias.len();
        let mut signature: Vec<Vec<Trait>> = vec![Vec::new(); n];
        for pair in &self.pairs {
            let [[c00, c01], [c10, c11]] = pair.costs.map(|row| row.map(f64::to_bits));
            signature[pair.a as usize].push((0, pair.b, [c00, c01, c10, c11]));
            signature[pair.b as usize].push((0, pair.a, [c00, c10, c01, c11]));
        }
        for (at, labels, _) in &self.sets {
            labels.iter().for_each(|&l| signature[l as usize].push((1, *at as u32, [0; 4])));
        }
        self.forced.iter().for_each(|&l| signature[l as usize].push((2, l, [0; 4])));
        let mut classes: Vec<Vec<u32>> = Vec::new();
        let mut found: HashMap<(u32, Vec<Trait>), usize> = HashMap::new();
        for (label, mut signature) in signature.into_iter().enumerate() {
            signature.sort_unstable();
            if let [group] = self.groups_of[label][..] {
                let next = classes.len();
                let class = *found.entry((group, signature)).or_insert(next);
                if class < next {
                    classes[class].push(label as u32);
                    continue;
                }
            }
            classes.push(vec![label as u32]);
        }
        classes
    }
}

/// What all attempts share: the network before its exclusions are covered.
pub(super) struct Uncovered {
    network: VariableNetwork,
    /// The sets of mutually exclusive variables, and the relation of each.
    relations: Vec<usize>,
    sets: Vec<Clique>,
    exclusions: HashMap<(u32, u32), f64>,
    /// How many relations each variable has.
    links: Vec<u32>,
}

impl Uncovered {
    pub(super) fn new(model: &Model, work: &mut Work) -> Result<Uncovered, Halt> {
        work.spend(64 * (model.relations().len() + model.len()))?;
        let draft = Draft::new(model);
        let classes = draft.classes();
        let mut variable = vec![0u32; model.len()];
        for (class, labels) in classes.iter().enumerate() {
            labels.iter().for_each(|&label| variable[label as usize] = class as u32);
        }
        let first = |label: u32| classes[variable[label as usize] as usize][0] == label;
        let mut network = VariableNetwork {
            domains: vec![2; classes.len()],
            factors: Vec::new(),
            chains: Vec::new(),
            variable: variable.clone(),
            bias: draft.bias,
            constant: draft.constant,
            groups: Vec::new(),
            queries: draft.queries,
            classes: classes.clone(),
        };
        let mut exclusions: HashMap<(u32, u32), f64> = HashMap::new();
        for pair in draft.pairs.iter().filter(|pair| first(pair.a) && first(pair.b)) {
            let (a, b) = (variable[pair.a as usize], variable[pair.b as usize]);
            let pair = pair.summed([classes[a as usize].len(), classes[b as usize].len()]);
            match pair.exclusion() {
                Some(cost) => *exclusions.entry((a.min(b), a.max(b))).or_default() += cost,
                None => network
                    .factors
                    .push(Factor { scope: vec![a, b], kind: FactorKind::Table(pair.costs) }),
            }
        }
        for &label in &draft.forced {
            let kind = FactorKind::Unary([f64::INFINITY, 0.0]);
            network.factors.push(Factor { scope: vec![variable[label as usize]], kind });
        }
        let (mut relations, mut sets) = (Vec::new(), Vec::new());
        for (at, labels, cost) in &draft.sets {
            let mut members: Vec<u32> = labels.iter().map(|&l| variable[l as usize]).collect();
            members.sort_unstable();
            members.dedup();
            if let [a, b] = members[..] {
                *exclusions.entry((a, b)).or_default() += cost;
            } else if members.len() > 2 {
                relations.push(*at);
                sets.push(Clique { members, base: 0, cost: *cost });
            }
        }
        for labels in draft.one_of {
            let mut members: Vec<u32> = labels.iter().map(|&l| variable[l as usize]).collect();
            members.sort_unstable();
            members.dedup();
            network.groups.push((labels, members));
        }
        let mut links = vec![0u32; network.domains.len()];
        let scopes = network.factors.iter().map(|factor| &factor.scope);
        scopes.flatten().for_each(|&v| links[v as usize] += 1);
        exclusions.keys().for_each(|&(a, b)| {
            links[a as usize] += 1;
            links[b as usize] += 1;
        });
        Ok(Uncovered { network, relations, sets, exclusions, links })
    }

    /// Covers the exclusions with cliques, and writes these as chains of counters.
    pub(super) fn cover(&self, taste: Taste, work: &mut Work) -> Result<VariableNetwork, Halt> {
        work.spend(16 * (self.network.factors.len() + self.network.queries.len()))?;
        let mut network = self.network.clone();
        let (cliques, pairs) =
            cover(self.sets.clone(), &self.exclusions, &self.links, taste, work)?;
        for ((a, b), cost) in pairs {
            let kind = FactorKind::Table([[0.0, 0.0], [0.0, cost]]);
            network.factors.push(Factor { scope: vec![a, b], kind });
        }
        for (at, clique) in cliques.iter().enumerate() {
            work.spend(32 * clique.members.len())?;
            let chain = network.chain(clique);
            // The members of the relation come first, so that the first steps count its violations.
            if let Some(&relation) = self.relations.get(at)
                && !clique.cost.is_infinite()
            {
                let steps = chain.steps[..clique.base - 1].iter();
                network.queries[relation] =
                    Query::Products(steps.map(|&(n, y, _)| (n, y)).collect());
            }
            network.chains.push(chain);
        }
        Ok(network)
    }
}

impl VariableNetwork {
    fn chain(&mut self, clique: &Clique) -> Chain {
        let most = if clique.cost.is_infinite() { 1 } else { u16::MAX - 2 };
        let mut before = clique.members[0];
        let mut steps = Vec::new();
        for (at, &member) in clique.members.iter().enumerate().skip(1) {
            let kind = FactorKind::Product(clique.cost);
            self.factors.push(Factor { scope: vec![before, member], kind });
            let after = (at + 1 < clique.members.len()).then(|| {
                let after = self.domains.len() as u32;
                let largest = most.min(u16::try_from(at + 1).unwrap_or(u16::MAX));
                self.domains.push(largest + 1);
                self.factors
                    .push(Factor { scope: vec![before, member, after], kind: FactorKind::Step });
                after
            });
            steps.push((before, member, after));
            before = after.unwrap_or(before);
        }
        Chain { steps }
    }
}
