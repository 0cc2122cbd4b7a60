//! `junction` handles any sparse model of moderate width exactly, with a junction tree over legal
//! states and counters.
//!
//! Sets of mutually exclusive labels are counted instead of paired ([`variables`], [`cover`]). An
//! elimination order gives a tree of bags ([`eliminate`]). One-of groups add one bit per separator
//! ([`groups`]). Each bag keeps only the states that are part of a legal state of the whole model
//! ([`bags`], [`tables`]). Sum-product over them is exact:
//!
//! `Z = Σ_x Π_bags w_b(x_b)`, `P(x_b) = ν_b(x_b) w_b(x_b) Π μ_child / Z`.
//!
//! Each pass costs O(Σ legal states · inputs) per row. Memory is a few numbers per separator entry.
//! Rows are computed side by side in scaled linear arithmetic ([`kernel`]). At every bag the kernel
//! checks that the mass is the partition function and that nothing that underflowed can matter.
//! Other rows are computed again with a separate exponent per number ([`number`]). Clipping scores instead would give wrong
//! answers when two labels beyond the limit exclude each other.
//!
//! The search for a tree is bounded: [`Budget::search`] steps ([`work`]). When they end early, the
//! best tree so far is taken.

mod bags;
mod best;
mod cover;
mod distant;
mod eliminate;
mod groups;
#[cfg(test)]
mod imagenet;
mod kernel;
mod number;
mod rows;
mod sample;
mod tables;

#[cfg(test)]
mod tests;
mod variables;
mod work;

use crate::infer::{Answers, Block, Budget, Unfit};
use crate::infer::{Kernel, Size, forward_sets_to_own, forward_to_own};
use crate::model::Model;
use crate::numeric::Scalar;
use bags::BagStates;
use distant::DistantPartners;
use eliminate::EliminationForest;
use kernel::Scratch;
use number::{F32x1, F32x16, F64x1, F64x8, Reach, TableNumber, Wide};
use rows::RowWeights;
use tables::BagTables;
use variables::{Factor, FactorKind, Query, Uncovered, VariableNetwork};
use work::{Halt, Work};

/// The states are enumerated for this many attempts: those that promise the smallest tables.
const TRIED: usize = 3;

/// The search ends when this many orders in a row are hopeless.
const HOPELESS: usize = 2;

/// The variables of which any values are part of a legal state: labels without a hard relation.
fn free_variables(network: &VariableNetwork) -> Vec<bool> {
    let mut free = vec![true; network.classes.len()];
    free.resize(network.domains.len(), false);
    let steps = |factor: &&Factor| factor.is_hard() && factor.kind != FactorKind::Step;
    let hard = network.factors.iter().filter(steps).flat_map(|factor| &factor.scope);
    let grouped = network.groups.iter().flat_map(|(_, members)| members);
    hard.chain(grouped).for_each(|&v| free[v as usize] = false);
    free
}

/// The variables and the tree of one attempt. A bag with more than `most` states ends it.
fn plan(
    uncovered: &Uncovered,
    attempt: usize,
    seed: u64,
    most: f64,
    work: &mut Work,
) -> Result<(VariableNetwork, EliminationForest), Halt> {
    let taste = cover::Taste {
        strictness: [2.0, f64::INFINITY, 1.5, 4.0][attempt % 4],
        noise: 3 * (attempt / 4) as u64,
        seed: seed.wrapping_add(attempt as u64),
    };
    let mut network = uncovered.cover(taste, work)?;
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); network.domains.len()];
    for factor in &network.factors {
        for &a in &factor.scope {
            near[a as usize].extend(factor.scope.iter().copied().filter(|&b| b != a));
        }
    }
    near.iter_mut().for_each(|list| {
        list.sort_unstable();
        list.dedup();
    });
    let mut chance = eliminate::Chance(taste.seed);
    let chance = (attempt > 0).then_some(&mut chance);
    // Each free label doubles the states of a bag.
    let free = free_variables(&network);
    let most = most.log2();
    let hopeless = |bag: &[u32]| {
        bag.len() as f64 > most && bag.iter().filter(|&&v| free[v as usize]).count() as f64 > most
    };
    let mut forest = eliminate::min_fill(near, &network.domains, chance, hopeless, work)?;
    groups::attach(&mut network, &mut forest, work)?;
    Ok((network, forest))
}

/// A compiled model.
#[derive(Debug)]
pub(crate) struct Junction {
    network: VariableNetwork,
    tables: BagTables,
    sources: Vec<DistantPartners>,
    /// How many bytes scratch memory may take.
    room: f64,
    /// Whether the model has a legal state at all.
    possible: bool,
    /// The steps of the search, if it ended before all orders were tried.
    ended: Option<f64>,
}

/// The states of the best order so far.
type Found = (VariableNetwork, EliminationForest, Vec<BagStates>);

impl Junction {
    /// Compiles a model. It tries `restarts` elimination orders in addition to the first, unless
    /// the steps of the search end before.
    pub(crate) fn compile(
        model: &Model,
        budget: &Budget,
        restarts: usize,
        seed: u64,
    ) -> Result<Junction, Unfit> {
        if model.dense().is_some() {
            let words =
                "it cannot handle dense semantics, whose pairs are not written out".to_owned();
            return Err(Unfit::Shape(words));
        }
        // Both passes read about three inputs per state, and the downward pass also writes them.
        let most = (budget.operations / 8.0).min(budget.bytes / 24.0);
        let mut work = Work::new(budget.search);
        let (found, halted) = Junction::search(model, budget, most, restarts, seed, &mut work);
        let Some((network, forest, states)) = found else {
            let needs = match halted {
                Some(Halt::Steps) => format!(
                    "the search for a junction tree of {} labels ended after {:.0e} steps, which a \
                     larger limit on the search may change",
                    model.len(),
                    budget.search
                ),
                _ => format!("more than {most:.1e} states, or than {:.1e} bytes", budget.bytes),
            };
            return Err(Unfit::Budget { needs });
        };
        let room = budget.bytes - bags::bytes_of(&states) as f64;
        let Ok(tables) = BagTables::new(&network, &forest, &states, room) else {
            let count: usize = states.iter().map(|states| states.count).sum();
            let needs = format!("more than {:.1e} bytes for {count} states", budget.bytes);
            return Err(Unfit::Budget { needs });
        };
        let possible =
            network.constant > f64::NEG_INFINITY && tables.bags.iter().all(|bag| bag.states > 0);
        let room = budget.bytes - tables.bytes() as f64;
        let sources = distant::sources(&tables);
        let ended = (halted == Some(Halt::Steps)).then_some(budget.search);
        let junction = Junction { network, tables, sources, room, possible, ended };
        let scratch = Scratch::<Wide>::bytes(&junction.tables);
        if junction.operations() > budget.operations || scratch > room {
            let operations = junction.operations();
            let bytes = junction.bytes() as f64 + scratch;
            let needs = format!("{operations:.1e} operations per row and {bytes:.1e} bytes");
            return Err(Unfit::Budget { needs });
        }
        Ok(junction)
    }

    /// The order with the fewest states, and why the search ended, if not all orders were tried to
    /// the end.
    fn search(
        model: &Model,
        budget: &Budget,
        most: f64,
        restarts: usize,
        seed: u64,
        work: &mut Work,
    ) -> (Option<Found>, Option<Halt>) {
        let uncovered = match Uncovered::new(model, work) {
            Ok(uncovered) => uncovered,
            Err(halt) => return (None, Some(halt)),
        };
        let (mut plans, mut hopeless, mut halted) = (Vec::new(), 0, None);
        for attempt in 0..=restarts {
            match plan(&uncovered, attempt, seed, most, work) {
                Ok(plan) => {
                    hopeless = 0;
                    plans.push(plan);
                }
                Err(halt) => {
                    hopeless += 1;
                    halted = Some(halt);
                }
            }
            plans.sort_by(|a, b| a.1.size.total_cmp(&b.1.size));
            plans.truncate(TRIED);
            if halted == Some(Halt::Steps) || hopeless == HOPELESS {
                break;
            }
        }
        drop(uncovered);
        work.release();
        let mut best: Option<Found> = None;
        let mut limit = bags::Limit { states: most as usize, bytes: budget.bytes as usize };
        for (network, forest) in plans {
            match bags::enumerate(&network, &forest, &limit, work) {
                Ok(states) => {
                    let total: usize = states.iter().map(|states| states.count).sum();
                    limit.states = total.saturating_sub(1);
                    limit.bytes = (budget.bytes as usize).saturating_sub(bags::bytes_of(&states));
                    let full = forest.size;
                    best = Some((network, forest, states));
                    // When almost nothing is ruled out, the sizes of the full tables have decided
                    // the order.
                    if total as f64 > 0.1 * full {
                        break;
                    }
                }
                Err(Halt::Size) => {}
                Err(Halt::Steps) => {
                    halted = Some(Halt::Steps);
                    break;
                }
            }
        }
        (best, halted)
    }

    /// The number of legal states in all bags.
    pub(crate) fn states(&self) -> usize {
        self.tables.bags.iter().map(|bag| bag.states).sum()
    }

    /// The number of legal states in the largest bag.
    pub(crate) fn largest(&self) -> usize {
        self.tables.largest
    }

    /// The number of variables in the largest bag.
    pub(crate) fn width(&self) -> usize {
        self.tables.width
    }

    /// The number of multiplications and additions per row.
    pub(crate) fn operations(&self) -> f64 {
        let bag = |bag: &tables::Bag| bag.states as f64 * (2.0 + 4.0 * bag.inputs as f64);
        self.tables.bags.iter().map(bag).sum()
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.bytes()
    }

    /// Computes marginals, log-partitions and expectations for a block of rows.
    pub(crate) fn run<T: Scalar>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let double = size_of::<T>() == size_of::<f64>();
        let rows = block.rows();
        answers.error.fill(0.0);
        let mut again = Vec::new();
        if !self.possible {
            answers.log_partition.fill(f64::NEG_INFINITY);
            answers.marginals.fill(T::ZERO);
            answers.expectations.iter_mut().for_each(|all| all.fill(T::ZERO));
            return;
        }
        let wide = match double {
            true => Scratch::<F64x8>::bytes(&self.tables),
            false => Scratch::<F32x16>::bytes(&self.tables),
        };
        match (double, rows > 2 && wide <= self.room) {
            (true, true) => self.rows::<T, F64x8>(block, answers, &mut again),
            (true, false) => self.rows::<T, F64x1>(block, answers, &mut again),
            (false, true) => self.rows::<T, F32x16>(block, answers, &mut again),
            (false, false) => self.rows::<T, F32x1>(block, answers, &mut again),
        }
        if !again.is_empty() {
            let mut scratch = Scratch::<Wide>::new(&self.tables, true);
            let mut filled = RowWeights::default();
            for row in again {
                filled.fill(&self.network, block, row);
                let want = answers.expectations.is_some();
                self.pass(std::slice::from_ref(&filled), &mut scratch, &[], want);
                self.answer(&scratch, 0, &filled, row, answers);
            }
        }
    }

    /// Runs the rows in lanes, and collects the doubtful ones.
    fn rows<T: Scalar, N: TableNumber>(
        &self,
        block: &Block<'_, T>,
        answers: &mut Answers<'_, T>,
        again: &mut Vec<usize>,
    ) {
        use number::Exponents;
        let mut scratch = Scratch::<N>::new(&self.tables, true);
        let mut filled = vec![RowWeights::default(); N::LANES];
        // Without evidence, no message is zero in exact arithmetic.
        let mut reach = block.evidence.map(|_| Scratch::<Reach>::new(&self.tables, false));
        let want = answers.expectations.is_some();
        for first in (0..block.rows()).step_by(N::LANES) {
            let count = N::LANES.min(block.rows() - first);
            for (lane, row) in filled[..count].iter_mut().enumerate() {
                row.fill(&self.network, block, first + lane);
            }
            if let Some(reach) = &mut reach {
                kernel::weigh(&filled[..count], self.network.classes.len(), reach);
                kernel::up(&self.tables, reach, &[]);
            }
            let reach = reach.as_ref().map_or(&[][..], |reach| &reach.up);
            self.pass(&filled[..count], &mut scratch, reach, want);
            for (lane, row) in filled[..count].iter().enumerate() {
                if scratch.doubt.lane(lane) != 0 {
                    again.push(first + lane);
                } else {
                    self.answer(&scratch, lane, row, first + lane, answers);
                }
            }
        }
    }

    /// Runs both passes over some rows.
    fn pass<N: TableNumber>(
        &self,
        rows: &[RowWeights],
        scratch: &mut Scratch<N>,
        reach: &[Reach],
        want: bool,
    ) {
        use number::Exponents;
        scratch.doubt = N::Exponents::NONE;
        kernel::weigh(rows, self.network.classes.len(), scratch);
        kernel::up(&self.tables, scratch, reach);
        kernel::down(&self.tables, scratch, want);
        kernel::shares(scratch);
        if want {
            distant::fill(&self.tables, &self.sources, scratch);
        }
    }

    /// Writes the answers of one lane.
    fn answer<T: Scalar, N: TableNumber>(
        &self,
        scratch: &Scratch<N>,
        lane: usize,
        filled: &RowWeights,
        row: usize,
        answers: &mut Answers<'_, T>,
    ) {
        let value = |number: N| {
            let (mantissa, exponent) = number.lane(lane);
            if mantissa == 0.0 || exponent == 0 {
                mantissa
            } else {
                mantissa * (exponent as f64).exp2()
            }
        };
        let log_partition = scratch.log_partition(&self.tables, lane);
        answers.log_partition[row] = log_partition + filled.offset + self.tables.constant;
        let n = self.network.variable.len();
        let marginals = &mut answers.marginals[row * n..(row + 1) * n];
        for (variable, labels) in self.network.classes.iter().enumerate() {
            let on = value(scratch.on[variable]);
            if let [label] = labels[..] {
                marginals[label as usize] = T::from_f64(on);
            } else {
                for &label in labels {
                    let share = filled.share[label as usize].exp();
                    marginals[label as usize] = T::from_f64(on * share);
                }
            }
        }
        let Some(all) = &mut answers.expectations else { return };
        let count = self.network.queries.len();
        let marginals = &answers.marginals[row * n..(row + 1) * n];
        for (query, out) in self.network.queries.iter().zip(&mut all[row * count..]) {
            let share = |label: u32| match self.network.classes
                [self.network.variable[label as usize] as usize][..]
            {
                [_] => 1.0,
                _ => filled.share[label as usize].exp(),
            };
            let cell = |key: &(u32, u32, bool)| {
                self.tables.cell_of.get(key).map(|&at| value(scratch.cells[at as usize]))
            };
            let pair = |a: u32, b: u32, on: bool| {
                let key = tables::cell(&self.network, a, b, on);
                if let (false, Some(value)) = (key.2, cell(&key)) {
                    return value * share(a);
                }
                let key = tables::cell(&self.network, a, b, true);
                let both = cell(&key).unwrap_or(0.0) * share(a) * share(b);
                if on { both } else { (marginals[a as usize].to_f64() - both).max(0.0) }
            };
            let expectation = match query {
                Query::Never => 0.0,
                Query::Marginal(label) => marginals[*label as usize].to_f64(),
                Query::Pair(a, b, on) => pair(*a, *b, *on),
                Query::Products(steps) => {
                    steps.iter().map(|&(n, y)| cell(&(n, y, true)).unwrap_or(0.0)).sum()
                }
                Query::Labels(labels) => {
                    let pairs = labels
                        .iter()
                        .enumerate()
                        .flat_map(|(at, &a)| labels[at + 1..].iter().map(move |&b| (a, b)));
                    let variable = |label: u32| self.network.variable[label as usize];
                    let pairs = pairs.filter(|&(a, b)| variable(a) != variable(b));
                    pairs.map(|(a, b)| pair(a, b, true)).sum()
                }
            };
            *out = T::from_f64(expectation);
        }
    }
}

impl Kernel for Junction {
    forward_to_own!();

    fn detail(&self) -> Option<String> {
        let ended = self.ended?;
        Some(format!(
            "the search for a narrower tree ended after {ended:.0e} steps, and a larger limit on the \
             search may find one"
        ))
    }
    forward_sets_to_own!();

    fn size(&self) -> Size {
        Size {
            width: Some(self.width()),
            largest_bag: Some(self.largest() as u64),
            states: Some(self.states() as u64),
        }
    }
}
