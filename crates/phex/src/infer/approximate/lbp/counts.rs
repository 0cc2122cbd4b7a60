//! The messages of cardinality factors: exclusion groups of k members with cost w per pair.
//!
//! With the cavity odds `a_j` of the members, the message to member i is
//!
//! ```text
//! ρ_i = Σ_m e_m q^C(m+1,2) / Σ_m e_m q^C(m,2)      (e_m the m-th symmetric polynomial of a_{j≠i})
//! ```
//!
//! The polynomials are the distribution D(m) of a count of independent members. To keep it where
//! the weight is, the odds are tilted by `τ = e^−λ`, `λ = w (c − ½)`, about a count c. Then
//! `e^{λm} q^C(m,2) = g(m) e^{w c²/2}` with `g(m) = exp(−w (m − c)² / 2)`, and
//! `ρ_i = τ Σ D₋ᵢ(m) g(m+1) / Σ D₋ᵢ(m) g(m)`. D₋ᵢ is D divided by the member's own polynomial.
//! Small counts are computed from below and large ones from above, so that all keep their
//! precision.
//!
//! All k messages together cost O(k²). Pairs would also need k² messages, but would send them
//! around in loops.

use super::Program;
use super::labels::Damping;
use super::layout::Member;
use super::number::{Odds, within};
use super::settle::CONTRADICTION;
use super::state::MessageState;
use crate::numeric::{Elementary, Lanes};

/// Below this total cost of all pairs, nothing underflows without a tilt.
const SAFE: f64 = 600.0;
/// Probabilities below this may have lost precision, and no weight makes up for it.
const FAINT: f64 = 1e-280;

/// The count of a cardinality factor's members, for some rows.
pub(super) struct Count<const L: usize> {
    /// The tilted probability of each member on and off.
    on: Vec<Lanes<f64, L>>,
    off: Vec<Lanes<f64, L>>,
    /// The distribution of the count of independent members.
    distribution: Vec<Lanes<f64, L>>,
    /// `g` for each count.
    weight: Vec<Lanes<f64, L>>,
    tilt: Lanes<f64, L>,
    centre: Lanes<f64, L>,
}

impl Program {
    /// The message of each member to the factor: its odds without the factor.
    #[inline(always)]
    fn member_odds<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        factor: usize,
    ) -> Vec<Lanes<f64, L>> {
        let members = &self.layout.members[factor];
        let mut odds = Vec::with_capacity(members.len());
        for member in members {
            odds.push(match *member {
                Member::GroupPart(part) => state.part_cavity[part],
                Member::Port(port) => widen(&state.cavity[port]),
            });
        }
        odds
    }

    /// The odds that each member receives, as numerator and denominator, from those of the members.
    #[inline(always)]
    fn count_messages<const L: usize>(
        &self,
        factor: usize,
        odds: &[Lanes<f64, L>],
    ) -> Vec<[Lanes<f64, L>; 2]> {
        let cost = self.network.cardinalities[factor].cost;
        if cost == f64::INFINITY {
            return at_most_one(odds);
        }
        let count = Count::new(cost, odds);
        let mut fresh = Vec::with_capacity(odds.len());
        // A loop, because closures are not compiled for the vectors of their caller.
        for member in 0..odds.len() {
            fresh.push(count.message(member));
        }
        fresh
    }

    /// Marks the lanes in which a factor's belief of a member contradicts the member's own.
    #[inline(always)]
    pub(super) fn doubt_count<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        factor: usize,
        contradicted: &mut [bool; L],
    ) {
        let odds = self.member_odds(state, factor);
        let fresh = self.count_messages(factor, &odds);
        let members = self.layout.members[factor].iter();
        for ((member, [above, below]), odds) in members.zip(&fresh).zip(&odds) {
            let believed = match *member {
                Member::Port(port) => widen(&state.probability[self.layout.owner_of_port(port)]),
                Member::GroupPart(part) => {
                    let (_, group, place) = self.layout.parts[part];
                    let states = &self.network.cardinalities[factor].parts[place].states;
                    let weights = &state.group_weight[group];
                    let (mut here, mut total) = (Lanes([0.0; L]), Lanes([0.0; L]));
                    states.iter().for_each(|&s| here += weights[s]);
                    weights.iter().for_each(|weight| total += *weight);
                    here.zip(total, |here, total| here / total)
                }
            };
            for lane in 0..L {
                let (above, below) = (above.0[lane], below.0[lane]);
                contradicted[lane] |= contradicts(odds.0[lane], above, below, believed.0[lane]);
            }
        }
    }

    /// All messages of a factor, from the newest messages to it.
    #[inline(always)]
    pub(super) fn visit_count<T: Odds, const L: usize>(
        &self,
        state: &mut MessageState<T, L>,
        factor: usize,
        damping: Option<Damping<f64>>,
    ) {
        let fresh = self.count_messages(factor, &self.member_odds(state, factor));
        for (member, [above, below]) in self.layout.members[factor].iter().zip(&fresh) {
            let before: Lanes<f64, L> = match *member {
                Member::GroupPart(part) => state.part_in[part],
                Member::Port(port) => widen(&state.incoming[port]),
            };
            let mut said = Lanes([1.0; L]);
            for lane in 0..L {
                let (above, below) = (above.0[lane], below.0[lane]);
                let odds = match damping {
                    None => above / below,
                    Some(damping) => damping.mix(above, below, before.0[lane]),
                };
                said.0[lane] = within(odds, f64::WIDE);
            }
            match *member {
                Member::GroupPart(part) => state.part_in[part] = said,
                Member::Port(port) => {
                    let incoming = &mut state.incoming[port];
                    for lane in 0..L {
                        incoming.0[lane] = within(T::from_f64(said.0[lane]), T::WIDE);
                    }
                }
            }
        }
    }

    /// `ln Z_f − Σ ln(1 + a)` and the expected number of pairs that are on.
    #[inline(always)]
    pub(super) fn count_energy<T: Odds, const L: usize>(
        &self,
        state: &MessageState<T, L>,
        factor: usize,
    ) -> (Lanes<f64, L>, Lanes<f64, L>) {
        let odds = self.member_odds(state, factor);
        let cost = self.network.cardinalities[factor].cost;
        let mut log = Lanes([0.0; L]);
        let mut pairs = Lanes([0.0; L]);
        if cost == f64::INFINITY {
            for lane in 0..L {
                let sum: f64 = odds.iter().map(|odds| odds.0[lane]).sum();
                let independent: f64 = odds.iter().map(|odds| odds.0[lane].ln_1p()).sum();
                log.0[lane] = sum.ln_1p() - independent;
            }
            return (log, pairs);
        }
        let count = Count::new(cost, &odds);
        for lane in 0..L {
            let (mut total, mut twice) = (0.0, 0.0);
            for (m, (d, g)) in count.distribution.iter().zip(&count.weight).enumerate() {
                let part = d.0[lane] * g.0[lane];
                total += part;
                twice += part * (m * m.saturating_sub(1)) as f64;
            }
            pairs.0[lane] = twice / total / 2.0;
            let tilted = |odds: &Lanes<f64, L>| (odds.0[lane] * count.tilt.0[lane]).ln_1p();
            let moved: f64 = odds.iter().map(|odds| tilted(odds) - odds.0[lane].ln_1p()).sum();
            log.0[lane] = total.ln() + cost * count.centre.0[lane].powi(2) / 2.0 + moved;
        }
        (log, pairs)
    }
}

/// Whether a label with these cavity odds is believed with another probability than with the message
/// `above / below`, which is not cut off.
#[inline(always)]
pub(super) fn contradicts(odds: f64, above: f64, below: f64, believed: f64) -> bool {
    // Inverses, because odds may be beyond the range of numbers. If the factor allows nothing, this is NaN.
    let fresh = 1.0 / (1.0 + below / above / odds);
    let agree = (fresh - believed).abs() <= CONTRADICTION;
    !agree
}

#[inline(always)]
fn widen<T: Odds, const L: usize>(narrow: &Lanes<T, L>) -> Lanes<f64, L> {
    let mut wide = Lanes([0.0; L]);
    for lane in 0..L {
        wide.0[lane] = narrow.0[lane].to_f64();
    }
    wide
}

/// When no two members may be on, a member receives `1 / (1 + Σ others)`.
#[inline(always)]
fn at_most_one<const L: usize>(odds: &[Lanes<f64, L>]) -> Vec<[Lanes<f64, L>; 2]> {
    let one = Lanes([1.0; L]);
    let mut out = vec![[one, one]; odds.len()];
    // Sums from both sides, because subtracting a member from the whole sum would cancel.
    let (mut before, mut after) = (Lanes([0.0; L]), Lanes([0.0; L]));
    for at in 0..odds.len() {
        out[at][1] += before;
        before += odds[at];
        let back = odds.len() - 1 - at;
        out[back][1] += after;
        after += odds[back];
    }
    out
}

impl<const L: usize> Count<L> {
    #[inline(always)]
    fn new(cost: f64, odds: &[Lanes<f64, L>]) -> Count<L> {
        let k = odds.len();
        let centre = if cost * (k * k) as f64 / 2.0 < SAFE {
            Lanes([0.5; L])
        } else {
            likely_count(cost, odds)
        };
        let tilt = centre.map(|centre| (-cost * (centre - 0.5)).exp_downwards());
        let (mut on, mut off) = (Vec::with_capacity(k), Vec::with_capacity(k));
        for odds in odds {
            let tilted = *odds * tilt;
            let rest = tilted.map(|odds| 1.0 / (1.0 + odds));
            off.push(rest);
            on.push(tilted * rest);
        }
        let mut distribution = vec![Lanes([0.0; L]); k + 1];
        distribution[0] = Lanes([1.0; L]);
        for (done, (on, off)) in on.iter().zip(&off).enumerate() {
            for m in (0..=done).rev() {
                let here = distribution[m];
                distribution[m + 1] += here * *on;
                distribution[m] = here * *off;
            }
        }
        let mut weight = Vec::with_capacity(k + 1);
        for m in 0..=k {
            weight.push(centre.map(|centre| {
                let away = m as f64 - centre;
                (-cost * away * away / 2.0).exp_downwards()
            }));
        }
        Count { weight, on, off, distribution, tilt, centre }
    }

    /// The odds that a member receives, as numerator and denominator.
    /// `D(m) = on D₋ᵢ(m − 1) + off D₋ᵢ(m)`. Counts are computed from below while the second term is
    /// the larger one, which holds up to some count. The others are computed from above, where the
    /// first term is larger. So no step loses more than a bit, and none amplifies the errors of the
    /// step before.
    #[inline(always)]
    fn message(&self, member: usize) -> [Lanes<f64, L>; 2] {
        let k = self.on.len();
        let (on, off) = (&self.on[member], &self.off[member]);
        let (least, most) = (off.map(|off| 1.0 / off), on.map(|on| 1.0 / on));
        let mut out = [Lanes([0.0; L]); 2];
        // How many counts are computed from below.
        let mut turn = Lanes([0.0; L]);
        let mut up = Lanes([0.0; L]);
        for m in 0..k {
            for lane in 0..L {
                let (here, told) = (self.distribution[m].0[lane], on.0[lane] * up.0[lane]);
                // Faint counts are left out. That matters only where the member is far likelier on
                // than off.
                let faint = here < FAINT;
                let begins = m > 0 || !faint || off.0[lane] > 1e-8;
                let rises = begins && turn.0[lane] == m as f64 && (faint || here >= 2.0 * told);
                turn.0[lane] = if rises { m as f64 + 1.0 } else { turn.0[lane] };
                up.0[lane] = if rises && !faint { (here - told) * least.0[lane] } else { 0.0 };
                out[0].0[lane] += up.0[lane] * self.weight[m + 1].0[lane];
                out[1].0[lane] += up.0[lane] * self.weight[m].0[lane];
            }
        }
        let mut down = Lanes([0.0; L]);
        for m in (0..k).rev() {
            for lane in 0..L {
                let value =
                    (self.distribution[m + 1].0[lane] - off.0[lane] * down.0[lane]) * most.0[lane];
                let kept = m as f64 >= turn.0[lane] && value > 0.0;
                down.0[lane] = if kept { value } else { 0.0 };
                out[0].0[lane] += down.0[lane] * self.weight[m + 1].0[lane];
                out[1].0[lane] += down.0[lane] * self.weight[m].0[lane];
            }
        }
        for lane in 0..L {
            out[0].0[lane] *= self.tilt.0[lane];
        }
        out
    }
}

/// The largest count m at which the members still expect m to be on: `Σ a q^m / (1 + a q^m) ≥ m`.
#[inline(always)]
fn likely_count<const L: usize>(cost: f64, odds: &[Lanes<f64, L>]) -> Lanes<f64, L> {
    let mut low = Lanes([0.0f64; L]);
    let mut high = Lanes([odds.len() as f64 + 1.0; L]);
    for _ in 0..=usize::BITS - odds.len().leading_zeros() {
        let middle = low.zip(high, |low, high| ((low + high) / 2.0).floor());
        let tilt = middle.map(|middle| (-cost * middle).exp_downwards());
        let mut expected = Lanes([0.0; L]);
        for odds in odds {
            expected += odds.zip(tilt, |odds, tilt| odds * tilt / (1.0 + odds * tilt));
        }
        for lane in 0..L {
            let enough = expected.0[lane] >= middle.0[lane];
            low.0[lane] = if enough { middle.0[lane] } else { low.0[lane] };
            high.0[lane] = if enough { high.0[lane] } else { middle.0[lane] };
        }
    }
    low.map(|low| low.max(0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{log_add, log_sum_exp};
    use crate::testkit::Random;

    /// The message to a member from the polynomials of the others, which are sums of positive
    /// numbers.
    fn direct(cost: f64, odds: &[f64], member: usize) -> f64 {
        // As logarithms, because they exceed any range.
        let mut polynomial = vec![0.0];
        for (_, odds) in odds.iter().enumerate().filter(|(at, _)| *at != member) {
            polynomial.push(f64::NEG_INFINITY);
            for m in (1..polynomial.len()).rev() {
                polynomial[m] = log_add(polynomial[m], polynomial[m - 1] + odds.ln());
            }
        }
        let sum = |shift: usize| {
            let pairs =
                |m: usize| cost * (m * (m + 1) / 2) as f64 - cost * (m * (1 - shift)) as f64;
            log_sum_exp(polynomial.iter().enumerate().map(|(m, log)| log - pairs(m)))
        };
        (sum(1) - sum(0)).exp()
    }

    #[test]
    fn messages_keep_their_precision() {
        let mut random = Random::new(5);
        for k in [2, 3, 8, 31, 45, 120] {
            for cost in [0.01, 0.2, 0.8, 2.0, 6.0] {
                for spread in [0.5, 2.0, 6.0] {
                    let mut odds: Vec<f64> =
                        (0..k).map(|_| (random.normal() * spread).exp()).collect();
                    // Some members are practically certain.
                    odds.iter_mut().take(k / 10).for_each(|odds| *odds = 1e90);
                    odds.iter_mut().rev().take(k / 12).for_each(|odds| *odds = 1e240);
                    let lanes: Vec<Lanes<f64, 1>> =
                        odds.iter().map(|&odds| Lanes([odds])).collect();
                    let count = Count::new(cost, &lanes);
                    for member in 0..k {
                        let [above, below] = count.message(member);
                        let (found, truth) = (above.0[0] / below.0[0], direct(cost, &odds, member));
                        let error = (found / truth - 1.0).abs();
                        // What a certain member receives does not matter.
                        let known = odds[member] > 1e80;
                        assert!(
                            known || error < 1e-9,
                            "{k} at {cost}, {spread}: {found}, not {truth}"
                        );
                    }
                }
            }
        }
    }
}
