//! Enumerates the legal states of each bag.
//!
//! States are enumerated one variable at a time, with the separator to the parent first, so that
//! they come out sorted by it. Every hard factor, every implied bound on counters and every
//! separator of a child filters as soon as its variables are present. A pass from the root then
//! drops states that no state of the parent supports. After it, each state is part of a legal state
//! of the whole model.

use std::collections::{HashMap, HashSet};

use super::eliminate::{EliminationForest, table};
use super::variables::{FactorKind, VariableNetwork};

/// The states of a bag, with one row of values per state.
#[derive(Debug, Default)]
pub(super) struct BagStates {
    /// The variables, those of the separator first.
    pub(super) variables: Vec<u32>,
    /// How many of them are also in the parent.
    pub(super) shared: usize,
    pub(super) values: Vec<u16>,
    pub(super) count: usize,
}

impl BagStates {
    pub(super) fn row(&self, state: usize) -> &[u16] {
        let width = self.variables.len();
        &self.values[state * width..(state + 1) * width]
    }

    /// The positions of some variables in the rows, or `None` when one is missing.
    pub(super) fn columns(&self, variables: &[u32]) -> Option<Vec<usize>> {
        let place = |v: &u32| self.variables.iter().position(|own| own == v);
        variables.iter().map(place).collect()
    }
}

/// Numbers the distinct rows of some columns from 0, in order of first appearance.
pub(super) enum Codes {
    /// Mixed radix, looked up in a table. `u32::MAX` means absent.
    Dense { radix: Vec<u32>, number: Vec<u32> },
    /// Looked up by value.
    Sparse(HashMap<Vec<u16>, u32>),
}

impl Codes {
    const DENSE: f64 = 67_108_864.0;

    pub(super) fn new(domains: &[u16], rows: usize) -> Codes {
        let size: f64 = domains.iter().map(|&d| f64::from(d)).product();
        if size > Codes::DENSE.min(64.0 * rows as f64 + 4096.0) {
            return Codes::Sparse(HashMap::new());
        }
        let mut radix = vec![1u32; domains.len()];
        for at in (1..domains.len()).rev() {
            radix[at - 1] = radix[at] * u32::from(domains[at]);
        }
        Codes::Dense { radix, number: vec![u32::MAX; size as usize] }
    }

    fn code(radix: &[u32], values: impl Iterator<Item = u16>) -> usize {
        radix.iter().zip(values).map(|(&r, v)| r * u32::from(v)).sum::<u32>() as usize
    }

    pub(super) fn get(&self, values: impl Iterator<Item = u16>) -> Option<u32> {
        match self {
            Codes::Dense { radix, number } => {
                Some(number[Codes::code(radix, values)]).filter(|&at| at != u32::MAX)
            }
            Codes::Sparse(map) => map.get(&values.collect::<Vec<u16>>()).copied(),
        }
    }

    /// Stores a row under this number, unless it already has one.
    pub(super) fn insert(&mut self, values: impl Iterator<Item = u16>, next: u32) -> bool {
        match self {
            Codes::Dense { radix, number } => {
                let slot = &mut number[Codes::code(radix, values)];
                let new = *slot == u32::MAX;
                if new {
                    *slot = next;
                }
                new
            }
            Codes::Sparse(map) => {
                let values: Vec<u16> = values.collect();
                let new = !map.contains_key(&values);
                if new {
                    map.insert(values, next);
                }
                new
            }
        }
    }
}

/// A filter of states, applied once its columns are present.
enum Filter<'a> {
    Factor(&'a super::variables::Factor, Vec<usize>),
    /// `0 ≤ later − earlier ≤ most`.
    Between {
        earlier: usize,
        later: usize,
        most: u16,
    },
    /// At most one of these columns is on.
    AtMostOne(Vec<usize>),
    Child(&'a Codes, Vec<usize>),
}

impl Filter<'_> {
    fn columns(&self) -> Vec<usize> {
        match self {
            Filter::Factor(_, columns) | Filter::AtMostOne(columns) | Filter::Child(_, columns) => {
                columns.clone()
            }
            Filter::Between { earlier, later, .. } => vec![*earlier, *later],
        }
    }

    fn last(&self) -> usize {
        self.columns().into_iter().max().unwrap_or(0)
    }

    fn passes(&self, row: &[u16]) -> bool {
        match self {
            Filter::Factor(factor, columns) => factor.cost(|at| row[columns[at]]) < f64::INFINITY,
            Filter::Between { earlier, later, most } => {
                row[*earlier] <= row[*later] && row[*later] - row[*earlier] <= *most
            }
            Filter::AtMostOne(columns) => columns.iter().map(|&c| row[c]).sum::<u16>() <= 1,
            Filter::Child(codes, columns) => codes.get(columns.iter().map(|&c| row[c])).is_some(),
        }
    }
}

/// The positions of the hard factors and the counters of a network.
pub(super) struct HardFactors<'a> {
    network: &'a VariableNetwork,
    /// For each variable, the hard factors in whose scope it is first.
    hard: Vec<Vec<u32>>,
    /// For each variable, its `(chain, position)` as a counter. A first member counts itself.
    counters: Vec<Vec<(u32, u16)>>,
    /// For each variable, its `(chain, position)` as a member.
    members: Vec<Vec<(u32, u16)>>,
}

impl<'a> HardFactors<'a> {
    pub(super) fn new(network: &'a VariableNetwork) -> HardFactors<'a> {
        let n = network.domains.len();
        let mut rules = HardFactors {
            network,
            hard: vec![Vec::new(); n],
            counters: vec![Vec::new(); n],
            members: vec![Vec::new(); n],
        };
        for (at, factor) in network.factors.iter().enumerate() {
            if factor.is_hard() {
                rules.hard[factor.scope[0] as usize].push(at as u32);
            }
        }
        for (chain, steps) in network.chains.iter().enumerate() {
            let chain = chain as u32;
            for (at, &(before, member, after)) in steps.steps.iter().enumerate() {
                if at == 0 {
                    rules.counters[before as usize].push((chain, 1));
                }
                let place = at as u16 + 2;
                rules.members[member as usize].push((chain, place));
                if let Some(after) = after {
                    rules.counters[after as usize].push((chain, place));
                }
            }
        }
        rules
    }

    fn filters(&self, variables: &[u32]) -> Vec<Filter<'a>> {
        let place = |v: &u32| variables.iter().position(|own| own == v);
        let mut filters = Vec::new();
        for &v in variables {
            for &factor in &self.hard[v as usize] {
                let factor = &self.network.factors[factor as usize];
                let here: Option<Vec<usize>> = factor.scope.iter().map(place).collect();
                if let Some(columns) = here {
                    if matches!(factor.kind, FactorKind::Sum | FactorKind::One) {
                        let mut terms = columns.clone();
                        terms.sort_unstable();
                        if factor.kind == FactorKind::Sum {
                            terms.retain(|&c| c != columns[columns.len() - 1]);
                        }
                        for end in 2..terms.len() {
                            filters.push(Filter::AtMostOne(terms[..end].to_vec()));
                        }
                    }
                    filters.push(Filter::Factor(factor, columns));
                }
            }
        }
        for (earlier, &a) in variables.iter().enumerate() {
            for &(chain, place) in &self.counters[a as usize] {
                for (later, &b) in variables.iter().enumerate() {
                    let in_chain = |list: &[(u32, u16)]| {
                        list.iter().find(|entry| entry.0 == chain).map(|entry| entry.1)
                    };
                    if let Some(end) = in_chain(&self.counters[b as usize])
                        && end > place
                    {
                        filters.push(Filter::Between { earlier, later, most: end - place });
                    }
                    // A member that has been counted is at most the count, and so are the others
                    // together with it.
                    if let Some(at) = in_chain(&self.members[b as usize])
                        && at <= place
                    {
                        let most = place - 1;
                        filters.push(Filter::Between { earlier: later, later: earlier, most });
                    }
                }
            }
        }
        filters
    }
}

/// How much the enumeration may keep.
pub(super) struct Limit {
    /// The number of states in all bags.
    pub(super) states: usize,
    /// The number of values held at a time.
    pub(super) values: usize,
}

/// The legal states of every bag, or `None` when there are more than the limit allows.
pub(super) fn enumerate(
    network: &VariableNetwork,
    forest: &EliminationForest,
    limit: &Limit,
) -> Option<Vec<BagStates>> {
    let rules = HardFactors::new(network);
    let order = forest.order();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); forest.bags.len()];
    let mut all: Vec<BagStates> = forest.bags.iter().map(|_| BagStates::default()).collect();
    let mut messages: Vec<Option<(Vec<u32>, Codes)>> = forest.bags.iter().map(|_| None).collect();
    let (mut total, mut held) = (0usize, 0usize);
    for &b in &order {
        let b = b as usize;
        let parent = forest.parent[b].map(|p| p as usize);
        let in_parent = |v: &u32| parent.is_some_and(|p| forest.bags[p].contains(v));
        let bag = &forest.bags[b];
        let mut variables: Vec<u32> = bag.iter().copied().filter(in_parent).collect();
        let shared = variables.len();
        variables.extend(bag.iter().copied().filter(|v| !in_parent(v)));
        let mut filters = rules.filters(&variables);
        for &c in &children[b] {
            if let Some((separator, codes)) = &messages[c as usize] {
                let column = |v: &u32| variables.iter().position(|own| own == v);
                if let Some(columns) = separator.iter().map(column).collect() {
                    filters.push(Filter::Child(codes, columns));
                }
            }
        }
        let room = Limit { states: limit.states - total, values: limit.values.checked_sub(held)? };
        let values = extend(&variables, &network.domains, filters, &room)?;
        let count = values.len() / variables.len().max(1);
        total += count;
        held += values.len();
        if total > limit.states || held > limit.values {
            return None;
        }
        let states = BagStates { variables, shared, values, count };
        if let Some(p) = parent {
            let separator = states.variables[..shared].to_vec();
            let (codes, entries) = project(&states, &separator, &network.domains);
            // A separator that takes all values filters nothing.
            let full = table(&separator, &network.domains);
            messages[b] = ((entries as f64) < full).then_some((separator, codes));
            children[p].push(b as u32);
        }
        // The separators of the children are no longer needed.
        children[b].iter().for_each(|&c| messages[c as usize] = None);
        all[b] = states;
    }
    for &b in order.iter().rev() {
        if let Some(p) = forest.parent[b as usize] {
            let separator = all[b as usize].variables[..all[b as usize].shared].to_vec();
            let (codes, _) = project(&all[p as usize], &separator, &network.domains);
            keep_supported(&mut all[b as usize], &codes);
        }
    }
    Some(all)
}

/// The distinct rows of some variables, and how many there are.
fn project(states: &BagStates, variables: &[u32], domains: &[u16]) -> (Codes, u32) {
    let columns = states.columns(variables).unwrap_or_default();
    let sizes: Vec<u16> = variables.iter().map(|&v| domains[v as usize]).collect();
    let mut codes = Codes::new(&sizes, states.count);
    let mut next = 0;
    for state in 0..states.count {
        let row = states.row(state);
        if codes.insert(columns.iter().map(|&c| row[c]), next) {
            next += 1;
        }
    }
    (codes, next)
}

fn keep_supported(states: &mut BagStates, codes: &Codes) {
    let width = states.variables.len();
    let mut kept = 0;
    for state in 0..states.count {
        let at = state * width;
        if codes.get(states.values[at..at + states.shared].iter().copied()).is_some() {
            states.values.copy_within(at..at + width, kept * width);
            kept += 1;
        }
    }
    states.values.truncate(kept * width);
    states.values.shrink_to_fit();
    states.count = kept;
}

/// All rows of values that pass the filters, in lexicographic order.
fn extend(
    variables: &[u32],
    domains: &[u16],
    filters: Vec<Filter<'_>>,
    limit: &Limit,
) -> Option<Vec<u16>> {
    // Variables without a filter take all their values. If that is too many, the bag is refused at
    // once.
    let mut free = vec![true; variables.len()];
    filters.iter().for_each(|filter| filter.columns().into_iter().for_each(|c| free[c] = false));
    let free = variables.iter().zip(&free).filter(|(_, free)| **free);
    if free.map(|(&v, _)| f64::from(domains[v as usize])).product::<f64>() > limit.states as f64 {
        return None;
    }
    let mut at_column: Vec<Vec<Filter<'_>>> = variables.iter().map(|_| Vec::new()).collect();
    let mut seen = HashSet::new();
    for filter in filters {
        if let Filter::Between { earlier, later, most } = filter
            && !seen.insert((earlier, later, most))
        {
            continue;
        }
        at_column[filter.last()].push(filter);
    }
    let mut rows: Vec<u16> = Vec::new();
    let mut count = 1;
    for (width, (&v, filters)) in variables.iter().zip(&at_column).enumerate() {
        let mut next: Vec<u16> = Vec::with_capacity(rows.len() * 2 + 2);
        for state in 0..count {
            for value in 0..domains[v as usize] {
                let start = next.len();
                next.extend_from_slice(&rows[state * width..(state + 1) * width]);
                next.push(value);
                if !filters.iter().all(|filter| filter.passes(&next[start..])) {
                    next.truncate(start);
                }
            }
            if next.len() > limit.values {
                return None;
            }
        }
        count = next.len() / (width + 1);
        rows = next;
        // Filters only drop rows. A wider layer may have fewer rows, but rarely by a factor of ten.
        if count / 16 > limit.states {
            return None;
        }
    }
    Some(rows)
}
