//! The compiled tree as flat arrays.
//!
//! All messages are in one table: two entries for each label variable (its weights off and on),
//! then the separators of the bags, children before parents. The weight of a state is its fixed
//! weight times one table entry per *input*. Inputs are the label variables that live in the bag,
//! and the children. States are sorted by their separator entry, so an upward message is a sequence
//! of sums over contiguous states.

use std::collections::HashMap;

use super::bags::{BagStates, Codes};
use super::eliminate::EliminationForest;
use super::number::Wide;
use super::variables::{Query, VariableNetwork};
use super::work::Halt;

/// The distinct fixed weights.
#[derive(Debug, Default)]
pub(super) struct FixedWeights {
    pub(super) logarithm: Vec<f64>,
    pub(super) double: Vec<f64>,
    pub(super) single: Vec<f32>,
    pub(super) wide: Vec<Wide>,
}

/// Which sums of beliefs of a bag are needed: `cells[state range]` of `(cell, times)`.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) start: Vec<u32>,
    pub(super) items: Vec<(u32, f32)>,
    /// The cells that occur.
    pub(super) cells: Vec<u32>,
}

/// One bag.
#[derive(Debug, Default)]
pub(super) struct Bag {
    pub(super) states: usize,
    /// How many inputs each state has.
    pub(super) inputs: usize,
    /// States × inputs, as indices into the table.
    pub(super) index: Vec<u32>,
    /// The fixed weight of each state. Empty when all are one.
    pub(super) weight: Vec<u32>,
    /// The first state of each separator entry; the next entry ends it.
    pub(super) segments: Vec<u32>,
    /// The first table entry of the separator.
    pub(super) out: usize,
    pub(super) parent: Option<u32>,
    /// The children, each with its input number.
    pub(super) children: Vec<(u32, usize)>,
    /// The label variables that live here, each with its input number.
    pub(super) labels: Vec<(u32, usize)>,
    pub(super) sums: Sums,
}

impl Bag {
    pub(super) fn separator(&self) -> std::ops::Range<usize> {
        self.out..self.out + self.segments.len() - 1
    }
}

/// A pair of variables that share no bag. The quantity is the probability that both are on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Distant {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) cell: u32,
}

/// All bags, children before parents.
#[derive(Debug, Default)]
pub(super) struct BagTables {
    pub(super) bags: Vec<Bag>,
    pub(super) entries: usize,
    pub(super) weights: FixedWeights,
    /// The bag in which each label variable lives.
    pub(super) home: Vec<u32>,
    /// The logarithm of what was divided out of the fixed weights.
    pub(super) constant: f64,
    pub(super) cells: usize,
    pub(super) distant: Vec<Distant>,
    /// The cell of each query: `(a, b, value of b)`.
    pub(super) cell_of: HashMap<(u32, u32, bool), u32>,
    /// The number of variables of the largest bag, and of its states.
    pub(super) width: usize,
    pub(super) largest: usize,
}

impl BagTables {
    /// Writes the tables, unless they need more than `room` bytes.
    pub(super) fn new(
        network: &VariableNetwork,
        forest: &EliminationForest,
        states: &[BagStates],
        room: f64,
    ) -> Result<BagTables, Halt> {
        let order = forest.order();
        let mut number = vec![0u32; order.len()];
        order.iter().enumerate().for_each(|(at, &b)| number[b as usize] = at as u32);
        let mut tables = BagTables { entries: 2 * network.classes.len(), ..BagTables::default() };
        tables.width = forest.bags.iter().map(Vec::len).max().unwrap_or(0);
        tables.largest = states.iter().map(|s| s.count).max().unwrap_or(0);
        let places = VariableBags::new(network, states);
        let mut labels: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        for v in 0..network.classes.len() as u32 {
            let b = places.smallest(&[v]).unwrap_or(0);
            labels[b as usize].push(v);
            tables.home.push(number[b as usize]);
        }
        let mut factors: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        for (at, factor) in network.factors.iter().enumerate() {
            if let Some(b) = places.smallest(&factor.scope) {
                factors[b as usize].push(at as u32);
            }
        }
        let mut interned: HashMap<u64, u32> = HashMap::new();
        let mut codes: Vec<Option<Codes>> = states.iter().map(|_| None).collect();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        let mut bytes = 0.0;
        for &b in &order {
            let own = &states[b as usize];
            let parent = forest.parent[b as usize];
            let mut bag = Bag {
                states: own.count,
                out: tables.entries,
                parent: parent.map(|p| number[p as usize]),
                inputs: labels[b as usize].len() + children[b as usize].len(),
                ..Bag::default()
            };
            bytes += 4.0 * (own.count * (bag.inputs + 1)) as f64;
            if bytes > room {
                return Err(Halt::Size);
            }
            let own_codes = segments(own, &network.domains, &mut bag);
            tables.entries += bag.segments.len() - 1;
            let factors = factors[b as usize].iter().map(|&f| &network.factors[f as usize]);
            let factors: Vec<_> = factors.collect();
            tables.constant += weigh(own, &factors, &mut bag, &mut interned);
            let mut inputs: Vec<(Vec<usize>, Option<&Codes>, usize)> = Vec::new();
            for &v in &labels[b as usize] {
                bag.labels.push((v, inputs.len()));
                inputs.push((own.columns(&[v]).unwrap_or_default(), None, 2 * v as usize));
            }
            for &c in &children[b as usize] {
                let child = &states[c as usize];
                bag.children.push((number[c as usize], inputs.len()));
                let columns = own.columns(&child.variables[..child.shared]).unwrap_or_default();
                let first = tables.bags[number[c as usize] as usize].out;
                inputs.push((columns, codes[c as usize].as_ref(), first));
            }
            bag.index.reserve_exact(own.count * inputs.len());
            for state in 0..own.count {
                let row = own.row(state);
                for (columns, codes, first) in &inputs {
                    let values = columns.iter().map(|&c| row[c]);
                    let at = match codes {
                        Some(codes) => codes.get(values).unwrap_or(0),
                        None => u32::from(row[columns[0]]),
                    };
                    bag.index.push(*first as u32 + at);
                }
            }
            children[b as usize].iter().for_each(|&c| codes[c as usize] = None);
            if let Some(p) = parent {
                children[p as usize].push(b);
                codes[b as usize] = Some(own_codes);
            }
            tables.bags.push(bag);
        }
        let mut logarithm = vec![0.0; interned.len()];
        interned.iter().for_each(|(&bits, &at)| logarithm[at as usize] = f64::from_bits(bits));
        // Subnormal weights have few digits. They become the smallest normal number, which is
        // noticed where it matters.
        let exact = logarithm.iter().map(|ln: &f64| ln.exp());
        let double: Vec<f64> = exact.map(|weight| weight.max(f64::MIN_POSITIVE)).collect();
        let single = double.iter().map(|&weight| (weight as f32).max(f32::MIN_POSITIVE)).collect();
        let wide = logarithm.iter().map(|&ln| Wide::exp(ln)).collect();
        tables.weights = FixedWeights { logarithm, double, single, wide };
        tables.questions(network, states, &places, &number);
        Ok(tables)
    }

    /// Finds a bag for each query. Queries without one are distant.
    fn questions(
        &mut self,
        network: &VariableNetwork,
        states: &[BagStates],
        places: &VariableBags<'_>,
        number: &[u32],
    ) {
        let mut wanted: Vec<(u32, u32, bool)> = Vec::new();
        let variable = |label: u32| network.variable[label as usize];
        for query in &network.queries {
            match query {
                Query::Never | Query::Marginal(_) => {}
                Query::Pair(a, b, on) => wanted.push(cell(network, *a, *b, *on)),
                Query::Products(steps) => wanted.extend(steps.iter().map(|&(n, y)| (n, y, true))),
                Query::Labels(labels) => {
                    for (at, &a) in labels.iter().enumerate() {
                        let others =
                            labels[at + 1..].iter().filter(|&&b| variable(a) != variable(b));
                        wanted.extend(others.map(|&b| cell(network, a, b, true)));
                    }
                }
            }
        }
        let mut here: Vec<Vec<(u32, u32, bool, u32)>> = vec![Vec::new(); states.len()];
        for (a, b, on) in wanted {
            let next = self.cells as u32;
            if self.cell_of.contains_key(&(a, b, on)) {
                continue;
            }
            match places.smallest(&[a, b]) {
                Some(bag) => here[bag as usize].push((a, b, on, next)),
                None if on => self.distant.push(Distant { a, b, cell: next }),
                // The probability of "on with the other off" is the marginal minus "both on".
                None => continue,
            }
            self.cells += 1;
            self.cell_of.insert((a, b, on), next);
        }
        // For a pair without a common bag, "both on" is computed instead.
        for query in &network.queries {
            if let Query::Pair(a, b, false) = query {
                let (a, b, on) = cell(network, *a, *b, false);
                if !on && !self.cell_of.contains_key(&(a, b, false)) {
                    let key = (a.min(b), a.max(b), true);
                    if !self.cell_of.contains_key(&key) {
                        self.distant.push(Distant { a: key.0, b: key.1, cell: self.cells as u32 });
                        self.cell_of.insert(key, self.cells as u32);
                        self.cells += 1;
                    }
                }
            }
        }
        for (b, cells) in here.iter().enumerate().filter(|(_, cells)| !cells.is_empty()) {
            let own = &states[b];
            let columns: Vec<(usize, usize, bool, u32)> = cells
                .iter()
                .filter_map(|&(a, b, on, cell)| {
                    own.columns(&[a, b]).map(|columns| (columns[0], columns[1], on, cell))
                })
                .collect();
            let sums = &mut self.bags[number[b] as usize].sums;
            sums.cells = columns.iter().map(|column| column.3).collect();
            sums.start.push(0);
            for state in 0..own.count {
                let row = own.row(state);
                for &(a, b, on, cell) in &columns {
                    let second = if on { row[b] } else { 1 - row[b] };
                    let times = f32::from(row[a]) * f32::from(second);
                    if times > 0.0 {
                        sums.items.push((cell, times));
                    }
                }
                sums.start.push(sums.items.len() as u32);
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let bag = |bag: &Bag| {
            let small =
                bag.index.len() + bag.weight.len() + bag.segments.len() + bag.sums.start.len();
            4 * small + 8 * bag.sums.items.len() + size_of::<Bag>()
        };
        self.bags.iter().map(bag).sum::<usize>() as u64 + 36 * self.weights.single.len() as u64
    }
}

/// The cell of two labels. Where the second stands for several labels, "both on" is computed
/// instead.
pub(super) fn cell(network: &VariableNetwork, a: u32, b: u32, on: bool) -> (u32, u32, bool) {
    let (a, b) = (network.variable[a as usize], network.variable[b as usize]);
    if on || network.classes[b as usize].len() > 1 {
        (a.min(b), a.max(b), true)
    } else {
        (a, b, false)
    }
}

/// The bags that contain each variable.
struct VariableBags<'a> {
    bags: Vec<Vec<u32>>,
    states: &'a [BagStates],
}

impl<'a> VariableBags<'a> {
    fn new(network: &VariableNetwork, states: &'a [BagStates]) -> VariableBags<'a> {
        let mut bags = vec![Vec::new(); network.domains.len()];
        for (b, own) in states.iter().enumerate() {
            own.variables.iter().for_each(|&v| bags[v as usize].push(b as u32));
        }
        VariableBags { bags, states }
    }

    /// The smallest bag that contains all these variables.
    fn smallest(&self, variables: &[u32]) -> Option<u32> {
        let rarest = variables.iter().min_by_key(|&&v| self.bags[v as usize].len())?;
        let holds = |b: &u32| {
            let own = &self.states[*b as usize].variables;
            variables.iter().all(|v| own.contains(v))
        };
        let bags = self.bags[*rarest as usize].iter().copied().filter(holds);
        bags.min_by_key(|&b| self.states[b as usize].count)
    }
}

/// Numbers the separator entries of sorted states.
fn segments(own: &BagStates, domains: &[u16], bag: &mut Bag) -> Codes {
    let sizes: Vec<u16> =
        own.variables[..own.shared].iter().map(|&v| domains[v as usize]).collect();
    let mut codes = Codes::new(&sizes, own.count);
    for state in 0..own.count {
        let separator = &own.row(state)[..own.shared];
        if state > 0 && separator == &own.row(state - 1)[..own.shared] {
            continue;
        }
        let entry = bag.segments.len() as u32;
        if codes.insert(separator.iter().copied(), entry) {
            bag.segments.push(state as u32);
        }
    }
    bag.segments.push(own.count as u32);
    codes
}

/// How many logarithms [`weigh`] remembers.
const RECENT: usize = 256;

/// Computes the fixed weights of the states, scaled so that the largest is one. Returns what was
/// divided out.
fn weigh(
    own: &BagStates,
    factors: &[&super::variables::Factor],
    bag: &mut Bag,
    interned: &mut HashMap<u64, u32>,
) -> f64 {
    let columns: Vec<Vec<usize>> =
        factors.iter().map(|factor| own.columns(&factor.scope).unwrap_or_default()).collect();
    let cost = |state: usize| -> f64 {
        let row = own.row(state);
        factors.iter().zip(&columns).map(|(f, columns)| f.cost(|at| row[columns[at]])).sum()
    };
    let costs: Vec<f64> = (0..own.count).map(cost).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    if costs.iter().any(|&cost| cost != least) {
        bag.weight.reserve_exact(own.count);
        // The same few costs come again and again.
        let mut recent = [(f64::NAN, 0u32); RECENT];
        for cost in costs {
            // Not minus zero, which has different bits.
            let logarithm = 0.0 - (cost - least);
            let bits = logarithm.to_bits();
            let slot = &mut recent[(bits.wrapping_mul(crate::numeric::GOLDEN) >> 56) as usize];
            if slot.0 != logarithm {
                let next = interned.len() as u32;
                *slot = (logarithm, *interned.entry(bits).or_insert(next));
            }
            bag.weight.push(slot.1);
        }
    }
    if least.is_finite() { -least } else { 0.0 }
}
