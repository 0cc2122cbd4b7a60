//! The messages of one-of groups: nodes of k states.
//!
//! The weight of a state is its own weight times all messages to it, `W_s = w_s Π m(s)`. A link's
//! label with cavity probability `p` sends `m(s) = ψ(s, 0)(1 − p) + ψ(s, 1) p` to the states that
//! the link lists, and nothing to the others. It receives
//!
//! ```text
//! ρ = M(1) / M(0),   M(x) = Σ_{s listed} ψ(s, x) W_s / m(s) + (Σ_s W_s − Σ_{s listed} W_s)
//! ```
//!
//! So a visit costs O(states + entries), not O(states · neighbours). In a hierarchy a label lists
//! only its own children among the 1000 of the group. All arithmetic is in double precision,
//! whatever the type of the messages.

use super::labels::Damping;
use super::number::{Odds, Scaled, within};
use super::state::MessageState;
use super::{EntryWeights, Program};
use crate::numeric::Lanes;

/// No message is more certain than this. So a state that one factor forbids can be revived for the
/// message back to that factor.
pub(super) const FAINT: f64 = 1e-200;

impl Program {
    /// All messages of a group, from the newest messages to it.
    #[inline(always)]
    pub(super) fn visit_group<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        group: usize,
        damping: Option<Damping<f64>>,
        watch: bool,
    ) {
        let total = self.weigh_group(state, group, watch);
        for &link in &self.layout.group_links[group] {
            let port = self.layout.link_port[link];
            let entries = &self.link_weights[link];
            let (off, on) = self.sums(state, group, link, entries, total);
            let before = state.incoming[port];
            let incoming = &mut state.incoming[port];
            for lane in 0..L {
                let odds = match damping {
                    None => on.0[lane] / off.0[lane],
                    Some(damping) => damping.mix(on.0[lane], off.0[lane], before.0[lane].to_f64()),
                };
                incoming.0[lane] = within(T::from_f64(within(odds, f64::WIDE)), T::WIDE);
            }
        }
        self.tell_parts(state, group, total);
        for &table in &self.layout.group_tables[group] {
            self.say_table(state, group, table, damping);
        }
    }

    /// The weights of a group's states from the newest messages to it, and their sum.
    #[inline(always)]
    pub(super) fn weigh_group<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        group: usize,
        watch: bool,
    ) -> Lanes<f64, L> {
        self.hear_links(state, group);
        self.weigh(state, group);
        let mut total = Lanes([0.0; L]);
        state.group_weight[group].iter().for_each(|weight| total += *weight);
        let scale = total.map(|total| 1.0 / total);
        let beliefs = state.group_belief[group].iter_mut().zip(&state.group_weight[group]);
        for (belief, weight) in beliefs {
            let fresh = *weight * scale;
            if watch {
                for lane in 0..L {
                    let (old, new) = (belief.0[lane], fresh.0[lane]);
                    let difference = (new - old).abs();
                    let proportion = if new > f64::LEAST { difference / (new + old) } else { 0.0 };
                    let size = T::from_f64(difference);
                    let most = &mut state.change.0[lane];
                    *most = if size > *most { size } else { *most };
                    let size = T::from_f64(proportion);
                    let most = &mut state.drift.0[lane];
                    *most = if size > *most { size } else { *most };
                }
            }
            *belief = fresh;
        }
        total
    }

    /// The messages of a group to cardinality factors: the odds of its part without what the
    /// factors sent.
    #[inline(always)]
    pub(super) fn tell_parts<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        group: usize,
        total: Lanes<f64, L>,
    ) {
        let weights = &state.group_weight[group];
        for &part in &self.layout.group_parts[group] {
            let (factor, _, place) = self.layout.parts[part];
            let states = &self.network.cardinalities[factor].parts[place].states;
            let mut here = Lanes([0.0; L]);
            states.iter().for_each(|&s| here += weights[s]);
            let said = state.part_in[part];
            let rest = rest(weights, states.iter().copied(), total, here);
            let cavity = &mut state.part_cavity[part];
            for lane in 0..L {
                cavity.0[lane] = within(here.0[lane] / said.0[lane] / rest.0[lane], f64::WIDE);
            }
        }
    }

    /// The messages of the labels of links to the states that they list.
    #[inline(always)]
    fn hear_links<T: Odds, const L: usize>(&self, state: &mut MessageState<T, L>, group: usize) {
        for &link in &self.layout.group_links[group] {
            let cavity = state.cavity[self.layout.link_port[link]];
            let (mut on, mut off) = (Lanes([0.0; L]), Lanes([0.0; L]));
            for lane in 0..L {
                let odds = cavity.0[lane].to_f64();
                off.0[lane] = 1.0 / (1.0 + odds);
                on.0[lane] = odds * off.0[lane];
            }
            let entries = self.link_weights[link].iter();
            for (&(_, [off_weight, on_weight]), said) in entries.zip(&mut state.link_entry[link]) {
                for lane in 0..L {
                    let value = off_weight * off.0[lane] + on_weight * on.0[lane];
                    said.0[lane] = if value > FAINT { value } else { FAINT };
                }
            }
        }
    }

    /// The weight of every state, scaled so that the largest is near 1.
    #[inline(always)]
    fn weigh<T: Odds, const L: usize>(&self, state: &mut MessageState<T, L>, group: usize) {
        let MessageState { group_own, group_scaled, group_weight, group_exponent, .. } = state;
        let scaled: &mut Vec<Scaled<f64, L>> = &mut group_scaled[group];
        scaled.copy_from_slice(&group_own[group]);
        let tell = |scaled: &mut Scaled<f64, L>, said: &Lanes<f64, L>| {
            scaled.times(said);
            scaled.normalise();
        };
        for &link in &self.layout.group_links[group] {
            let entries = self.link_weights[link].iter().zip(&state.link_entry[link]);
            entries.for_each(|(&(s, _), said)| tell(&mut scaled[s], said));
        }
        for &part in &self.layout.group_parts[group] {
            let (factor, _, place) = self.layout.parts[part];
            let states = &self.network.cardinalities[factor].parts[place].states;
            states.iter().for_each(|&s| tell(&mut scaled[s], &state.part_in[part]));
        }
        for &table in &self.layout.group_tables[group] {
            let side = usize::from(self.network.tables[table].b == group);
            let said = &state.table_in[table][side];
            scaled.iter_mut().zip(said).for_each(|(scaled, said)| tell(scaled, said));
        }
        let mut most = Lanes([f64::NEG_INFINITY; L]);
        scaled.iter().for_each(|scaled| most = most.zip(scaled.exponent, f64::max));
        group_exponent[group] = most;
        for (weight, scaled) in group_weight[group].iter_mut().zip(scaled.iter()) {
            for lane in 0..L {
                let exponent = scaled.exponent.0[lane] - most.0[lane];
                let inside = if exponent < -1000.0 { -1000.0 } else { exponent };
                let value = scaled.mantissa.0[lane] * inside.power_of_two();
                weight.0[lane] = if exponent < -1000.0 { 0.0 } else { value };
            }
        }
    }

    /// `M(0)` and `M(1)` of a link.
    #[inline(always)]
    pub(super) fn sums<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        group: usize,
        link: usize,
        entries: &EntryWeights,
        total: Lanes<f64, L>,
    ) -> (Lanes<f64, L>, Lanes<f64, L>) {
        let weights = &state.group_weight[group];
        let (mut off, mut on, mut listed) = (Lanes([0.0; L]), Lanes([0.0; L]), Lanes([0.0; L]));
        for (&(s, [off_weight, on_weight]), said) in entries.iter().zip(&state.link_entry[link]) {
            for lane in 0..L {
                let cavity = weights[s].0[lane] / said.0[lane];
                off.0[lane] += off_weight * cavity;
                on.0[lane] += on_weight * cavity;
                listed.0[lane] += weights[s].0[lane];
            }
        }
        let rest = rest(weights, entries.iter().map(|entry| entry.0), total, listed);
        (off + rest, on + rest)
    }

    /// The message of a group over a table to the other group: `Σ_s ψ(s, t) W_s / m(s)` for each
    /// `t`.
    #[inline(always)]
    fn say_table<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        group: usize,
        table: usize,
        damping: Option<Damping<f64>>,
    ) {
        let shape = &self.network.tables[table];
        let from_b = shape.b == group;
        let cavity = self.table_cavity(state, group, table);
        let mut total = Lanes([0.0; L]);
        cavity.iter().for_each(|cavity| total += *cavity);
        let [to_a, to_b] = &mut state.table_in[table];
        let target = if from_b { to_a } else { to_b };
        let full = shape.entries.len() == cavity.len() * target.len();
        let start = if full { Lanes([0.0; L]) } else { total };
        let mut fresh = vec![start; target.len()];
        for (&(s, t, _), &weight) in shape.entries.iter().zip(&self.table_weights[table]) {
            let (from, to) = if from_b { (t, s) } else { (s, t) };
            let factor = if full { weight } else { weight - 1.0 };
            for lane in 0..L {
                fresh[to].0[lane] += factor * cavity[from].0[lane];
            }
        }
        // Messages sum to the number of states, so that mixing old and new messages mixes
        // probabilities.
        let mut sum = Lanes([0.0; L]);
        fresh.iter().for_each(|fresh| sum += fresh.map(|value| value.max(0.0)));
        let scale = sum.map(|sum| target.len() as f64 / sum);
        for (target, fresh) in target.iter_mut().zip(&fresh) {
            for lane in 0..L {
                let value = (fresh.0[lane].max(0.0) * scale.0[lane]).max(FAINT);
                let faded = value < f64::FADED && target.0[lane] < f64::FADED;
                target.0[lane] = match damping {
                    Some(damping) if !faded => damping.new * value + damping.old * target.0[lane],
                    _ => value,
                };
            }
        }
    }

    /// The weights of a group's states without the message of a table.
    #[inline(always)]
    pub(super) fn table_cavity<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        group: usize,
        table: usize,
    ) -> Vec<Lanes<f64, L>> {
        let side = usize::from(self.network.tables[table].b == group);
        let said = state.table_in[table][side].iter();
        let mut cavity = Vec::with_capacity(state.group_weight[group].len());
        for (weight, said) in state.group_weight[group].iter().zip(said) {
            cavity.push(weight.zip(*said, |weight, said| weight / said));
        }
        cavity
    }
}

/// The weight of the states that are not listed: the total minus the listed, or, where that would
/// cancel, the sum itself.
#[inline(always)]
pub(super) fn rest<const L: usize>(
    weights: &[Lanes<f64, L>],
    listed_states: impl ExactSizeIterator<Item = usize>,
    total: Lanes<f64, L>,
    listed: Lanes<f64, L>,
) -> Lanes<f64, L> {
    if listed_states.len() == weights.len() {
        return Lanes([0.0; L]);
    }
    let mut rest = total - listed;
    let mut cancels = [false; L];
    for lane in 0..L {
        cancels[lane] = rest.0[lane] < 0.01 * total.0[lane];
    }
    if cancels.contains(&true) {
        let mut sum = Lanes([0.0; L]);
        let mut next = 0;
        for state in listed_states.chain([weights.len()]) {
            weights[next..state].iter().for_each(|weight| sum += *weight);
            next = state + 1;
        }
        for lane in 0..L {
            rest.0[lane] = if cancels[lane] { sum.0[lane] } else { rest.0[lane] };
        }
    }
    rest
}
