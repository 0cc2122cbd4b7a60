//! The two passes of sum-product over the tables.
//!
//! Up, for each entry `s` of a bag's separator: `μ(s) = Σ_{x ∼ s} w(x) Π_k m_k(x)`, where the
//! inputs `m_k` are label weights and messages of children. Down, into each input:
//! `ν_k(t) = Σ_{x ∼ t} ν(s(x)) w(x) Π_{l ≠ k} m_l(x)`, by products from both ends, without a
//! division. A label's marginal is `ν m` of its own input. Each pass costs O(states · inputs).
//!
//! Every message is scaled up to a peak at which products cannot overflow, so they can only
//! underflow. A product loses at most the smallest normal number times the peaks of the messages
//! that are multiplied after the underflow ([`spill`]). No entry of an upward message gets smaller
//! than that unless the evidence rules it out, so upward messages bound the exact ones from above.
//! A row is *doubtful* when the entries that were raised may matter: when the normaliser of some
//! separator is not far above them. It is also doubtful when normalisers disagree, which shows what
//! downward messages lost. The caller computes such rows again with [`Wide`](super::number::Wide).
//!
//! Testing the normalisers alone is not enough. A state that underflowed in two messages is missing
//! from both sides of every test, although large scores beyond them may make it the likeliest.

use multiversion::multiversion;

use super::number::{Exponents, Reach, TableNumber};
use super::rows::RowWeights;
use super::tables::{Bag, BagTables};

/// The messages of some rows.
pub(super) struct Scratch<N: TableNumber> {
    pub(super) up: Vec<N>,
    pub(super) down: Vec<N>,
    /// For each bag, the peak of the upward message before rescaling, and the exponents removed
    /// from it and from everything below.
    peak: Vec<N>,
    below: Vec<N::Exponents>,
    /// The exponents removed from the messages into each bag, and from the message of its parent.
    inside: Vec<N::Exponents>,
    above: Vec<N::Exponents>,
    /// The root of each bag's tree.
    root: Vec<u32>,
    /// Sums of beliefs, as fractions of the whole.
    pub(super) cells: Vec<N>,
    /// The probability that each label variable is on.
    pub(super) on: Vec<N>,
    /// Not zero in the lanes of doubtful rows.
    pub(super) doubt: N::Exponents,
}

impl<N: TableNumber> Scratch<N> {
    pub(super) fn new(tables: &BagTables, down: bool) -> Scratch<N> {
        let bags = tables.bags.len();
        Scratch {
            up: vec![N::ZERO; tables.entries],
            down: vec![N::ZERO; if down { tables.entries } else { 0 }],
            peak: vec![N::ZERO; bags],
            below: vec![N::Exponents::NONE; bags],
            inside: vec![N::Exponents::NONE; bags],
            above: vec![N::Exponents::NONE; bags],
            root: vec![0; bags],
            cells: vec![N::ZERO; tables.cells],
            on: vec![N::ZERO; if down { tables.home.len() } else { 0 }],
            doubt: N::Exponents::NONE,
        }
    }

    /// The bytes that the messages of one group of rows take.
    pub(super) fn bytes(tables: &BagTables) -> f64 {
        2.0 * tables.entries as f64 * size_of::<N>() as f64
    }

    /// The logarithm of the sum over all states, without what was removed from the weights.
    pub(super) fn log_partition(&self, tables: &BagTables, lane: usize) -> f64 {
        let roots = tables.bags.iter().zip(&self.below).filter(|(bag, _)| bag.parent.is_none());
        let one = |(bag, below): (&Bag, &N::Exponents)| {
            let (mantissa, exponent) = self.up[bag.out].lane(lane);
            let exponent = exponent + below.lane(lane);
            mantissa.ln() + exponent as f64 * std::f64::consts::LN_2
        };
        roots.map(one).sum()
    }
}

/// Sums are taken in runs of this many states and one. So rounding errors grow with the length of a
/// run plus the number of runs, not with their product.
const RUN: usize = 1023;

/// The sums of earlier runs into the short inputs of a bag with many states.
struct Runs<N> {
    ranges: Vec<std::ops::Range<usize>>,
    held: Vec<N>,
}

impl<N: TableNumber> Runs<N> {
    #[inline(always)]
    fn new(tables: &BagTables, bag: &Bag) -> Runs<N> {
        let mut ranges = Vec::new();
        if bag.states > 4 * RUN {
            let labels = bag.labels.iter().map(|label| 2 * label.0 as usize);
            ranges.extend(labels.map(|first| first..first + 2));
            let children =
                bag.children.iter().map(|child| tables.bags[child.0 as usize].separator());
            ranges.extend(children.filter(|range| range.len() < RUN / 4));
        }
        let held = vec![N::ZERO; ranges.iter().map(|range| range.len()).sum()];
        Runs { ranges, held }
    }

    /// Moves the sums of a run out of the table.
    #[inline(always)]
    fn end(&mut self, down: &mut [N]) {
        let entries = self.ranges.iter().cloned().flatten();
        for (held, at) in self.held.iter_mut().zip(entries) {
            *held = held.plus(down[at]);
            down[at] = N::ZERO;
        }
    }

    /// Writes the sums of all runs into the table.
    #[inline(always)]
    fn finish(mut self, down: &mut [N]) {
        self.end(down);
        let entries = self.ranges.iter().cloned().flatten();
        self.held.iter().zip(entries).for_each(|(held, at)| down[at] = *held);
    }
}

/// The exponent to which the messages into a bag are scaled. Together they use the range of the
/// number type.
#[inline(always)]
fn height<N: TableNumber>(bag: &Bag) -> i32 {
    (N::RANGE / (bag.children.len() as i32 + 1)).min(N::RANGE / 2)
}

/// The exponents of the messages up from a bag and down to it.
#[inline(always)]
fn heights<N: TableNumber>(tables: &BagTables, bag: &Bag) -> (i32, i32) {
    match bag.parent {
        Some(parent) => (height::<N>(&tables.bags[parent as usize]), height::<N>(bag)),
        None => (0, 0),
    }
}

/// The binary logarithm of the peaks that may still multiply a product of two inputs of a bag after
/// it has underflowed. Label variables and fixed weights, which are at most 1, come first.
#[inline(always)]
fn spill<N: TableNumber>(bag: &Bag) -> i32 {
    let children = bag.children.len();
    let fixed = usize::from(bag.inputs > 4 && !bag.weight.is_empty());
    let first = (bag.labels.len() + fixed).min(2);
    height::<N>(bag) * (children as i32 - 2 + first as i32).max(0).min(children as i32)
}

#[inline(always)]
fn fixed<N: TableNumber>(tables: &BagTables, bag: &Bag, state: usize) -> N {
    if bag.weight.is_empty() { N::ONE } else { N::weight(&tables.weights, bag.weight[state]) }
}

#[inline(always)]
fn up_bag<N: TableNumber, const K: usize>(
    tables: &BagTables,
    bag: &Bag,
    inputs: &[N],
    out: &mut [N],
) -> N {
    let (index, _) = bag.index.as_chunks::<K>();
    let mut peak = N::ZERO;
    for (entry, range) in out.iter_mut().zip(bag.segments.windows(2)) {
        let (mut sum, mut runs) = (N::ZERO, N::ZERO);
        for state in range[0] as usize..range[1] as usize {
            let mut product = inputs[index[state][0] as usize];
            for k in 1..K {
                product = product.times(inputs[index[state][k] as usize]);
            }
            if !bag.weight.is_empty() {
                product = product.times(fixed(tables, bag, state));
            }
            sum = sum.plus(product);
            if state & RUN == RUN {
                (runs, sum) = (runs.plus(sum), N::ZERO);
            }
        }
        sum = sum.plus(runs);
        *entry = sum;
        peak = peak.peak(sum);
    }
    peak
}

#[inline(always)]
fn up_any<N: TableNumber>(tables: &BagTables, bag: &Bag, inputs: &[N], out: &mut [N]) -> N {
    let mut peak = N::ZERO;
    for (entry, range) in out.iter_mut().zip(bag.segments.windows(2)) {
        let (mut sum, mut runs) = (N::ZERO, N::ZERO);
        for state in range[0] as usize..range[1] as usize {
            let mut product = fixed(tables, bag, state);
            for &at in &bag.index[state * bag.inputs..(state + 1) * bag.inputs] {
                product = N::times(product, inputs[at as usize]);
            }
            sum = sum.plus(product);
            if state & RUN == RUN {
                (runs, sum) = (runs.plus(sum), N::ZERO);
            }
        }
        sum = sum.plus(runs);
        *entry = sum;
        peak = peak.peak(sum);
    }
    peak
}

/// Writes the weights of the label variables.
#[multiversion(targets = "simd")]
pub(super) fn weigh<N: TableNumber>(
    rows: &[RowWeights],
    variables: usize,
    scratch: &mut Scratch<N>,
) {
    for (variable, pair) in scratch.up[..2 * variables].chunks_exact_mut(2).enumerate() {
        pair[0] = N::exp(rows.len(), |lane| rows[lane].logarithms[variable][0]);
        pair[1] = N::exp(rows.len(), |lane| rows[lane].logarithms[variable][1]);
    }
}

/// Computes the probability of each label variable for all rows at once, after both passes.
#[multiversion(targets = "simd")]
pub(super) fn shares<N: TableNumber>(scratch: &mut Scratch<N>) {
    let (up, down) = (scratch.up.chunks_exact(2), scratch.down.chunks_exact(2));
    for ((out, up), down) in scratch.on.iter_mut().zip(up).zip(down) {
        let (off, on) = (up[0].times(down[0]), up[1].times(down[1]));
        *out = on.over(on.plus(off));
    }
}

/// The pass from the leaves. The weights of the label variables must be in the table. `reach` has
/// the entries that are not zero in exact arithmetic, or nothing where none is.
#[multiversion(targets = "simd")]
pub(super) fn up<N: TableNumber>(tables: &BagTables, scratch: &mut Scratch<N>, reach: &[Reach]) {
    for (b, bag) in tables.bags.iter().enumerate() {
        let (inputs, rest) = scratch.up.split_at_mut(bag.out);
        let out = &mut rest[..bag.segments.len() - 1];
        let peak = match bag.inputs {
            1 => up_bag::<N, 1>(tables, bag, inputs, out),
            2 => up_bag::<N, 2>(tables, bag, inputs, out),
            3 => up_bag::<N, 3>(tables, bag, inputs, out),
            4 => up_bag::<N, 4>(tables, bag, inputs, out),
            _ => up_any::<N>(tables, bag, inputs, out),
        };
        let (factor, exponents) = peak.lift(heights::<N>(tables, bag).0);
        let least = N::LEAST + spill::<N>(bag);
        let scale = |entry: &mut N, reach: Reach| {
            // Scaling down may underflow once more.
            *entry = entry.at_least(least, reach).times(factor).at_least(N::LEAST, reach);
        };
        if reach.is_empty() {
            out.iter_mut().for_each(|entry| scale(entry, Reach::ONE));
        } else {
            let reach = &reach[bag.separator()];
            out.iter_mut().zip(reach).for_each(|(entry, &reach)| scale(entry, reach));
        }
        let mut inside = N::Exponents::NONE;
        for &(child, _) in &bag.children {
            inside = inside.add(scratch.below[child as usize]);
        }
        scratch.peak[b] = peak;
        scratch.inside[b] = inside;
        scratch.below[b] = inside.add(exponents);
    }
}

/// Processes one state on the way down. `base` is everything except the inputs. Returns the state's
/// belief.
#[inline(always)]
fn spread<N: TableNumber, const K: usize>(
    index: &[u32; K],
    base: N,
    up: &[N],
    down: &mut [N],
) -> N {
    let mut value = [N::ONE; K];
    for k in 0..K {
        value[k] = up[index[k] as usize];
    }
    let mut after = [N::ONE; K];
    for k in (1..K).rev() {
        after[k - 1] = after[k].times(value[k]);
    }
    let mut before = base;
    for k in 0..K {
        let slot = &mut down[index[k] as usize];
        *slot = slot.plus(if k + 1 < K { before.times(after[k]) } else { before });
        before = before.times(value[k]);
    }
    before
}

#[inline(always)]
fn spread_any<N: TableNumber>(
    index: &[u32],
    base: N,
    up: &[N],
    down: &mut [N],
    after: &mut Vec<N>,
) -> N {
    after.clear();
    after.resize(index.len() + 1, N::ONE);
    for k in (0..index.len()).rev() {
        after[k] = after[k + 1].times(up[index[k] as usize]);
    }
    let mut before = base;
    for (k, &at) in index.iter().enumerate() {
        let slot = &mut down[at as usize];
        *slot = slot.plus(before.times(after[k + 1]));
        before = before.times(up[at as usize]);
    }
    before
}

#[inline(always)]
fn down_bag<N: TableNumber, const K: usize>(
    tables: &BagTables,
    bag: &Bag,
    up: &[N],
    own: &[N],
    down: &mut [N],
) {
    let (index, _) = bag.index.as_chunks::<K>();
    let mut runs = Runs::new(tables, bag);
    for (&message, range) in own.iter().zip(bag.segments.windows(2)) {
        let (first, end) = (range[0] as usize, range[1] as usize);
        for (state, index) in (first..end).zip(&index[first..end]) {
            let mut base = message;
            if !bag.weight.is_empty() {
                base = base.times(fixed(tables, bag, state));
            }
            spread::<N, K>(index, base, up, down);
            if state & RUN == RUN {
                runs.end(down);
            }
        }
    }
    runs.finish(down);
}

/// As [`down_bag`], for any number of inputs and with sums of beliefs.
#[inline(always)]
fn down_any<N: TableNumber>(
    tables: &BagTables,
    bag: &Bag,
    up: &[N],
    own: &[N],
    down: &mut [N],
    cells: Option<&mut [N]>,
) -> N {
    let mut after = Vec::new();
    let mut runs = Runs::new(tables, bag);
    let mut beliefs = N::ZERO;
    let mut cells = cells.filter(|_| !bag.sums.start.is_empty());
    for (&message, range) in own.iter().zip(bag.segments.windows(2)) {
        for state in range[0] as usize..range[1] as usize {
            let base = message.times(fixed(tables, bag, state));
            let index = &bag.index[state * bag.inputs..(state + 1) * bag.inputs];
            let belief = spread_any(index, base, up, down, &mut after);
            beliefs = beliefs.plus(belief);
            if let Some(cells) = &mut cells {
                let items = bag.sums.start[state] as usize..bag.sums.start[state + 1] as usize;
                for &(cell, times) in &bag.sums.items[items] {
                    let slot = &mut cells[cell as usize];
                    *slot = slot.plus(belief.times(N::count(times)));
                }
            }
            if state & RUN == RUN {
                runs.end(down);
            }
        }
    }
    runs.finish(down);
    beliefs
}

/// The pass from the roots, after [`up`]. It fills the cells if `sums` is set.
#[multiversion(targets = "simd")]
pub(super) fn down<N: TableNumber>(tables: &BagTables, scratch: &mut Scratch<N>, sums: bool) {
    scratch.down.fill(N::ZERO);
    scratch.cells.fill(N::ZERO);
    for (b, bag) in tables.bags.iter().enumerate().rev() {
        let (inputs, rest) = scratch.down.split_at_mut(bag.out);
        let own = &mut rest[..bag.segments.len() - 1];
        let message = &scratch.up[bag.separator()];
        let (above, below) = heights::<N>(tables, bag);
        let mut peak = N::ZERO;
        match bag.parent {
            None => {
                own.fill(N::ONE);
                (scratch.root[b], scratch.above[b]) = (b as u32, N::Exponents::NONE);
                peak = N::ONE;
            }
            Some(p) => {
                let p = p as usize;
                own.iter().for_each(|&entry| peak = peak.peak(entry));
                let (factor, exponents) = peak.lift(below);
                own.iter_mut().for_each(|entry| *entry = entry.times(factor));
                let beside = scratch.inside[p].subtract(scratch.below[b]);
                scratch.above[b] = scratch.above[p].add(beside).add(exponents);
                scratch.root[b] = scratch.root[p];
            }
        }
        let mut whole = N::ZERO;
        own.iter().zip(message).for_each(|(d, u)| whole = whole.plus(d.times(*u)));
        let root = scratch.root[b] as usize;
        let truth = scratch.up[tables.bags[root].out];
        let exponents = scratch.above[b].add(scratch.below[b]).subtract(scratch.below[root]);
        // What underflowed before a message was scaled up is weighted by the other message.
        let lowered = whole.times(N::power(-above - below));
        let raised = N::power(-spill::<N>(bag));
        let (down, up) = (lowered.times(peak), lowered.times(scratch.peak[b]).times(raised));
        down.doubt(up, whole, exponents, truth, &mut scratch.doubt);
        let scaled = whole.times(N::power(-below));
        scaled.doubt(scaled, whole, exponents, truth, &mut scratch.doubt);
        let up = &scratch.up[..bag.out];
        if sums && !bag.sums.start.is_empty() {
            let beliefs = down_any(tables, bag, up, own, inputs, Some(&mut scratch.cells));
            // Converts to fractions of this bag's normaliser, which has the scale of the parent's
            // message.
            let (factor, _) = scratch.peak[b].lift(above);
            let share = factor.over(whole);
            let all = beliefs.times(factor);
            all.doubt(all, all, exponents, truth, &mut scratch.doubt);
            bag.sums.cells.iter().for_each(|&cell| {
                let slot = &mut scratch.cells[cell as usize];
                *slot = slot.times(share);
            });
        } else {
            match bag.inputs {
                1 => down_bag::<N, 1>(tables, bag, up, own, inputs),
                2 => down_bag::<N, 2>(tables, bag, up, own, inputs),
                3 => down_bag::<N, 3>(tables, bag, up, own, inputs),
                4 => down_bag::<N, 4>(tables, bag, up, own, inputs),
                _ => drop(down_any(tables, bag, up, own, inputs, None)),
            }
        }
        let exponents = scratch.above[b].add(scratch.inside[b]).subtract(scratch.below[root]);
        for &(variable, _) in &bag.labels {
            let at = 2 * variable as usize;
            let off = scratch.up[at].times(inputs[at]);
            let whole = off.plus(scratch.up[at + 1].times(inputs[at + 1]));
            // A weight that was raised to the smallest number is weighted by what the label hears.
            let heard = inputs[at].plus(inputs[at + 1]);
            whole.doubt(whole.over(heard), whole, exponents, truth, &mut scratch.doubt);
        }
    }
}
