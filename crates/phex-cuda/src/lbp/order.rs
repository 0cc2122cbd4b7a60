//! The order of nodes, slots and edges on the device, so that neither phase of an iteration has bank conflicts.
//!
//! Shared memory serves eight threads at a time where each takes 16 bytes, if their places differ modulo 8.
//! Nodes are numbered by degree, the messages of node `p` lie at `base(p / 8) + 8 j + p % 8`, so a slot and
//! its node have the same remainder; edges come in eights whose first ends, and whose second ends, all
//! differ modulo 8. That is an edge colouring of the remainders; a greedy one leaves few gaps.

/// Nodes that lie side by side.
pub(super) const EIGHT: usize = 8;

/// An edge in the device's order: its pair and whether it is turned around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ordered {
    pub(super) pair: usize,
    pub(super) turned: bool,
}

/// Nodes by degree, largest first, ties by index.
pub(super) fn by_degree(degree: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..degree.len()).collect();
    order.sort_by_key(|&node| (std::cmp::Reverse(degree[node]), node));
    order
}

/// Edges in eights; `None` is a gap.
pub(super) fn in_eights(edges: &[[usize; 2]]) -> Vec<Option<Ordered>> {
    // Edges by the remainders of their ends, the smaller first.
    let mut pool: Vec<Vec<usize>> = vec![Vec::new(); EIGHT * EIGHT];
    for (pair, ends) in edges.iter().enumerate().rev() {
        let [a, b] = ends.map(|end| end % EIGHT);
        pool[a.min(b) * EIGHT + a.max(b)].push(pair);
    }
    let mut left = edges.len();
    let mut out = Vec::with_capacity(edges.len() + EIGHT);
    while left > 0 {
        let mut eight: Vec<Option<Ordered>> = vec![None; EIGHT];
        let mut taken = [false; EIGHT];
        for a in 0..EIGHT {
            let size = |b: &usize| pool[a.min(*b) * EIGHT + a.max(*b)].len();
            let best = (0..EIGHT).filter(|b| !taken[*b] && size(b) > 0).max_by_key(size);
            let Some(b) = best else { continue };
            let Some(pair) = pool[a.min(b) * EIGHT + a.max(b)].pop() else { continue };
            taken[b] = true;
            left -= 1;
            eight[a] = Some(Ordered { pair, turned: edges[pair][0] % EIGHT != a });
        }
        // Where remainders have run out of balance, a conflict costs less than a gap.
        for place in &mut eight {
            if place.is_none()
                && let Some(pair) = pool.iter_mut().find_map(Vec::pop)
            {
                left -= 1;
                *place = Some(Ordered { pair, turned: false });
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
}
