//! Adds one-of groups to the tree of bags.
//!
//! For a group with members on both sides of a separator, one bit is enough: whether the active
//! member is below. So the tree is built without the groups. Then every bag with members of the
//! group below it gets the bit `t = Σ terms`, where the terms are its own members and the bits of
//! its children. At the bag below which all members are, exactly one term is on. (A chain of
//! counters for each group would widen the elimination order. The bit does not.)

use super::eliminate::{EliminationForest, table};
use super::variables::{Factor, FactorKind, VariableNetwork};
use super::work::{Halt, Work};

/// Adds bits and factors for every group.
pub(super) fn attach(
    network: &mut VariableNetwork,
    forest: &mut EliminationForest,
    work: &mut Work,
) -> Result<(), Halt> {
    let mut home = vec![0u32; network.domains.len()];
    let mut best = vec![f64::INFINITY; network.domains.len()];
    for (b, bag) in forest.bags.iter().enumerate() {
        let size = table(bag, &network.domains);
        for &v in bag {
            if size < best[v as usize] {
                (best[v as usize], home[v as usize]) = (size, b as u32);
            }
        }
    }
    for group in 0..network.groups.len() {
        let members = network.groups[group].1.clone();
        work.spend(16 * (forest.bags.len() + members.len()))?;
        join_trees(&members, &home, forest, &network.domains);
        let mut terms: Vec<Vec<u32>> = vec![Vec::new(); forest.bags.len()];
        members.iter().for_each(|&m| terms[home[m as usize] as usize].push(m));
        let mut inside: Vec<usize> = terms.iter().map(Vec::len).collect();
        for b in forest.order() {
            let b = b as usize;
            if inside[b] == 0 {
                continue;
            }
            let mut scope = std::mem::take(&mut terms[b]);
            let up = forest.parent[b].filter(|_| inside[b] < members.len());
            let Some(parent) = up else {
                network.factors.push(Factor { scope, kind: FactorKind::One });
                break;
            };
            let out = if scope.len() == 1 {
                scope[0]
            } else {
                let out = network.domains.len() as u32;
                network.domains.push(2);
                insert(&mut forest.bags[b], out);
                work.spend(forest.bags[b].len() / 16)?;
                scope.push(out);
                network.factors.push(Factor { scope, kind: FactorKind::Sum });
                out
            };
            insert(&mut forest.bags[parent as usize], out);
            terms[parent as usize].push(out);
            inside[parent as usize] += inside[b];
        }
        if members.is_empty() {
            network.constant = f64::NEG_INFINITY;
        }
    }
    forest.size = forest.bags.iter().map(|bag| table(bag, &network.domains)).sum();
    Ok(())
}

fn insert(bag: &mut Vec<u32>, variable: u32) {
    if let Err(at) = bag.binary_search(&variable) {
        bag.insert(at, variable);
    }
}

/// Hangs the trees that contain members below each other.
fn join_trees(members: &[u32], home: &[u32], forest: &mut EliminationForest, domains: &[u16]) {
    let mut root: Vec<u32> = (0..forest.bags.len() as u32).collect();
    for b in forest.order().into_iter().rev() {
        if let Some(parent) = forest.parent[b as usize] {
            root[b as usize] = root[parent as usize];
        }
    }
    let mut roots: Vec<u32> = members.iter().map(|&m| root[home[m as usize] as usize]).collect();
    roots.sort_unstable();
    roots.dedup();
    let size = |b: u32| table(&forest.bags[b as usize], domains);
    roots.sort_by(|&a, &b| size(b).total_cmp(&size(a)));
    for pair in roots.windows(2) {
        forest.parent[pair[0] as usize] = Some(pair[1]);
    }
}
