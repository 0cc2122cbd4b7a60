//! Arc consistency over the forbidden cells of a factor graph: which states are still possible.
//!
//! A state is removed when some neighbour has no live state that is compatible with it. Every state
//! of positive weight survives, so a node without live states proves that no state of the model
//! agrees with the evidence. On trees the converse also holds. State `j` of a node is removed when
//! the number of live states of a neighbour that forbid it equals the number of its live states.
//! This costs O(forbidden cells) per visit.

use std::ops::Range;

use super::{Frame, Network};
use crate::infer::{Block, Number};
use crate::numeric::Lanes;

/// Forbidden cells between two nodes.
#[derive(Debug, Clone)]
struct HardEdge {
    nodes: [usize; 2],
    /// States of the second node, each with the state of the first that forbids it, ascending. Then
    /// the same in the other direction.
    cells: [Vec<(usize, usize)>; 2],
}

/// Nodes of which at most one may be in a member state.
#[derive(Debug, Clone)]
struct HardGroup {
    members: Vec<(usize, Vec<usize>)>,
}

/// The forbidden cells of a factor graph.
#[derive(Debug, Clone)]
pub(crate) struct Support {
    edges: Vec<HardEdge>,
    groups: Vec<HardGroup>,
    /// The edges and groups at each node.
    edges_at: Vec<Vec<usize>>,
    groups_at: Vec<Vec<usize>>,
    /// The node of each state.
    node: Vec<usize>,
}

/// The states of a row that are not yet excluded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub(crate) state: Vec<bool>,
    /// The number of live states of each node.
    count: Vec<usize>,
    changed: Vec<usize>,
}

impl Support {
    /// Cells that cost at least `hard` count as forbidden. `hard` is `∞`, or less to find states
    /// that pay little.
    pub(crate) fn new(network: &Network, frame: &Frame, hard: f64) -> Support {
        let is_hard = |cost: f64| cost >= hard;
        let mut support = Support {
            edges: Vec::new(),
            groups: Vec::new(),
            edges_at: vec![Vec::new(); frame.nodes()],
            groups_at: vec![Vec::new(); frame.nodes()],
            node: (0..frame.nodes()).flat_map(|node| frame.of(node).map(move |_| node)).collect(),
        };
        for pair in &network.pairs {
            let (a, b) = (frame.on[pair.a] - 1, frame.on[pair.b] - 1);
            let cells = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter();
            let least = pair.costs.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let least = if least < f64::INFINITY { least } else { 0.0 };
            let hard = cells.filter(|&(x, y)| is_hard(pair.costs[x][y] - least));
            support.add(hard.map(|(x, y)| (a + x, b + y)).collect());
        }
        for link in &network.links {
            let first = frame.first[frame.group(link.group)];
            let off = frame.on[link.label] - 1;
            let cells = link.entries.iter().flat_map(|&(state, costs)| {
                let hard = (0..2).filter(move |&x| is_hard(costs[x]));
                hard.map(move |x| (first + state, off + x))
            });
            support.add(cells.collect());
        }
        for table in &network.tables {
            let [a, b] = [table.a, table.b].map(|group| frame.first[frame.group(group)]);
            let hard = table.entries.iter().filter(|entry| is_hard(entry.2));
            support.add(hard.map(|entry| (a + entry.0, b + entry.1)).collect());
        }
        for factor in network.cardinalities.iter().filter(|f| is_hard(f.cost)) {
            let labels = factor.labels.iter();
            let labels = labels.map(|&label| (frame.node[label], vec![frame.on[label]]));
            let parts = factor.parts.iter().map(|part| {
                let node = frame.group(part.group);
                (node, part.states.iter().map(|state| frame.first[node] + state).collect())
            });
            let members: Vec<(usize, Vec<usize>)> = labels.chain(parts).collect();
            members.iter().for_each(|m| support.groups_at[m.0].push(support.groups.len()));
            support.groups.push(HardGroup { members });
        }
        support
    }

    fn add(&mut self, cells: Vec<(usize, usize)>) {
        let Some(&(a, b)) = cells.first() else { return };
        let nodes = [self.node[a], self.node[b]];
        let mut turned: Vec<(usize, usize)> = cells.iter().map(|&(i, j)| (j, i)).collect();
        turned.sort_unstable();
        nodes.iter().for_each(|&node| self.edges_at[node].push(self.edges.len()));
        self.edges.push(HardEdge { nodes, cells: [turned, cells] });
    }

    /// Whether nothing is forbidden.
    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.groups.is_empty()
    }

    /// The forbidden cells between two nodes: pairs of states.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.edges.iter().flat_map(|edge| edge.cells[1].iter().copied())
    }

    /// The log-weights of all states of some rows, lane by lane, with `−∞` for impossible states.
    /// Lanes beyond the rows repeat the last row. Returns which rows have a state at all. The
    /// others get weights of zero, and are to be overwritten.
    pub(crate) fn weigh<T: Number, const L: usize>(
        &self,
        network: &Network,
        frame: &Frame,
        block: &Block<'_, T>,
        rows: &Range<usize>,
        out: &mut [Lanes<f64, L>],
    ) -> [bool; L] {
        let mut weights = vec![0.0; frame.states()];
        let mut live = Live::default();
        let mut possible = [true; L];
        for (lane, possible) in possible.iter_mut().enumerate() {
            frame.weigh(network, block, (rows.start + lane).min(rows.end - 1), &mut weights);
            *possible = self.start(&weights, &mut live);
            for ((out, &weight), &live) in out.iter_mut().zip(&weights).zip(&live.state) {
                out.0[lane] = match (*possible, live) {
                    (true, true) => weight,
                    (true, false) => f64::NEG_INFINITY,
                    (false, _) => 0.0,
                };
            }
        }
        possible
    }

    /// The states that `weights` allow, after propagation. Returns `false` when some node has no
    /// state left.
    pub(crate) fn start(&self, weights: &[f64], live: &mut Live) -> bool {
        live.state.clear();
        live.state.extend(weights.iter().map(|&weight| weight > f64::NEG_INFINITY));
        live.count.clear();
        live.count.resize(self.edges_at.len(), 0);
        for (state, &node) in self.node.iter().enumerate() {
            live.count[node] += usize::from(live.state[state]);
        }
        live.changed = (0..live.count.len()).collect();
        live.count.iter().all(|&count| count > 0) && self.propagate(live)
    }

    fn propagate(&self, live: &mut Live) -> bool {
        while let Some(node) = live.changed.pop() {
            for &edge in &self.edges_at[node] {
                let edge = &self.edges[edge];
                let way = usize::from(edge.nodes[1] == node);
                let source = live.count[node];
                for run in edge.cells[way].chunk_by(|a, b| a.0 == b.0) {
                    let against = run.iter().filter(|cell| live.state[cell.1]).count();
                    if against == source && !self.kill(live, run[0].0) {
                        return false;
                    }
                }
            }
            for &group in &self.groups_at[node] {
                let on = |member: &&(usize, Vec<usize>)| {
                    let members = member.1.iter().filter(|&&state| live.state[state]).count();
                    members == live.count[member.0]
                };
                let Some(forced) = self.groups[group].members.iter().find(on) else { continue };
                for (_, states) in self.groups[group].members.iter().filter(|m| m.0 != forced.0) {
                    if !states.iter().all(|&state| self.kill(live, state)) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Excludes a state. Returns `false` when it was the last of its node.
    fn kill(&self, live: &mut Live, state: usize) -> bool {
        let node = self.node[state];
        if std::mem::take(&mut live.state[state]) {
            live.count[node] -= 1;
            live.changed.push(node);
        }
        live.count[node] > 0
    }

    /// Whether a live state of this node is incompatible with a live state of another node.
    fn is_torn(&self, live: &Live, node: usize) -> bool {
        let cell = |&(i, j): &(usize, usize)| live.state[i] && live.state[j];
        let edge = |&edge: &usize| self.edges[edge].cells[0].iter().any(cell);
        let group = |&group: &usize| {
            let possible = |states: &[usize]| states.iter().any(|&state| live.state[state]);
            let members = &self.groups[group].members;
            members.iter().any(|m| m.0 == node && possible(&m.1))
                && members.iter().any(|m| m.0 != node && possible(&m.1))
        };
        live.count[node] > 1
            && (self.edges_at[node].iter().any(edge) || self.groups_at[node].iter().any(group))
    }

    /// Shrinks the live states until all that are left are compatible, node by node in this order.
    /// A node that must decide keeps its preferred state. Returns `false` when this fails.
    pub(crate) fn settle(
        &self,
        frame: &Frame,
        live: &mut Live,
        order: &[usize],
        preference: impl Fn(usize) -> f64,
    ) -> bool {
        for &node in order {
            while self.is_torn(live, node) {
                let states = frame.of(node).filter(|&state| live.state[state]);
                let best = states.max_by(|&a, &b| preference(a).total_cmp(&preference(b)));
                let Some(best) = best else { return false };
                let before = live.clone();
                let mut others = frame.of(node).filter(|&state| state != best);
                if others.all(|state| self.kill(live, state)) && self.propagate(live) {
                    break;
                }
                *live = before;
                if !self.kill(live, best) || !self.propagate(live) {
                    return false;
                }
            }
        }
        true
    }
}
