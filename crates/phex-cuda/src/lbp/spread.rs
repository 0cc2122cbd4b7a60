//! Chooses the remainders of nodes, so that the senders of the messages of eight nodes have all remainders equally often.
//!
//! With `d(g, r)` messages to the eight nodes `g` from nodes of remainder `r`, reading them takes at least `max_r d(g, r)`
//! accesses; with equal shares a matching achieves that (`order.rs`). This is a descent on `Σ d(g, r)²` by swapping nodes of
//! one degree, or of one eight. Cost: O(tries × degree), once per model.

use super::order::EIGHT;

/// How many swaps are tried for each node. Twice as many would gain little.
const TRIES: usize = 100;

struct RemainderSearch<'a> {
    neighbours: &'a [Vec<usize>],
    place: Vec<usize>,
    demand: Vec<[i32; EIGHT]>,
}

impl RemainderSearch<'_> {
    /// Adds (1) or removes (−1) the messages of two nodes. Returns the change of the sum of squares.
    fn count(&mut self, nodes: [usize; 2], sign: i32) -> i32 {
        let mut change = 0;
        let mut add = |demand: &mut i32| {
            change += 2 * sign * *demand + 1;
            *demand += sign;
        };
        for node in nodes {
            let at = self.place[node];
            for &other in &self.neighbours[node] {
                let from = self.place[other];
                add(&mut self.demand[at / EIGHT][from % EIGHT]);
                if !nodes.contains(&other) {
                    add(&mut self.demand[from / EIGHT][at % EIGHT]);
                }
            }
        }
        change
    }

    fn swap(&mut self, nodes: [usize; 2]) -> i32 {
        let change = self.count(nodes, -1);
        self.place.swap(nodes[0], nodes[1]);
        change + self.count(nodes, 1)
    }
}

/// Reorders nodes that are sorted by degree; eights keep their degrees.
pub(super) fn spread(order: &mut [usize], neighbours: &[Vec<usize>]) {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &node)| place[node] = at);
    let mut demand = vec![[0; EIGHT]; order.len().div_ceil(EIGHT)];
    for (node, others) in neighbours.iter().enumerate() {
        for &other in others {
            demand[place[node] / EIGHT][place[other] % EIGHT] += 1;
        }
    }
    let degree: Vec<usize> = order.iter().map(|&node| neighbours[node].len()).collect();
    let mut search = RemainderSearch { neighbours, place, demand };
    let mut random = 1u64;
    let mut below = |count: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % count
    };
    for _ in 0..TRIES * order.len() {
        let a = below(order.len());
        let range = if below(2) == 0 {
            let first = a / EIGHT * EIGHT;
            first..(first + EIGHT).min(order.len())
        } else {
            degree.partition_point(|&d| d > degree[a])..degree.partition_point(|&d| d >= degree[a])
        };
        let b = range.start + below(range.len());
        let nodes = [order[a], order[b]];
        // A node may have been swapped within an eight, away from the place of its degree.
        let alike = neighbours[nodes[0]].len() == neighbours[nodes[1]].len();
        if a == b || (a / EIGHT != b / EIGHT && !alike) {
            continue;
        }
        if search.swap(nodes) < 0 {
            order.swap(a, b);
        } else {
            search.swap(nodes);
        }
    }
}
