//! A factor graph as tables on the device.

use phex::infer::Method;
use phex::infer::compiled::{Cardinality, Network, PairFactor};

use super::MOST_TURNS;
use super::echo::{MessagePartners, StrengthKinds};
use super::order::{EIGHT, MessageSlots, by_degree, in_eights, share_out};
use super::spread::spread;
use crate::Error;
use crate::memory::{Plain, TableBuilder, TableOffset};

/// The largest log-weight ratio for single precision, as on the CPU.
const SINGLE: f64 = 20.0;
/// The largest costs of symmetric pairs for the fast way, in single and in double precision.
pub(super) const MILD: [f64; 2] = [6.0, 50.0];

/// The most threads of a block: in general, and where messages are answered in place. That takes more registers, and is for as
/// many nodes as these threads have turns for.
const MOST_THREADS: [usize; 2] = [1024, 512];

/// Weights in one type of arithmetic.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightTables {
    pub(super) edges: TableOffset,
    pub(super) entries: TableOffset,
    pub(super) mild: bool,
    /// What normalising the weights took away from log Z.
    pub(super) constant: f64,
}

/// The tables of [`MessagePartners`], in single precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartnerTables {
    pub(super) heads: TableOffset,
    pub(super) tails: TableOffset,
    pub(super) reach: TableOffset,
    pub(super) strengths: [f32; 4],
    /// How many strengths there are.
    pub(super) kinds: usize,
}

/// The tables of a factor graph, in the order of the kernel's structure.
#[derive(Debug)]
pub(super) struct NetworkTables {
    pub(super) tables: TableBuilder,
    pub(super) single: Option<WeightTables>,
    pub(super) double: WeightTables,
    /// If messages can be answered in place.
    pub(super) partners: Option<PartnerTables>,
    /// Threads per block.
    pub(super) threads: u32,
    /// The most messages of any label.
    pub(super) most_messages: usize,
    pub(super) edges: TableOffset,
    /// From `node_label` to `group_start`.
    pub(super) nodes: [TableOffset; 6],
    pub(super) entries: TableOffset,
    /// From `link_start` to `members`.
    pub(super) larger: [TableOffset; 12],
    pub(super) factor_cost: TableOffset,
    pub(super) factor_weight: TableOffset,
    pub(super) bias: TableOffset,
    pub(super) sizes: NetworkSizes,
    pub(super) constant: f64,
    /// Whether some state is forbidden, so that evidence may contradict the relations.
    pub(super) hard: bool,
}

/// Lengths, in the order of the kernel's structure.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct NetworkSizes {
    pub(super) edges: i32,
    pub(super) nodes: i32,
    pub(super) slots: i32,
    pub(super) ports: i32,
    pub(super) states: i32,
    pub(super) groups: i32,
    pub(super) entries: i32,
    pub(super) links: i32,
    pub(super) parts: i32,
    pub(super) factors: i32,
    pub(super) labels: i32,
    pub(super) largest: i32,
    pub(super) tails: i32,
    pub(super) small_factors: [i32; 3],
}

fn least_cost(pair: &PairFactor) -> f64 {
    pair.costs.iter().flatten().copied().fold(f64::INFINITY, f64::min)
}

/// The largest log-weight ratio; infinite if some state is forbidden.
fn strongest(network: &Network) -> f64 {
    let pairs = network.pairs.iter().map(|pair| {
        let most = pair.costs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        most - least_cost(pair)
    });
    let hard = |cost: f64| if cost == f64::INFINITY { cost } else { 0.0 };
    let links = network.links.iter().flat_map(|link| &link.entries);
    let links = links.flat_map(|entry| entry.1).map(hard);
    let counts = network.cardinalities.iter().map(|factor| hard(factor.cost));
    pairs.chain(links).chain(counts).fold(0.0, f64::max)
}

impl NetworkTables {
    /// The tables of a network; with `in_place`, messages may be answered in place.
    pub(super) fn new(network: &Network, in_place: bool) -> Result<NetworkTables, Error> {
        if !network.tables.is_empty() {
            let why = String::from("a relation joins labels of two one-of groups");
            return Err(Error::Unsupported { method: Method::Lbp, why });
        }
        let labels: Vec<usize> =
            (0..network.labels).filter(|&l| network.state_of[l].is_none()).collect();
        let mut index = vec![usize::MAX; network.labels];
        labels.iter().enumerate().for_each(|(at, &label)| index[label] = at);
        let ends: Vec<[usize; 2]> =
            network.pairs.iter().map(|pair| [index[pair.a], index[pair.b]]).collect();
        let mut neighbours = vec![Vec::new(); labels.len()];
        for &[a, b] in &ends {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        // Places of nodes on the device.
        let states: usize = network.groups.iter().map(Vec::len).sum();
        let work = (ends.len() / 4).max(labels.len() / 2).max(states / 2) as u32;
        let ports = !network.links.is_empty() || !network.cardinalities.is_empty();
        let kinds = if in_place && !ports { StrengthKinds::new(network) } else { None };
        let few = kinds.is_some() && labels.len() <= MOST_TURNS * MOST_THREADS[1];
        let threads = work.next_multiple_of(32).clamp(64, MOST_THREADS[usize::from(few)] as u32);
        let mut order = by_degree(&neighbours);
        if kinds.is_some() {
            spread(&mut order, &neighbours);
        }
        let order = share_out(&order, &neighbours, threads as usize / 32);
        let nodes = order.len().next_multiple_of(EIGHT);
        let mut node_label = vec![-1i32; nodes];
        let mut place = vec![0usize; labels.len()];
        for (at, node) in order.iter().enumerate() {
            if let Some(node) = *node {
                place[node] = at;
                node_label[at] = labels[node] as i32;
            }
        }
        let ends: Vec<[usize; 2]> = ends.iter().map(|ends| ends.map(|node| place[node])).collect();
        let slots = MessageSlots::new(&ends, nodes);
        let ordered = in_eights(&ends);
        let edges: Vec<[u32; 4]> = ordered
            .iter()
            .map(|edge| match edge {
                None => [u32::MAX; 4],
                Some(edge) => {
                    let ([a, b], [s, t]) =
                        (ends[edge.pair].map(|node| node as u32), slots.of[edge.pair]);
                    if edge.turned { [b, a, t, s] } else { [a, b, s, t] }
                }
            })
            .collect();
        let pairs: Vec<Option<[[f64; 2]; 2]>> = ordered
            .iter()
            .map(|edge| {
                edge.map(|edge| {
                    let [[none, b], [a, both]] = network.pairs[edge.pair].costs;
                    if edge.turned { [[none, a], [b, both]] } else { [[none, b], [a, both]] }
                })
            })
            .collect();
        let mut tables = TableBuilder::default();
        let strongest = strongest(network);
        let single = (strongest <= SINGLE)
            .then(|| weights(&mut tables, network, &pairs, MILD[0], |value| value as f32));
        let double = weights(&mut tables, network, &pairs, MILD[1], |value| value);
        let partners = kinds.and_then(|kinds| MessagePartners::new(&kinds, &ends, &slots));
        let tails = partners.as_ref().map_or(0, |partners| partners.tails.len());
        let partners = partners.map(|partners| PartnerTables {
            heads: tables.add(&partners.heads),
            tails: tables.add(&partners.tails),
            reach: tables.add(&partners.reach),
            strengths: partners.strengths,
            kinds: partners.kinds,
        });
        let edges_at = tables.add(&edges);
        let mut factors = larger_factors(network, &index, &place, nodes);
        let mut group_start = vec![0i32];
        let mut state_label = Vec::new();
        for group in &network.groups {
            state_label.extend(group.iter().map(|&label| label as i32));
            group_start.push(state_label.len() as i32);
        }
        let port_start = std::mem::take(&mut factors.port_start);
        let nodes_at =
            [&node_label, &slots.base, &slots.degree, &port_start, &state_label, &group_start]
                .map(|table| tables.add(table));
        let entries_at = tables.add(&factors.entries);
        let larger_at = factors.tables().map(|table| tables.add(table));
        let costs: Vec<f64> = factors.factors.iter().map(|factor| factor.cost).collect();
        let weights: Vec<f64> = factors.factors.iter().flat_map(count_weights).collect();
        let (factor_cost, factor_weight) = (tables.add(&costs), tables.add(&weights));
        let bias = tables.add(&network.bias);
        let sizes = NetworkSizes {
            edges: edges.len() as i32,
            nodes: nodes as i32,
            slots: slots.count as i32,
            ports: port_start.last().copied().unwrap_or(0),
            states: state_label.len() as i32,
            groups: network.groups.len() as i32,
            entries: factors.entries.len() as i32,
            links: network.links.len() as i32,
            parts: factors.part_group.len() as i32,
            factors: network.cardinalities.len() as i32,
            labels: network.labels as i32,
            largest: factors.largest,
            tails: tails as i32,
            small_factors: factors.small_factors,
        };
        Ok(NetworkTables {
            tables,
            single,
            double,
            partners,
            threads,
            most_messages: neighbours.iter().map(Vec::len).max().unwrap_or(0),
            edges: edges_at,
            nodes: nodes_at,
            entries: entries_at,
            larger: larger_at,
            factor_cost,
            factor_weight,
            bias,
            sizes,
            constant: network.constant,
            hard: strongest == f64::INFINITY,
        })
    }
}

/// Whether a pair is symmetric and costs no more than `most`.
pub(super) fn is_mild(costs: &[[f64; 2]; 2], most: f64) -> bool {
    let [[none, b], [a, both]] = *costs;
    none == 0.0 && both == 0.0 && a == b && a.abs() <= most
}

fn weights<T: Plain>(
    tables: &mut TableBuilder,
    network: &Network,
    pairs: &[Option<[[f64; 2]; 2]>],
    mildest: f64,
    round: impl Fn(f64) -> T,
) -> WeightTables {
    let mild = pairs.iter().flatten().all(|costs| is_mild(costs, mildest));
    let values: Vec<T> = if mild {
        pairs.iter().map(|costs| round(costs.map_or(1.0, |costs| (-costs[0][1]).exp()))).collect()
    } else {
        let weights = |costs: &Option<[[f64; 2]; 2]>| {
            let costs = costs.unwrap_or_default();
            let least = costs.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            [costs[0][0], costs[0][1], costs[1][0], costs[1][1]].map(|cost| (least - cost).exp())
        };
        pairs.iter().flat_map(weights).map(&round).collect()
    };
    let entries = network.links.iter().flat_map(|link| &link.entries);
    let entries: Vec<T> =
        entries.flat_map(|entry| entry.1).map(|cost| round((-cost).exp())).collect();
    let least = network.pairs.iter().map(|pair| -least_cost(pair));
    let constant = if mild { 0.0 } else { least.sum() };
    WeightTables { edges: tables.add(&values), entries: tables.add(&entries), mild, constant }
}

/// Links, parts and cardinality factors.
struct LargerFactors<'a> {
    /// Cardinality factors in order of size, and how many of them are within each size class.
    factors: Vec<&'a Cardinality>,
    small_factors: [i32; 3],
    port_start: Vec<i32>,
    entries: Vec<[i32; 2]>,
    link_start: Vec<i32>,
    link_port: Vec<i32>,
    link_group: Vec<i32>,
    state_entries: [Vec<i32>; 2],
    part_start: Vec<i32>,
    part_states: Vec<i32>,
    part_group: Vec<i32>,
    state_parts: [Vec<i32>; 2],
    factor_start: Vec<i32>,
    members: Vec<i32>,
    largest: i32,
}

impl LargerFactors<'_> {
    fn tables(&self) -> [&Vec<i32>; 12] {
        [
            &self.link_start,
            &self.link_port,
            &self.link_group,
            &self.state_entries[0],
            &self.state_entries[1],
            &self.part_start,
            &self.part_states,
            &self.part_group,
            &self.state_parts[0],
            &self.state_parts[1],
            &self.factor_start,
            &self.members,
        ]
    }
}

/// The most members of the cardinality factors that have 8, 16 and 32 lanes.
const SMALL: [usize; 3] = [7, 15, 31];
/// Factors of a larger total cost need a tilt, as on the CPU.
const SAFE_COST: f64 = 600.0;

fn members(factor: &Cardinality) -> usize {
    factor.labels.len() + factor.parts.len()
}

/// The size class of a factor; the last class are those that are not small.
fn size_class(factor: &Cardinality) -> usize {
    let count = members(factor);
    let strong = factor.cost.is_finite() && factor.cost * (count * count) as f64 / 2.0 >= SAFE_COST;
    let class = SMALL.iter().position(|&most| count <= most && !strong);
    class.unwrap_or(SMALL.len())
}

/// `exp(−w (m − 1/2)² / 2)` for counts `m`: the weight of a factor's pairs, up to a constant.
fn count_weights(factor: &&Cardinality) -> Vec<f64> {
    let weight = |count: usize| {
        let away = count as f64 - 0.5;
        if factor.cost.is_finite() { (-factor.cost * away * away / 2.0).exp() } else { 0.0 }
    };
    (0..=members(factor)).map(weight).collect()
}

fn larger_factors<'a>(
    network: &'a Network,
    index: &[usize],
    place: &[usize],
    nodes: usize,
) -> LargerFactors<'a> {
    let mut factors: Vec<&Cardinality> = network.cardinalities.iter().collect();
    factors.sort_by_key(|factor| (size_class(factor), members(factor)));
    let small_factors =
        [0, 1, 2].map(|class| factors.partition_point(|f| size_class(f) <= class) as i32);
    let node = |label: usize| place[index[label]];
    let members = network.cardinalities.iter().flat_map(|factor| &factor.labels);
    let ported = network.links.iter().map(|link| link.label).chain(members.copied());
    let mut port_start = vec![0i32; nodes + 1];
    ported.for_each(|label| port_start[node(label) + 1] += 1);
    (0..nodes).for_each(|at| port_start[at + 1] += port_start[at]);
    let mut next = port_start.clone();
    let mut port_of = |label: usize| {
        let port = next[node(label)];
        next[node(label)] += 1;
        port
    };
    let mut first_state = vec![0usize];
    network
        .groups
        .iter()
        .for_each(|group| first_state.push(first_state[first_state.len() - 1] + group.len()));
    let states = first_state[first_state.len() - 1];
    let (mut entries, mut link_start) = (Vec::new(), vec![0i32]);
    for (at, link) in network.links.iter().enumerate() {
        let all = link.entries.iter().map(|e| [(first_state[link.group] + e.0) as i32, at as i32]);
        entries.extend(all);
        link_start.push(entries.len() as i32);
    }
    let link_port = network.links.iter().map(|link| port_of(link.label)).collect();
    let link_group = network.links.iter().map(|link| link.group as i32).collect();
    let (mut part_start, mut part_states, mut part_group) = (vec![0i32], Vec::new(), Vec::new());
    let (mut factor_start, mut members, mut of_part) = (vec![0i32], Vec::new(), Vec::new());
    for factor in &factors {
        members.extend(factor.labels.iter().map(|&label| port_of(label)));
        for part in &factor.parts {
            let at = part_group.len() as i32;
            members.push(-1 - at);
            part_group.push(part.group as i32);
            for &state in &part.states {
                part_states.push((first_state[part.group] + state) as i32);
                of_part.push([(first_state[part.group] + state) as i32, at]);
            }
            part_start.push(part_states.len() as i32);
        }
        factor_start.push(members.len() as i32);
    }
    let entry_states = entries.iter().enumerate().map(|(at, entry)| [entry[0], at as i32]);
    let state_entries = by_first(entry_states.collect(), states);
    let state_parts = by_first(of_part, states);
    let largest = factor_start.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    LargerFactors {
        factors,
        small_factors,
        port_start,
        entries,
        link_start,
        link_port,
        link_group,
        state_entries,
        part_start,
        part_states,
        part_group,
        state_parts,
        factor_start,
        members,
        largest,
    }
}

/// Where the items of each key start, and the items.
fn by_first(mut pairs: Vec<[i32; 2]>, keys: usize) -> [Vec<i32>; 2] {
    pairs.sort_unstable();
    let mut start = vec![0i32; keys + 1];
    pairs.iter().for_each(|pair| start[pair[0] as usize + 1] += 1);
    (0..keys).for_each(|key| start[key + 1] += start[key]);
    [start, pairs.iter().map(|pair| pair[1]).collect()]
}
