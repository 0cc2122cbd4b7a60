//! The messages of rows side by side.
//!
//! Labels that evidence fixes, or forces through hard edges, send certain messages and receive
//! none: messages to them are 0, and sums leave out the states that they exclude.

use multiversion::multiversion;

use crate::infer::Evidence;
use crate::lists::Lists;
use crate::numeric::{Elementary, Lanes, log_max, softplus_lane};

/// A log-weight that excludes a state and can still be added to itself.
const NEVER: f64 = -1e30;

/// An edge of the hierarchy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) term: usize,
    parent: u32,
    child: u32,
    /// The fraction of the forests that contain the edge.
    part: f64,
    /// The cost divided by that fraction. It is infinite for a hard edge.
    cost: f64,
    /// The fraction of a new message that replaces the old one. Without damping, the messages of a
    /// child to its several parents may oscillate forever. Those to an only parent never do.
    step: f64,
}

/// The hierarchy as lists of edges.
#[derive(Debug)]
pub(super) struct HierarchyEdges {
    pub(super) edges: Vec<Edge>,
    /// Labels, parents before children.
    order: Vec<u32>,
    /// The edges to the parents and to the children of label `i` are
    /// `list[start[i]..start[i + 1]]`.
    above: Lists<u32>,
    below: Lists<u32>,
}

impl HierarchyEdges {
    /// Edges as `(term, parent, child, cost)`, without a cycle. `damping` is the fraction of an old
    /// message that is kept.
    pub(super) fn new(
        labels: usize,
        edges: &[(usize, usize, usize, f64)],
        damping: f64,
    ) -> HierarchyEdges {
        let mut parents = vec![0u32; labels];
        edges.iter().for_each(|&(_, _, child, _)| parents[child] += 1);
        let edge = |&(term, parent, child, cost): &(usize, usize, usize, f64)| {
            let part = 1.0 / f64::from(parents[child]);
            let step = if part < 1.0 { 1.0 - damping } else { 1.0 };
            let (parent, child) = (parent as u32, child as u32);
            Edge { term, parent, child, part, cost: cost / part, step }
        };
        let edges: Vec<Edge> = edges.iter().map(edge).collect();
        let above =
            Lists::by_key(labels, (0u32..).zip(&edges).map(|(at, edge)| (edge.child as usize, at)));
        let below = Lists::by_key(
            labels,
            (0u32..).zip(&edges).map(|(at, edge)| (edge.parent as usize, at)),
        );
        let mut waiting = parents;
        let mut order: Vec<u32> =
            (0..labels as u32).filter(|&at| waiting[at as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for &edge in below.of(order[next] as usize) {
                let child = edges[edge as usize].child;
                waiting[child as usize] -= 1;
                if waiting[child as usize] == 0 {
                    order.push(child);
                }
            }
            next += 1;
        }
        HierarchyEdges { edges, order, above, below }
    }

    /// Adds what follows through hard edges: on above what is on, and off below what is off.
    /// Returns `false` on a contradiction.
    pub(super) fn imply(&self, evidence: &mut [Evidence]) -> bool {
        let mut possible = true;
        let mut set = |evidence: &mut Evidence, to: Evidence| {
            possible &= *evidence == Evidence::Unknown || *evidence == to;
            *evidence = to;
        };
        for &label in self.order.iter().rev() {
            if evidence[label as usize] == Evidence::On {
                for &edge in self.above.of(label as usize) {
                    let edge = &self.edges[edge as usize];
                    if edge.cost == f64::INFINITY {
                        set(&mut evidence[edge.parent as usize], Evidence::On);
                    }
                }
            }
        }
        for &label in &self.order {
            if evidence[label as usize] == Evidence::Off {
                for &edge in self.below.of(label as usize) {
                    let edge = &self.edges[edge as usize];
                    if edge.cost == f64::INFINITY {
                        set(&mut evidence[edge.child as usize], Evidence::Off);
                    }
                }
            }
        }
        possible
    }
}

/// Messages and beliefs of `L` rows.
#[derive(Debug)]
pub(super) struct ForestMessages<T, const L: usize> {
    pub(super) scores: Vec<Lanes<T, L>>,
    /// 1 for labels that are certain to be on, and for those certain to be off.
    on: Vec<Lanes<T, L>>,
    off: Vec<Lanes<T, L>>,
    /// The messages over each edge to the parent and to the child.
    up: Vec<Lanes<T, L>>,
    down: Vec<Lanes<T, L>>,
    /// The probability of each label.
    pub(super) shares: Vec<Lanes<T, L>>,
}

impl<T: Elementary, const L: usize> ForestMessages<T, L> {
    pub(super) fn new(graph: &HierarchyEdges) -> ForestMessages<T, L> {
        let (labels, edges) = (graph.order.len(), graph.edges.len());
        let none = |length: usize| vec![Lanes::NONE; length];
        ForestMessages {
            scores: none(labels),
            on: none(labels),
            off: none(labels),
            up: none(edges),
            down: none(edges),
            shares: none(labels),
        }
    }

    pub(super) fn clamp(&mut self, lane: usize, evidence: &[Evidence]) {
        for (label, &evidence) in evidence.iter().enumerate() {
            let is = |what: Evidence| if evidence == what { T::ONE } else { T::ZERO };
            self.on[label].0[lane] = is(Evidence::On);
            self.off[label].0[lane] = is(Evidence::Off);
        }
    }

    /// Runs up and down once. Returns the largest change of a probability, in rows that are still
    /// active.
    pub(super) fn iterate(
        &mut self,
        graph: &HierarchyEdges,
        clamped: bool,
        active: &[bool; L],
    ) -> Lanes<T, L> {
        if clamped {
            iterate::<T, L, true>(self, graph, active)
        } else {
            iterate::<T, L, false>(self, graph, active)
        }
    }

    /// The log-odds of a label: its score and the messages to it.
    #[inline(always)]
    fn belief(&self, graph: &HierarchyEdges, label: usize) -> Lanes<T, L> {
        let mut sum = self.scores[label];
        for &edge in graph.below.of(label) {
            let part = T::from_f64(graph.edges[edge as usize].part);
            let message = self.up[edge as usize];
            for lane in 0..L {
                sum.0[lane] += part * message.0[lane];
            }
        }
        for &edge in graph.above.of(label) {
            let part = T::from_f64(graph.edges[edge as usize].part);
            let message = self.down[edge as usize];
            for lane in 0..L {
                sum.0[lane] += part * message.0[lane];
            }
        }
        sum
    }

    /// The log-weights of an edge's states: both off, parent on, child on (a violation), both on.
    #[inline(always)]
    fn states(&self, edge: &Edge, at: usize, beliefs: [Lanes<T, L>; 2]) -> [Lanes<T, L>; 4] {
        let (parent, child) = (edge.parent as usize, edge.child as usize);
        let p = beliefs[0] - self.up[at];
        let c = beliefs[1] - self.down[at];
        let (cost, never) = (T::from_f64(edge.cost.min(-NEVER)), T::from_f64(NEVER));
        let mut states = [Lanes::NONE, p, c.map(|c| c - cost), p + c];
        for lane in 0..L {
            let (p_on, p_off) = (self.on[parent].0[lane], self.off[parent].0[lane]);
            let (c_on, c_off) = (self.on[child].0[lane], self.off[child].0[lane]);
            states[0].0[lane] += never * (p_on + c_on);
            states[1].0[lane] += never * (p_off + c_on);
            states[2].0[lane] += never * (p_on + c_off);
            states[3].0[lane] += never * (p_off + c_off);
        }
        states
    }

    pub(super) fn log_partition(&self, graph: &HierarchyEdges, clamped: bool) -> [f64; L] {
        let mut total = [0.0; L];
        add_log_partition(self, graph, clamped, &mut total);
        total
    }

    /// The probability that an edge is violated: child on, parent off.
    pub(super) fn violated(&self, graph: &HierarchyEdges, at: usize, lane: usize) -> T {
        let edge = &graph.edges[at];
        if edge.cost == f64::INFINITY {
            return T::ZERO;
        }
        let beliefs = [edge.parent, edge.child].map(|label| self.belief(graph, label as usize));
        let states = self.states(edge, at, beliefs).map(|state| state.0[lane].to_f64());
        let most = log_max(states);
        let weights = states.map(|state| (state - most).exp());
        T::from_f64(weights[2] / weights.iter().sum::<f64>())
    }
}

#[multiversion(targets = "simd")]
fn iterate<T: Elementary, const L: usize, const CLAMPED: bool>(
    messages: &mut ForestMessages<T, L>,
    graph: &HierarchyEdges,
    active: &[bool; L],
) -> Lanes<T, L> {
    let mut beliefs = vec![Lanes::NONE; graph.order.len()];
    for at in (0..graph.order.len()).rev() {
        let label = graph.order[at] as usize;
        let belief = messages.belief(graph, label);
        beliefs[label] = belief;
        for &edge in graph.above.of(label) {
            send::<T, L, CLAMPED, true>(messages, graph, edge as usize, belief, active);
        }
    }
    for at in 0..graph.order.len() {
        let label = graph.order[at] as usize;
        for &edge in graph.below.of(label) {
            let edge = edge as usize;
            let Edge { child, part, .. } = graph.edges[edge];
            let weight = T::from_f64(part);
            let by = send::<T, L, CLAMPED, false>(messages, graph, edge, beliefs[label], active);
            beliefs[child as usize] += by.map(|by| weight * by);
            if part < 1.0 {
                // What the child receives affects what it sends, by the fraction 1 − ρ. If all
                // children received before one of them answered, their answers would add up and the
                // parent would oscillate.
                let belief = beliefs[child as usize];
                let by = send::<T, L, CLAMPED, true>(messages, graph, edge, belief, active);
                beliefs[label] += by.map(|by| weight * by);
            }
        }
    }
    share_out::<T, L, CLAMPED>(messages, &beliefs, active)
}

/// Computes probabilities from beliefs. Returns the largest change, in rows that are still active.
#[inline(always)]
fn share_out<T: Elementary, const L: usize, const CLAMPED: bool>(
    messages: &mut ForestMessages<T, L>,
    beliefs: &[Lanes<T, L>],
    active: &[bool; L],
) -> Lanes<T, L> {
    let mut change = Lanes::NONE;
    for (label, belief) in beliefs.iter().enumerate() {
        for lane in 0..L {
            let odds = belief.0[lane];
            let size = if odds > T::ZERO { -odds } else { odds };
            let small = size.exp_downwards();
            let mut share = (if odds > T::ZERO { T::ONE } else { small }) / (T::ONE + small);
            if CLAMPED {
                let (on, off) = (messages.on[label].0[lane], messages.off[label].0[lane]);
                share = on + (T::ONE - on - off) * share;
            }
            let old = messages.shares[label].0[lane];
            let by = if share > old { share - old } else { old - share };
            let by = if active[lane] { by } else { T::ZERO };
            change.0[lane] = if by > change.0[lane] { by } else { change.0[lane] };
            messages.shares[label].0[lane] = if active[lane] { share } else { old };
        }
    }
    change
}

/// Sends the message of one end of an edge to the other, given its belief: from the child up, or
/// from the parent down. Returns by how much the message changed.
#[inline(always)]
fn send<T: Elementary, const L: usize, const CLAMPED: bool, const UP: bool>(
    messages: &mut ForestMessages<T, L>,
    graph: &HierarchyEdges,
    at: usize,
    belief: Lanes<T, L>,
    active: &[bool; L],
) -> Lanes<T, L> {
    let edge = &graph.edges[at];
    let ForestMessages { on, off, up, down, .. } = messages;
    let (parent, child) = (edge.parent as usize, edge.child as usize);
    // A soft edge passes its whole cost on from a child that is on, and from a parent that is off.
    let (from, to, certain, is_certain) = if UP {
        (child, parent, finite(edge.cost), &on[child])
    } else {
        (parent, child, -finite(edge.cost), &off[parent])
    };
    let (sent, heard) = if UP { (up, down) } else { (down, up) };
    let cavity = belief - heard[at];
    let mut change = if UP { upwards(edge, cavity) } else { downwards(edge, cavity) };
    let (step, certain) = (T::from_f64(edge.step), T::from_f64(certain));
    for lane in 0..L {
        let mut new = change.0[lane];
        if CLAMPED {
            let free = T::ONE - on[from].0[lane] - off[from].0[lane];
            let hears = T::ONE - on[to].0[lane] - off[to].0[lane];
            new = hears * (free * new + is_certain.0[lane] * certain);
        }
        let old = sent[at].0[lane];
        new = step * new + (T::ONE - step) * old;
        new = if active[lane] { new } else { old };
        sent[at].0[lane] = new;
        change.0[lane] = new - old;
    }
    change
}

/// A hard edge sends nothing to a free label, because what it would send is already evidence.
fn finite(cost: f64) -> f64 {
    if cost == f64::INFINITY { 0.0 } else { cost }
}

/// `log (1 + e^c) / (1 + e^{c − w})`.
#[inline(always)]
fn upwards<T: Elementary, const L: usize>(edge: &Edge, cavity: Lanes<T, L>) -> Lanes<T, L> {
    let mut sent = cavity.map(softplus_lane);
    if edge.cost < f64::INFINITY {
        let cost = T::from_f64(edge.cost);
        for lane in 0..L {
            sent.0[lane] -= softplus_lane(cavity.0[lane] - cost);
        }
    }
    sent
}

/// `log (e^p + e^{−w}) / (1 + e^p)`.
#[inline(always)]
fn downwards<T: Elementary, const L: usize>(edge: &Edge, cavity: Lanes<T, L>) -> Lanes<T, L> {
    let mut sent = Lanes::NONE;
    for lane in 0..L {
        sent.0[lane] = -softplus_lane(-cavity.0[lane]);
    }
    if edge.cost < f64::INFINITY {
        let cost = T::from_f64(edge.cost);
        for lane in 0..L {
            sent.0[lane] += softplus_lane(-cost - cavity.0[lane]);
        }
    }
    sent
}

#[multiversion(targets = "simd")]
fn add_log_partition<T: Elementary, const L: usize>(
    messages: &ForestMessages<T, L>,
    graph: &HierarchyEdges,
    clamped: bool,
    total: &mut [f64; L],
) {
    let mut beliefs = Vec::with_capacity(graph.order.len());
    for label in 0..graph.order.len() {
        let edges = graph.above.of(label).iter().chain(graph.below.of(label));
        let mut parts = 0.0;
        for &edge in edges {
            parts += graph.edges[edge as usize].part;
        }
        let belief = messages.belief(graph, label);
        let (on, off) = (messages.on[label], messages.off[label]);
        for lane in 0..L {
            let mut log = softplus_lane(belief.0[lane]);
            if clamped {
                log = on.0[lane] * belief.0[lane] + (T::ONE - on.0[lane] - off.0[lane]) * log;
            }
            total[lane] += (1.0 - parts) * log.to_f64();
        }
        beliefs.push(belief);
    }
    for (at, edge) in graph.edges.iter().enumerate() {
        let both = [beliefs[edge.parent as usize], beliefs[edge.child as usize]];
        let states = messages.states(edge, at, both);
        for lane in 0..L {
            let mut most = states[0].0[lane];
            for state in &states[1..] {
                most = if state.0[lane] > most { state.0[lane] } else { most };
            }
            let mut sum = T::ZERO;
            for state in &states {
                sum += (state.0[lane] - most).exp_downwards();
            }
            // Between 1 and 4. The logarithm of a quarter of it is that of 1 + x, with x in [−3/4,
            // 0].
            total[lane] += edge.part * (most.to_f64() + sum.to_f64().ln());
        }
    }
}
