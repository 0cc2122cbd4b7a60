//! The messages of some rows, side by side.

use super::layout::MessageLayout;
use super::number::{Odds, Scaled};
use crate::infer::approximate::network::Network;
use crate::infer::{Block, Evidence, Number};
use crate::numeric::Lanes;

/// How many labels move between rows and lanes at a time.
pub(super) const TILE: usize = 64;

/// Everything that changes during message passing.
#[derive(Debug)]
pub(super) struct MessageState<T, const L: usize> {
    /// Each binary node's own odds: score, bias, evidence.
    pub(super) own: Vec<Scaled<T, L>>,
    /// The odds of each binary node at its last visit.
    pub(super) belief: Vec<Lanes<T, L>>,
    /// The probability that each binary node is on, and that it is off, once it has settled.
    pub(super) probability: Vec<Lanes<T, L>>,
    pub(super) improbability: Vec<Lanes<T, L>>,
    /// The messages over pairs, at the slot where they arrive.
    pub(super) messages: Vec<Lanes<T, L>>,
    /// The messages of the next iteration, for flooding.
    pub(super) next: Vec<Lanes<T, L>>,
    /// For one row: the messages side by side, with one past the last for blanks; the messages of
    /// the next iteration; and the ratios of pairs, with 0 for blanks.
    pub(super) flat: Vec<T>,
    pub(super) flat_next: Vec<T>,
    pub(super) flat_ratios: Vec<T>,
    /// For one row: the mantissa and exponent of each node's own odds, its belief, and space for
    /// that belief at each of its slots.
    pub(super) flat_own: Vec<[T; 2]>,
    pub(super) flat_belief: Vec<T>,
    pub(super) flat_spread: Vec<T>,
    /// The messages from larger factors to each port.
    pub(super) incoming: Vec<Lanes<T, L>>,
    /// The message from each port to its factor.
    pub(super) cavity: Vec<Lanes<T, L>>,
    /// Each state's own weight, for each one-of group.
    pub(super) group_own: Vec<Vec<Scaled<f64, L>>>,
    /// Space for the weight of each state with its own exponent.
    pub(super) group_scaled: Vec<Vec<Scaled<f64, L>>>,
    /// The weight of each state with all messages. The largest is near 1.
    pub(super) group_weight: Vec<Vec<Lanes<f64, L>>>,
    /// The exponent that those weights leave out, one per group.
    pub(super) group_exponent: Vec<Lanes<f64, L>>,
    /// The message of a link's label to each listed state.
    pub(super) link_entry: Vec<Vec<Lanes<f64, L>>>,
    /// The messages from cardinality factors to the states of each part, and those to the factors.
    pub(super) part_in: Vec<Lanes<f64, L>>,
    pub(super) part_cavity: Vec<Lanes<f64, L>>,
    /// The messages from each table to the states of its two groups.
    pub(super) table_in: Vec<[Vec<Lanes<f64, L>>; 2]>,
    /// The largest change of a belief in a watched iteration.
    pub(super) change: Lanes<T, L>,
    /// The largest relative change of a belief's odds in that iteration.
    pub(super) drift: Lanes<T, L>,
    /// The log-odds of each label, as given.
    pub(super) logs: Vec<Lanes<f64, L>>,
    /// The probability of each state of each group at its last visit.
    pub(super) group_belief: Vec<Vec<Lanes<f64, L>>>,
    /// The addition to log Z for the evidence. It is minus infinity when no state agrees with the
    /// evidence.
    pub(super) offset: [f64; L],
    /// The excess weight of labels with evidence on, as an exponent of two.
    pub(super) excess: [f64; L],
    /// Whether the belief of a pair contradicts that of a label, after settling.
    pub(super) contradicted: [bool; L],
}

/// A copy of what settling changes.
pub(super) struct Kept<T, const L: usize> {
    belief: Vec<Lanes<T, L>>,
    cavity: Vec<Lanes<T, L>>,
    part_cavity: Vec<Lanes<f64, L>>,
    group_belief: Vec<Vec<Lanes<f64, L>>>,
}

impl<T: Odds, const L: usize> MessageState<T, L> {
    pub(super) fn new(
        network: &Network,
        layout: &MessageLayout,
        ratios: Option<&[T]>,
        flooding: bool,
    ) -> MessageState<T, L> {
        let ratios = ratios.filter(|_| L == 1);
        let places = ratios.map_or(0, |_| layout.flat.reverse.len() + 1);
        let flat_nodes = ratios.map_or(0, |_| layout.nodes());
        let mut flat_ratios = vec![T::ZERO; places];
        if let Some(ratios) = ratios {
            let all = ratios.iter().zip(&layout.flat.place);
            all.for_each(|(&ratio, &place)| flat_ratios[place as usize] = ratio);
        }
        let (nodes, slots) = (layout.nodes(), layout.reverse.len());
        let ports = layout.port_owner.len();
        let one = Lanes([T::ONE; L]);
        let wide = Lanes([1.0f64; L]);
        let states = |groups: &[Vec<usize>]| groups.iter().map(Vec::len).collect::<Vec<_>>();
        let sizes = states(&network.groups);
        let entries = network.links.iter().map(|link| vec![wide; link.entries.len()]);
        let tables =
            network.tables.iter().map(|table| [table.a, table.b].map(|g| vec![wide; sizes[g]]));
        MessageState {
            own: vec![Scaled::ONE; nodes],
            belief: vec![one; nodes],
            probability: vec![one; nodes],
            improbability: vec![one; nodes],
            messages: vec![one; slots],
            next: if flooding { vec![one; slots] } else { Vec::new() },
            flat: vec![T::ONE; places],
            flat_next: vec![T::ONE; places],
            flat_ratios,
            flat_own: vec![[T::ONE; 2]; flat_nodes],
            flat_belief: vec![T::ONE; flat_nodes],
            flat_spread: vec![T::ONE; places],
            incoming: vec![one; ports],
            cavity: vec![one; ports],
            group_own: sizes.iter().map(|&k| vec![Scaled::ONE; k]).collect(),
            group_scaled: sizes.iter().map(|&k| vec![Scaled::ONE; k]).collect(),
            group_weight: sizes.iter().map(|&k| vec![wide; k]).collect(),
            group_exponent: vec![wide; sizes.len()],
            link_entry: entries.collect(),
            part_in: vec![wide; layout.parts.len()],
            part_cavity: vec![wide; layout.parts.len()],
            table_in: tables.collect(),
            change: Lanes([T::ZERO; L]),
            drift: Lanes([T::ZERO; L]),
            logs: vec![Lanes([0.0; L]); network.labels],
            group_belief: sizes.iter().map(|&k| vec![wide; k]).collect(),
            offset: [0.0; L],
            excess: [0.0; L],
            contradicted: [false; L],
        }
    }

    /// Collects the log-odds of rows that enter lanes. `rows[lane]` is the row of each lane that is
    /// loaded. Labels with evidence get odds that nothing outweighs.
    pub(super) fn gather<S: Number>(
        &mut self,
        network: &Network,
        block: &Block<'_, S>,
        rows: &[Option<usize>; L],
    ) {
        // A few labels of all rows at a time, so that they stay in the first-level cache.
        for first in (0..network.labels).step_by(TILE) {
            let tile = first..network.labels.min(first + TILE);
            let bias = &network.bias[tile.clone()];
            let logs = &mut self.logs[tile.clone()];
            for (lane, row) in rows.iter().enumerate() {
                let Some(row) = *row else { continue };
                let scores = block.row(row)[tile.clone()].iter().zip(bias);
                for (log, (score, bias)) in logs.iter_mut().zip(scores) {
                    log.0[lane] = score.to_f64() + bias;
                }
            }
        }
        for (lane, row) in rows.iter().enumerate() {
            let Some(row) = *row else { continue };
            (self.offset[lane], self.excess[lane]) = (0.0, 0.0);
            if block.evidence.is_some() {
                self.gather_evidence(network, block, row, lane);
            }
        }
    }

    fn gather_evidence<S: Number>(
        &mut self,
        network: &Network,
        block: &Block<'_, S>,
        row: usize,
        lane: usize,
    ) {
        for label in network.binary() {
            let log = &mut self.logs[label].0[lane];
            match block.evidence(row, label) {
                Evidence::Unknown => {}
                Evidence::Off => *log = f64::NEG_INFINITY,
                Evidence::On => {
                    self.offset[lane] += *log;
                    self.excess[lane] += T::FIXED;
                    *log = f64::INFINITY;
                }
            }
        }
        for group in &network.groups {
            let evidence = |label: usize| block.evidence(row, label);
            let on = group.iter().filter(|&&label| evidence(label) == Evidence::On).count();
            let mut states = 0;
            for &label in group {
                let possible = match evidence(label) {
                    Evidence::Unknown => on == 0,
                    Evidence::Off => false,
                    Evidence::On => on == 1,
                };
                if !possible {
                    self.logs[label].0[lane] = f64::NEG_INFINITY;
                }
                states += usize::from(self.logs[label].0[lane] > f64::NEG_INFINITY);
            }
            if states == 0 {
                self.offset[lane] = f64::NEG_INFINITY;
            }
        }
    }

    /// Copies the messages of one row to where settling reads them.
    pub(super) fn spread(&mut self, layout: &MessageLayout) {
        if !self.flat.is_empty() {
            let all = self.messages.iter_mut().zip(&layout.flat.place);
            all.for_each(|(message, &place)| message.0[0] = self.flat[place as usize]);
        }
    }

    /// A copy of what settling changes.
    pub(super) fn keep(&self) -> Kept<T, L> {
        Kept {
            belief: self.belief.clone(),
            cavity: self.cavity.clone(),
            part_cavity: self.part_cavity.clone(),
            group_belief: self.group_belief.clone(),
        }
    }

    /// Restores that copy.
    pub(super) fn restore(&mut self, kept: Kept<T, L>) {
        self.belief = kept.belief;
        self.cavity = kept.cavity;
        self.part_cavity = kept.part_cavity;
        self.group_belief = kept.group_belief;
    }

    /// Loads the collected rows into these lanes, and resets their messages.
    #[inline(always)]
    pub(super) fn load(&mut self, network: &Network, layout: &MessageLayout, fresh: &[bool; L]) {
        for (own, &label) in self.own.iter_mut().zip(&layout.label) {
            blend(own, Scaled::exp(self.logs[label]), fresh);
        }
        for (group, own) in network.groups.iter().zip(&mut self.group_own) {
            for (own, &label) in own.iter_mut().zip(group) {
                blend(own, Scaled::exp(self.logs[label]), fresh);
            }
        }
        let ones = [&mut self.messages, &mut self.incoming, &mut self.cavity, &mut self.belief];
        ones.into_iter().for_each(|all| all.iter_mut().for_each(|one| forget(one, fresh)));
        for (flat, own) in self.flat_own.iter_mut().zip(&self.own) {
            *flat = [own.mantissa.0[0], own.exponent.0[0]];
        }
        self.flat_belief.fill(T::ONE);
        self.flat.fill(T::ONE);
        self.flat_next.fill(T::ONE);
        let wide = self.part_in.iter_mut().chain(&mut self.part_cavity);
        let wide = wide.chain(self.link_entry.iter_mut().flatten());
        wide.chain(self.table_in.iter_mut().flatten().flatten()).for_each(|one| forget(one, fresh));
    }
}

#[inline(always)]
fn blend<T: Odds, const L: usize>(old: &mut Scaled<T, L>, new: Scaled<T, L>, fresh: &[bool; L]) {
    for lane in 0..L {
        if fresh[lane] {
            old.mantissa.0[lane] = new.mantissa.0[lane];
            old.exponent.0[lane] = new.exponent.0[lane];
        }
    }
}

#[inline(always)]
fn forget<T: Odds, const L: usize>(old: &mut Lanes<T, L>, fresh: &[bool; L]) {
    for lane in 0..L {
        old.0[lane] = if fresh[lane] { T::ONE } else { old.0[lane] };
    }
}
