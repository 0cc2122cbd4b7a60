//! Builds the factor graph of a model.

use std::collections::BTreeMap;

use super::{
    Cardinality, GroupForm, GroupPart, Link, Network, PairFactor, PairPlace, TableFactor,
    TermReading,
};
use crate::graph::LabelId;
use crate::infer::Unfit;
use crate::model::{Model, Relation};

/// At most this many pairs are written out.
const MAX_PAIRS: usize = 20_000_000;

/// Costs of `[x_a][x_b]`.
type Costs = [[f64; 2]; 2];

/// The factors so far, merged by the nodes that they join.
struct Builder {
    bias: Vec<f64>,
    constant: f64,
    state_of: Vec<Option<(usize, usize)>>,
    groups: Vec<Vec<usize>>,
    pairs: BTreeMap<(usize, usize), Costs>,
    links: BTreeMap<(usize, usize), BTreeMap<usize, [f64; 2]>>,
    tables: BTreeMap<(usize, usize), BTreeMap<(usize, usize), f64>>,
}

impl Network {
    /// The factor graph of a model.
    pub(crate) fn new(model: &Model, form: GroupForm) -> Result<Network, Unfit> {
        if model.dense().is_some() {
            return Err(Unfit::Shape(String::from(
                "it cannot handle dense semantics on a forest, for which `count` is exact",
            )));
        }
        let n = model.len();
        let mut state_of = vec![None; n];
        let groups: Vec<Vec<usize>> = model
            .one_of()
            .iter()
            .map(|group| group.labels.iter().map(|id| id.index()).collect())
            .collect();
        for (group, labels) in groups.iter().enumerate() {
            for (state, &label) in labels.iter().enumerate() {
                state_of[label] = Some((group, state));
            }
        }
        let mut builder = Builder {
            bias: model.bias().to_vec(),
            constant: model.constant(),
            state_of,
            groups,
            pairs: BTreeMap::new(),
            links: BTreeMap::new(),
            tables: BTreeMap::new(),
        };
        let mut cardinalities = Vec::new();
        let mut written = 0;
        for relation in model.relations() {
            match relation {
                Relation::Hierarchy { parent, child, cost } => {
                    builder.add(parent.index(), child.index(), [[0.0, *cost], [0.0, 0.0]]);
                }
                Relation::Exclusion { a, b, cost } => {
                    builder.add(a.index(), b.index(), [[0.0, 0.0], [0.0, *cost]]);
                }
                Relation::Pair { a, b, costs } => builder.add(a.index(), b.index(), *costs),
                Relation::Group { labels, cost } if form == GroupForm::Pairs => {
                    written += labels.len() * labels.len() / 2;
                    if written > MAX_PAIRS {
                        let needs =
                            format!("more than {MAX_PAIRS} pairs of labels in exclusion groups");
                        return Err(Unfit::Budget { needs });
                    }
                    for (a, b) in pairs_of(labels) {
                        builder.add(a, b, [[0.0, 0.0], [0.0, *cost]]);
                    }
                }
                Relation::Group { labels, cost } => {
                    cardinalities.push(builder.cardinality(labels, *cost));
                }
            }
        }
        Ok(builder.finish(model, form, cardinalities))
    }
}

fn pairs_of(labels: &[LabelId]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let rest = move |at: usize| labels[at + 1..].iter();
    labels.iter().enumerate().flat_map(move |(at, a)| rest(at).map(|b| (a.index(), b.index())))
}

impl Builder {
    /// Adds a table of costs between two labels.
    fn add(&mut self, a: usize, b: usize, costs: Costs) {
        let turned = [[costs[0][0], costs[1][0]], [costs[0][1], costs[1][1]]];
        match (self.state_of[a], self.state_of[b]) {
            (None, None) if a < b => merge(self.pairs.entry((a, b)).or_default(), &costs),
            (None, None) => merge(self.pairs.entry((b, a)).or_default(), &turned),
            (Some((group, state)), None) => self.link(group, state, b, costs),
            (None, Some((group, state))) => self.link(group, state, a, turned),
            (Some((g, s)), Some((h, t))) if g == h => self.within(g, s, t, costs),
            (Some((g, s)), Some((h, t))) if g < h => self.table((g, s), (h, t), costs),
            (Some((g, s)), Some((h, t))) => self.table((h, t), (g, s), turned),
        }
    }

    /// Adds a factor between a state of a group and a binary label. Costs that apply while the
    /// state is off become the label's own. Where they forbid the label, they are written out for
    /// every other state.
    fn link(&mut self, group: usize, state: usize, label: usize, costs: Costs) {
        let size = self.groups[group].len();
        let entries = self.links.entry((group, label)).or_default();
        let [off, on] = costs;
        if off.iter().any(|cost| cost.is_infinite()) {
            for other in 0..size {
                let cost = if other == state { on } else { off };
                let entry = entries.entry(other).or_default();
                entry.iter_mut().zip(cost).for_each(|(entry, cost)| *entry += cost);
            }
            return;
        }
        self.bias[label] -= off[1] - off[0];
        self.constant -= off[0];
        let entry = entries.entry(state).or_default();
        entry[0] += on[0] - off[0];
        entry[1] += on[1] - off[1];
    }

    /// Adds a factor between two states of one group. They are never on together, so each pays
    /// alone.
    fn within(&mut self, group: usize, s: usize, t: usize, costs: Costs) {
        let labels = &self.groups[group];
        let [[none, only_t], [only_s, _]] = costs;
        if none.is_infinite() {
            // One of the two is on here.
            for (state, &label) in labels.iter().enumerate() {
                if state != s && state != t {
                    self.bias[label] = f64::NEG_INFINITY;
                }
            }
            self.bias[labels[s]] -= only_s;
            self.bias[labels[t]] -= only_t;
            return;
        }
        self.constant -= none;
        self.bias[labels[s]] -= only_s - none;
        self.bias[labels[t]] -= only_t - none;
    }

    /// Adds a factor between states of two groups.
    fn table(&mut self, (g, s): (usize, usize), (h, t): (usize, usize), costs: Costs) {
        let [[none, only_t], [only_s, both]] = costs;
        let entries = self.tables.entry((g, h)).or_default();
        if [none, only_t, only_s].iter().any(|cost| cost.is_infinite()) {
            for i in 0..self.groups[g].len() {
                for j in 0..self.groups[h].len() {
                    let cost = costs[usize::from(i == s)][usize::from(j == t)];
                    if cost != 0.0 {
                        *entries.entry((i, j)).or_default() += cost;
                    }
                }
            }
            return;
        }
        self.constant -= none;
        self.bias[self.groups[g][s]] -= only_s - none;
        self.bias[self.groups[h][t]] -= only_t - none;
        *entries.entry((s, t)).or_default() += both - only_s - only_t + none;
    }

    fn cardinality(&self, labels: &[LabelId], cost: f64) -> Cardinality {
        let mut binary = Vec::new();
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for label in labels.iter().map(|id| id.index()) {
            match self.state_of[label] {
                None => binary.push(label),
                Some((group, state)) => parts.entry(group).or_default().push(state),
            }
        }
        let sorted = |(group, mut states): (usize, Vec<usize>)| {
            states.sort_unstable();
            GroupPart { group, states }
        };
        Cardinality { cost, labels: binary, parts: parts.into_iter().map(sorted).collect() }
    }

    fn finish(self, model: &Model, form: GroupForm, cardinalities: Vec<Cardinality>) -> Network {
        let indices = |keys: Vec<(usize, usize)>| -> BTreeMap<(usize, usize), usize> {
            keys.into_iter().enumerate().map(|(at, key)| (key, at)).collect()
        };
        let pair_at = indices(self.pairs.keys().copied().collect());
        let link_at = indices(self.links.keys().copied().collect());
        let table_at = indices(self.tables.keys().copied().collect());
        let state_of = &self.state_of;
        let place = |a: usize, b: usize| match (state_of[a], state_of[b]) {
            (None, None) => PairPlace::Pair(pair_at[&(a.min(b), a.max(b))]),
            (Some((group, state)), None) => PairPlace::Link(link_at[&(group, b)], state),
            (None, Some((group, state))) => PairPlace::Link(link_at[&(group, a)], state),
            (Some((g, _)), Some((h, _))) if g == h => PairPlace::Never,
            (Some((g, s)), Some((h, t))) if g < h => PairPlace::Table(table_at[&(g, h)], s, t),
            (Some((g, s)), Some((h, t))) => PairPlace::Table(table_at[&(h, g)], t, s),
        };
        let mut next = 0;
        let terms = model.relations().iter().map(|relation| match relation {
            Relation::Hierarchy { parent, child, .. } => {
                let place = place(parent.index(), child.index());
                TermReading::Both { place, child: Some(child.index()) }
            }
            Relation::Exclusion { a, b, .. } | Relation::Pair { a, b, .. } => {
                TermReading::Both { place: place(a.index(), b.index()), child: None }
            }
            Relation::Group { labels, .. } if form == GroupForm::Pairs => {
                TermReading::Pairs(pairs_of(labels).map(|(a, b)| place(a, b)).collect())
            }
            Relation::Group { .. } => {
                next += 1;
                TermReading::Cardinality(next - 1)
            }
        });
        let terms = terms.collect();
        let pairs = self.pairs.into_iter().map(|((a, b), costs)| PairFactor { a, b, costs });
        let links = self.links.into_iter().map(|((group, label), entries)| Link {
            group,
            label,
            entries: entries.into_iter().collect(),
        });
        let tables = self.tables.into_iter().map(|((a, b), entries)| TableFactor {
            a,
            b,
            entries: entries.into_iter().map(|((s, t), cost)| (s, t, cost)).collect(),
        });
        Network {
            labels: model.len(),
            bias: self.bias,
            constant: self.constant,
            pairs: pairs.collect(),
            links: links.collect(),
            tables: tables.collect(),
            cardinalities,
            terms,
            state_of: self.state_of,
            groups: self.groups,
        }
    }
}

fn merge(total: &mut Costs, costs: &Costs) {
    for (total, costs) in total.iter_mut().zip(costs) {
        total.iter_mut().zip(costs).for_each(|(total, cost)| *total += cost);
    }
}
