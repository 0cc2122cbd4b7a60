//! The fast path for messages, when all pairs are symmetric and mild.
//!
//! With `t = ψ(x ≠ y) / ψ(x = y)` the message is `ρ' = (t ρ + B) / (ρ + t B)`, which costs two
//! multiplications and two additions. Two messages share a division: `a/b = a d / (b d)` and
//! `c/d = c b / (b d)`. Messages are between `t` and `1/t`, so nothing is clipped, and eight of
//! them are multiplied before the exponent is split off. About a quarter of the time is arithmetic.
//! The rest moves messages.

use super::labels::{Damping, hear};
use super::layout::MessageLayout;
use super::number::Odds;
use super::state::MessageState;
use crate::numeric::Lanes;

/// A message as numerator and denominator.
#[inline(always)]
pub(super) fn fraction<T: Odds>(
    ratio: T,
    belief: T,
    back: T,
    before: T,
    damping: Option<Damping<T>>,
) -> (T, T) {
    let (above, below) = (ratio * back + belief, back + ratio * belief);
    match damping {
        None => (above, below),
        Some(damping) => damping.fraction(above, below, before),
    }
}

/// Two messages with one division.
#[inline(always)]
fn two<T: Odds, const L: usize>(
    ratios: [T; 2],
    odds: &Lanes<T, L>,
    back: [&Lanes<T, L>; 2],
    before: [&Lanes<T, L>; 2],
    damping: Option<Damping<T>>,
) -> [Lanes<T, L>; 2] {
    let mut out = [Lanes([T::ONE; L]); 2];
    for lane in 0..L {
        let belief = odds.0[lane];
        // Written out, because closures are not compiled for the vectors of their caller.
        let (back_0, before_0) = (back[0].0[lane], before[0].0[lane]);
        let (back_1, before_1) = (back[1].0[lane], before[1].0[lane]);
        let first = fraction(ratios[0], belief, back_0, before_0, damping);
        let second = fraction(ratios[1], belief, back_1, before_1, damping);
        let share = T::ONE / (first.1 * second.1);
        out[0].0[lane] = (first.0 * second.1) * share;
        out[1].0[lane] = (second.0 * first.1) * share;
    }
    out
}

/// One message. The division is the same as for two, so that the result is too.
#[inline(always)]
fn one<T: Odds, const L: usize>(
    ratio: T,
    odds: &Lanes<T, L>,
    back: &Lanes<T, L>,
    before: &Lanes<T, L>,
    damping: Option<Damping<T>>,
) -> Lanes<T, L> {
    let mut out = Lanes([T::ONE; L]);
    for lane in 0..L {
        let (above, below) = fraction(ratio, odds.0[lane], back.0[lane], before.0[lane], damping);
        out.0[lane] = above * (T::ONE / below);
    }
    out
}

/// Updates one label: its belief, then its messages, in place or into the other buffer.
#[inline(always)]
pub(super) fn visit<T: Odds, const L: usize, const FLOOD: bool>(
    layout: &MessageLayout,
    ratios: &[T],
    state: &mut MessageState<T, L>,
    node: usize,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    let odds = hear::<T, L, 8>(layout, state, node, T::MILD_EXPONENT, watch);
    let (first, last) = (layout.slots[node], layout.slots[node + 1]);
    let mut slot = first;
    for (ratios, reverse) in
        ratios[first..last].chunks_exact(2).zip(layout.reverse[first..last].chunks_exact(2))
    {
        let back = [&state.messages[slot], &state.messages[slot + 1]];
        let [i, j] = [reverse[0] as usize, reverse[1] as usize];
        let before = [&state.messages[i], &state.messages[j]];
        let fresh = two([ratios[0], ratios[1]], &odds, back, before, damping);
        let target = if FLOOD { &mut state.next } else { &mut state.messages };
        [target[i], target[j]] = fresh;
        slot += 2;
    }
    if slot < last {
        let other = layout.reverse[slot] as usize;
        let (back, before) = (&state.messages[slot], &state.messages[other]);
        let fresh = one(ratios[slot], &odds, back, before, damping);
        let target = if FLOOD { &mut state.next } else { &mut state.messages };
        target[other] = fresh;
    }
}
