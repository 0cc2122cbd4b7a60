//! Enumerates the legal states of each bag.
//!
//! States are enumerated one variable at a time, with the separator to the parent first, so that
//! they come out sorted by it. Every hard factor, every implied bound on counters and every
//! separator of a child filters as soon as its variables are present. A pass from the root then
//! drops states that no state of the parent supports. After it, each state is part of a legal state
//! of the whole model.
//!
//! Counters and sums leave a range of values, which is computed; the other filters test each value
//! in it, a step per column. The states, the layers that they grow
//! from and the separators never need more memory than [`Limit`] allows.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::eliminate::{EliminationForest, table};
use super::variables::{FactorKind, VariableNetwork};
use super::work::{Halt, Work};

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
    Dense { radix: Vec<u64>, number: Vec<u32> },
    /// Mixed radix, looked up by value.
    Coded { radix: Vec<u64>, number: HashMap<u64, u32> },
    /// Rows of so many values that no radix fits, looked up by value.
    Sparse(HashMap<Vec<u16>, u32>),
}

impl Codes {
    const DENSE: f64 = 67_108_864.0;

    pub(super) fn new(domains: &[u16], rows: usize) -> Codes {
        let size: f64 = domains.iter().map(|&d| f64::from(d)).product();
        if size > 1e19 {
            return Codes::Sparse(HashMap::new());
        }
        let mut radix = vec![1u64; domains.len()];
        for at in (1..domains.len()).rev() {
            radix[at - 1] = radix[at] * u64::from(domains[at]);
        }
        if size > Codes::DENSE.min(16.0 * rows as f64 + 4096.0) {
            return Codes::Coded { radix, number: HashMap::new() };
        }
        Codes::Dense { radix, number: vec![u32::MAX; size as usize] }
    }

    fn code(radix: &[u64], values: impl Iterator<Item = u16>) -> u64 {
        radix.iter().zip(values).map(|(&r, v)| r * u64::from(v)).sum()
    }

    pub(super) fn get(&self, values: impl Iterator<Item = u16>) -> Option<u32> {
        match self {
            Codes::Dense { radix, number } => {
                Some(number[Codes::code(radix, values) as usize]).filter(|&at| at != u32::MAX)
            }
            Codes::Coded { radix, number } => number.get(&Codes::code(radix, values)).copied(),
            Codes::Sparse(map) => map.get(&values.collect::<Vec<u16>>()).copied(),
        }
    }

    /// Stores a row under this number, unless it already has one.
    pub(super) fn insert(&mut self, values: impl Iterator<Item = u16>, next: u32) -> bool {
        match self {
            Codes::Dense { radix, number } => {
                let slot = &mut number[Codes::code(radix, values) as usize];
                let new = *slot == u32::MAX;
                if new {
                    *slot = next;
                }
                new
            }
            Codes::Coded { radix, number } => {
                let known = number.len();
                number.entry(Codes::code(radix, values)).or_insert(next);
                number.len() > known
            }
            Codes::Sparse(map) => {
                let known = map.len();
                map.entry(values.collect()).or_insert(next);
                map.len() > known
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Codes::Dense { number, .. } => 4 * number.len(),
            Codes::Coded { number, .. } => 20 * number.capacity(),
            Codes::Sparse(map) => 100 * map.capacity(),
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
    /// At most one of the first so many of these ascending columns is on.
    AtMostOne(Rc<[usize]>, usize),
    Child(&'a Codes, Vec<usize>),
}

impl Filter<'_> {
    /// Removes the columns of the filter from those that are free. The columns of `AtMostOne` also
    /// belong to a factor.
    fn bind(&self, free: &mut [bool]) {
        match self {
            Filter::Factor(_, columns) | Filter::Child(_, columns) => {
                columns.iter().for_each(|&c| free[c] = false);
            }
            Filter::Between { earlier, later, .. } => {
                (free[*earlier], free[*later]) = (false, false);
            }
            Filter::AtMostOne(..) => {}
        }
    }

    fn last(&self) -> usize {
        match self {
            Filter::Factor(_, columns) | Filter::Child(_, columns) => {
                columns.iter().copied().max().unwrap_or(0)
            }
            Filter::Between { earlier, later, .. } => *earlier.max(later),
            Filter::AtMostOne(terms, end) => terms[end - 1],
        }
    }

    /// The number of steps that it takes.
    fn steps(&self) -> usize {
        match self {
            Filter::Factor(_, columns) | Filter::Child(_, columns) => 2 + columns.len(),
            Filter::Between { .. } => 2,
            Filter::AtMostOne(_, end) => *end,
        }
    }

    fn passes(&self, row: &[u16]) -> bool {
        match self {
            Filter::Factor(factor, columns) => factor.cost(|at| row[columns[at]]) < f64::INFINITY,
            Filter::Between { earlier, later, most } => {
                row[*earlier] <= row[*later] && row[*later] - row[*earlier] <= *most
            }
            Filter::AtMostOne(terms, end) => {
                terms[..*end].iter().map(|&c| row[c]).sum::<u16>() <= 1
            }
            Filter::Child(codes, columns) => codes.get(columns.iter().map(|&c| row[c])).is_some(),
        }
    }
}

/// What the columns before it say about the values of the last column.
enum Range {
    /// At least this column, and at most so much more.
    From(usize, u16),
    /// At most this column, and at least so much less.
    UpTo(usize, u16),
    /// The sum of these columns.
    Sum(Vec<usize>),
    /// What is left of a column after others.
    Rest(usize, Vec<usize>),
    /// What is left of one after these columns.
    RestOfOne(Rc<[usize]>, usize),
}

impl Range {
    /// The range that a filter sets for the last of its columns, or the filter itself.
    fn of(filter: Filter<'_>) -> Result<Range, Filter<'_>> {
        let last = filter.last();
        match filter {
            Filter::Between { earlier, later, most } if later == last => {
                Ok(Range::From(earlier, most))
            }
            Filter::Between { later, most, .. } => Ok(Range::UpTo(later, most)),
            Filter::AtMostOne(terms, end) => Ok(Range::RestOfOne(terms, end - 1)),
            Filter::Factor(factor, columns)
                if matches!(factor.kind, FactorKind::Step | FactorKind::Sum) =>
            {
                let (terms, out) = (&columns[..columns.len() - 1], columns[columns.len() - 1]);
                let others = terms.iter().copied().filter(|&c| c != last).collect();
                Ok(if out == last { Range::Sum(others) } else { Range::Rest(out, others) })
            }
            other => Err(other),
        }
    }

    /// Narrows the values that are possible.
    fn narrow(&self, row: &[u16], [least, most]: &mut [i32; 2]) {
        let value = |&column: &usize| i32::from(row[column]);
        let (low, high) = match self {
            Range::From(other, span) => (value(other), value(other) + i32::from(*span)),
            Range::UpTo(other, span) => (value(other) - i32::from(*span), value(other)),
            Range::Sum(terms) => {
                let sum = terms.iter().map(value).sum();
                (sum, sum)
            }
            Range::Rest(out, others) => {
                let rest = value(out) - others.iter().map(value).sum::<i32>();
                (rest, rest)
            }
            Range::RestOfOne(terms, end) => (0, 1 - terms[..*end].iter().map(value).sum::<i32>()),
        };
        (*least, *most) = ((*least).max(low), (*most).min(high));
    }

    /// The number of steps that it takes.
    fn steps(&self) -> usize {
        match self {
            Range::From(..) | Range::UpTo(..) => 1,
            Range::Sum(terms) | Range::Rest(_, terms) => 1 + terms.len(),
            Range::RestOfOne(_, end) => 1 + end,
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
    /// The column of each variable of the current bag, and `u32::MAX` for the others.
    column: Vec<u32>,
}

impl<'a> HardFactors<'a> {
    pub(super) fn new(network: &'a VariableNetwork) -> HardFactors<'a> {
        let n = network.domains.len();
        let mut rules = HardFactors {
            network,
            hard: vec![Vec::new(); n],
            counters: vec![Vec::new(); n],
            members: vec![Vec::new(); n],
            column: vec![u32::MAX; n],
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

    fn filters(&mut self, variables: &[u32], work: &mut Work) -> Result<Vec<Filter<'a>>, Halt> {
        variables.iter().zip(0u32..).for_each(|(&v, at)| self.column[v as usize] = at);
        let place = |&v: &u32| match self.column[v as usize] {
            u32::MAX => None,
            column => Some(column as usize),
        };
        let mut filters = Vec::new();
        for &v in variables {
            work.spend(4 * self.hard[v as usize].len())?;
            for &factor in &self.hard[v as usize] {
                let factor = &self.network.factors[factor as usize];
                let here: Option<Vec<usize>> = factor.scope.iter().map(place).collect();
                if let Some(columns) = here {
                    work.spend(8 * columns.len())?;
                    if matches!(factor.kind, FactorKind::Sum | FactorKind::One) {
                        let mut terms = columns.clone();
                        terms.sort_unstable();
                        if factor.kind == FactorKind::Sum {
                            terms.retain(|&c| c != columns[columns.len() - 1]);
                        }
                        let terms: Rc<[usize]> = terms.into();
                        let ends = 2..terms.len();
                        filters.extend(ends.map(|end| Filter::AtMostOne(Rc::clone(&terms), end)));
                    }
                    filters.push(Filter::Factor(factor, columns));
                }
            }
        }
        variables.iter().for_each(|&v| self.column[v as usize] = u32::MAX);
        for (earlier, &a) in variables.iter().enumerate() {
            for &(chain, place) in &self.counters[a as usize] {
                work.spend(2 * variables.len())?;
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
        Ok(filters)
    }
}

/// How much the enumeration may keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// The number of states in all bags.
    pub(super) states: usize,
    /// Bytes held at a time.
    pub(super) bytes: usize,
}

/// The bytes of values.
fn bytes(values: &Vec<u16>) -> usize {
    size_of::<u16>() * values.capacity()
}

/// The bytes of the states of all bags.
pub(super) fn bytes_of(states: &[BagStates]) -> usize {
    states.iter().map(|states| bytes(&states.values)).sum()
}

/// The legal states of every bag, unless there are more than the limit allows.
pub(super) fn enumerate(
    network: &VariableNetwork,
    forest: &EliminationForest,
    limit: &Limit,
    work: &mut Work,
) -> Result<Vec<BagStates>, Halt> {
    let mut rules = HardFactors::new(network);
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
        let mut filters = rules.filters(&variables, work)?;
        for &c in &children[b] {
            work.spend(variables.len())?;
            if let Some((separator, codes)) = &messages[c as usize] {
                let column = |v: &u32| variables.iter().position(|own| own == v);
                if let Some(columns) = separator.iter().map(column).collect() {
                    filters.push(Filter::Child(codes, columns));
                }
            }
        }
        let bytes_left = limit.bytes.checked_sub(held).ok_or(Halt::Size)?;
        let room = Limit { states: limit.states - total, bytes: bytes_left };
        let values = extend(&variables, &network.domains, filters, &room, work)?;
        let count = values.len() / variables.len().max(1);
        total += count;
        held += bytes(&values);
        if total > limit.states {
            return Err(Halt::Size);
        }
        let states = BagStates { variables, shared, values, count };
        if let Some(p) = parent {
            let separator = states.variables[..shared].to_vec();
            let (codes, entries) = project(&states, &separator, &network.domains, work)?;
            // A separator that takes all values filters nothing.
            let full = table(&separator, &network.domains);
            messages[b] = ((entries as f64) < full).then_some((separator, codes));
            held += messages[b].as_ref().map_or(0, |(_, codes)| codes.bytes());
            children[p].push(b as u32);
        }
        // The separators of the children are no longer needed.
        for &c in &children[b] {
            held -= messages[c as usize].take().map_or(0, |(_, codes)| codes.bytes());
        }
        all[b] = states;
    }
    for &b in order.iter().rev() {
        if let Some(p) = forest.parent[b as usize] {
            let separator = all[b as usize].variables[..all[b as usize].shared].to_vec();
            let (codes, _) = project(&all[p as usize], &separator, &network.domains, work)?;
            work.spend(2 * all[b as usize].count)?;
            keep_supported(&mut all[b as usize], &codes);
        }
    }
    Ok(all)
}

/// The distinct rows of some variables, and how many there are.
fn project(
    states: &BagStates,
    variables: &[u32],
    domains: &[u16],
    work: &mut Work,
) -> Result<(Codes, u32), Halt> {
    work.spend((2 + variables.len()) * states.count)?;
    let columns = states.columns(variables).unwrap_or_default();
    let sizes: Vec<u16> = variables.iter().map(|&v| domains[v as usize]).collect();
    let mut codes = Codes::new(&sizes, states.count);
    let (mut next, mut last) = (0, None);
    for state in 0..states.count {
        let row = states.row(state);
        // Many neighbouring states agree on these columns.
        if last.is_some_and(|last: &[u16]| columns.iter().all(|&c| row[c] == last[c])) {
            continue;
        }
        last = Some(row);
        if codes.insert(columns.iter().map(|&c| row[c]), next) {
            next += 1;
        }
    }
    Ok((codes, next))
}

fn keep_supported(states: &mut BagStates, codes: &Codes) {
    let (width, shared) = (states.variables.len(), states.shared);
    let mut kept = 0;
    // The states are sorted by their separator.
    let (mut last, mut is_kept): (Vec<u16>, Option<bool>) = (Vec::new(), None);
    for state in 0..states.count {
        let at = state * width;
        let separator = &states.values[at..at + shared];
        if is_kept.is_none() || last != separator {
            last.clear();
            last.extend_from_slice(separator);
            is_kept = Some(codes.get(separator.iter().copied()).is_some());
        }
        if is_kept == Some(true) {
            states.values.copy_within(at..at + width, kept * width);
            kept += 1;
        }
    }
    states.values.truncate(kept * width);
    states.values.shrink_to_fit();
    states.count = kept;
}

/// Makes room for one more row, within so many bytes.
fn reserve(rows: &mut Vec<u16>, width: usize, bytes: usize) -> Result<(), Halt> {
    if rows.capacity() - rows.len() < width {
        let most = bytes / size_of::<u16>();
        let wanted = (2 * rows.capacity()).max(rows.len() + width).max(64).min(most);
        if wanted < rows.len() + width {
            return Err(Halt::Size);
        }
        rows.reserve_exact(wanted - rows.len());
    }
    Ok(())
}

/// All rows of values that pass the filters, in lexicographic order.
fn extend(
    variables: &[u32],
    domains: &[u16],
    filters: Vec<Filter<'_>>,
    limit: &Limit,
    work: &mut Work,
) -> Result<Vec<u16>, Halt> {
    // Variables without a filter take all their values. If that is too many, the bag is refused at
    // once.
    let mut free = vec![true; variables.len()];
    filters.iter().for_each(|filter| filter.bind(&mut free));
    let free = variables.iter().zip(&free).filter(|(_, free)| **free);
    if free.map(|(&v, _)| f64::from(domains[v as usize])).product::<f64>() > limit.states as f64 {
        return Err(Halt::Size);
    }
    let mut ranges: Vec<Vec<Range>> = variables.iter().map(|_| Vec::new()).collect();
    let mut tests: Vec<Vec<Filter<'_>>> = variables.iter().map(|_| Vec::new()).collect();
    let mut seen = HashSet::new();
    for filter in filters {
        if let Filter::Between { earlier, later, most } = filter
            && !seen.insert((earlier, later, most))
        {
            continue;
        }
        let last = filter.last();
        match Range::of(filter) {
            Ok(range) => ranges[last].push(range),
            Err(test) => tests[last].push(test),
        }
    }
    let mut rows: Vec<u16> = Vec::new();
    let mut count = 1;
    for (width, (&v, (ranges, tests))) in
        variables.iter().zip(ranges.iter().zip(&tests)).enumerate()
    {
        let most = i32::from(domains[v as usize]) - 1;
        let each: usize = 2 + tests.iter().map(Filter::steps).sum::<usize>();
        let once = 4 + width / 8 + ranges.iter().map(Range::steps).sum::<usize>();
        let room = limit.bytes.saturating_sub(bytes(&rows));
        let mut next: Vec<u16> = Vec::new();
        for state in 0..count {
            let row = &rows[state * width..(state + 1) * width];
            let mut values = [0, most];
            ranges.iter().for_each(|range| range.narrow(row, &mut values));
            let [first, last] = values;
            work.spend(once + each * (last + 1 - first).max(0) as usize)?;
            let mut start = next.len();
            for value in first..=last {
                // It is within the domain.
                let value = value as u16;
                if next.len() == start {
                    reserve(&mut next, width + 1, room)?;
                    next.extend_from_slice(row);
                    next.push(value);
                } else {
                    next[start + width] = value;
                }
                if tests.iter().all(|test| test.passes(&next[start..])) {
                    start = next.len();
                }
            }
            next.truncate(start);
        }
        count = next.len() / (width + 1);
        rows = next;
        // Filters only drop rows. A wider layer may have fewer rows, but rarely by a factor of ten.
        if count / 16 > limit.states {
            return Err(Halt::Size);
        }
    }
    rows.shrink_to_fit();
    Ok(rows)
}
