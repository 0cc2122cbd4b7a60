//! Maximum closures of blocks by maximum flow.
//!
//! A closure of a block contains with each node everything above it in the block. The closure with
//! the largest sum of given numbers `x` is the source side of a minimum cut: positive numbers flow
//! up along the edges, without a limit, to negative ones. A sweep from the bottom pushes what is
//! positive to the nodes above. Where each node has one node above it, that is a maximum flow;
//! elsewhere Dinic's algorithm finishes it. The numbers that remain say how good the flow is:
//! `x − Aᵀλ`, where `λ` is what flows along each edge. The sum of the positive ones is an upper bound
//! of the sum over any closure, whatever the flow.

use super::order::SignedOrder;

/// The level of nodes that the search has not reached.
const FAR: u32 = u32::MAX;

/// A flow in an order, and scratch memory.
#[derive(Debug, Default)]
pub(super) struct OrderFlow {
    /// What remains of each node's number.
    pub(super) excess: Vec<f64>,
    /// What flows up along each edge.
    pub(super) along: Vec<f64>,
    /// The block of each node. Nothing flows between blocks.
    pub(super) block: Vec<u32>,
    level: Vec<u32>,
    arc: Vec<u32>,
    queue: Vec<u32>,
    path: Vec<PathStep>,
}

/// A step of a path: from a node along an edge.
#[derive(Debug, Clone, Copy)]
struct PathStep {
    from: u32,
    edge: u32,
    down: bool,
}

impl OrderFlow {
    pub(super) fn reset(&mut self, order: &SignedOrder) {
        let n = order.nodes();
        self.excess.resize(n, 0.0);
        self.along.clear();
        self.along.resize(order.edges(), 0.0);
        self.block.clear();
        self.block.resize(n, FAR);
        self.level.resize(n, FAR);
        self.arc.resize(n, 0);
    }

    /// Whether a node of the last block is in its smallest maximum closure.
    pub(super) fn is_inside(&self, node: u32) -> bool {
        self.level[node as usize] != FAR
    }

    /// Makes the flow within a block maximal. `nodes` ascend; amounts up to `tiny` count as 0.
    /// Returns whether anything positive remains.
    pub(super) fn maximise(&mut self, order: &SignedOrder, nodes: &[u32], tiny: f64) -> bool {
        let Some(&first) = nodes.first() else { return false };
        let block = self.block[first as usize];
        self.sweep(order, nodes, block, tiny);
        loop {
            let (any, goal) = self.search(order, nodes, block, tiny);
            let Some(goal) = goal else { return any };
            nodes.iter().for_each(|&v| self.arc[v as usize] = 0);
            for at in 0..self.queue.len() {
                let source = self.queue[at];
                if self.level[source as usize] != 0 {
                    break;
                }
                while self.excess[source as usize] > tiny
                    && self.augment(order, source, block, goal, tiny)
                {}
            }
        }
    }

    /// Pushes what is positive up, from the bottom.
    fn sweep(&mut self, order: &SignedOrder, nodes: &[u32], block: u32, tiny: f64) {
        for &v in nodes.iter().rev() {
            let mut rest = self.excess[v as usize];
            if rest <= tiny {
                continue;
            }
            let mut last = None;
            for edge in order.up(v) {
                let u = order.upper[edge] as usize;
                if self.block[u] != block {
                    continue;
                }
                last = Some(edge);
                let hole = -self.excess[u];
                if hole > 0.0 {
                    let amount = hole.min(rest);
                    self.along[edge] += amount;
                    self.excess[u] += amount;
                    rest -= amount;
                    if rest <= 0.0 {
                        break;
                    }
                }
            }
            if let Some(edge) = last {
                self.along[edge] += rest;
                self.excess[order.upper[edge] as usize] += rest;
                rest = 0.0;
            }
            self.excess[v as usize] = rest;
        }
    }

    /// Levels from the positive nodes. Returns whether there is one, and the level of the nearest
    /// negative node.
    fn search(
        &mut self,
        order: &SignedOrder,
        nodes: &[u32],
        block: u32,
        tiny: f64,
    ) -> (bool, Option<u32>) {
        self.queue.clear();
        for &v in nodes {
            let positive = self.excess[v as usize] > tiny;
            self.level[v as usize] = if positive { 0 } else { FAR };
            if positive {
                self.queue.push(v);
            }
        }
        let any = !self.queue.is_empty();
        let mut at = 0;
        let mut goal = None;
        while at < self.queue.len() {
            let v = self.queue[at];
            let level = self.level[v as usize];
            if goal.is_some_and(|goal| level >= goal) {
                break;
            }
            at += 1;
            let mut reach = |u: u32, flow: &mut OrderFlow| {
                if flow.block[u as usize] == block && flow.level[u as usize] == FAR {
                    flow.level[u as usize] = level + 1;
                    flow.queue.push(u);
                    if flow.excess[u as usize] < -tiny {
                        goal = Some(level + 1);
                    }
                }
            };
            for edge in order.up(v) {
                reach(order.upper[edge], self);
            }
            for &edge in order.down(v) {
                if self.along[edge as usize] > tiny {
                    reach(order.lower[edge as usize], self);
                }
            }
        }
        (any, goal)
    }

    /// Pushes along one path of the levels to a negative node. Returns false if there is none.
    fn augment(
        &mut self,
        order: &SignedOrder,
        source: u32,
        block: u32,
        goal: u32,
        tiny: f64,
    ) -> bool {
        self.path.clear();
        let mut v = source;
        loop {
            let level = self.level[v as usize];
            if level == goal && self.excess[v as usize] < -tiny {
                self.push(source, v);
                return true;
            }
            let (up, down) = (order.up(v), order.down(v));
            let total = up.len() + down.len();
            let mut next = None;
            while level < goal && (self.arc[v as usize] as usize) < total {
                let arc = self.arc[v as usize] as usize;
                let (edge, u, open) = if arc < up.len() {
                    let edge = up.start + arc;
                    (edge, order.upper[edge], true)
                } else {
                    let edge = down[arc - up.len()] as usize;
                    (edge, order.lower[edge], self.along[edge] > tiny)
                };
                if open && self.block[u as usize] == block && self.level[u as usize] == level + 1 {
                    next =
                        Some((PathStep { from: v, edge: edge as u32, down: arc >= up.len() }, u));
                    break;
                }
                self.arc[v as usize] += 1;
            }
            match next {
                Some((step, u)) => {
                    self.path.push(step);
                    v = u;
                }
                None => {
                    let Some(step) = self.path.pop() else { return false };
                    v = step.from;
                    self.arc[v as usize] += 1;
                }
            }
        }
    }

    /// Pushes as much as fits along the path.
    fn push(&mut self, source: u32, target: u32) {
        let mut amount = self.excess[source as usize].min(-self.excess[target as usize]);
        for step in self.path.iter().filter(|step| step.down) {
            amount = amount.min(self.along[step.edge as usize]);
        }
        for step in &self.path {
            self.along[step.edge as usize] += if step.down { -amount } else { amount };
        }
        self.excess[source as usize] -= amount;
        self.excess[target as usize] += amount;
    }
}
