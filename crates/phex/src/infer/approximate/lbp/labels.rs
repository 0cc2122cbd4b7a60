//! The messages of binary labels: the inner loop.
//!
//! With the belief odds `B_i` of the sender and the message `ρ` from the other direction, the
//! cavity odds are `C = B_i / ρ`, and the message over a pair with weights `ψ` is
//!
//! ```text
//! ρ' = (ψ₁₀ + ψ₁₁ C) / (ψ₀₀ + ψ₀₁ C) = (ψ₁₀ ρ + ψ₁₁ B_i) / (ψ₀₀ ρ + ψ₀₁ B_i)
//! ```
//!
//! (the first index is the receiver). It costs one division and no exponential. Damping mixes the
//! probabilities `ρ/(1 + ρ)` of the old and the new message, which needs no second division. Where
//! both are as good as 0, or as good as 1, there is nothing to mix, and the new message is taken:
//! otherwise its odds would go on moving for a hundred iterations after its probability stood still.

use super::layout::{MessageLayout, Weights};
use super::number::{Odds, Scaled, within};
use super::state::MessageState;
use super::{mild, single};
use crate::numeric::Lanes;

/// The fraction of old messages that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damping<T> {
    pub(super) old: T,
    pub(super) new: T,
}

impl<T: Odds> Damping<T> {
    pub(super) fn new(part: f64) -> Damping<T> {
        Damping { old: T::from_f64(part), new: T::from_f64(1.0 - part) }
    }

    /// The odds `above / below`, mixed with old odds unless both are as good as certain.
    #[inline(always)]
    pub(super) fn mix(self, above: T, below: T, before: T) -> T {
        let (mixed_above, mixed_below) = self.fraction(above, below, before);
        let faint = above < T::FADED * below && before < T::FADED;
        let sure = below < T::FADED * above && before * T::FADED > T::ONE;
        let certain = faint || sure;
        let above = if certain { above } else { mixed_above };
        let below = if certain { below } else { mixed_below };
        above / below
    }

    /// Always mixed, as numerator and denominator.
    #[inline(always)]
    pub(super) fn fraction(self, above: T, below: T, before: T) -> (T, T) {
        let fresh = self.new * (T::ONE + before);
        let kept = self.old * (above + below);
        (fresh * above + kept * before, fresh * below + kept)
    }
}

/// The product of a label's own odds and all messages to it. `SAFE` messages at a time stay in
/// range.
#[inline(always)]
pub(super) fn belief<T: Odds, const L: usize, const SAFE: usize>(
    own: &Scaled<T, L>,
    messages: &[Lanes<T, L>],
    ports: &[Lanes<T, L>],
) -> Scaled<T, L> {
    let mut belief = *own;
    for some in messages.chunks(SAFE) {
        // Four products at once, because with a single row one chain of multiplications would wait
        // for each result.
        let mut four = [Lanes([T::ONE; L]); 4];
        let whole = some.chunks_exact(4);
        let rest = whole.remainder();
        for messages in whole {
            for at in 0..4 {
                four[at] = four[at] * messages[at];
            }
        }
        for at in 0..3 {
            if at < rest.len() {
                four[at] = four[at] * rest[at];
            }
        }
        belief.times(&((four[0] * four[1]) * (four[2] * four[3])));
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

/// Records how much a belief changes: its probability, and the relative change of its odds, which
/// shows what a probability close to 0 or 1 hides, because larger odds may cancel it.
#[inline(always)]
pub(super) fn watch_change<T: Odds, const L: usize>(
    state: &mut MessageState<T, L>,
    old: &Lanes<T, L>,
    new: &Lanes<T, L>,
) {
    for lane in 0..L {
        let (old, new) = (old.0[lane], new.0[lane]);
        let difference = if new > old { new - old } else { old - new };
        let probability = difference / ((T::ONE + new) * (T::ONE + old));
        // Further out, odds are cut off, and need not agree.
        let open = new > T::LEAST && new * T::LEAST < T::ONE;
        let proportion = if open { difference / (new + old) } else { T::ZERO };
        let (change, drift) = (&mut state.change.0[lane], &mut state.drift.0[lane]);
        *change = if probability > *change { probability } else { *change };
        *drift = if proportion > *drift { proportion } else { *drift };
    }
}

/// The weights of pairs, in the forms that messages need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs<'a, T> {
    /// For any pair.
    pub(super) weights: &'a [Weights<T>],
    /// The weight of labels that differ, if all pairs are symmetric and mild.
    pub(super) ratios: Option<&'a [T]>,
}

/// Updates one label in place: its belief, then its messages over pairs and to its factors.
#[inline(always)]
pub(super) fn visit<T: Odds, const L: usize>(
    layout: &MessageLayout,
    pairs: &Pairs<'_, T>,
    state: &mut MessageState<T, L>,
    node: usize,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    if let Some(ratios) = pairs.ratios {
        if L == 1 {
            return single::visit(layout, state, node, damping, watch);
        }
        return mild::visit::<T, L, false>(layout, ratios, state, node, damping, watch);
    }
    let odds = hear::<T, L, 4>(layout, state, node, T::EXPONENT, watch);
    let (first, last) = (layout.slots[node], layout.slots[node + 1]);
    let reverse = &layout.reverse[first..last];
    let weights = &pairs.weights[first..last];
    for ((slot, &other), weights) in (first..last).zip(reverse).zip(weights) {
        let back = state.messages[slot];
        let target = &mut state.messages[other as usize];
        *target = message(weights, &odds, &back, target, damping);
    }
}

/// Updates all labels at once: messages from the previous ones, into the other buffer.
#[inline(always)]
pub(super) fn flood<T: Odds, const L: usize>(
    layout: &MessageLayout,
    pairs: &Pairs<'_, T>,
    state: &mut MessageState<T, L>,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    if L == 1 && pairs.ratios.is_some() {
        return single::flood(layout, state, damping, watch);
    }
    for node in 0..layout.nodes() {
        if let Some(ratios) = pairs.ratios {
            mild::visit::<T, L, true>(layout, ratios, state, node, damping, watch);
            continue;
        }
        let odds = hear::<T, L, 4>(layout, state, node, T::EXPONENT, watch);
        let (first, last) = (layout.slots[node], layout.slots[node + 1]);
        let reverse = &layout.reverse[first..last];
        let weights = &pairs.weights[first..last];
        for ((slot, &other), weights) in (first..last).zip(reverse).zip(weights) {
            let (back, before) = (&state.messages[slot], &state.messages[other as usize]);
            state.next[other as usize] = message(weights, &odds, back, before, damping);
        }
    }
    std::mem::swap(&mut state.messages, &mut state.next);
}

/// The belief of a label from the newest messages to it. The label sends it to its larger factors.
#[inline(always)]
pub(super) fn hear<T: Odds, const L: usize, const SAFE: usize>(
    layout: &MessageLayout,
    state: &mut MessageState<T, L>,
    node: usize,
    exponent: T,
    watch: bool,
) -> Lanes<T, L> {
    let (first, last) = (layout.slots[node], layout.slots[node + 1]);
    let ports = layout.ports[node]..layout.ports[node + 1];
    let incoming = &state.incoming[ports];
    let messages = &state.messages[first..last];
    let scaled = belief::<T, L, SAFE>(&state.own[node], messages, incoming);
    let odds = scaled.odds(exponent);
    if watch {
        let old = state.belief[node];
        watch_change(state, &old, &odds);
    }
    state.belief[node] = odds;
    tell_factors(layout, state, node, odds);
    odds
}

/// The messages of a label to its larger factors: its odds without what each of them sent.
#[inline(always)]
pub(super) fn tell_factors<T: Odds, const L: usize>(
    layout: &MessageLayout,
    state: &mut MessageState<T, L>,
    node: usize,
    odds: Lanes<T, L>,
) {
    let ports = layout.ports[node]..layout.ports[node + 1];
    for (cavity, incoming) in state.cavity[ports.clone()].iter_mut().zip(&state.incoming[ports]) {
        *cavity = odds.zip(*incoming, |belief, back| within(belief / back, T::WIDE));
    }
}
