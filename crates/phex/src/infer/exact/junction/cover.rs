//! Covers exclusions with few cliques.
//!
//! A group is extended by labels that exclude most of it at the same cost. The remaining pairs of
//! one cost are covered by sets of three or more, which grow greedily. When two labels of such a
//! set do not exclude each other, a pair of negative cost refunds the charge. Hard exclusions are
//! covered by true cliques only, because an infinite charge cannot be refunded. Fewer leftover
//! pairs make a narrower tree, up to a point, and [`Taste`] varies this trade-off. With all
//! relations of ImageNet soft, near-cliques bring the junction tree down to 6.9e6 states.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::eliminate::Chance;
use super::work::{Halt, Work};

/// Variables of which each pair that is on has the same cost.
#[derive(Debug, Clone)]
pub(super) struct Clique {
    pub(super) members: Vec<u32>,
    /// How many of the first members are those it started from.
    pub(super) base: usize,
    pub(super) cost: f64,
}

/// What differs between attempts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taste {
    /// How many pairs a new member must exclude for each pair that it does not exclude.
    pub(super) strictness: f64,
    /// Shuffles the order of members; larger values shuffle more. 0 puts members with few links
    /// first.
    pub(super) noise: u64,
    pub(super) seed: u64,
}

type Pairs = Vec<((u32, u32), f64)>;

/// How many steps a look-up in a tree takes.
const LOOK_UP: usize = 16;

/// The pairs of one cost, as neighbours.
#[derive(Default)]
struct Neighbours(BTreeMap<u32, BTreeSet<u32>>);

impl Neighbours {
    fn of(&self, variable: u32) -> impl Iterator<Item = u32> + '_ {
        self.0.get(&variable).into_iter().flatten().copied()
    }

    fn insert(&mut self, a: u32, b: u32) {
        self.0.entry(a).or_default().insert(b);
        self.0.entry(b).or_default().insert(a);
    }

    fn remove(&mut self, a: u32, b: u32) -> bool {
        let mut was = false;
        for (a, b) in [(a, b), (b, a)] {
            if let Some(near) = self.0.get_mut(&a) {
                was = near.remove(&b);
            }
        }
        was
    }

    fn degree(&self, variable: u32) -> usize {
        self.0.get(&variable).map_or(0, BTreeSet::len)
    }

    /// Adds the variables that exclude most of a set, best first.
    fn extend(&self, members: &mut Vec<u32>, strictness: f64, work: &mut Work) -> Result<(), Halt> {
        let mut joined: BTreeMap<u32, usize> = BTreeMap::new();
        let mut counted = 0;
        loop {
            for &member in &members[counted..] {
                work.spend(LOOK_UP * self.degree(member))?;
                self.of(member).for_each(|v| *joined.entry(v).or_default() += 1);
                joined.remove(&member);
            }
            for member in &members[..counted] {
                joined.remove(member);
            }
            counted = members.len();
            work.spend(LOOK_UP * counted + 2 * joined.len())?;
            let best = joined.iter().max_by_key(|&(&v, &count)| (count, std::cmp::Reverse(v)));
            let Some((&v, &count)) = best else { return Ok(()) };
            let missing = counted - count;
            if missing > 0 && (count as f64) < strictness * missing as f64 {
                return Ok(());
            }
            members.push(v);
        }
    }

    /// The pair to start a set from: the variable with the most pairs, and the partner that shares
    /// most of them.
    fn start(&self, busiest: u32, work: &mut Work) -> Result<Option<[u32; 2]>, Halt> {
        let Some(near) = self.0.get(&busiest) else { return Ok(None) };
        work.spend(LOOK_UP * near.iter().map(|&v| self.degree(v)).sum::<usize>())?;
        let common = |v: &u32| self.of(*v).filter(|other| near.contains(other)).count();
        let partner = near.iter().max_by_key(|&v| (common(v), std::cmp::Reverse(*v)));
        Ok(partner.map(|&partner| [busiest, partner]))
    }

    /// Removes the pairs of a set, from the member at `from` on. Returns those that were not
    /// present.
    fn consume(
        &mut self,
        members: &[u32],
        from: usize,
        work: &mut Work,
    ) -> Result<Vec<(u32, u32)>, Halt> {
        let mut missing = Vec::new();
        for at in from..members.len() {
            work.spend(2 * LOOK_UP * at)?;
            for &other in &members[..at] {
                if !self.remove(members[at], other) {
                    missing.push((other.min(members[at]), other.max(members[at])));
                }
            }
        }
        Ok(missing)
    }
}

/// Returns the given sets, extended, and new sets; then the pairs that are in no set, including
/// refunds. `links` orders the members of each part. Members with few links come first, so that the
/// others meet few counters.
pub(super) fn cover(
    sets: Vec<Clique>,
    exclusions: &HashMap<(u32, u32), f64>,
    links: &[u32],
    taste: Taste,
    work: &mut Work,
) -> Result<(Vec<Clique>, Pairs), Halt> {
    let mut by_cost: BTreeMap<u64, Neighbours> = BTreeMap::new();
    work.spend(2 * LOOK_UP * exclusions.len())?;
    for (&(a, b), cost) in exclusions {
        by_cost.entry(cost.to_bits()).or_default().insert(a, b);
    }
    let noise = |v: u32| match taste.noise {
        0 => 0,
        noise => Chance(taste.seed ^ u64::from(v) << 20).next() % (noise + 1),
    };
    let rank = |v: u32| u64::from(links[v as usize]) + noise(v);
    let arrange = |members: &mut [u32]| members.sort_by_key(|&v| (rank(v), v));
    let strictness = |cost: f64| if cost.is_finite() { taste.strictness } else { f64::INFINITY };
    let mut cliques = sets;
    let mut rest = Pairs::new();
    for clique in &mut cliques {
        arrange(&mut clique.members);
        clique.base = clique.members.len();
        if let Some(pairs) = by_cost.get_mut(&clique.cost.to_bits()) {
            pairs.extend(&mut clique.members, strictness(clique.cost), work)?;
            let missing = pairs.consume(&clique.members, clique.base, work)?;
            rest.extend(missing.into_iter().map(|pair| (pair, -clique.cost)));
            arrange(&mut clique.members[clique.base..]);
        }
    }
    for (cost, mut pairs) in by_cost {
        let cost = f64::from_bits(cost);
        let mut starts: Vec<u32> = pairs.0.keys().copied().collect();
        starts.sort_by_key(|v| std::cmp::Reverse(pairs.0[v].len() as u64 + noise(*v) / 4));
        for busiest in starts {
            while let Some(start) = pairs.start(busiest, work)? {
                let mut members = start.to_vec();
                pairs.extend(&mut members, strictness(cost), work)?;
                let missing = pairs.consume(&members, 1, work)?;
                if let [a, b] = members[..] {
                    rest.push(((a.min(b), a.max(b)), cost));
                    continue;
                }
                rest.extend(missing.into_iter().map(|pair| (pair, -cost)));
                arrange(&mut members);
                let base = members.len();
                cliques.push(Clique { members, base, cost });
            }
        }
    }
    Ok((cliques, rest))
}
