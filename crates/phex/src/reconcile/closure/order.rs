//! The relations of a part as one partial order.
//!
//! `q_c ≤ q_p` is `z_c ≤ z_p`, and `q_i + q_j ≤ 1` is `z_i ≤ −z_j`. So a label stands in the order
//! as it is or with the opposite sign. If every exclusion can connect labels of different signs and
//! every hierarchy edge labels of the same sign, each label needs one node, and the consistent
//! probabilities are those of an order: exactly the hull of the legal states. Otherwise each label
//! has two nodes, one of each sign. The projection is symmetric, so their answers agree; the
//! inequalities then allow more than the hull (three exclusive labels may all have ½).

use std::collections::VecDeque;

use super::super::compile::Component;

const NONE: u32 = u32::MAX;

/// A partial order of nodes, which stand for labels. Nodes are numbered from the top: what is above
/// a node has a smaller number.
#[derive(Debug)]
pub(super) struct SignedOrder {
    /// The label of each node, by its place in the part.
    pub(super) label: Vec<u32>,
    /// 1, or −1 if the node stands for the opposite of its label.
    pub(super) sign: Vec<f64>,
    /// The weight of each node.
    pub(super) weight: Vec<f64>,
    /// The share of a label's weight that a node has: 1, or ½ when each label has two nodes.
    pub(super) share: f64,
    /// The edges up from node `v` are `first_up[v]..first_up[v + 1]`.
    first_up: Vec<u32>,
    /// The upper and the lower end of each edge.
    pub(super) upper: Vec<u32>,
    pub(super) lower: Vec<u32>,
    /// The edges down from node `v` are `down[first_down[v]..first_down[v + 1]]`.
    first_down: Vec<u32>,
    down: Vec<u32>,
}

impl SignedOrder {
    /// The order of a part, if all its exclusions are pairs.
    pub(super) fn of(part: &Component, weights: &[f64]) -> Option<SignedOrder> {
        let pairs: Option<Vec<(u32, u32)>> = part
            .sets
            .iter()
            .map(|set| match set.labels[..] {
                [a, b] => Some((a, b)),
                _ => None,
            })
            .collect();
        let pairs = pairs?;
        if !part.is_hard() || !part.one_of.is_empty() {
            return None;
        }
        let weights: Vec<f64> = part.labels.iter().map(|&label| weights[label as usize]).collect();
        let edges = part.edges.iter().map(|edge| (edge.child, edge.parent));
        match signs(part, &pairs) {
            Some(negative) => {
                let turn = |(low, high): (u32, u32)| {
                    if negative[low as usize] { (high, low) } else { (low, high) }
                };
                let pair =
                    |&(a, b): &(u32, u32)| if negative[a as usize] { (b, a) } else { (a, b) };
                let sign = negative.iter().map(|&minus| if minus { -1.0 } else { 1.0 }).collect();
                let edges = edges.map(turn).chain(pairs.iter().map(pair)).collect();
                let label = (0..part.labels.len() as u32).collect();
                SignedOrder { label, sign, weight: weights, share: 1.0, ..SignedOrder::empty() }
                    .with(edges)
            }
            None => {
                // Node `i` is the label, and node `n + i` its opposite.
                let n = part.labels.len() as u32;
                let twice = |(low, high): (u32, u32)| [(low, high), (high + n, low + n)];
                let pair = |&(a, b): &(u32, u32)| [(a, b + n), (b, a + n)];
                let edges = edges.flat_map(twice).chain(pairs.iter().flat_map(pair)).collect();
                let label = (0..n).chain(0..n).collect();
                let sign = (0..2 * n).map(|v| if v < n { 1.0 } else { -1.0 }).collect();
                let half = weights.iter().map(|w| 0.5 * w);
                let weight = half.clone().chain(half).collect();
                SignedOrder { label, sign, weight, share: 0.5, ..SignedOrder::empty() }.with(edges)
            }
        }
    }

    fn empty() -> SignedOrder {
        SignedOrder {
            label: Vec::new(),
            sign: Vec::new(),
            weight: Vec::new(),
            share: 1.0,
            first_up: Vec::new(),
            upper: Vec::new(),
            lower: Vec::new(),
            first_down: Vec::new(),
            down: Vec::new(),
        }
    }

    /// Numbers the nodes from the top, and stores the edges from each lower to its upper node.
    /// `None` if the edges have a cycle.
    fn with(self, mut edges: Vec<(u32, u32)>) -> Option<SignedOrder> {
        let n = self.label.len();
        edges.sort_unstable();
        edges.dedup();
        let mut above = vec![0u32; n];
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); n];
        for &(low, high) in &edges {
            above[low as usize] += 1;
            below[high as usize].push(low);
        }
        let mut order: Vec<u32> = (0..n as u32).filter(|&v| above[v as usize] == 0).collect();
        let mut at = 0;
        while at < order.len() {
            for &low in &below[order[at] as usize] {
                above[low as usize] -= 1;
                if above[low as usize] == 0 {
                    order.push(low);
                }
            }
            at += 1;
        }
        if order.len() < n {
            return None;
        }
        let mut number = vec![0u32; n];
        order.iter().enumerate().for_each(|(at, &v)| number[v as usize] = at as u32);
        for (low, high) in &mut edges {
            (*low, *high) = (number[*low as usize], number[*high as usize]);
        }
        edges.sort_unstable();
        let (lower, upper): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
        let mut down: Vec<u32> = (0..edges.len() as u32).collect();
        down.sort_by_key(|&edge| upper[edge as usize]);
        let starts = |ends: &mut dyn Iterator<Item = u32>| {
            let mut first = vec![0u32; n + 1];
            ends.for_each(|v| first[v as usize + 1] += 1);
            (0..n).for_each(|v| first[v + 1] += first[v]);
            first
        };
        let pick = |v: &u32| *v as usize;
        Some(SignedOrder {
            label: order.iter().map(|v| self.label[pick(v)]).collect(),
            sign: order.iter().map(|v| self.sign[pick(v)]).collect(),
            weight: order.iter().map(|v| self.weight[pick(v)]).collect(),
            first_up: starts(&mut lower.iter().copied()),
            first_down: starts(&mut upper.iter().copied()),
            share: self.share,
            upper,
            lower,
            down,
        })
    }

    pub(super) fn nodes(&self) -> usize {
        self.label.len()
    }

    pub(super) fn edges(&self) -> usize {
        self.upper.len()
    }

    /// Whether each label has one node.
    pub(super) fn is_simple(&self) -> bool {
        self.share == 1.0
    }

    /// The edges up from a node.
    #[inline(always)]
    pub(super) fn up(&self, node: u32) -> std::ops::Range<usize> {
        self.first_up[node as usize] as usize..self.first_up[node as usize + 1] as usize
    }

    /// The edges down from a node.
    #[inline(always)]
    pub(super) fn down(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.down[self.first_down[node] as usize..self.first_down[node + 1] as usize]
    }
}

/// Which labels are negative: hierarchy connects labels of the same sign, exclusions connect
/// labels of different signs. `None` if that is impossible.
fn signs(part: &Component, pairs: &[(u32, u32)]) -> Option<Vec<bool>> {
    let n = part.labels.len();
    let mut near: Vec<Vec<(u32, bool)>> = vec![Vec::new(); n];
    let same = part.edges.iter().map(|edge| (edge.child, edge.parent, false));
    for (a, b, flips) in same.chain(pairs.iter().map(|&(a, b)| (a, b, true))) {
        near[a as usize].push((b, flips));
        near[b as usize].push((a, flips));
    }
    let mut sign: Vec<Option<bool>> = vec![None; n];
    let mut queue = VecDeque::new();
    for start in 0..n {
        if sign[start].is_none() {
            sign[start] = Some(false);
            queue.push_back(start);
        }
        while let Some(at) = queue.pop_front() {
            let mine = sign[at].unwrap_or(false);
            for &(other, flips) in &near[at] {
                let wanted = mine != flips;
                match sign[other as usize] {
                    Some(found) if found != wanted => return None,
                    Some(_) => {}
                    None => {
                        sign[other as usize] = Some(wanted);
                        queue.push_back(other as usize);
                    }
                }
            }
        }
    }
    Some(sign.into_iter().map(|sign| sign.unwrap_or(false)).collect())
}

/// What a label may be at most, given a label that comes before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    pub(super) label: u32,
    pub(super) other: u32,
    /// Whether the two exclude each other. Otherwise the other is above the label.
    pub(super) exclusive: bool,
}

/// The limits of a part in an order in which `other` is final before `label` is limited.
pub(super) fn limits(part: &Component) -> Vec<Limit> {
    let n = part.labels.len();
    let mut above = vec![0u32; n];
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); n];
    for edge in &part.edges {
        above[edge.child as usize] += 1;
        below[edge.parent as usize].push(edge.child);
    }
    let mut order: Vec<u32> = (0..n as u32).filter(|&v| above[v as usize] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for &child in &below[order[at] as usize] {
            above[child as usize] -= 1;
            if above[child as usize] == 0 {
                order.push(child);
            }
        }
        at += 1;
    }
    let mut place = vec![NONE; n];
    order.iter().enumerate().for_each(|(at, &label)| place[label as usize] = at as u32);
    let hierarchy = part.edges.iter().map(|edge| Limit {
        label: edge.child,
        other: edge.parent,
        exclusive: false,
    });
    let pair = |set: &[u32]| {
        let (a, b) = (set[0], set[1]);
        let later = place[a as usize] > place[b as usize];
        let (label, other) = if later { (a, b) } else { (b, a) };
        Limit { label, other, exclusive: true }
    };
    let exclusive = part.sets.iter().map(|set| pair(&set.labels));
    let mut limits: Vec<Limit> = hierarchy.chain(exclusive).collect();
    limits.sort_by_key(|limit| (place[limit.label as usize], place[limit.other as usize]));
    limits
}
