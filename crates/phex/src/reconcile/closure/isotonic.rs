//! The nearest values in order: isotonic regression on any partial order.
//!
//! Minimises `Σ w (z − x)²` such that no node is above its upper nodes. In the answer, nodes form
//! connected blocks that share their mean. Three steps repeat until nothing is violated:
//!
//! 1. Blocks (at first single nodes) that a violated edge connects become one unit.
//! 2. A unit with the mean `μ` whose numbers `w (x − μ)` have no closure with a positive sum is a
//!    block. Otherwise the maximum closure gets values of at least `μ` and the rest values of at most
//!    `μ`, so both sides are solved alone, piece by connected piece.
//! 3. Edges at the border of new blocks are looked at again.
//!
//! Within blocks the answer is optimal, and between blocks the multipliers are 0. Dropping the edges
//! between blocks thus changes nothing, and adding a violated edge makes the optimal value larger,
//! so no set of blocks comes twice, and the steps end. The cost is that of the flows: O(edges) for
//! each of the few levels of splits where most nodes have one upper node.

use super::flow::OrderFlow;
use super::order::SignedOrder;

/// Differences of values up to this, relative to 1 and the value, are rounding.
const SLACK: f64 = 1e-13;

/// After this many rounds, everything becomes one unit, which is split once and for all.
const ROUNDS: u32 = 500;

/// The state of a row, and scratch memory.
#[derive(Debug, Default)]
pub(super) struct Isotonic {
    flow: OrderFlow,
    /// The answer.
    pub(super) z: Vec<f64>,
    /// The first node of each node's block.
    head: Vec<u32>,
    /// Where the nodes of the block of a first node are in `members`; singles are not there.
    span: Vec<(u32, u32)>,
    members: Vec<u32>,
    /// Units of blocks: each first node points towards another one of its unit.
    into: Vec<u32>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// The first nodes of blocks that the last round made.
    fresh: Vec<u32>,
    last: Vec<u32>,
    splits: Splits,
    /// How many names of blocks the flow has seen.
    names: u32,
}

/// Scratch memory for splitting a unit.
#[derive(Debug, Default)]
struct Splits {
    nodes: Vec<u32>,
    ranges: Vec<(u32, u32)>,
    sorted: Vec<u32>,
    counts: Vec<u32>,
    stack: Vec<u32>,
}

impl Isotonic {
    /// Finds the nearest values to `x`. Single nodes keep the bits of theirs. Returns the number of
    /// rounds.
    pub(super) fn solve(&mut self, order: &SignedOrder, x: &[f64]) -> u32 {
        let n = order.nodes();
        self.flow.reset(order);
        self.names = 0;
        self.z.clear();
        self.z.extend_from_slice(x);
        self.head.clear();
        self.head.extend(0..n as u32);
        self.into.clear();
        self.into.extend(0..n as u32);
        self.span.clear();
        self.span.resize(n, (0, 0));
        self.is_touched.resize(n, false);
        self.members.clear();
        self.fresh.clear();
        for edge in 0..order.edges() {
            let (low, high) = (order.lower[edge], order.upper[edge]);
            if self.is_violated(low, high) {
                self.join(low, high);
            }
        }
        let mut rounds = 0;
        while !self.touched.is_empty() {
            rounds += 1;
            if rounds > ROUNDS {
                self.touched.drain(..).for_each(|at| self.is_touched[at as usize] = false);
                self.splits.nodes.clear();
                self.splits.nodes.extend(0..n as u32);
                self.settle(order, x);
                return rounds;
            }
            self.solve_units(order, x);
            std::mem::swap(&mut self.fresh, &mut self.last);
            for at in 0..self.last.len() {
                let head = self.last[at];
                let (start, end) = self.span[head as usize];
                if start == end {
                    self.look(order, head);
                }
                for slot in start..end {
                    self.look(order, self.members[slot as usize]);
                }
            }
            self.last.clear();
        }
        rounds
    }

    /// An upper bound of `Σ s` over all closures, where `s` is the shift of each node. With the
    /// multipliers of the answer it is sharp up to rounding. `scale` turns multipliers into the units
    /// of `s`. If the bound is above `enough`, a new flow makes it sharp for `s` itself.
    pub(super) fn most(
        &mut self,
        order: &SignedOrder,
        shift: impl Fn(u32) -> f64,
        scale: f64,
        enough: f64,
    ) -> f64 {
        let n = order.nodes() as u32;
        for v in 0..n {
            self.flow.excess[v as usize] = shift(v);
            self.flow.block[v as usize] = self.head[v as usize];
        }
        for edge in 0..order.edges() {
            let (low, high) = (order.lower[edge] as usize, order.upper[edge] as usize);
            let amount = self.flow.along[edge] * scale;
            if amount != 0.0 {
                self.flow.along[edge] = amount;
                self.flow.excess[low] -= amount;
                self.flow.excess[high] += amount;
            }
        }
        let positive = |flow: &OrderFlow| flow.excess.iter().map(|&x| x.max(0.0)).sum::<f64>();
        let most = positive(&self.flow);
        if most <= enough {
            return most;
        }
        for v in 0..n {
            let (start, end) = self.span[v as usize];
            if self.head[v as usize] == v && end > start {
                let nodes = &self.members[start as usize..end as usize];
                let size: f64 = nodes.iter().map(|&v| self.flow.excess[v as usize].abs()).sum();
                self.flow.maximise(order, nodes, 1e-13 * size);
            }
        }
        positive(&self.flow)
    }

    fn is_violated(&self, low: u32, high: u32) -> bool {
        let (low, high) = (self.z[low as usize], self.z[high as usize]);
        low > high + SLACK * (1.0 + high.abs())
    }

    fn find(&mut self, mut at: u32) -> u32 {
        while self.into[at as usize] != at {
            let next = self.into[self.into[at as usize] as usize];
            self.into[at as usize] = next;
            at = next;
        }
        at
    }

    /// Puts the blocks of two nodes into one unit.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.head[a as usize], self.head[b as usize]);
        for at in [a, b] {
            if !self.is_touched[at as usize] {
                self.is_touched[at as usize] = true;
                self.touched.push(at);
            }
        }
        let (a, b) = (self.find(a), self.find(b));
        self.into[a.max(b) as usize] = a.min(b);
    }

    /// Looks for violated edges of a node.
    fn look(&mut self, order: &SignedOrder, v: u32) {
        for edge in order.up(v) {
            let u = order.upper[edge];
            if self.head[u as usize] != self.head[v as usize] && self.is_violated(v, u) {
                self.join(v, u);
            }
        }
        for &edge in order.down(v) {
            let u = order.lower[edge as usize];
            if self.head[u as usize] != self.head[v as usize] && self.is_violated(u, v) {
                self.join(u, v);
            }
        }
    }

    /// Solves each unit of touched blocks.
    fn solve_units(&mut self, order: &SignedOrder, x: &[f64]) {
        let mut touched = std::mem::take(&mut self.touched);
        for at in &mut touched {
            self.is_touched[*at as usize] = false;
        }
        touched.sort_by_cached_key(|&at| {
            let unit = self.find(at);
            (unit, at)
        });
        let mut at = 0;
        while at < touched.len() {
            let unit = self.find(touched[at]);
            self.splits.nodes.clear();
            while at < touched.len() && self.find(touched[at]) == unit {
                let (start, end) = self.span[touched[at] as usize];
                if start == end {
                    self.splits.nodes.push(touched[at]);
                }
                self.splits.nodes.extend(&self.members[start as usize..end as usize]);
                at += 1;
            }
            self.splits.nodes.sort_unstable();
            self.settle(order, x);
        }
        touched.clear();
        self.touched = touched;
    }

    /// Solves the unit in `splits.nodes`: splits it until nothing is left to split.
    fn settle(&mut self, order: &SignedOrder, x: &[f64]) {
        let mut splits = std::mem::take(&mut self.splits);
        for &v in &splits.nodes {
            self.flow.block[v as usize] = self.names;
        }
        self.names += 1;
        splits.ranges.clear();
        splits.ranges.push((0, splits.nodes.len() as u32));
        while let Some((start, end)) = splits.ranges.pop() {
            let nodes = &splits.nodes[start as usize..end as usize];
            let (mut weight, mut sum) = (0.0, 0.0);
            for &v in nodes {
                weight += order.weight[v as usize];
                sum += order.weight[v as usize] * x[v as usize];
                order.up(v).for_each(|edge| self.flow.along[edge] = 0.0);
            }
            if let [v] = *nodes {
                self.close(nodes, x[v as usize]);
                continue;
            }
            let mean = sum / weight;
            let mut size = 0.0;
            for &v in nodes {
                let excess = order.weight[v as usize] * (x[v as usize] - mean);
                size += excess.abs();
                self.flow.excess[v as usize] = excess;
            }
            let any = self.flow.maximise(order, nodes, 1e-14 * size);
            let inside = nodes.iter().filter(|&&v| self.flow.is_inside(v));
            let (mut count, mut gain) = (0, 0.0);
            for &v in inside {
                count += 1;
                gain += order.weight[v as usize] * (x[v as usize] - mean);
            }
            if !any || count == nodes.len() || gain <= 1e-12 * size {
                self.close(nodes, mean);
                continue;
            }
            self.pieces(order, &mut splits, start, end);
        }
        self.splits = splits;
    }

    /// Sorts the nodes of a range into the connected pieces of the closure and of the rest.
    fn pieces(&mut self, order: &SignedOrder, splits: &mut Splits, start: u32, end: u32) {
        let Splits { nodes, ranges, sorted, counts, stack } = splits;
        let nodes = &mut nodes[start as usize..end as usize];
        let flow = &mut self.flow;
        let old = flow.block[nodes[0] as usize];
        let first = self.names;
        counts.clear();
        for &seed in nodes.iter() {
            if flow.block[seed as usize] != old {
                continue;
            }
            let (piece, side) = (self.names, flow.is_inside(seed));
            self.names += 1;
            let mut count = 0;
            flow.block[seed as usize] = piece;
            stack.push(seed);
            while let Some(v) = stack.pop() {
                count += 1;
                let up = order.up(v).map(|edge| order.upper[edge]);
                let down = order.down(v).iter().map(|&edge| order.lower[edge as usize]);
                for u in up.chain(down) {
                    if flow.block[u as usize] == old && flow.is_inside(u) == side {
                        flow.block[u as usize] = piece;
                        stack.push(u);
                    }
                }
            }
            counts.push(count);
        }
        // The nodes of each piece keep their order.
        let mut place = 0;
        for count in counts.iter_mut() {
            ranges.push((start + place, start + place + *count));
            let next = place + *count;
            *count = place;
            place = next;
        }
        sorted.clear();
        sorted.resize(nodes.len(), 0);
        for &v in nodes.iter() {
            let slot = &mut counts[(flow.block[v as usize] - first) as usize];
            sorted[*slot as usize] = v;
            *slot += 1;
        }
        nodes.copy_from_slice(sorted);
    }

    /// Makes nodes a block with this value.
    fn close(&mut self, nodes: &[u32], value: f64) {
        let head = nodes[0];
        let start = self.members.len() as u32;
        if nodes.len() > 1 {
            self.members.extend_from_slice(nodes);
        }
        self.span[head as usize] = (start, self.members.len() as u32);
        for &v in nodes {
            self.z[v as usize] = value;
            self.head[v as usize] = head;
        }
        self.into[head as usize] = head;
        self.fresh.push(head);
    }
}
