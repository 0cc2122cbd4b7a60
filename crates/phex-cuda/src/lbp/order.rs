//! The order of nodes, slots and edges on the device, so that neither phase of an iteration has bank conflicts.
//!
//! Shared memory serves eight threads that read 16 bytes each at the same time, if their places differ modulo 8. Nodes of
//! about the same degree lie side by side. The messages of node `p` lie at `base(p / 8) + 8 j + p % 8`, so a slot and its
//! node have the same remainder. Edges come in eights whose first ends, and whose second ends, all differ modulo 8. That is
//! an edge colouring of the remainders; a greedy one leaves few gaps. The messages of a node are ordered so that the
//! senders of the `j`-th messages of eight nodes differ modulo 8 too, where possible: a matching for each `j`.

/// Nodes that lie side by side.
pub(super) const EIGHT: usize = 8;
/// Threads of a warp, and schedulers of a multiprocessor, which take warps in turn.
const WARP: usize = 32;
const SCHEDULERS: usize = 4;

/// An edge in the device's order: its pair, and whether it is turned around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OrderedEdge {
    pub(super) pair: usize,
    pub(super) turned: bool,
}

/// Nodes by degree, largest first, ties by index.
pub(super) fn by_degree(neighbours: &[Vec<usize>]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..neighbours.len()).collect();
    sorted.sort_by_key(|&node| (std::cmp::Reverse(neighbours[node].len()), node));
    sorted
}

/// About what 32 nodes cost if the largest has `degree` messages: something for the first four, something for each further
/// four.
fn cost(degree: usize) -> usize {
    5 + 4 * (degree.saturating_sub(1) / 4)
}

/// Distributes sorted nodes by 32s to warps, the largest first, each to the warp that has the least to do: all warps wait for
/// the last. Warps with fewer turns come last, so that few places are without a node; these are `None`.
pub(super) fn share_out(
    sorted: &[usize],
    neighbours: &[Vec<usize>],
    warps: usize,
) -> Vec<Option<usize>> {
    let turns = sorted.len().div_ceil(WARP * warps);
    let mut work: Vec<(usize, Vec<&[usize]>)> = vec![Default::default(); warps];
    for nodes in sorted.chunks(WARP) {
        let most = nodes.iter().map(|&node| neighbours[node].len()).max().unwrap_or(0);
        let free = work.iter_mut().filter(|(_, taken)| taken.len() < turns);
        if let Some((load, taken)) = free.min_by_key(|(load, _)| *load) {
            *load += cost(most);
            taken.push(nodes);
        }
    }
    work.sort_by_key(|(load, taken)| std::cmp::Reverse((taken.len(), *load)));
    // Schedulers take every fourth warp. Going forth and back, each gets its share.
    for (at, four) in work.chunks_mut(SCHEDULERS).enumerate() {
        if at % 2 == 1 && four.len() == SCHEDULERS {
            four.reverse();
        }
    }
    let mut order = vec![None; turns * WARP * warps];
    for (warp, (_, taken)) in work.iter().enumerate() {
        for (turn, nodes) in taken.iter().enumerate() {
            let first = (turn * warps + warp) * WARP;
            order[first..].iter_mut().zip(*nodes).for_each(|(place, &node)| *place = Some(node));
        }
    }
    order.truncate(order.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    order
}

/// Where the messages of nodes lie.
#[derive(Debug)]
pub(super) struct MessageSlots {
    /// The first slot of each eight nodes, and the most messages that one of them has.
    pub(super) base: Vec<i32>,
    pub(super) degree: Vec<i32>,
    /// The slots of each pair, at its first and at its second end.
    pub(super) of: Vec<[u32; 2]>,
    pub(super) count: usize,
}

impl MessageSlots {
    pub(super) fn new(ends: &[[usize; 2]], nodes: usize) -> MessageSlots {
        let mut incoming: Vec<Vec<IncomingMessage>> = vec![Vec::new(); nodes];
        for (pair, &[a, b]) in ends.iter().enumerate() {
            incoming[a].push(IncomingMessage { pair, side: 0, remainder: b % EIGHT });
            incoming[b].push(IncomingMessage { pair, side: 1, remainder: a % EIGHT });
        }
        let mut slots = MessageSlots {
            base: Vec::new(),
            degree: Vec::new(),
            of: vec![[0; 2]; ends.len()],
            count: 0,
        };
        for eight in incoming.chunks_mut(EIGHT) {
            let most = eight.iter().map(Vec::len).max().unwrap_or(0);
            slots.base.push(slots.count as i32);
            slots.degree.push(most as i32);
            for j in 0..most {
                for (lane, taken) in matching(eight).into_iter().enumerate() {
                    let Some(at) = taken else { continue };
                    let message = eight[lane].swap_remove(at);
                    slots.of[message.pair][message.side] = (slots.count + EIGHT * j + lane) as u32;
                }
            }
            slots.count += EIGHT * most;
        }
        slots
    }
}

/// A message to a node: over which pair, at which of its ends, and the sender's remainder.
#[derive(Debug, Clone, Copy)]
struct IncomingMessage {
    pair: usize,
    side: usize,
    remainder: usize,
}

/// One message of each node that has any left, with as many different remainders as possible: by augmenting paths, the nodes
/// with the most left first.
fn matching(eight: &[Vec<IncomingMessage>]) -> Vec<Option<usize>> {
    fn place(
        lane: usize,
        eight: &[Vec<IncomingMessage>],
        seen: &mut [bool; EIGHT],
        owner: &mut [Option<usize>; EIGHT],
    ) -> bool {
        for message in &eight[lane] {
            let remainder = message.remainder;
            if std::mem::replace(&mut seen[remainder], true) {
                continue;
            }
            if owner[remainder].is_none_or(|other| place(other, eight, seen, owner)) {
                owner[remainder] = Some(lane);
                return true;
            }
        }
        false
    }
    let mut lanes: Vec<usize> = (0..eight.len()).collect();
    lanes.sort_by_key(|&lane| std::cmp::Reverse(eight[lane].len()));
    let mut owner = [None; EIGHT];
    for &lane in &lanes {
        place(lane, eight, &mut [false; EIGHT], &mut owner);
    }
    let mut taken = vec![None; eight.len()];
    for (remainder, lane) in owner.iter().enumerate() {
        let Some(lane) = *lane else { continue };
        taken[lane] = eight[lane].iter().position(|message| message.remainder == remainder);
    }
    // A node whose remainders are all taken gets a conflict, which costs less than a gap.
    for (lane, messages) in eight.iter().enumerate() {
        if taken[lane].is_none() && !messages.is_empty() {
            taken[lane] = Some(0);
        }
    }
    taken
}

/// Edges in eights; `None` is a gap.
pub(super) fn in_eights(edges: &[[usize; 2]]) -> Vec<Option<OrderedEdge>> {
    // Edges by the remainders of their ends, the smaller first.
    let mut pool: Vec<Vec<usize>> = vec![Vec::new(); EIGHT * EIGHT];
    for (pair, ends) in edges.iter().enumerate().rev() {
        let [a, b] = ends.map(|end| end % EIGHT);
        pool[a.min(b) * EIGHT + a.max(b)].push(pair);
    }
    let mut left = edges.len();
    let mut out = Vec::with_capacity(edges.len() + EIGHT);
    while left > 0 {
        let mut eight: Vec<Option<OrderedEdge>> = vec![None; EIGHT];
        let mut taken = [false; EIGHT];
        for a in 0..EIGHT {
            let size = |b: &usize| pool[a.min(*b) * EIGHT + a.max(*b)].len();
            let best = (0..EIGHT).filter(|b| !taken[*b] && size(b) > 0).max_by_key(size);
            let Some(b) = best else { continue };
            let Some(pair) = pool[a.min(b) * EIGHT + a.max(b)].pop() else { continue };
            taken[b] = true;
            left -= 1;
            eight[a] = Some(OrderedEdge { pair, turned: edges[pair][0] % EIGHT != a });
        }
        // Where remainders are out of balance, a conflict costs less than a gap.
        for place in &mut eight {
            if place.is_none()
                && let Some(pair) = pool.iter_mut().find_map(Vec::pop)
            {
                left -= 1;
                *place = Some(OrderedEdge { pair, turned: false });
            }
        }
        out.append(&mut eight);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_comes_once_and_few_eights_conflict() {
        let mut random = 1u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % n
        };
        let mut ends = || [below(1860) as usize, below(1860) as usize];
        let edges: Vec<[usize; 2]> = (0..5000).map(|_| ends()).collect();
        let ordered = in_eights(&edges);
        let mut seen = vec![0; edges.len()];
        let mut conflicts = 0;
        for eight in ordered.chunks(EIGHT) {
            for side in 0..2 {
                let mut used = [false; EIGHT];
                for edge in eight.iter().flatten() {
                    let end = edges[edge.pair][side ^ usize::from(edge.turned)] % EIGHT;
                    conflicts += usize::from(std::mem::replace(&mut used[end], true));
                }
            }
            eight.iter().flatten().for_each(|edge| seen[edge.pair] += 1);
        }
        assert!(seen.iter().all(|&count| count == 1));
        // Of two ends of each edge.
        assert!(conflicts < 2 * edges.len() / 20, "{conflicts} conflicts");
    }

    /// Families whose siblings are all joined by pairs, with their parents.
    fn families() -> Vec<[usize; 2]> {
        let (mut ends, mut next) = (Vec::new(), 1);
        for parent in 0..150 {
            let size = 1 + parent * 7 % 23;
            for child in next..next + size {
                ends.push([parent, child]);
                ends.extend((child + 1..next + size).map(|sibling| [child, sibling]));
            }
            next += size;
        }
        ends
    }

    #[test]
    fn nodes_come_once_and_warps_share_the_large_ones() {
        let degree = |node: usize| 3300 / (node + 90);
        let neighbours: Vec<Vec<usize>> = (0..1860).map(|node| vec![0; degree(node)]).collect();
        for warps in [1, 7, 16, 32] {
            let order = share_out(&(0..1860).collect::<Vec<usize>>(), &neighbours, warps);
            let mut sorted: Vec<usize> = order.iter().copied().flatten().collect();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..1860));
            assert!(order.len() < 1860 + 8 * WARP, "{} places", order.len());
            let mut work = vec![0; warps];
            for (at, nodes) in order.chunks(WARP).enumerate() {
                let largest = nodes.iter().flatten().map(|&node| degree(node)).max();
                work[at % warps] += largest.map_or(0, cost);
            }
            let (most, sum): (usize, usize) = (*work.iter().max().unwrap(), work.iter().sum());
            // The largest alone, or a fair share and a little more.
            assert!(most <= cost(degree(0)).max(sum / warps * 6 / 5) + cost(0), "{work:?}");
        }
    }

    /// How many accesses the messages of all eights take, and how many places their orders have.
    fn reads(ends: &[[usize; 2]], slots: &MessageSlots) -> [usize; 2] {
        let mut senders = std::collections::HashMap::new();
        for (ends, of) in ends.iter().zip(&slots.of) {
            for side in 0..2 {
                let eight = ends[side] / EIGHT;
                let place = (of[side] as usize - slots.base[eight] as usize) / EIGHT;
                let remainders = senders.entry((eight, place)).or_insert([0; EIGHT]);
                remainders[ends[1 - side] % EIGHT] += 1;
            }
        }
        [senders.values().filter_map(|counts| counts.iter().max()).sum(), senders.len()]
    }

    #[test]
    fn slots_are_apart_and_few_eights_of_senders_conflict() {
        let ends = families();
        let count = ends.iter().flatten().max().map_or(0, |most| most + 1);
        let mut neighbours = vec![Vec::new(); count];
        for &[a, b] in &ends {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        let placed = |order: &[Option<usize>]| {
            let mut place = vec![0; count];
            for (at, node) in order.iter().enumerate() {
                node.iter().for_each(|&node| place[node] = at);
            }
            let ends: Vec<[usize; 2]> = ends.iter().map(|ends| ends.map(|e| place[e])).collect();
            let slots = MessageSlots::new(&ends, order.len().next_multiple_of(EIGHT));
            (ends, slots)
        };
        let mut order = by_degree(&neighbours);
        let (ends, slots) = placed(&share_out(&order, &neighbours, 1));
        let [before, _] = reads(&ends, &slots);
        super::super::spread::spread(&mut order, &neighbours);
        let (ends, slots) = placed(&share_out(&order, &neighbours, 4));
        let mut used = vec![false; slots.count];
        for (ends, of) in ends.iter().zip(&slots.of) {
            for side in 0..2 {
                let (slot, node) = (of[side] as usize, ends[side]);
                assert!(!std::mem::replace(&mut used[slot], true));
                assert_eq!(slot % EIGHT, node % EIGHT);
                let place = (slot - slots.base[node / EIGHT] as usize) / EIGHT;
                assert!(place < slots.degree[node / EIGHT] as usize);
            }
        }
        let [after, places] = reads(&ends, &slots);
        assert!(after < before && after < places * 6 / 5, "{before}, then {after} for {places}");
    }
}
