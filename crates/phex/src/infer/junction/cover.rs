//! Exclusions as few cliques.
//!
//! A group is extended by labels that exclude all of it at the same cost; of the remaining pairs,
//! cliques of three or more of one cost are grown greedily. Every pair is in exactly one clique or
//! stays a pair, so that nothing is charged twice and nothing need be corrected.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Variables of which each pair that is on costs the same.
#[derive(Debug, Clone)]
pub(super) struct Clique {
    pub(super) members: Vec<u32>,
    /// The first so many are the members that it was made of.
    pub(super) base: usize,
    pub(super) cost: f64,
}

type Pairs = Vec<((u32, u32), f64)>;

/// The pairs of one cost, as neighbours.
#[derive(Default)]
struct Neighbours(BTreeMap<u32, BTreeSet<u32>>);

impl Neighbours {
    fn of(&self, variable: u32) -> impl Iterator<Item = u32> + '_ {
        self.0.get(&variable).into_iter().flatten().copied()
    }

    fn first(&self, variable: u32) -> Option<u32> {
        self.of(variable).next()
    }

    fn joined(&self, a: u32, b: u32) -> bool {
        self.0.get(&a).is_some_and(|near| near.contains(&b))
    }

    fn insert(&mut self, a: u32, b: u32) {
        self.0.entry(a).or_default().insert(b);
        self.0.entry(b).or_default().insert(a);
    }

    fn remove(&mut self, a: u32, b: u32) {
        for (a, b) in [(a, b), (b, a)] {
            if let Some(near) = self.0.get_mut(&a) {
                near.remove(&b);
            }
        }
    }

    /// Takes the pairs between `member` and the others out.
    fn consume(&mut self, member: u32, others: &[u32]) {
        others.iter().for_each(|&other| self.remove(member, other));
    }

    /// Adds to a set what is joined to all of it, best joined first.
    fn extend(&mut self, members: &mut Vec<u32>, consume: bool) {
        loop {
            let near: Vec<u32> = self
                .of(members[0])
                .filter(|v| !members.contains(v) && members.iter().all(|&m| self.joined(m, *v)))
                .collect();
            let common = |v: u32| near.iter().filter(|&&other| self.joined(v, other)).count();
            let Some(&best) = near.iter().max_by_key(|&&v| (common(v), std::cmp::Reverse(v)))
            else {
                return;
            };
            if consume {
                self.consume(best, members);
            }
            members.push(best);
        }
    }
}

/// The given sets, extended, then new cliques; and the pairs that are in none. `links` orders the
/// members of each part: those with few links come first, so that the others meet few counters.
pub(super) fn cover(
    sets: Vec<Clique>,
    exclusions: HashMap<(u32, u32), f64>,
    links: &[u32],
) -> (Vec<Clique>, Pairs) {
    let mut by_cost: BTreeMap<u64, Neighbours> = BTreeMap::new();
    for (&(a, b), cost) in &exclusions {
        by_cost.entry(cost.to_bits()).or_default().insert(a, b);
    }
    let arrange = |members: &mut [u32]| members.sort_by_key(|&v| (links[v as usize], v));
    let mut cliques = sets;
    for clique in &mut cliques {
        arrange(&mut clique.members);
        clique.base = clique.members.len();
        if let Some(pairs) = by_cost.get_mut(&clique.cost.to_bits()) {
            pairs.extend(&mut clique.members, true);
            arrange(&mut clique.members[clique.base..]);
        }
    }
    let mut rest = Pairs::new();
    for (cost, mut pairs) in by_cost {
        let cost = f64::from_bits(cost);
        let starts: Vec<u32> = pairs.0.keys().copied().collect();
        for a in starts {
            while let Some(b) = pairs.first(a) {
                let mut members = vec![a, b];
                pairs.extend(&mut members, false);
                for at in 1..members.len() {
                    pairs.consume(members[at], &members[..at]);
                }
                if members.len() == 2 {
                    rest.push(((a.min(b), a.max(b)), cost));
                } else {
                    arrange(&mut members);
                    let base = members.len();
                    cliques.push(Clique { members, base, cost });
                }
            }
        }
    }
    (cliques, rest)
}
