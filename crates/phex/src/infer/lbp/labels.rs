//! Messages of binary labels: the inner loop.
//!
//! With the belief odds `B_i` of the sender and the message `ρ` that came the other way, the cavity
//! odds are `C = B_i / ρ`, and the message over a pair with weights `ψ` is
//!
//! ```text
//! ρ' = (ψ₁₀ + ψ₁₁ C) / (ψ₀₀ + ψ₀₁ C) = (ψ₁₀ ρ + ψ₁₁ B_i) / (ψ₀₀ ρ + ψ₀₁ B_i)
//! ```
//!
//! (first index the receiver): one division, no exponential. Damping mixes the probabilities
//! `ρ/(1 + ρ)` of the old and the new message, which needs no second division.

use super::layout::{Layout, Weights};
use super::number::{Odds, Scaled, within};
use super::state::State;
use crate::infer::lanes::Lanes;

/// The part of old messages that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damping<T> {
    pub(super) old: T,
    pub(super) new: T,
}

impl<T: Odds> Damping<T> {
    pub(super) fn new(part: f64) -> Damping<T> {
        Damping { old: T::from_f64(part), new: T::from_f64(1.0 - part) }
    }

    /// The odds `above / below`, mixed with old odds.
    #[inline(always)]
    pub(super) fn mix(self, above: T, below: T, before: T) -> T {
        let fresh = self.new * (T::ONE + before);
        let kept = self.old * (above + below);
        (fresh * above + kept * before) / (fresh * below + kept)
    }
}

/// The product of a label's own odds and all that it is told.
#[inline(always)]
pub(super) fn belief<T: Odds, const L: usize>(
    own: &Scaled<T, L>,
    messages: &[Lanes<T, L>],
    ports: &[Lanes<T, L>],
) -> Scaled<T, L> {
    let mut belief = *own;
    let fours = messages.chunks_exact(4);
    let rest = fours.remainder();
    for four in fours {
        four.iter().for_each(|message| belief.times(message));
        belief.normalise();
    }
    if !rest.is_empty() {
        rest.iter().for_each(|message| belief.times(message));
        belief.normalise();
    }
    for port in ports {
        belief.times(port);
        belief.normalise();
    }
    belief
}

/// The message over a pair.
#[inline(always)]
pub(super) fn message<T: Odds, const L: usize>(
    weights: &Weights<T>,
    odds: &Lanes<T, L>,
    back: &Lanes<T, L>,
    before: &Lanes<T, L>,
    damping: Option<Damping<T>>,
) -> Lanes<T, L> {
    let [on_off, on_on, off_off, off_on] = *weights;
    let mut out = Lanes([T::ONE; L]);
    for lane in 0..L {
        let (belief, back) = (odds.0[lane], back.0[lane]);
        let above = on_off * back + on_on * belief;
        let below = off_off * back + off_on * belief;
        let odds = match damping {
            None => above / below,
            Some(damping) => damping.mix(above, below, before.0[lane]),
        };
        out.0[lane] = within(odds, T::MESSAGE);
    }
    out
}

/// What a label says to its larger factors: its odds without what each said.
#[inline(always)]
fn cavities<T: Odds, const L: usize>(
    odds: &Lanes<T, L>,
    incoming: &[Lanes<T, L>],
    cavity: &mut [Lanes<T, L>],
) {
    for (cavity, incoming) in cavity.iter_mut().zip(incoming) {
        *cavity = odds.zip(*incoming, |belief, back| within(belief / back, T::WIDE));
    }
}

/// Takes in how much a belief changes: its probability, and its odds in proportion, which show what
/// a probability close to 0 or 1 hides.
#[inline(always)]
fn watch_change<T: Odds, const L: usize>(
    state: &mut State<T, L>,
    old: &Lanes<T, L>,
    new: &Lanes<T, L>,
) {
    for lane in 0..L {
        let (old, new) = (old.0[lane], new.0[lane]);
        let difference = if new > old { new - old } else { old - new };
        let probability = difference / ((T::ONE + new) * (T::ONE + old));
        // Where it is as good as certain, nothing is hidden any more.
        let open = new > T::CERTAIN && new * T::CERTAIN < T::ONE;
        let proportion = if open { difference / (new + old) } else { T::ZERO };
        let (change, drift) = (&mut state.change.0[lane], &mut state.drift.0[lane]);
        *change = if probability > *change { probability } else { *change };
        *drift = if proportion > *drift { proportion } else { *drift };
    }
}

/// One label, in place: its belief, then its messages over pairs and to its factors.
#[inline(always)]
pub(super) fn visit<T: Odds, const L: usize>(
    layout: &Layout,
    weights: &[Weights<T>],
    state: &mut State<T, L>,
    node: usize,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    let (first, last) = (layout.slots[node], layout.slots[node + 1]);
    let ports = layout.ports[node]..layout.ports[node + 1];
    let scaled =
        belief(&state.own[node], &state.messages[first..last], &state.incoming[ports.clone()]);
    let odds = scaled.odds();
    if watch {
        let old = state.belief[node];
        watch_change(state, &old, &odds);
    }
    state.belief[node] = odds;
    let reverse = &layout.reverse[first..last];
    for ((slot, &other), weights) in (first..last).zip(reverse).zip(&weights[first..last]) {
        let back = state.messages[slot];
        let target = &mut state.messages[other as usize];
        *target = message(weights, &odds, &back, target, damping);
    }
    cavities(&odds, &state.incoming[ports.clone()], &mut state.cavity[ports]);
}

/// All labels at once: messages from those before, into the other buffer.
#[inline(always)]
pub(super) fn flood<T: Odds, const L: usize>(
    layout: &Layout,
    weights: &[Weights<T>],
    state: &mut State<T, L>,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    for node in 0..layout.nodes() {
        let (first, last) = (layout.slots[node], layout.slots[node + 1]);
        let ports = layout.ports[node]..layout.ports[node + 1];
        let scaled =
            belief(&state.own[node], &state.messages[first..last], &state.incoming[ports.clone()]);
        let odds = scaled.odds();
        if watch {
            let old = state.belief[node];
            watch_change(state, &old, &odds);
        }
        state.belief[node] = odds;
        let reverse = &layout.reverse[first..last];
        let messages = state.messages[first..last].iter();
        for ((back, &other), weights) in messages.zip(reverse).zip(&weights[first..last]) {
            let before = &state.messages[other as usize];
            state.next[other as usize] = message(weights, &odds, back, before, damping);
        }
        cavities(&odds, &state.incoming[ports.clone()], &mut state.cavity[ports]);
    }
    std::mem::swap(&mut state.messages, &mut state.next);
}
