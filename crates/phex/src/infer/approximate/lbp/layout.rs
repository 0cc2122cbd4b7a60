//! Lays out the factor graph for sweeps.
//!
//! Each binary label has its incoming pair messages side by side (slots), then its ports: one for
//! each larger factor that it belongs to.

use super::number::Odds;
use crate::infer::Unfit;
use crate::infer::approximate::network::{Network, PairFactor};

/// The weights of a pair for the message from one end: `[on ← off, on ← on, off ← off, off ← on]`.
pub(super) type Weights<T> = [T; 4];

/// A member of a cardinality factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Member {
    /// A binary label, by its port.
    Port(usize),
    /// Some states of a one-of group, by the index of the part.
    GroupPart(usize),
}

/// Index arrays for sweeps.
#[derive(Debug)]
pub(super) struct MessageLayout {
    /// The label of each binary node.
    pub(super) label: Vec<usize>,
    /// The slots of node `i` are `slots[i]..slots[i + 1]`.
    pub(super) slots: Vec<usize>,
    /// The slot of the message in the other direction.
    pub(super) reverse: Vec<u32>,
    /// The node at which a slot arrives.
    pub(super) owner: Vec<u32>,
    /// The two slots of each pair; the first is that of its label `a`.
    pub(super) pair_slots: Vec<[u32; 2]>,
    /// The ports of node `i` are `ports[i]..ports[i + 1]`.
    pub(super) ports: Vec<usize>,
    /// The node of each port.
    pub(super) port_owner: Vec<u32>,
    /// The port of each link.
    pub(super) link_port: Vec<usize>,
    /// The members of each cardinality factor.
    pub(super) members: Vec<Vec<Member>>,
    /// The factor and group of each part, and its index among the factor's parts.
    pub(super) parts: Vec<(usize, usize, usize)>,
    /// The links, parts and tables of each one-of group.
    pub(super) group_links: Vec<Vec<usize>>,
    pub(super) group_parts: Vec<Vec<usize>>,
    pub(super) group_tables: Vec<Vec<usize>>,
    /// The log-weight that normalising the weights of pairs removed.
    pub(super) constant: f64,
    /// The largest finite log-weight ratio of a pair. It is infinite when some state is forbidden.
    pub(super) strongest: f64,
    /// The same for one row, where lanes run over the messages of a label.
    pub(super) flat: Flat,
}

/// The slots for a single row. Those of a label fill whole vectors, padded with blanks.
#[derive(Debug)]
pub(super) struct Flat {
    /// The first slot of each node.
    pub(super) start: Vec<usize>,
    /// The slot of the message in the other direction. Blanks point past the last slot.
    pub(super) reverse: Vec<u32>,
    /// The position of each slot of [`MessageLayout`].
    pub(super) place: Vec<u32>,
}

/// How many messages of a label run side by side for a single row.
pub(super) const WIDTH: usize = 8;

impl Flat {
    fn new(slots: &[usize], reverse: &[u32]) -> Flat {
        let mut start = vec![0];
        let mut place = vec![0u32; reverse.len()];
        for node in slots.windows(2) {
            let first = start[start.len() - 1];
            (node[0]..node[1]).for_each(|slot| place[slot] = (first + slot - node[0]) as u32);
            start.push(first + (node[1] - node[0]).next_multiple_of(WIDTH));
        }
        let end = start[start.len() - 1];
        let mut back = vec![end as u32; end];
        for (slot, &other) in reverse.iter().enumerate() {
            back[place[slot] as usize] = place[other as usize];
        }
        Flat { start, reverse: back, place }
    }
}

impl MessageLayout {
    pub(super) fn new(network: &Network) -> Result<MessageLayout, Unfit> {
        let label: Vec<usize> = network.binary().collect();
        let mut node = vec![usize::MAX; network.labels];
        label.iter().enumerate().for_each(|(at, &label)| node[label] = at);
        let mut degree = vec![0usize; label.len() + 1];
        for pair in &network.pairs {
            degree[node[pair.a] + 1] += 1;
            degree[node[pair.b] + 1] += 1;
        }
        let slots = running_sums(degree);
        let mut next = slots.clone();
        let mut owner = vec![0; 2 * network.pairs.len()];
        let mut reverse = owner.clone();
        let mut pair_slots = Vec::with_capacity(network.pairs.len());
        let (mut constant, mut strongest) = (0.0, 0.0f64);
        for pair in &network.pairs {
            let (a, b) = (node[pair.a], node[pair.b]);
            let (at_a, at_b) = (next[a], next[b]);
            next[a] += 1;
            next[b] += 1;
            (owner[at_a], owner[at_b]) = (a as u32, b as u32);
            (reverse[at_a], reverse[at_b]) = (at_b as u32, at_a as u32);
            pair_slots.push([at_a as u32, at_b as u32]);
            let least = least_cost(pair);
            if least == f64::INFINITY {
                return Err(Unfit::Shape(String::from("a pair of labels has no legal state")));
            }
            constant -= least;
            let most = pair.costs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
            strongest = strongest.max(most - least);
        }
        let mut port_count = vec![0usize; label.len() + 1];
        let binary_members = network.cardinalities.iter().flat_map(|factor| &factor.labels);
        let port_labels = network.links.iter().map(|link| &link.label).chain(binary_members);
        port_labels.clone().for_each(|&label| port_count[node[label] + 1] += 1);
        let ports = running_sums(port_count);
        let mut next = ports.clone();
        let mut port_owner = vec![0; ports.last().copied().unwrap_or(0)];
        let mut port_of = |label: usize| {
            let port = next[node[label]];
            next[node[label]] += 1;
            port_owner[port] = node[label] as u32;
            port
        };
        let link_port = network.links.iter().map(|link| port_of(link.label)).collect();
        let mut parts = Vec::new();
        let mut members = Vec::with_capacity(network.cardinalities.len());
        for (at, factor) in network.cardinalities.iter().enumerate() {
            let ports = factor.labels.iter().map(|&label| Member::Port(port_of(label)));
            let mut all: Vec<Member> = ports.collect();
            for (place, part) in factor.parts.iter().enumerate() {
                all.push(Member::GroupPart(parts.len()));
                parts.push((at, part.group, place));
            }
            members.push(all);
        }
        let of_group = |groups: Vec<(usize, usize)>| {
            let mut lists = vec![Vec::new(); network.groups.len()];
            groups.into_iter().for_each(|(group, item)| lists[group].push(item));
            lists
        };
        let links = network.links.iter().enumerate();
        let tables = network.tables.iter().enumerate();
        let both_ends = tables.flat_map(|(at, table)| [(table.a, at), (table.b, at)]);
        let flat = Flat::new(&slots, &reverse);
        Ok(MessageLayout {
            group_links: of_group(links.map(|(at, link)| (link.group, at)).collect()),
            group_parts: of_group(parts.iter().enumerate().map(|(at, p)| (p.1, at)).collect()),
            group_tables: of_group(both_ends.collect()),
            label,
            slots,
            reverse,
            owner,
            pair_slots,
            ports,
            port_owner,
            link_port,
            members,
            parts,
            constant,
            strongest,
            flat,
        })
    }

    /// The weights of the message that leaves at each slot, from its owner to the other end.
    pub(super) fn weights<T: Odds>(&self, network: &Network) -> Vec<Weights<T>> {
        let mut all = vec![[T::ZERO; 4]; self.reverse.len()];
        for (pair, &[at_a, at_b]) in network.pairs.iter().zip(&self.pair_slots) {
            let least = least_cost(pair);
            let weight = |x_a: usize, x_b: usize| T::from_f64((least - pair.costs[x_a][x_b]).exp());
            all[at_a as usize] = [weight(0, 1), weight(1, 1), weight(0, 0), weight(1, 0)];
            all[at_b as usize] = [weight(1, 0), weight(1, 1), weight(0, 0), weight(0, 1)];
        }
        all
    }

    /// `exp(−cost)` of labels that differ, one per slot, if all pairs are symmetric and weak
    /// enough.
    pub(super) fn ratios<T: Odds>(&self, network: &Network) -> Option<Vec<T>> {
        let mut all = vec![T::ONE; self.reverse.len()];
        for (pair, slots) in network.pairs.iter().zip(&self.pair_slots) {
            let [[none, only_b], [only_a, both]] = pair.costs;
            let symmetric = none == 0.0 && both == 0.0 && only_a == only_b;
            if !symmetric || only_a.abs() > T::MILD {
                return None;
            }
            slots.iter().for_each(|&slot| all[slot as usize] = T::from_f64((-only_a).exp()));
        }
        Some(all)
    }

    /// The label of a port.
    pub(super) fn owner_of_port(&self, port: usize) -> usize {
        self.ports.partition_point(|&first| first <= port) - 1
    }

    /// How many binary nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.label.len()
    }
}

fn least_cost(pair: &PairFactor) -> f64 {
    pair.costs.iter().flatten().copied().fold(f64::INFINITY, f64::min)
}

fn running_sums(mut counts: Vec<usize>) -> Vec<usize> {
    for at in 1..counts.len() {
        counts[at] += counts[at - 1];
    }
    counts
}
