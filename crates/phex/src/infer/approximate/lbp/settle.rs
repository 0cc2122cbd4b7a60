//! Computes answers from messages.
//!
//! The Bethe estimate of log Z is exact on trees. With the sums `Z_i` of the unnormalised beliefs
//! and `Z_f = Σ ψ_f Π n_{i→f}` of cavities it is
//!
//! ```text
//! log Z = Σ_i log Z_i + Σ_f ( log Z_f − Σ_{i ∈ f} log Z_i )
//! ```
//!
//! where a binary label has `Z_i = 1 + B_i`. The terms of labels and pairs are multiplied with a
//! separate exponent, so that a row costs only a few logarithms.
//!
//! At a fixed point the belief of a factor has the beliefs of its labels as marginals. Where it has
//! not, as when a message was cut off and larger odds would have cancelled it, the row has not
//! converged.

use super::Program;
use super::counts::contradicts;
use super::groups::{FAINT, rest};
use super::labels::{belief, tell_factors};
use super::layout::{Member, Weights};
use super::number::Odds;
use super::state::{MessageState, TILE};
use crate::infer::approximate::network::PairPlace;
use crate::infer::{Answers, Block, Evidence, Number};
use crate::numeric::Lanes;
use crate::numeric::Scalar;

/// The belief of a factor may differ from those of its labels by this probability.
pub(super) const CONTRADICTION: f64 = 1e-3;

/// A long product with a separate exponent.
struct Product<T, const L: usize> {
    mantissa: Lanes<T, L>,
    exponent: Lanes<f64, L>,
}

impl<T: Odds, const L: usize> Product<T, L> {
    #[inline(always)]
    fn times(&mut self, lane: usize, mantissa: T, exponent: T) {
        let (mantissa, more) = (self.mantissa.0[lane] * mantissa).split();
        self.mantissa.0[lane] = mantissa;
        self.exponent.0[lane] += more.to_f64() + exponent.to_f64();
    }
}

impl Program {
    /// Computes beliefs from the final messages, and log Z of each lane.
    #[inline(always)]
    pub(super) fn settle<T: Odds, const L: usize>(
        &self,
        weights: &[Weights<T>],
        state: &mut MessageState<T, L>,
    ) -> [f64; L] {
        let layout = &self.layout;
        let mut product = Product { mantissa: Lanes([T::ONE; L]), exponent: Lanes([0.0; L]) };
        let large = T::EXPONENT - T::ONE;
        let allowed = T::from_f64(CONTRADICTION);
        state.contradicted = [false; L];
        for node in 0..layout.nodes() {
            let slots = layout.slots[node]..layout.slots[node + 1];
            let ports = layout.ports[node]..layout.ports[node + 1];
            let incoming = &state.incoming[ports];
            let scaled = belief::<T, L, 4>(&state.own[node], &state.messages[slots], incoming);
            let odds = scaled.odds(T::EXPONENT);
            for lane in 0..L {
                // 1 + B, or B itself where the 1 is lost anyway and B is cut off.
                let whole = scaled.exponent.0[lane] > large;
                let mantissa = if whole { scaled.mantissa.0[lane] } else { T::ONE + odds.0[lane] };
                let exponent = if whole { scaled.exponent.0[lane] } else { T::ZERO };
                product.times(lane, mantissa, exponent);
            }
            state.belief[node] = odds;
            state.improbability[node] = odds.map(|odds| T::ONE / (T::ONE + odds));
            state.probability[node] = odds * state.improbability[node];
            tell_factors(layout, state, node, odds);
        }
        for &[at_a, at_b] in &layout.pair_slots {
            let (a, b) = (layout.owner[at_a as usize], layout.owner[at_b as usize]);
            let (on_a, off_a) = (&state.probability[a as usize], &state.improbability[a as usize]);
            let (on_b, off_b) = (&state.probability[b as usize], &state.improbability[b as usize]);
            let (to_a, to_b) = (&state.messages[at_a as usize], &state.messages[at_b as usize]);
            let weights = &weights[at_a as usize];
            for lane in 0..L {
                // (1, C) / (1 + B) with C = B / ρ: the sum is Z_f / (Z_a Z_b).
                let a = Cavity { on: on_a.0[lane] / to_a.0[lane], off: off_a.0[lane] };
                let b = Cavity { on: on_b.0[lane] / to_b.0[lane], off: off_b.0[lane] };
                let Joint { sum, on_a: pair_a, on_b: pair_b, .. } = joint(weights, &a, &b);
                let (gap_a, gap_b) = (pair_a - on_a.0[lane] * sum, pair_b - on_b.0[lane] * sum);
                let most = allowed * sum;
                let agree = gap_a <= most && -gap_a <= most && gap_b <= most && -gap_b <= most;
                let lost = is_lost(to_a.0[lane], on_a.0[lane], off_a.0[lane])
                    || is_lost(to_b.0[lane], on_b.0[lane], off_b.0[lane]);
                // If the sum is 0, the beliefs contradict the relation.
                state.contradicted[lane] |= lost || !(agree && sum > T::ZERO);
                let least = T::ONE / T::WIDE;
                let sum = if sum > least { sum } else { least };
                product.times(lane, sum, T::ZERO);
            }
        }
        for group in 0..self.network.groups.len() {
            let total = self.weigh_group(state, group, false);
            self.tell_parts(state, group, total);
        }
        let mut out = [0.0; L];
        for lane in 0..L {
            // Exponents are integers, so those of evidence cancel exactly.
            let exponent = product.exponent.0[lane] - state.excess[lane];
            let pairs = product.mantissa.0[lane].to_f64().ln() + exponent * std::f64::consts::LN_2;
            out[lane] = pairs + state.offset[lane] + self.network.constant + self.layout.constant;
        }
        self.add_larger(state, &mut out);
        out
    }

    /// Adds the terms of groups, and of factors that are not pairs.
    #[inline(always)]
    fn add_larger<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        out: &mut [f64; L],
    ) {
        let mut contradicted = state.contradicted;
        let total = |group: usize| {
            let mut total = Lanes([0.0; L]);
            state.group_weight[group].iter().for_each(|weight| total += *weight);
            total
        };
        let totals: Vec<Lanes<f64, L>> = (0..self.network.groups.len()).map(total).collect();
        for (total, exponent) in totals.iter().zip(&state.group_exponent) {
            for lane in 0..L {
                out[lane] += total.0[lane].ln() + exponent.0[lane] * std::f64::consts::LN_2;
            }
        }
        // ln(1 + C) − ln(1 + B) of a port.
        let port_term = |port: usize, lane: usize| {
            let cavity = state.cavity[port].0[lane].to_f64();
            let belief = cavity * state.incoming[port].0[lane].to_f64();
            cavity.ln_1p() - belief.ln_1p()
        };
        for (link, shape) in self.network.links.iter().enumerate() {
            let port = self.layout.link_port[link];
            let owner = self.layout.owner_of_port(port);
            let total = totals[shape.group];
            let entries = &self.link_weights[link];
            let (off, on) = self.sums(state, shape.group, link, entries, total);
            for lane in 0..L {
                let odds = state.cavity[port].0[lane].to_f64();
                let believed = state.probability[owner].0[lane].to_f64();
                contradicted[lane] |= contradicts(odds, on.0[lane], off.0[lane], believed);
                // A state that the label forbids, and that is believed only because no message forbids.
                for &(s, [off_weight, on_weight]) in entries {
                    let said = (off_weight + on_weight * odds) / (1.0 + odds);
                    let weight = state.group_weight[shape.group][s].0[lane];
                    let believed = weight > CONTRADICTION * total.0[lane];
                    contradicted[lane] |= believed && said < FAINT;
                }
                let sum = (off.0[lane] + on.0[lane] * odds) / (1.0 + odds);
                out[lane] += sum.ln() - total.0[lane].ln() + port_term(port, lane);
            }
        }
        for factor in 0..self.network.cardinalities.len() {
            let (log, _) = self.count_energy(state, factor);
            self.doubt_count(state, factor, &mut contradicted);
            for lane in 0..L {
                out[lane] += log.0[lane];
                for member in &self.layout.members[factor] {
                    out[lane] += match *member {
                        Member::Port(port) => port_term(port, lane),
                        Member::GroupPart(part) => {
                            let (_, group, _) = self.layout.parts[part];
                            let total = totals[group];
                            let (here, rest) = self.part_weights(state, part, total);
                            let said = state.part_in[part].0[lane];
                            (rest.0[lane] + here.0[lane] / said).ln() - total.0[lane].ln()
                        }
                    };
                }
            }
        }
        for (table, shape) in self.network.tables.iter().enumerate() {
            let a = self.table_cavity(state, shape.a, table);
            let b = self.table_cavity(state, shape.b, table);
            for lane in 0..L {
                let sum = self.table_sum(table, &a, &b, lane);
                out[lane] += sum.ln() - totals[shape.a].0[lane].ln() - totals[shape.b].0[lane].ln();
                let Some([from_a, from_b]) = self.table_marginals(table, &a, &b, lane) else {
                    continue;
                };
                for (group, found) in [(shape.a, from_a), (shape.b, from_b)] {
                    let total = totals[group].0[lane];
                    let all: f64 = found.iter().sum();
                    for (weight, found) in state.group_weight[group].iter().zip(&found) {
                        let apart = (found / all - weight.0[lane] / total).abs();
                        let agree = apart <= CONTRADICTION;
                        contradicted[lane] |= !agree;
                    }
                }
            }
        }
        state.contradicted = contradicted;
    }

    /// The weight of each state of both groups in the belief of a table, unless the table is too large
    /// to be written out: then sums would cancel.
    fn table_marginals<const L: usize>(
        &self,
        table: usize,
        a: &[Lanes<f64, L>],
        b: &[Lanes<f64, L>],
        lane: usize,
    ) -> Option<[Vec<f64>; 2]> {
        let entries = &self.network.tables[table].entries;
        if entries.len() < a.len() * b.len() {
            return None;
        }
        let mut out = [vec![0.0; a.len()], vec![0.0; b.len()]];
        for (&weight, &(s, t, _)) in self.table_weights[table].iter().zip(entries) {
            let both = weight * a[s].0[lane] * b[t].0[lane];
            out[0][s] += both;
            out[1][t] += both;
        }
        Some(out)
    }

    /// The weights of the states of a part, and of the other states.
    #[inline(always)]
    fn part_weights<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        part: usize,
        total: Lanes<f64, L>,
    ) -> (Lanes<f64, L>, Lanes<f64, L>) {
        let (factor, group, place) = self.layout.parts[part];
        let states = &self.network.cardinalities[factor].parts[place].states;
        let weights = &state.group_weight[group];
        let mut here = Lanes([0.0; L]);
        states.iter().for_each(|&s| here += weights[s]);
        (here, rest(weights, states.iter().copied(), total, here))
    }

    /// `Σ ψ(s, t) n_s n_t`.
    #[inline(always)]
    fn table_sum<const L: usize>(
        &self,
        table: usize,
        a: &[Lanes<f64, L>],
        b: &[Lanes<f64, L>],
        lane: usize,
    ) -> f64 {
        let entries = &self.network.tables[table].entries;
        let full = entries.len() == a.len() * b.len();
        let sum = |side: &[Lanes<f64, L>]| side.iter().map(|n| n.0[lane]).sum::<f64>();
        let start = if full { 0.0 } else { sum(a) * sum(b) };
        let weights = self.table_weights[table].iter().zip(entries);
        let terms = weights.map(|(&weight, &(s, t, _))| {
            (if full { weight } else { weight - 1.0 }) * a[s].0[lane] * b[t].0[lane]
        });
        (start + terms.sum::<f64>()).max(f64::MIN_POSITIVE)
    }

    /// Writes the marginals of binary labels, those of each lane into its row.
    pub(super) fn write_binary<S: Number, T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        rows: &[Option<usize>; L],
        answers: &mut Answers<'_, S>,
    ) {
        let n = self.network.labels;
        for first in (0..self.layout.nodes()).step_by(TILE) {
            let tile = first..self.layout.nodes().min(first + TILE);
            for (lane, row) in rows.iter().enumerate() {
                let Some(row) = *row else { continue };
                let marginals = &mut answers.marginals[row * n..(row + 1) * n];
                let labels = self.layout.label[tile.clone()].iter();
                for (&label, p) in labels.zip(&state.probability[tile.clone()]) {
                    marginals[label] = S::from_f64(p.0[lane].to_f64());
                }
            }
        }
    }

    /// Writes the other requested results of a lane: one-of groups, evidence, expected violations.
    pub(super) fn write<S: Number, T: Odds, const L: usize>(
        &self,
        weights: &[Weights<T>],
        state: &MessageState<T, L>,
        lane: usize,
        row: usize,
        block: &Block<'_, S>,
        answers: &mut Answers<'_, S>,
    ) {
        let n = self.network.labels;
        let marginals = &mut answers.marginals[row * n..(row + 1) * n];
        for (group, labels) in self.network.groups.iter().enumerate() {
            let total: f64 = state.group_weight[group].iter().map(|w| w.0[lane]).sum();
            for (&label, weight) in labels.iter().zip(&state.group_weight[group]) {
                marginals[label] = S::from_f64(weight.0[lane] / total);
            }
        }
        if block.evidence.is_some() {
            for label in self.network.binary() {
                match block.evidence(row, label) {
                    Evidence::Unknown => {}
                    Evidence::Off => marginals[label] = <S as Scalar>::ZERO,
                    Evidence::On => marginals[label] = <S as Scalar>::ONE,
                }
            }
        }
        let Some(expectations) = &mut answers.expectations else { return };
        let terms = self.network.terms.len();
        let out = &mut expectations[row * terms..(row + 1) * terms];
        let both = |place: PairPlace| self.both(weights, state, place, lane);
        let pairs_on = |factor: usize| self.count_energy(state, factor).1.0[lane];
        self.network.expectations(|label| marginals[label].to_f64(), both, pairs_on, out);
    }

    /// The probability that both labels of a pair are on.
    fn both<T: Odds, const L: usize>(
        &self,
        weights: &[Weights<T>],
        state: &MessageState<T, L>,
        place: PairPlace,
        lane: usize,
    ) -> f64 {
        match place {
            PairPlace::Never => 0.0,
            PairPlace::Pair(pair) => {
                let [a, b] = self.layout.pair_slots[pair].map(|slot| {
                    let owner = self.layout.owner[slot as usize] as usize;
                    let odds = state.belief[owner].0[lane].to_f64();
                    Cavity::new(odds, state.messages[slot as usize].0[lane].to_f64())
                });
                let slot = self.layout.pair_slots[pair][0] as usize;
                let joint = joint(&weights[slot].map(Scalar::to_f64), &a, &b);
                joint.both / joint.sum
            }
            PairPlace::Link(link, s) => {
                let shape = &self.network.links[link];
                let weights = &state.group_weight[shape.group];
                let total: f64 = weights.iter().map(|weight| weight.0[lane]).sum();
                let odds = state.cavity[self.layout.link_port[link]].0[lane].to_f64();
                let entries = &self.link_weights[link];
                match entries.binary_search_by_key(&s, |entry| entry.0) {
                    Ok(at) => {
                        let [off, on] = entries[at].1;
                        let sum = off + on * odds;
                        if sum == 0.0 { 0.0 } else { weights[s].0[lane] / total * on * odds / sum }
                    }
                    Err(_) => weights[s].0[lane] / total * odds / (1.0 + odds),
                }
            }
            PairPlace::Table(table, s, t) => {
                let shape = &self.network.tables[table];
                let a = self.table_cavity(state, shape.a, table);
                let b = self.table_cavity(state, shape.b, table);
                let entries = &shape.entries;
                let weight = entries
                    .binary_search_by_key(&(s, t), |entry| (entry.0, entry.1))
                    .map_or(1.0, |at| self.table_weights[table][at]);
                let sum = self.table_sum(table, &a, &b, lane);
                weight * a[s].0[lane] * b[t].0[lane] / sum
            }
        }
    }
}

/// Odds of a label without a message that are opposed to it by more than this matter where the message
/// was cut off.
const OPPOSED: f64 = 1e50;

/// Whether a message was cut off and all else that a label knows is opposed to it.
#[inline(always)]
fn is_lost<T: Odds>(message: T, on: T, off: T) -> bool {
    let opposed = T::from_f64(OPPOSED);
    let rest = off * message;
    (message >= T::MESSAGE && on * opposed < rest)
        || (message * T::MESSAGE <= T::ONE && on > rest * opposed)
}

/// A label without one of its messages: the relative weights of on and off.
struct Cavity<T> {
    on: T,
    off: T,
}

impl<T: Scalar> Cavity<T> {
    #[inline(always)]
    fn new(belief: T, message: T) -> Cavity<T> {
        let cavity = belief / message;
        let off = T::ONE / (T::ONE + cavity);
        Cavity { on: cavity * off, off }
    }
}

/// The weights of a pair's states.
struct Joint<T> {
    both: T,
    /// The states in which a label is on.
    on_a: T,
    on_b: T,
    /// All four.
    sum: T,
}

#[inline(always)]
fn joint<T: Scalar>(weights: &Weights<T>, a: &Cavity<T>, b: &Cavity<T>) -> Joint<T> {
    let [b_alone, both, none, a_alone] = *weights;
    let both = both * a.on * b.on;
    let (b_alone, a_alone) = (b_alone * a.off * b.on, a_alone * a.on * b.off);
    let none = none * a.off * b.off;
    let sum = (both + none) + (b_alone + a_alone);
    Joint { both, on_a: both + a_alone, on_b: both + b_alone, sum }
}
