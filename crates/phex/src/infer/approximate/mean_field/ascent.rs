//! Coordinate ascent on the bound, for rows side by side.
//!
//! With the other nodes fixed, the best distribution of a node is
//! `q(s) ∝ exp(θ_s − h_s − Σ_t J_st q_t − Σ_groups w (S − own))`, where `S` is the mass of all
//! members of a group and `own` that of this node. A state next to forbidden mass gets no mass.
//! Each update raises the bound. A sweep costs O(entries) and one exponential per state.

use multiversion::multiversion;

use super::energy::Energy;
use crate::infer::approximate::network::Frame;
use crate::numeric::{Elementary, Lanes};

/// The cost of a forbidden pair during the search for supports: enough to be avoided, but too
/// little to freeze the ascent.
const AVOIDED: f64 = 6.0;

/// The distributions of `L` rows.
#[derive(Debug, Clone)]
pub(super) struct Ascent<const L: usize> {
    /// The log-weight of each state from scores and evidence.
    pub(super) weights: Vec<Lanes<f64, L>>,
    /// The probability of each state.
    pub(super) mass: Vec<Lanes<f64, L>>,
    /// The mass of each member of each group, and of each group.
    own: Vec<Vec<Lanes<f64, L>>>,
    total: Vec<Lanes<f64, L>>,
    fields: Vec<Lanes<f64, L>>,
    flat: Vec<f64>,
}

/// How the ascent of the rows went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Course<const L: usize> {
    pub(super) iterations: [u32; L],
    pub(super) residual: [f64; L],
}

impl<const L: usize> Ascent<L> {
    pub(super) fn new(energy: &Energy, states: usize) -> Ascent<L> {
        let none = Lanes::NONE;
        Ascent {
            weights: vec![none; states],
            mass: vec![none; states],
            own: energy.groups.iter().map(|group| vec![none; group.members.len()]).collect(),
            total: vec![none; energy.groups.len()],
            fields: vec![none; states],
            flat: Vec::new(),
        }
    }

    /// Starts from the scores alone.
    pub(super) fn start_at_scores(&mut self, frame: &Frame) {
        for node in 0..frame.nodes() {
            let states = frame.of(node);
            softmax(&self.weights[states.clone()], &mut self.mass[states], &mut self.flat);
        }
    }

    /// Sweeps until no probability changes by more than `tolerance`. Rows that are done stay as
    /// they are. If `strict`, forbidden cells get no mass; otherwise they cost [`AVOIDED`].
    pub(super) fn climb(
        &mut self,
        energy: &Energy,
        frame: &Frame,
        strict: bool,
        (iterations, tolerance): (u32, f64),
    ) -> Course<L> {
        let mut course = Course { iterations: [0; L], residual: [f64::INFINITY; L] };
        let mut active = [true; L];
        for _ in 0..iterations {
            let change = sweep(self, energy, frame, strict, &active);
            for lane in 0..L {
                if active[lane] {
                    course.iterations[lane] += 1;
                    course.residual[lane] = change.0[lane];
                    active[lane] = change.0[lane] > tolerance;
                }
            }
            if active == [false; L] {
                break;
            }
        }
        course
    }

    /// Recomputes the masses of groups, without the rounding errors of many updates.
    pub(super) fn tally(&mut self, energy: &Energy) {
        for (at, group) in energy.groups.iter().enumerate() {
            let mut total = Lanes::NONE;
            for (own, states) in self.own[at].iter_mut().zip(&group.members) {
                *own = states.iter().fold(Lanes::NONE, |sum, &state| sum + self.mass[state]);
                total += *own;
            }
            self.total[at] = total;
        }
    }

    /// The bound `E[log weight] + entropy`, without the constant. It is minus infinity when a
    /// forbidden cell has mass.
    pub(super) fn bound(&mut self, energy: &Energy) -> [f64; L] {
        self.tally(energy);
        let mut bound = Lanes([0.0; L]);
        for (state, &mass) in self.mass.iter().enumerate() {
            let couplings = energy.couplings.of(state).iter();
            let pairs = couplings.fold(Lanes::NONE, |sum, &(other, strength)| {
                sum + self.mass[other].map(|mass| 0.5 * strength * mass)
            });
            let forbidden = energy.forbidden.of(state).iter();
            let against = forbidden.fold(Lanes::NONE, |sum, &other| sum + self.mass[other]);
            for lane in 0..L {
                let q = mass.0[lane];
                if q > 0.0 {
                    let weight = self.weights[state].0[lane] + energy.field[state];
                    bound.0[lane] += q * (weight - pairs.0[lane] - q.ln());
                }
                if q > 0.0 && against.0[lane] > 0.0 {
                    bound.0[lane] = f64::NEG_INFINITY;
                }
            }
        }
        for (at, group) in energy.groups.iter().enumerate() {
            for lane in 0..L {
                let occupied = self.own[at].iter().filter(|own| own.0[lane] > 0.0).count();
                if group.hard && occupied > 1 {
                    bound.0[lane] = f64::NEG_INFINITY;
                }
                bound.0[lane] -= group.cost * self.pairs_on(at, lane);
            }
        }
        bound.0
    }

    /// The expected number of pairs on in a group, `((Σp)² − Σp²) / 2`, summed so that nothing
    /// cancels.
    pub(super) fn pairs_on(&self, group: usize, lane: usize) -> f64 {
        let mut before = 0.0;
        let mut pairs = 0.0;
        for own in &self.own[group] {
            pairs += before * own.0[lane];
            before += own.0[lane];
        }
        pairs
    }
}

/// `exp` of each weight divided by their sum, or zero when all weights are minus infinity.
#[inline(always)]
fn softmax<const L: usize>(
    weights: &[Lanes<f64, L>],
    out: &mut [Lanes<f64, L>],
    flat: &mut Vec<f64>,
) {
    let lowest = Lanes([f64::NEG_INFINITY; L]);
    let most =
        weights.iter().fold(lowest, |most, &w| most.zip(w, |a, b| if a > b { a } else { b }));
    let most = most.map(|most| if most > f64::NEG_INFINITY { most } else { 0.0 });
    // One long loop, because only those become vector instructions.
    flat.clear();
    weights.iter().for_each(|&weight| flat.extend_from_slice(&(weight - most).0));
    flat.iter_mut().for_each(|value| *value = value.exp_downwards());
    let mut sum = Lanes::NONE;
    for (out, flat) in out.iter_mut().zip(flat.chunks_exact(L)) {
        out.0.copy_from_slice(flat);
        sum += *out;
    }
    let share = sum.map(|sum| if sum > 0.0 { 1.0 / sum } else { 0.0 });
    out.iter_mut().for_each(|out| *out = *out * share);
}

/// Updates every node once, and returns the largest change of a probability.
#[multiversion(targets = "simd")]
fn sweep<const L: usize>(
    ascent: &mut Ascent<L>,
    energy: &Energy,
    frame: &Frame,
    strict: bool,
    active: &[bool; L],
) -> Lanes<f64, L> {
    ascent.tally(energy);
    let hard = energy.is_hard();
    let mut change = Lanes([0.0; L]);
    for node in 0..frame.nodes() {
        let states = frame.of(node);
        for state in states.clone() {
            let mut field = ascent.weights[state];
            let own = energy.field[state];
            field = field.map(|field| field + own);
            for &(other, strength) in energy.couplings.of(state) {
                field = field.zip(ascent.mass[other], |field, mass| field - strength * mass);
            }
            if hard {
                let forbidden = energy.forbidden.of(state).iter();
                let against = forbidden.fold(Lanes::NONE, |sum, &other| sum + ascent.mass[other]);
                field = field.zip(against, |field, against| avoid(field, against, strict));
            }
            ascent.fields[state] = field;
        }
        for &(group, place) in energy.groups_at.of(node) {
            let (about, own) = (&energy.groups[group], ascent.own[group][place]);
            let others = ascent.total[group] - own;
            let others = if about.hard && strict {
                // Distinguishes exactly zero from anything else, which a difference of sums cannot
                // do.
                let rest = ascent.own[group].iter().enumerate().filter(|other| other.0 != place);
                rest.fold(Lanes::NONE, |sum, other| sum + *other.1)
            } else {
                others
            };
            for &state in &about.members[place] {
                ascent.fields[state] = ascent.fields[state].zip(others, |field, others| {
                    if about.hard {
                        avoid(field, others, strict)
                    } else {
                        field - about.cost * others
                    }
                });
            }
        }
        // All states are at minus infinity, so there is nothing to gain here.
        let stuck = ascent.fields[states.clone()].iter().fold(Lanes([1.0; L]), |stuck, &field| {
            stuck.zip(field, |stuck, field| if field > f64::NEG_INFINITY { 0.0 } else { stuck })
        });
        let mut old = [Lanes::NONE; 2];
        let keeps = states.len() == 2;
        let before: Vec<Lanes<f64, L>>;
        let old: &[Lanes<f64, L>] = if keeps {
            old.copy_from_slice(&ascent.mass[states.clone()]);
            &old
        } else {
            before = ascent.mass[states.clone()].to_vec();
            &before
        };
        softmax(&ascent.fields[states.clone()], &mut ascent.mass[states.clone()], &mut ascent.flat);
        for (state, &old) in states.zip(old) {
            let new = &mut ascent.mass[state];
            for lane in 0..L {
                let moves = active[lane] && stuck.0[lane] == 0.0;
                new.0[lane] = if moves { new.0[lane] } else { old.0[lane] };
            }
            change = change.zip(*new - old, |change, by| change.max(by.abs()));
        }
        for &(group, place) in energy.groups_at.of(node) {
            let members = energy.groups[group].members[place].iter();
            let own = members.fold(Lanes::NONE, |sum, &state| sum + ascent.mass[state]);
            ascent.total[group] += own - ascent.own[group][place];
            ascent.own[group][place] = own;
        }
    }
    change
}

/// The field of a state next to forbidden mass.
#[inline(always)]
fn avoid(field: f64, against: f64, strict: bool) -> f64 {
    let strictly = if against > 0.0 { f64::NEG_INFINITY } else { field };
    if strict { strictly } else { field - AVOIDED * against }
}
