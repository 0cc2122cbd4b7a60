//! The edges of a pairwise factor graph, with their costs divided by their appearance.

use super::trees::Trees;
use crate::infer::Unfit;
use crate::infer::approximate::network::{Frame, Network};

/// Graphs with more edges would need too many trees.
const MAX_EDGES: usize = 2_000_000;

/// The data that a binary node needs about a pair that it is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port {
    /// The messages to this node and to the other one.
    pub(super) incoming: usize,
    pub(super) outgoing: usize,
    pub(super) appearance: f64,
    /// By the state of this node and of the other.
    pub(super) costs: [[f64; 2]; 2],
}

/// Two binary nodes.
#[derive(Debug)]
pub(super) struct PairEdge {
    pub(super) nodes: [usize; 2],
    pub(super) costs: [[f64; 2]; 2],
}

/// A one-of group and a binary node.
#[derive(Debug)]
pub(super) struct LinkEdge {
    pub(super) group: usize,
    pub(super) label: usize,
    pub(super) appearance: f64,
    /// Its first message to a state of the group. There is one per entry.
    pub(super) first: usize,
    /// States of the group with the costs of the label off and on.
    pub(super) entries: Vec<(usize, [f64; 2])>,
}

/// Two one-of groups.
#[derive(Debug)]
pub(super) struct TableEdge {
    pub(super) nodes: [usize; 2],
    pub(super) appearance: f64,
    /// The first message to a state of each node.
    pub(super) first: [usize; 2],
    /// The receiving node's state, the other node's state, and the cost; ascending.
    pub(super) cells: [Vec<(usize, usize, f64)>; 2],
}

/// A pairwise model in the form that messages need.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) frame: Frame,
    pub(super) pairs: Vec<PairEdge>,
    pub(super) links: Vec<LinkEdge>,
    pub(super) tables: Vec<TableEdge>,
    /// The ports of each binary node, and the links and tables (with the node's side) at each node.
    pub(super) ports: Vec<Vec<Port>>,
    pub(super) links_at: Vec<Vec<usize>>,
    pub(super) tables_at: Vec<Vec<(usize, usize)>>,
    /// The number of messages to states of groups, by links and by tables.
    pub(super) link_messages: usize,
    pub(super) table_messages: usize,
    pub(super) trees: Trees,
}

impl Edges {
    pub(super) fn new(network: &Network, frame: Frame, seed: u64) -> Result<Edges, Unfit> {
        let pair_nodes = network.pairs.iter().map(|pair| [pair.a, pair.b].map(|l| frame.node[l]));
        let link_nodes =
            network.links.iter().map(|link| [frame.group(link.group), frame.node[link.label]]);
        let table_nodes =
            network.tables.iter().map(|table| [table.a, table.b].map(|g| frame.group(g)));
        let ends: Vec<[usize; 2]> = pair_nodes.chain(link_nodes).chain(table_nodes).collect();
        if ends.len() > MAX_EDGES {
            let needs = format!(
                "spanning trees of {} pairs, but at most {MAX_EDGES} are possible",
                ends.len()
            );
            return Err(Unfit::Budget { needs });
        }
        let trees = Trees::new(frame.nodes(), &ends, seed);
        let nodes = frame.nodes();
        let mut edges = Edges {
            frame,
            pairs: Vec::new(),
            links: Vec::new(),
            tables: Vec::new(),
            ports: vec![Vec::new(); nodes],
            links_at: vec![Vec::new(); nodes],
            tables_at: vec![Vec::new(); nodes],
            link_messages: 0,
            table_messages: 0,
            trees,
        };
        let (pairs, rest) = ends.split_at(network.pairs.len());
        let (links, tables) = rest.split_at(network.links.len());
        for (at, (pair, ends)) in network.pairs.iter().zip(pairs).enumerate() {
            edges.pair(*ends, pair.costs, edges.trees.appearance[at]);
        }
        for (at, (link, ends)) in network.links.iter().zip(links).enumerate() {
            edges.link(*ends, &link.entries, edges.trees.appearance[pairs.len() + at]);
        }
        for (at, (table, ends)) in network.tables.iter().zip(tables).enumerate() {
            let appearance = edges.trees.appearance[pairs.len() + links.len() + at];
            edges.table(*ends, &table.entries, appearance);
        }
        Ok(edges)
    }

    fn pair(&mut self, nodes: [usize; 2], costs: [[f64; 2]; 2], appearance: f64) {
        let costs = costs.map(|row| row.map(|cost| cost / appearance));
        let turned = [[costs[0][0], costs[1][0]], [costs[0][1], costs[1][1]]];
        let (to_a, to_b) = (2 * self.pairs.len(), 2 * self.pairs.len() + 1);
        let [a, b] = nodes;
        self.ports[a].push(Port { incoming: to_a, outgoing: to_b, appearance, costs });
        self.ports[b].push(Port { incoming: to_b, outgoing: to_a, appearance, costs: turned });
        self.pairs.push(PairEdge { nodes, costs });
    }

    fn link(&mut self, [group, label]: [usize; 2], entries: &[(usize, [f64; 2])], appearance: f64) {
        let scaled = |&(state, costs): &(usize, [f64; 2])| (state, costs.map(|c| c / appearance));
        self.links_at[group].push(self.links.len());
        self.links_at[label].push(self.links.len());
        let first = self.link_messages;
        self.link_messages += entries.len();
        let entries = entries.iter().map(scaled).collect();
        self.links.push(LinkEdge { group, label, appearance, first, entries });
    }

    fn table(&mut self, nodes: [usize; 2], entries: &[(usize, usize, f64)], appearance: f64) {
        let first = self.table_messages;
        let sizes = nodes.map(|node| self.frame.of(node).len());
        self.table_messages += sizes[0] + sizes[1];
        let mut cells = [Vec::new(), Vec::new()];
        for &(s, t, cost) in entries {
            cells[0].push((s, t, cost / appearance));
            cells[1].push((t, s, cost / appearance));
        }
        cells[1].sort_by_key(|cell| (cell.0, cell.1));
        for (side, &node) in nodes.iter().enumerate() {
            self.tables_at[node].push((self.tables.len(), side));
        }
        self.tables.push(TableEdge { nodes, appearance, first: [first, first + sizes[0]], cells });
    }
}
