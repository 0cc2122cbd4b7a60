//! Writes the energy as a quadratic form in the states, for expectations under independent nodes.
//!
//! With `x_s ∈ {0, 1}` for "the node of s is in state s", every pair, link and table is
//! `constant + Σ h_s x_s + Σ J_st x_s x_t`. For example, a table `c` of two binary labels has
//! `J = c₁₁ − c₀₁ − c₁₀ + c₀₀`. Forbidden cells are stored separately, with 0 in their place.

use crate::infer::approximate::network::{Frame, Network, Support};
use crate::lists::Lists;

/// The energy of a model's factor graph.
#[derive(Debug)]
pub(super) struct Energy {
    /// Minus the energy when no `x_s` is 1.
    pub(super) constant: f64,
    /// Minus `h` of each state.
    pub(super) field: Vec<f64>,
    /// For each state, the states `t` that it is coupled with, and `J_st`.
    pub(super) couplings: Lists<(usize, f64)>,
    /// The states that each state forbids.
    pub(super) forbidden: Lists<usize>,
    pub(super) groups: Vec<Group>,
    /// The groups of each node, with its index in them.
    pub(super) groups_at: Lists<(usize, usize)>,
}

/// An exclusion group.
#[derive(Debug)]
pub(super) struct Group {
    /// The cost of a pair that is on. It is 0 for hard groups.
    pub(super) cost: f64,
    pub(super) hard: bool,
    /// The states of each member. Each member is part of one node.
    pub(super) members: Vec<Vec<usize>>,
}

impl Energy {
    pub(super) fn new(network: &Network, frame: &Frame, support: &Support) -> Energy {
        let finite = |cost: f64| if cost == f64::INFINITY { 0.0 } else { cost };
        let mut constant = network.constant;
        let mut field = vec![0.0; frame.states()];
        let mut couplings = Vec::new();
        let mut couple = |s: usize, t: usize, strength: f64| {
            if strength != 0.0 {
                couplings.extend([(s, (t, strength)), (t, (s, strength))]);
            }
        };
        for pair in &network.pairs {
            let [[none, b], [a, both]] = pair.costs.map(|row| row.map(finite));
            let (on_a, on_b) = (frame.on[pair.a], frame.on[pair.b]);
            constant -= none;
            field[on_a] -= a - none;
            field[on_b] -= b - none;
            couple(on_a, on_b, both - a - b + none);
        }
        for link in &network.links {
            let first = frame.first[frame.group(link.group)];
            for &(state, costs) in &link.entries {
                let [off, on] = costs.map(finite);
                field[first + state] -= off;
                couple(first + state, frame.on[link.label], on - off);
            }
        }
        for table in &network.tables {
            let [a, b] = [table.a, table.b].map(|group| frame.first[frame.group(group)]);
            for &(s, t, cost) in &table.entries {
                couple(a + s, b + t, finite(cost));
            }
        }
        let forbidden: Vec<(usize, usize)> =
            support.cells().flat_map(|(s, t)| [(s, t), (t, s)]).collect();
        let groups: Vec<Group> = network.cardinalities.iter().map(|f| group(f, frame)).collect();
        let node = |states: &Vec<usize>| frame.first.partition_point(|&f| f <= states[0]) - 1;
        let places = groups.iter().enumerate().flat_map(|(at, group)| {
            let member = move |(place, states)| (node(states), (at, place));
            group.members.iter().enumerate().map(member)
        });
        let groups_at = Lists::by_key(frame.nodes(), places);
        Energy {
            constant,
            field,
            couplings: Lists::by_key(frame.states(), couplings.into_iter()),
            forbidden: Lists::by_key(frame.states(), forbidden.into_iter()),
            groups,
            groups_at,
        }
    }

    /// Whether some state is forbidden.
    pub(super) fn is_hard(&self) -> bool {
        !self.forbidden.items().is_empty() || self.groups.iter().any(|group| group.hard)
    }
}

fn group(factor: &crate::infer::approximate::network::Cardinality, frame: &Frame) -> Group {
    let hard = factor.cost == f64::INFINITY;
    let labels = factor.labels.iter().map(|&label| vec![frame.on[label]]);
    let parts = factor.parts.iter().map(|part| {
        let first = frame.first[frame.group(part.group)];
        part.states.iter().map(|state| first + state).collect()
    });
    let cost = if hard { 0.0 } else { factor.cost };
    Group { cost, hard, members: labels.chain(parts).collect() }
}
