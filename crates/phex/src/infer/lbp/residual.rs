//! The residual schedule: always the label, group or factor whose news are the largest.
//!
//! A node's residual is the largest change of anything that it was told since it last spoke. The one
//! with the largest speaks next; its own residual is then zero and those it spoke to may grow. Rows run
//! one at a time, for each has an order of its own. Cost: a heap operation for each message.

use std::collections::BinaryHeap;

use super::labels::{Damping, Pairs, visit};
use super::layout::Member;
use super::state::State;
use super::{Compiled, Lbp};
use crate::infer::{Answers, Block, Diagnosis, Number};

/// A residual in the order of the heap, and its node.
#[derive(PartialEq)]
struct Entry(f64, usize);

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        // Of equals the first node: the order does not depend on the heap.
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

/// Who has news.
struct Queue {
    heap: BinaryHeap<Entry>,
    residual: Vec<f64>,
    /// The largest news of the node that speaks.
    largest: f64,
}

impl Queue {
    fn new(nodes: usize) -> Queue {
        let heap = (0..nodes).map(|node| Entry(f64::MAX, node)).collect();
        Queue { heap, residual: vec![f64::MAX; nodes], largest: 0.0 }
    }

    /// The node with the largest residual.
    fn next(&mut self) -> Option<(f64, usize)> {
        while let Some(Entry(residual, node)) = self.heap.pop() {
            // Older entries of a node are behind its newest.
            if residual == self.residual[node] && residual > 0.0 {
                self.residual[node] = 0.0;
                return Some((residual, node));
            }
        }
        None
    }

    fn news(&mut self, node: usize, old: f64, new: f64) {
        let size = (new - old).abs();
        let probability = size / ((1.0 + new) * (1.0 + old));
        // What probabilities close to 0 or 1 hide counts for less.
        let open = (1e-100..1e100).contains(&new);
        let proportion = if open { 1e-3 * size / (new + old) } else { 0.0 };
        let residual = probability.max(proportion);
        self.largest = self.largest.max(residual);
        self.raise(node, residual);
    }

    fn raise(&mut self, node: usize, residual: f64) {
        if residual > self.residual[node] {
            self.residual[node] = residual;
            self.heap.push(Entry(residual, node));
        }
    }
}

impl Lbp {
    /// Runs each row until nothing has news above the tolerance.
    pub(super) fn run_residual<S: Number>(
        &self,
        block: &Block<'_, S>,
        answers: &mut Answers<'_, S>,
    ) {
        let Compiled { network, layout, .. } = &self.compiled;
        let pairs = Pairs { weights: &self.double.weights, ratios: None };
        let mut state: State<f64, 1> = State::new(network, layout, None, false);
        let damped = self.options.damping > 0.0;
        let damping = damped.then(|| Damping::new(self.options.damping));
        let nodes = layout.nodes() + network.groups.len() + network.cardinalities.len();
        let most = u64::from(self.options.iterations) * nodes as u64;
        for row in 0..block.rows() {
            state.gather(network, block, &[Some(row)]);
            state.load(network, layout, &[true]);
            let mut queue = Queue::new(nodes);
            let mut left = 0.0;
            let mut spoken = 0;
            while let Some((residual, node)) = queue.next() {
                left = residual;
                if residual <= self.options.tolerance || spoken == most {
                    break;
                }
                left = 0.0;
                spoken += 1;
                self.compiled.speak(&pairs, &mut state, node, damping, &mut queue);
            }
            let log_partition = self.compiled.settle(&self.double.weights, &mut state);
            answers.log_partition[row] = log_partition[0];
            answers.diagnosis[row] = Diagnosis {
                iterations: spoken.div_ceil(nodes.max(1) as u64) as u32,
                converged: left <= self.options.tolerance.max(1e-6),
                residual: left,
                ..Diagnosis::default()
            };
            self.compiled.write_binary(&state, &[Some(row)], answers);
            self.compiled.write(&self.double.weights, &state, 0, row, block, answers);
        }
    }
}

impl Compiled {
    /// Lets a node speak, and tells the queue whom it told what.
    fn speak(
        &self,
        pairs: &Pairs<'_, f64>,
        state: &mut State<f64, 1>,
        node: usize,
        damping: Option<Damping<f64>>,
        queue: &mut Queue,
    ) {
        let (labels, groups) = (self.layout.nodes(), self.network.groups.len());
        queue.largest = 0.0;
        if node < labels {
            self.speak_label(pairs, state, node, damping, queue);
        } else if node < labels + groups {
            self.speak_group(state, node - labels, damping, queue);
        } else {
            self.speak_count(state, node - labels - groups, damping, queue);
        }
        if let Some(damping) = damping {
            // It has held back a part of what it has to say.
            queue.raise(node, queue.largest * damping.old / damping.new);
        }
    }

    fn speak_label(
        &self,
        pairs: &Pairs<'_, f64>,
        state: &mut State<f64, 1>,
        node: usize,
        damping: Option<Damping<f64>>,
        queue: &mut Queue,
    ) {
        let layout = &self.layout;
        let slots = layout.reverse[layout.slots[node]..layout.slots[node + 1]].iter();
        let ports = layout.ports[node]..layout.ports[node + 1];
        let old: Vec<f64> = slots.clone().map(|&slot| state.messages[slot as usize].0[0]).collect();
        let old_ports: Vec<f64> = state.cavity[ports.clone()].iter().map(|c| c.0[0]).collect();
        visit(layout, pairs, state, node, damping, false);
        for (&slot, old) in slots.zip(old) {
            let slot = slot as usize;
            queue.news(layout.owner[slot] as usize, old, state.messages[slot].0[0]);
        }
        for (port, old) in ports.zip(old_ports) {
            let factor = match self.port_factor[port] {
                PortFactor::Group(group) => layout.nodes() + group,
                PortFactor::Count(count) => layout.nodes() + self.network.groups.len() + count,
            };
            queue.news(factor, old, state.cavity[port].0[0]);
        }
    }

    fn speak_group(
        &self,
        state: &mut State<f64, 1>,
        group: usize,
        damping: Option<Damping<f64>>,
        queue: &mut Queue,
    ) {
        let layout = &self.layout;
        let ports: Vec<usize> =
            layout.group_links[group].iter().map(|&link| layout.link_port[link]).collect();
        let old: Vec<f64> = ports.iter().map(|&port| state.incoming[port].0[0]).collect();
        let parts = &layout.group_parts[group];
        let old_parts: Vec<f64> = parts.iter().map(|&part| state.part_cavity[part].0[0]).collect();
        let tables = &layout.group_tables[group];
        let other = |table: usize| {
            let shape = &self.network.tables[table];
            if shape.a == group { (shape.b, 1) } else { (shape.a, 0) }
        };
        let old_tables: Vec<Vec<f64>> = tables
            .iter()
            .map(|&table| state.table_in[table][other(table).1].iter().map(|m| m.0[0]).collect())
            .collect();
        self.visit_group(state, group, damping, false);
        for (port, old) in ports.into_iter().zip(old) {
            queue.news(layout.port_owner[port] as usize, old, state.incoming[port].0[0]);
        }
        let counts = layout.nodes() + self.network.groups.len();
        for (&part, old) in parts.iter().zip(old_parts) {
            queue.news(counts + layout.parts[part].0, old, state.part_cavity[part].0[0]);
        }
        for (&table, old) in tables.iter().zip(old_tables) {
            let (to, side) = other(table);
            for (old, new) in old.into_iter().zip(&state.table_in[table][side]) {
                queue.news(layout.nodes() + to, old, new.0[0]);
            }
        }
    }

    fn speak_count(
        &self,
        state: &mut State<f64, 1>,
        factor: usize,
        damping: Option<Damping<f64>>,
        queue: &mut Queue,
    ) {
        let layout = &self.layout;
        let said = |state: &State<f64, 1>, member: &Member| match *member {
            Member::Port(port) => state.incoming[port].0[0],
            Member::Part(part) => state.part_in[part].0[0],
        };
        let members = &layout.members[factor];
        let old: Vec<f64> = members.iter().map(|member| said(state, member)).collect();
        self.visit_count(state, factor, damping);
        for (member, old) in members.iter().zip(old) {
            let to = match *member {
                Member::Port(port) => layout.port_owner[port] as usize,
                Member::Part(part) => layout.nodes() + layout.parts[part].1,
            };
            queue.news(to, old, said(state, member));
        }
    }
}

/// The factor at the other side of a port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PortFactor {
    Group(usize),
    Count(usize),
}

impl PortFactor {
    /// The factor of each port.
    pub(super) fn of_ports(compiled: &Compiled) -> Vec<PortFactor> {
        let layout = &compiled.layout;
        let mut all = vec![PortFactor::Group(0); layout.port_owner.len()];
        for (link, &port) in compiled.network.links.iter().zip(&layout.link_port) {
            all[port] = PortFactor::Group(link.group);
        }
        for (factor, members) in layout.members.iter().enumerate() {
            for member in members {
                if let Member::Port(port) = *member {
                    all[port] = PortFactor::Count(factor);
                }
            }
        }
        all
    }
}
