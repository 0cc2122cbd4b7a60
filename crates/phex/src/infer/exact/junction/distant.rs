//! Computes the joint probability of pairs of variables that share no bag.
//!
//! A clique written as counters does not have a bag for each of its pairs, and a relation without
//! cost has no edge. For a source `a`, the conditional `c(s) = P(y_a = 1 | s)` is carried from
//! separator to separator along the paths to its partners, as sums of beliefs. At the home of a
//! partner `b`, `E[y_a y_b] = E[c · y_b]`. The cost per source is the number of states in the bags
//! on the paths.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::Scratch;
use super::number::TableNumber;
use super::tables::{Bag, BagTables};

/// The partners of one source.
#[derive(Debug)]
pub(super) struct DistantPartners {
    variable: u32,
    /// The bags to visit, from the source outwards: `(bag, the bag it is reached from)`.
    path: Vec<(u32, Option<u32>)>,
    /// Each partner and its cell.
    partners: Vec<(u32, u32)>,
    /// Partners in other trees. They are independent of the source.
    apart: Vec<(u32, u32)>,
}

/// Groups the distant pairs by source and finds the paths.
pub(super) fn sources(tables: &BagTables) -> Vec<DistantPartners> {
    let mut count: BTreeMap<u32, usize> = BTreeMap::new();
    for pair in &tables.distant {
        *count.entry(pair.a).or_default() += 1;
        *count.entry(pair.b).or_default() += 1;
    }
    let mut by_source: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for pair in &tables.distant {
        let swap = count[&pair.b] > count[&pair.a];
        let (a, b) = if swap { (pair.b, pair.a) } else { (pair.a, pair.b) };
        by_source.entry(a).or_default().push((b, pair.cell));
    }
    let up = |mut b: u32| {
        let mut path = vec![b];
        while let Some(parent) = tables.bags[b as usize].parent {
            path.push(parent);
            b = parent;
        }
        path
    };
    let lay = |(variable, all): (u32, Vec<(u32, u32)>)| {
        let from = up(tables.home[variable as usize]);
        let mut source =
            DistantPartners { variable, path: Vec::new(), partners: vec![], apart: vec![] };
        // Each bag is reached from one neighbour, because a tree has only one path.
        let mut reached: BTreeMap<u32, Option<u32>> = BTreeMap::from([(from[0], None)]);
        let mut order = vec![from[0]];
        let above: BTreeSet<u32> = from.iter().copied().collect();
        for (partner, cell) in all {
            let to = up(tables.home[partner as usize]);
            let Some(meet) = to.iter().position(|b| above.contains(b)) else {
                source.apart.push((partner, cell));
                continue;
            };
            source.partners.push((partner, cell));
            let top = from.iter().position(|b| *b == to[meet]).unwrap_or(0);
            let path: Vec<u32> =
                from[..=top].iter().chain(to[..meet].iter().rev()).copied().collect();
            for step in path.windows(2) {
                if let std::collections::btree_map::Entry::Vacant(e) = reached.entry(step[1]) {
                    e.insert(Some(step[0]));
                    order.push(step[1]);
                }
            }
        }
        source.path = order.into_iter().map(|b| (b, reached[&b])).collect();
        source
    };
    by_source.into_iter().map(lay).collect()
}

/// Fills the cells of the pairs, after both passes.
pub(super) fn fill<N: TableNumber>(
    tables: &BagTables,
    sources: &[DistantPartners],
    scratch: &mut Scratch<N>,
) {
    for source in sources {
        for &(partner, cell) in &source.apart {
            let both = scratch.on[source.variable as usize].times(scratch.on[partner as usize]);
            scratch.cells[cell as usize] = both;
        }
        // The conditionals on the separators that were passed, indexed by the lower bag of each.
        let mut conditionals: BTreeMap<u32, Vec<N>> = BTreeMap::new();
        for &(b, reached) in &source.path {
            visit(tables, source, (b, reached), scratch, &mut conditionals);
        }
    }
}

/// The separator entry that a state of a bag belongs to.
fn entry(bag: &Bag, state: usize, segment: usize, below: Option<(usize, usize)>) -> usize {
    match below {
        Some((input, first)) => bag.index[state * bag.inputs + input] as usize - first,
        None => segment,
    }
}

fn visit<N: TableNumber>(
    tables: &BagTables,
    source: &DistantPartners,
    (b, reached): (u32, Option<u32>),
    scratch: &mut Scratch<N>,
    conditionals: &mut BTreeMap<u32, Vec<N>>,
) {
    let bag = &tables.bags[b as usize];
    // A separator is identified by its lower bag. `Some` contains the input of this bag that it is.
    let separator = |other: u32| {
        let child = bag.children.iter().find(|child| child.0 == other);
        match child {
            Some(&(child, input)) => (child, Some((input, tables.bags[child as usize].out))),
            None => (b, None),
        }
    };
    let inward = reached.map(&separator);
    let onward = source.path.iter().filter(|step| step.1 == Some(b)).map(|step| separator(step.0));
    let onward: Vec<(u32, Option<(usize, usize)>)> = onward.collect();
    let size = |lower: u32| tables.bags[lower as usize].segments.len() - 1;
    let mut sums: Vec<(Vec<N>, Vec<N>)> = onward
        .iter()
        .map(|&(lower, _)| (vec![N::ZERO; size(lower)], vec![N::ZERO; size(lower)]))
        .collect();
    let input_of = |v: u32| bag.labels.iter().find(|label| label.0 == v).map(|label| label.1);
    let own = input_of(source.variable).filter(|_| inward.is_none());
    let partners: Vec<(u32, usize, u32)> = source
        .partners
        .iter()
        .filter_map(|&(v, cell)| input_of(v).map(|input| (v, input, cell)))
        .collect();
    let on =
        |state: usize, v: u32, input: usize| bag.index[state * bag.inputs + input] == 2 * v + 1;
    let mut both = vec![N::ZERO; partners.len()];
    let mut whole = N::ZERO;
    for (segment, range) in bag.segments.windows(2).enumerate() {
        let message = scratch.down[bag.out + segment];
        for state in range[0] as usize..range[1] as usize {
            let mut belief = message;
            if !bag.weight.is_empty() {
                belief = belief.times(N::weight(&tables.weights, bag.weight[state]));
            }
            for &at in &bag.index[state * bag.inputs..(state + 1) * bag.inputs] {
                belief = belief.times(scratch.up[at as usize]);
            }
            whole = whole.plus(belief);
            let share = match (own, inward) {
                (Some(input), _) if on(state, source.variable, input) => belief,
                (None, Some((lower, below))) => {
                    belief.times(conditionals[&lower][entry(bag, state, segment, below)])
                }
                _ => N::ZERO,
            };
            for ((_, below), (part, all)) in onward.iter().zip(&mut sums) {
                let at = entry(bag, state, segment, *below);
                part[at] = part[at].plus(share);
                all[at] = all[at].plus(belief);
            }
            for (&(v, input, _), both) in partners.iter().zip(&mut both) {
                if on(state, v, input) {
                    *both = both.plus(share);
                }
            }
        }
    }
    for (&(_, _, cell), both) in partners.iter().zip(both) {
        scratch.cells[cell as usize] = both.over(whole);
    }
    for ((lower, _), (part, all)) in onward.iter().zip(sums) {
        let ratio = part.iter().zip(&all).map(|(part, all)| part.over(*all)).collect();
        conditionals.insert(*lower, ratio);
    }
}
