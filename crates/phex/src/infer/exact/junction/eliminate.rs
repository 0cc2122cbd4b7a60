//! Finds elimination orders, and builds the tree of bags from an order.
//!
//! The heuristic is min-fill: eliminate the variable whose neighbours lack the fewest edges among
//! themselves. Ties go to the smaller table, and then to chance. A restart costs about O(n ·
//! width²) look-ups, which [`Work`] counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::work::{Halt, Work};

/// A small random generator, for ties only.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        crate::numeric::splitmix(&mut self.0)
    }
}

/// A fill count looks at no more pairs than this. For variables with more pairs, the degree
/// replaces it.
const MOST_PAIRS: usize = 20_000;

/// How many steps a look-up among neighbours takes.
const PROBE: usize = 4;

/// How many entries of a list move in one step.
const MOVED: usize = 32;

/// Bags of variables, in a forest.
#[derive(Debug, Clone, Default)]
pub(super) struct EliminationForest {
    /// The variables of each bag, ascending.
    pub(super) bags: Vec<Vec<u32>>,
    pub(super) parent: Vec<Option<u32>>,
    /// The total size of the full tables.
    pub(super) size: f64,
}

/// Logarithms of table sizes are whole numbers of this part, so that they can be added and taken
/// away in any order.
const BITS: f64 = (1u64 << 40) as f64;

struct EliminationGraph<'a> {
    near: Vec<Vec<u32>>,
    /// The logarithm of the number of values of each variable.
    bits: Vec<u64>,
    /// The sum of these logarithms over the neighbours of each variable.
    near_bits: Vec<u64>,
    work: &'a mut Work,
}

impl EliminationGraph<'_> {
    fn joined(&self, a: u32, b: u32) -> bool {
        self.near[a as usize].binary_search(&b).is_ok()
    }

    /// The number of edges that eliminating `v` adds, and the logarithm of the size of its table.
    fn price(&mut self, v: u32) -> Result<(u64, u64), Halt> {
        let near = &self.near[v as usize];
        let d = near.len();
        let table = self.near_bits[v as usize] >> 30;
        if d * d > MOST_PAIRS {
            self.work.spend(8)?;
            return Ok(((d * d) as u64, table));
        }
        let mut fill = 0;
        for (at, &a) in near.iter().enumerate() {
            fill += near[at + 1..].iter().filter(|&&b| !self.joined(a, b)).count();
        }
        self.work.spend(d * d / 2 * PROBE + 8)?;
        Ok((fill as u64, table))
    }

    /// Joins two variables, unless they are joined already.
    fn join(&mut self, a: u32, b: u32) -> Result<bool, Halt> {
        let Err(at) = self.near[a as usize].binary_search(&b) else { return Ok(false) };
        self.near[a as usize].insert(at, b);
        let at = self.near[b as usize].partition_point(|&n| n < a);
        self.near[b as usize].insert(at, a);
        self.near_bits[a as usize] += self.bits[b as usize];
        self.near_bits[b as usize] += self.bits[a as usize];
        self.work.spend((self.near[a as usize].len() + self.near[b as usize].len()) / MOVED)?;
        Ok(true)
    }

    fn leave(&mut self, v: u32) -> Result<Vec<u32>, Halt> {
        let near = std::mem::take(&mut self.near[v as usize]);
        for &n in &near {
            let list = &mut self.near[n as usize];
            if let Ok(at) = list.binary_search(&v) {
                list.remove(at);
            }
            self.near_bits[n as usize] -= self.bits[v as usize];
            self.work.spend(list.len() / MOVED + PROBE)?;
        }
        Ok(near)
    }
}

/// The bags of a min-fill order. `hopeless` says whether a bag alone is more than the budget allows,
/// which ends the search.
pub(super) fn min_fill(
    near: Vec<Vec<u32>>,
    domains: &[u16],
    chance: Option<&mut Chance>,
    hopeless: impl Fn(&[u32]) -> bool,
    work: &mut Work,
) -> Result<EliminationForest, Halt> {
    let n = domains.len();
    let bits: Vec<u64> = domains.iter().map(|&d| (f64::from(d).log2() * BITS) as u64).collect();
    let sum = |near: &Vec<u32>| near.iter().map(|&n| bits[n as usize]).sum();
    let near_bits = near.iter().map(sum).collect();
    let mut graph = EliminationGraph { near, bits, near_bits, work };
    let mut chance = chance;
    let mut draw = move || chance.as_mut().map_or(0, |chance| chance.next() >> 48);
    let mut version = vec![0u32; n];
    let mut heap = BinaryHeap::new();
    for v in 0..n as u32 {
        heap.push(Reverse((graph.price(v)?, draw(), v, 0u32)));
    }
    let mut position = vec![u32::MAX; n];
    let mut bags: Vec<Vec<u32>> = Vec::with_capacity(n);
    let mut touched: Vec<u32> = Vec::new();
    while let Some(Reverse((_, _, v, stamp))) = heap.pop() {
        if position[v as usize] != u32::MAX || version[v as usize] != stamp {
            continue;
        }
        position[v as usize] = bags.len() as u32;
        let mut near = graph.leave(v)?;
        graph.work.spend(near.len() * near.len() * PROBE)?;
        touched.clear();
        touched.extend(&near);
        for (at, &a) in near.iter().enumerate() {
            for &b in &near[at + 1..] {
                if graph.join(a, b)? {
                    // The price of their common neighbours changes as well.
                    let (few, many) = if graph.near[a as usize].len() < graph.near[b as usize].len()
                    {
                        (a, b)
                    } else {
                        (b, a)
                    };
                    let common = graph.near[few as usize].iter();
                    let common = common.copied().filter(|&c| graph.joined(many, c));
                    touched.extend(common);
                    graph.work.spend(graph.near[few as usize].len() * PROBE)?;
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for &t in &touched {
            version[t as usize] += 1;
            heap.push(Reverse((graph.price(t)?, draw(), t, version[t as usize])));
        }
        near.push(v);
        if hopeless(&near) {
            return Err(Halt::Size);
        }
        bags.push(near);
    }
    Ok(forest(bags, &position, domains))
}

fn subset(small: &[u32], large: &[u32]) -> bool {
    small.iter().all(|v| large.binary_search(v).is_ok())
}

pub(super) fn table(bag: &[u32], domains: &[u16]) -> f64 {
    bag.iter().map(|&v| f64::from(domains[v as usize])).product()
}

/// Merges bags that are contained in a neighbour, and roots each tree at its largest bag.
fn forest(mut bags: Vec<Vec<u32>>, position: &[u32], domains: &[u16]) -> EliminationForest {
    let n = bags.len();
    let mut parent: Vec<Option<u32>> = Vec::with_capacity(n);
    for bag in &mut bags {
        // The last entry is the variable that the bag eliminates.
        let near = &bag[..bag.len() - 1];
        parent.push(near.iter().map(|&v| position[v as usize]).min());
        bag.sort_unstable();
    }
    // `moved[b]` is the later bag that replaced `b`.
    let mut moved: Vec<Option<u32>> = vec![None; n];
    for b in 0..n {
        if let Some(p) = parent[b]
            && subset(&bags[p as usize], &bags[b])
        {
            bags[p as usize] = std::mem::take(&mut bags[b]);
            moved[b] = Some(p);
        }
    }
    let resolve = |mut b: u32| {
        while let Some(next) = moved[b as usize] {
            b = next;
        }
        b
    };
    let mut number = vec![u32::MAX; n];
    let mut kept = Vec::new();
    for b in (0..n).filter(|&b| moved[b].is_none()) {
        number[b] = kept.len() as u32;
        kept.push(b);
    }
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); kept.len()];
    for &b in &kept {
        if let Some(p) = parent[b] {
            let (b, p) = (number[b], number[resolve(p) as usize]);
            near[b as usize].push(p);
            near[p as usize].push(b);
        }
    }
    let bags: Vec<Vec<u32>> = kept.iter().map(|&b| std::mem::take(&mut bags[b])).collect();
    let sizes: Vec<f64> = bags.iter().map(|bag| table(bag, domains)).collect();
    let size = sizes.iter().sum();
    let mut roots: Vec<u32> = (0..bags.len() as u32).collect();
    roots.sort_by(|&a, &b| sizes[b as usize].total_cmp(&sizes[a as usize]));
    let mut parent = vec![None; bags.len()];
    let mut seen = vec![false; bags.len()];
    for root in roots {
        if std::mem::replace(&mut seen[root as usize], true) {
            continue;
        }
        let mut queue = vec![root];
        while let Some(b) = queue.pop() {
            for &next in &near[b as usize] {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    parent[next as usize] = Some(b);
                    queue.push(next);
                }
            }
        }
    }
    let mut forest = EliminationForest { bags, parent, size };
    forest.hang(&sizes);
    forest
}

impl EliminationForest {
    /// The bags, children before parents.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut children = vec![Vec::new(); self.bags.len()];
        let mut order: Vec<u32> = Vec::with_capacity(self.bags.len());
        for (b, parent) in self.parent.iter().enumerate() {
            match parent {
                Some(p) => children[*p as usize].push(b as u32),
                None => order.push(b as u32),
            }
        }
        let mut at = 0;
        while at < order.len() {
            order.extend(&children[order[at] as usize]);
            at += 1;
        }
        order.reverse();
        order
    }

    /// Moves a bag below a sibling that contains its separator, if the sibling is smaller than the
    /// parent. A large bag then reads fewer messages. A star becomes a chain, whose messages are
    /// rescaled at every step.
    fn hang(&mut self, sizes: &[f64]) {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.bags.len()];
        for (b, parent) in self.parent.iter().enumerate() {
            if let Some(p) = parent {
                children[*p as usize].push(b as u32);
            }
        }
        let mut load = vec![0.0; self.bags.len()];
        for (p, mut list) in children.into_iter().enumerate() {
            list.sort_by(|&a, &b| sizes[b as usize].total_cmp(&sizes[a as usize]));
            let mut placed: Vec<u32> = Vec::new();
            for b in list {
                let bag = &self.bags[b as usize];
                let separator: Vec<u32> =
                    bag.iter().copied().filter(|v| self.bags[p].binary_search(v).is_ok()).collect();
                let price = |c: u32| sizes[c as usize] * (1.0 + load[c as usize]);
                let best = placed
                    .iter()
                    .rev()
                    .take(64)
                    .copied()
                    .filter(|&c| subset(&separator, &self.bags[c as usize]))
                    .min_by(|&a, &c| price(a).total_cmp(&price(c)));
                let to = best.filter(|&c| price(c) < price(p as u32) || load[p] > 2.0);
                let to = to.unwrap_or(p as u32);
                self.parent[b as usize] = Some(to);
                load[to as usize] += 1.0;
                placed.push(b);
            }
        }
    }
}
