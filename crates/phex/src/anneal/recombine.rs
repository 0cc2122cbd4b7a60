//! Recombination finds the best mixture of a few good states (after Houdayer and Martin 1999).
//!
//! Good states differ in whole regions, which single flips cannot turn. With recombination after
//! annealing, the long chains and tori of Biq Mac are solved within seconds; annealing and tabu
//! search alone do not solve them in that time.
//!
//! Take a base state and some others. Connected variables that differ from the base in the same
//! subset of the others form one cluster. Turning clusters is again a quadratic problem, over far
//! fewer variables. With `s = 1 − 2x` at the base,
//!
//! `linear_c = Σ_{i∈c} delta_i + Σ_{i<j∈c} w_ij s_i s_j`, `pair_cd = Σ_{i∈c, j∈d} w_ij s_i s_j`,
//!
//! where a counter is `w` between all its members: with `S_c = Σ s_i` over the members in `c` it
//! adds `cost · S_c S_d`. Tabu search solves it starting from "turn nothing", so the child is never
//! worse than the base. The child replaces the worst parent. With one-of groups there are two
//! parents: the two members in which a group differs then turn together, and the group keeps
//! exactly one. A child costs O(pairs + clusters²).

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Solution;
use super::options::Tabu;
use super::problem::Problem;
use super::search::Search;

/// More parents than this would make the clusters small.
const MOST_PARENTS: usize = 6;

/// More clusters than this are too many for a table of their pairs.
const MOST_CLUSTERS: usize = 1024;

/// Recombination ends after this many consecutive children that change nothing.
const PATIENCE: usize = 12;

/// Improves a population of local minima until it is a single state, `children` have been made, or
/// one has reached the target.
pub(super) fn recombine(
    search: &mut Search<'_>,
    population: &mut Vec<Solution>,
    children: usize,
    target: f64,
    random: &mut Xoshiro256PlusPlus,
    abandoned: &dyn Fn() -> bool,
) {
    let problem = search.problem();
    let mut idle = 0;
    for _ in 0..children {
        idle += 1;
        if idle > PATIENCE {
            break;
        }
        if population.len() < 2 || population[0].energy <= target || abandoned() {
            break;
        }
        let most = if problem.groups.is_empty() { MOST_PARENTS } else { 2 };
        let count = random.random_range(2..=most.min(population.len()));
        let mut order: Vec<usize> = (0..population.len()).collect();
        order.shuffle(random);
        order.truncate(count);
        order.sort_unstable();
        let parents: Vec<&[bool]> =
            order.iter().map(|&at| population[at].state.as_slice()).collect();
        let (cluster_of, clusters) = clusters(problem, &parents);
        if !(2..=MOST_CLUSTERS).contains(&clusters) {
            continue;
        }
        search.load(parents[0]);
        let reduced = reduce(search, &cluster_of, clusters);
        let mut turning = Search::new(&reduced, &vec![false; clusters]);
        let options = Tabu { tenure: None, stall: Some(4 * clusters), kicks: 1 };
        turning.tabu(&options, target, random, abandoned);
        let turned = turning.state();
        let mut child = parents[0].to_vec();
        for (on, &cluster) in child.iter_mut().zip(&cluster_of) {
            *on ^= cluster != NONE && turned[cluster as usize];
        }
        search.load(&child);
        search.descend();
        let state = search.state();
        let child = Solution { energy: problem.free_energy(&state), state };
        // The population stays sorted and without duplicates. The last parent is the worst.
        if population.iter().all(|other| other.state != child.state) {
            let worst = order[order.len() - 1];
            if child.energy < population[worst].energy {
                population.remove(worst);
                let at = population.partition_point(|other| other.energy <= child.energy);
                population.insert(at, child);
                idle = 0;
            }
        } else if count == 2 {
            // The best mixture of these two parents has been found already, so the worse one has
            // nothing to add.
            population.remove(order[1]);
            idle = 0;
        }
    }
}

/// Marks variables in which all parents agree, which are in no cluster.
const NONE: u32 = u32::MAX;

/// The cluster of each variable, and how many there are.
fn clusters(problem: &Problem, parents: &[&[bool]]) -> (Vec<u32>, usize) {
    let n = problem.free();
    let pattern = |at: usize| {
        let others = parents[1..].iter().map(|parent| parent[at] != parents[0][at]);
        others.fold(0u32, |bits, differs| bits << 1 | u32::from(differs))
    };
    let patterns: Vec<u32> = (0..n).map(pattern).collect();
    let mut cluster_of = vec![NONE; n];
    let mut clusters = 0;
    let mut open = Vec::new();
    // In a dense problem, variables that share a pattern are almost always connected.
    if problem.dense.is_some() && problem.groups.is_empty() {
        let mut numbers = [NONE; 1 << MOST_PARENTS];
        for (cluster, &pattern) in cluster_of.iter_mut().zip(&patterns).filter(|(_, p)| **p != 0) {
            let number = &mut numbers[pattern as usize];
            if *number == NONE {
                *number = clusters;
                clusters += 1;
            }
            *cluster = *number;
        }
        return (cluster_of, clusters as usize);
    }
    for start in 0..n {
        if patterns[start] == 0 || cluster_of[start] != NONE {
            continue;
        }
        open.push(start);
        cluster_of[start] = clusters;
        while let Some(at) = open.pop() {
            let mut join = |other: usize| {
                if patterns[other] == patterns[start] && cluster_of[other] == NONE {
                    cluster_of[other] = clusters;
                    open.push(other);
                }
            };
            problem.rows.of(at).iter().for_each(|&(other, _)| join(other as usize));
            for &counter in problem.counters_of.of(at) {
                let members = &problem.counters[counter as usize].members;
                members.iter().for_each(|&other| join(other as usize));
            }
            if at >= problem.singles {
                let group = problem.groups.partition_point(|group| group.end <= at);
                problem.groups[group].clone().for_each(join);
            }
        }
        clusters += 1;
    }
    (cluster_of, clusters as usize)
}

/// The problem of which clusters to turn, from the state of `search`.
fn reduce(search: &Search<'_>, cluster_of: &[u32], clusters: usize) -> Problem {
    let problem = search.problem();
    let (sign, delta) = (search.signs(), search.deltas());
    let mut linear = vec![0.0; clusters];
    let mut pairs = vec![0.0; clusters * clusters];
    for (at, &cluster) in cluster_of.iter().enumerate().filter(|(_, cluster)| **cluster != NONE) {
        let cluster = cluster as usize;
        linear[cluster] += delta[at];
        let line = &mut pairs[cluster * clusters..(cluster + 1) * clusters];
        for &(other, value) in problem.rows.of(at) {
            let to = cluster_of[other as usize];
            if to != NONE {
                line[to as usize] += value * sign[at] * sign[other as usize];
            }
        }
    }
    let mut sums = vec![(0.0, 0.0); clusters];
    for counter in &problem.counters {
        let mut touched = Vec::new();
        for &at in &counter.members {
            let cluster = cluster_of[at as usize];
            if cluster != NONE {
                let (sum, size): &mut (f64, f64) = &mut sums[cluster as usize];
                if *size == 0.0 {
                    touched.push(cluster as usize);
                }
                *sum += sign[at as usize];
                *size += 1.0;
            }
        }
        for &c in &touched {
            for &d in &touched {
                // The diagonal has each pair twice, as the rows above provide it.
                let own = if c == d { sums[c].1 } else { 0.0 };
                pairs[c * clusters + d] += counter.cost * (sums[c].0 * sums[d].0 - own);
            }
        }
        touched.iter().for_each(|&cluster| sums[cluster] = (0.0, 0.0));
    }
    for (cluster, linear) in linear.iter_mut().enumerate() {
        let own = &mut pairs[cluster * clusters + cluster];
        *linear += *own / 2.0;
        *own = 0.0;
    }
    Problem::from_table(search.energy(), linear, pairs)
}
