//! Turns the factor graph into one quadratic form over labels.
//!
//! With the states of one-of groups as 0/1 labels, every factor except the counters is quadratic.
//! So links and tables become couplings, and only the update treats groups specially:
//!
//! `log weight(x) = Σ θ_i x_i + Σ J_ij x_i x_j − Σ_g w_g C(m_g, 2) + constant`
//!
//! This holds because `c₀₀ (1−a)(1−b) + c₀₁ (1−a) b + c₁₀ a (1−b) + c₁₁ ab` has the terms
//! `c₁₀ − c₀₀`, `c₀₁ − c₀₀` and `c₁₁ − c₁₀ − c₀₁ + c₀₀`. A coefficient is stored as
//! `soft + hard · H`, where `H` is the finite number that a row uses for infinity. So infinite
//! costs that meet cancel by count. States of a group that are members of one counter count as
//! labels too, because at most one of them is on.

use crate::lists::Lists;
use std::collections::BTreeMap;

use crate::infer::approximate::network::Network;

/// `soft + hard · H`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Coefficient {
    soft: f64,
    hard: f64,
}

impl Coefficient {
    /// Adds a cost, finite or ∞, times a sign.
    fn add(&mut self, cost: f64, sign: f64) {
        if cost == f64::INFINITY {
            self.hard += sign;
        } else {
            self.soft += sign * cost;
        }
    }

    /// Its value when ∞ is replaced by this number.
    pub(super) fn value(self, infinity: f64) -> f64 {
        self.soft + self.hard * infinity
    }
}

/// A factor graph as a quadratic form with counters.
#[derive(Debug, Clone)]
pub(super) struct CountedQuadratic {
    /// The addition to the score of each label.
    pub(super) bias: Vec<Coefficient>,
    /// The labels that each label is coupled with.
    pub(super) neighbours: Lists<u32>,
    /// `J` of each entry of `neighbours`.
    pub(super) couplings: Vec<Coefficient>,
    /// The counters that each label is a member of.
    pub(super) counters: Lists<u32>,
    /// `w` of each counter.
    pub(super) costs: Vec<Coefficient>,
    /// The largest soft coupling or cost, in absolute value.
    pub(super) largest: f64,
}

impl CountedQuadratic {
    pub(super) fn new(network: &Network) -> CountedQuadratic {
        let n = network.labels;
        let mut bias = vec![Coefficient::default(); n];
        for (bias, &fixed) in bias.iter_mut().zip(&network.bias) {
            // Labels that are never or always on are settled with the evidence.
            bias.soft = if fixed.is_finite() { fixed } else { 0.0 };
        }
        let mut edges: BTreeMap<(usize, usize), Coefficient> = BTreeMap::new();
        let key = |a: usize, b: usize| (a.min(b), a.max(b));
        for pair in &network.pairs {
            let [[none, only_b], [only_a, both]] = pair.costs;
            bias[pair.a].add(only_a, -1.0);
            bias[pair.a].add(none, 1.0);
            bias[pair.b].add(only_b, -1.0);
            bias[pair.b].add(none, 1.0);
            let edge = edges.entry(key(pair.a, pair.b)).or_default();
            for (cost, sign) in [(both, -1.0), (only_a, 1.0), (only_b, 1.0), (none, -1.0)] {
                edge.add(cost, sign);
            }
        }
        for link in &network.links {
            for &(state, [off, on]) in &link.entries {
                let state = network.groups[link.group][state];
                bias[state].add(off, -1.0);
                let edge = edges.entry(key(state, link.label)).or_default();
                edge.add(on, -1.0);
                edge.add(off, 1.0);
            }
        }
        for table in &network.tables {
            for &(a, b, cost) in &table.entries {
                let (a, b) = (network.groups[table.a][a], network.groups[table.b][b]);
                edges.entry(key(a, b)).or_default().add(cost, -1.0);
            }
        }
        edges.retain(|_, coupling| *coupling != Coefficient::default());
        let mut lists = vec![Vec::new(); n];
        let mut couplings = vec![Vec::new(); n];
        for (&(a, b), &coupling) in &edges {
            for (from, to) in [(a, b), (b, a)] {
                lists[from].push(to as u32);
                couplings[from].push(coupling);
            }
        }
        let mut members = vec![Vec::new(); n];
        let mut costs = Vec::new();
        for (at, factor) in network.cardinalities.iter().enumerate() {
            for label in factor.members(&network.groups) {
                members[label].push(at as u32);
            }
            let mut cost = Coefficient::default();
            cost.add(factor.cost, 1.0);
            costs.push(cost);
        }
        let couplings: Vec<Coefficient> = couplings.into_iter().flatten().collect();
        let soft = couplings.iter().chain(&costs).map(|coefficient| coefficient.soft.abs());
        CountedQuadratic {
            largest: soft.fold(0.0, f64::max),
            bias,
            neighbours: Lists::new(&lists),
            couplings,
            counters: Lists::new(&members),
            costs,
        }
    }

    /// The multiplications and additions of a sweep over one chain.
    pub(super) fn operations(&self) -> f64 {
        // A sigmoid and a random number take about forty.
        let labels = 40 * self.bias.len();
        (labels + 2 * self.neighbours.items().len() + 4 * self.counters.items().len()) as f64
    }
}
