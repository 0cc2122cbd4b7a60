//! The messages of rows side by side, and their sweeps.
//!
//! A binary node keeps log-odds `B = θ + Σ ρ m` over its edges, and a group the same for each
//! state. The message to the other end of an edge is
//! `m'(y) = log Σ_x exp(B(x) − m(x) − c(x, y) / ρ)`, where `m` is the message from there. It is
//! relative to its value at `y` off, or at a state that the edge does not list. Nodes are visited
//! in the order of a spanning tree, forwards and backwards, each with the newest messages. A sweep
//! costs O(entries + states), with two exponentials per entry.

use multiversion::multiversion;

use super::edges::Edges;
use super::math::{Batch, Total, finite, less, log_sum, total};
use crate::numeric::{Elementary, Lanes};

/// Messages and beliefs of `L` rows.
#[derive(Debug, Clone)]
pub(super) struct TreeMessages<const L: usize> {
    /// The log-weight of each state from scores and evidence.
    pub(super) weights: Vec<Lanes<f64, L>>,
    /// The messages to both ends of each pair, to the label of each link, to the listed states of
    /// its group, and to the states of both ends of each table.
    pub(super) pairs: Vec<Lanes<f64, L>>,
    pub(super) labels: Vec<Lanes<f64, L>>,
    pub(super) states: Vec<Lanes<f64, L>>,
    pub(super) tables: Vec<Lanes<f64, L>>,
    /// The log-weight of each state with all messages.
    pub(super) beliefs: Vec<Lanes<f64, L>>,
    /// The probability of each state.
    pub(super) shares: Vec<Lanes<f64, L>>,
    batch: Batch,
}

/// The parameters of a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stride<'a, const L: usize> {
    pub(super) backwards: bool,
    /// The fraction of the old message that is kept, per row.
    pub(super) damping: &'a [f64; L],
    /// The rows that are still active.
    pub(super) active: &'a [bool; L],
}

impl<const L: usize> TreeMessages<L> {
    pub(super) fn new(edges: &Edges) -> TreeMessages<L> {
        let none = |length: usize| vec![Lanes::NONE; length];
        let states = edges.frame.states();
        TreeMessages {
            weights: none(states),
            pairs: none(2 * edges.pairs.len()),
            labels: none(edges.links.len()),
            states: none(edges.link_messages),
            tables: none(edges.table_messages),
            beliefs: none(states),
            shares: none(states),
            batch: Batch::default(),
        }
    }

    /// Computes the log-odds of a binary node, which become its belief.
    #[inline(always)]
    fn odds(&mut self, edges: &Edges, node: usize) -> Lanes<f64, L> {
        let [off, on] = [2 * node, 2 * node + 1];
        let mut sum = Lanes::NONE;
        for port in &edges.ports[node] {
            sum += self.pairs[port.incoming].map(|message| port.appearance * message);
        }
        for &link in &edges.links_at[node] {
            let appearance = edges.links[link].appearance;
            sum += self.labels[link].map(|message| appearance * message);
        }
        self.beliefs[off] = self.weights[off];
        self.beliefs[on] = self.weights[on] + sum;
        self.beliefs[on] - self.beliefs[off]
    }

    /// The belief of a group.
    #[inline(always)]
    fn believe(&mut self, edges: &Edges, node: usize) {
        let range = edges.frame.of(node);
        let beliefs = &mut self.beliefs[range.clone()];
        beliefs.copy_from_slice(&self.weights[range]);
        for &link in &edges.links_at[node] {
            let link = &edges.links[link];
            for (at, &(state, _)) in link.entries.iter().enumerate() {
                beliefs[state] += self.states[link.first + at].map(|m| link.appearance * m);
            }
        }
        for &(table, side) in &edges.tables_at[node] {
            let table = &edges.tables[table];
            let messages = &self.tables[table.first[side]..];
            for (belief, message) in beliefs.iter_mut().zip(messages) {
                *belief += message.map(|m| table.appearance * m);
            }
        }
    }

    /// Recomputes all beliefs and probabilities from the newest messages.
    pub(super) fn refresh(&mut self, edges: &Edges) {
        let mut change = Lanes::NONE;
        for node in 0..edges.frame.nodes() {
            if node < edges.frame.binary {
                self.share_binary(edges, node, &mut change);
            } else {
                self.share_group(edges, node, &mut change);
            }
        }
    }

    /// Updates the belief and the probability of a binary node, and returns its log-odds.
    #[inline(always)]
    fn share_binary(
        &mut self,
        edges: &Edges,
        node: usize,
        change: &mut Lanes<f64, L>,
    ) -> Lanes<f64, L> {
        let odds = self.odds(edges, node);
        let part = odds.map(|odds| (-odds.abs()).exp_downwards());
        let share = part.zip(odds, |e, odds| (if odds > 0.0 { 1.0 } else { e }) / (1.0 + e));
        self.set_share(2 * node + 1, share, change);
        odds
    }

    /// Updates the beliefs and probabilities of a group, and returns the beliefs and their total.
    #[inline(always)]
    fn share_group(
        &mut self,
        edges: &Edges,
        node: usize,
        change: &mut Lanes<f64, L>,
    ) -> (Vec<Lanes<f64, L>>, Total<L>) {
        self.believe(edges, node);
        let range = edges.frame.of(node);
        let beliefs = self.beliefs[range.clone()].to_vec();
        let all = total(&beliefs, |_| true);
        for (state, &belief) in range.zip(&beliefs) {
            self.set_share(state, all.share(belief), change);
        }
        (beliefs, all)
    }

    #[inline(always)]
    fn set_share(&mut self, state: usize, share: Lanes<f64, L>, change: &mut Lanes<f64, L>) {
        let by = share - self.shares[state];
        *change = change.zip(by, |change, by| if by.abs() > change { by.abs() } else { change });
        self.shares[state] = share;
    }
}

/// Visits every node once, and returns the largest change of a probability since the last visit.
#[multiversion(targets = "simd")]
pub(super) fn sweep<const L: usize>(
    messages: &mut TreeMessages<L>,
    edges: &Edges,
    stride: Stride<'_, L>,
) -> Lanes<f64, L> {
    let mut change = Lanes([0.0; L]);
    let order = &edges.trees.order;
    for at in 0..order.len() {
        let node = order[if stride.backwards { order.len() - 1 - at } else { at }];
        if node < edges.frame.binary {
            visit_binary(messages, edges, node, stride, &mut change);
        } else {
            visit_group(messages, edges, node, stride, &mut change);
        }
    }
    change
}

/// Updates a message, in rows that are still active.
#[inline(always)]
fn step<const L: usize>(message: &mut Lanes<f64, L>, to: Lanes<f64, L>, stride: Stride<'_, L>) {
    for lane in 0..L {
        let old = message.0[lane];
        let new = to.0[lane] + stride.damping[lane] * (old - to.0[lane]);
        message.0[lane] = if stride.active[lane] { new } else { old };
    }
}

#[inline(always)]
fn visit_binary<const L: usize>(
    messages: &mut TreeMessages<L>,
    edges: &Edges,
    node: usize,
    stride: Stride<'_, L>,
    change: &mut Lanes<f64, L>,
) {
    let odds = messages.share_binary(edges, node, change);
    let mut batch = std::mem::take(&mut messages.batch);
    batch.clear();
    for port in &edges.ports[node] {
        batch.push(odds - messages.pairs[port.incoming], port.costs);
    }
    for &link in &edges.links_at[node] {
        let cavity = odds - messages.labels[link];
        for &(_, [c0, c1]) in &edges.links[link].entries {
            // Relative to an unlisted state, which costs nothing.
            batch.push(cavity, [[0.0, c0], [0.0, c1]]);
        }
    }
    batch.send();
    let mut sent = 0;
    for port in &edges.ports[node] {
        step(&mut messages.pairs[port.outgoing], batch.sent(sent), stride);
        sent += 1;
    }
    for link in edges.links_at[node].iter().map(|&link| &edges.links[link]) {
        for at in 0..link.entries.len() {
            step(&mut messages.states[link.first + at], batch.sent(sent), stride);
            sent += 1;
        }
    }
    messages.batch = batch;
}

#[inline(always)]
fn visit_group<const L: usize>(
    messages: &mut TreeMessages<L>,
    edges: &Edges,
    node: usize,
    stride: Stride<'_, L>,
    change: &mut Lanes<f64, L>,
) {
    let (beliefs, all) = messages.share_group(edges, node, change);
    for &at in &edges.links_at[node] {
        let link = &edges.links[at];
        let rest = all.log_without(&beliefs, &link.entries, |entry| entry.0);
        let (mut off, mut on) = (rest, rest);
        for (at, &(state, [c0, c1])) in link.entries.iter().enumerate() {
            let cavity = beliefs[state] - messages.states[link.first + at];
            off = log_sum(off, less(cavity, c0));
            on = log_sum(on, less(cavity, c1));
        }
        let send = (on - off).map(finite);
        step(&mut messages.labels[at], send, stride);
    }
    for &(at, side) in &edges.tables_at[node] {
        let table = &edges.tables[at];
        let incoming = &messages.tables[table.first[side]..];
        let cavity: Vec<Lanes<f64, L>> =
            beliefs.iter().zip(incoming).map(|(&belief, &message)| belief - message).collect();
        let all = total(&cavity, |_| true);
        let unlisted = all.log();
        for run in table.cells[1 - side].chunk_by(|a, b| a.0 == b.0) {
            let mut sum = all.log_without(&cavity, run, |cell| cell.1);
            for &(_, from, cost) in run {
                sum = log_sum(sum, less(cavity[from], cost));
            }
            let send = (sum - unlisted).map(finite);
            step(&mut messages.tables[table.first[1 - side] + run[0].0], send, stride);
        }
    }
}
