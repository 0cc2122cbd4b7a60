//! Runs a single row, with vector lanes over the messages of a label.
//!
//! The messages to a label are side by side, in whole vectors whose last entries are blank (message
//! 1, ratio 0, so that they divide by 1). The arithmetic and its order are those of
//! [`mild`](super::mild), so that a row alone has the same answer as among others.

use super::labels::{Damping, tell_factors, watch_change};
use super::layout::{MessageLayout, WIDTH};
use super::mild::fraction;
use super::number::{Odds, Scaled};
use super::state::MessageState;
use crate::numeric::Lanes;

/// The belief of a label from the messages in the compact buffer.
#[inline(always)]
fn hear<T: Odds, const L: usize>(
    layout: &MessageLayout,
    state: &mut MessageState<T, L>,
    node: usize,
    watch: bool,
) -> T {
    let [mantissa, exponent] = state.flat_own[node];
    let mut scaled: Scaled<T, 1> =
        Scaled { mantissa: Lanes([mantissa]), exponent: Lanes([exponent]) };
    // Blanks are 1 and change no product.
    for first in (layout.flat.start[node]..layout.flat.start[node + 1]).step_by(WIDTH) {
        let eight = vector(&state.flat, first);
        let mut four = [T::ONE; 4];
        for at in 0..4 {
            four[at] = eight[at] * eight[at + 4];
        }
        scaled.mantissa.0[0] *= (four[0] * four[1]) * (four[2] * four[3]);
        scaled.normalise();
    }
    let ports = layout.ports[node]..layout.ports[node + 1];
    for port in &state.incoming[ports.clone()] {
        scaled.mantissa.0[0] *= port.0[0];
        scaled.normalise();
    }
    let odds = scaled.odds(T::MILD_EXPONENT).0[0];
    if watch {
        let old = Lanes([state.flat_belief[node]; L]);
        watch_change(state, &old, &Lanes([odds; L]));
    }
    state.flat_belief[node] = odds;
    if !ports.is_empty() {
        tell_factors(layout, state, node, Lanes([odds; L]));
    }
    odds
}

/// A vector of messages. Neighbours share a division.
#[inline(always)]
fn messages<T: Odds>(
    ratios: &[T; WIDTH],
    belief: &[T; WIDTH],
    back: &[T; WIDTH],
    before: &[T; WIDTH],
    damping: Option<Damping<T>>,
) -> [T; WIDTH] {
    let (mut above, mut below) = ([T::ONE; WIDTH], [T::ONE; WIDTH]);
    for at in 0..WIDTH {
        (above[at], below[at]) = fraction(ratios[at], belief[at], back[at], before[at], damping);
        // The partner of a blank has the division to itself.
        below[at] = if ratios[at] == T::ZERO { T::ONE } else { below[at] };
    }
    let mut out = [T::ONE; WIDTH];
    for at in 0..WIDTH {
        let other = below[at ^ 1];
        out[at] = (above[at] * other) * (T::ONE / (below[at] * other));
    }
    out
}

#[inline(always)]
fn vector<T: Odds>(all: &[T], first: usize) -> [T; WIDTH] {
    let mut out = [T::ONE; WIDTH];
    out.copy_from_slice(&all[first..first + WIDTH]);
    out
}

/// The messages that leave from a vector of slots.
#[inline(always)]
fn send<T: Odds, const L: usize>(
    layout: &MessageLayout,
    state: &MessageState<T, L>,
    first: usize,
    belief: &[T; WIDTH],
    damping: Option<Damping<T>>,
) -> [T; WIDTH] {
    let mut before = [T::ONE; WIDTH];
    if damping.is_some() {
        let reverse = &layout.flat.reverse[first..first + WIDTH];
        for (before, &other) in before.iter_mut().zip(reverse) {
            *before = state.flat[other as usize];
        }
    }
    let (ratios, back) = (vector(&state.flat_ratios, first), vector(&state.flat, first));
    messages(&ratios, belief, &back, &before, damping)
}

/// Updates one label in place.
#[inline(always)]
pub(super) fn visit<T: Odds, const L: usize>(
    layout: &MessageLayout,
    state: &mut MessageState<T, L>,
    node: usize,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    let belief = [hear(layout, state, node, watch); WIDTH];
    let mut left = layout.slots[node + 1] - layout.slots[node];
    for first in (layout.flat.start[node]..layout.flat.start[node + 1]).step_by(WIDTH) {
        let fresh = send(layout, state, first, &belief, damping);
        // Blanks send nothing.
        let reverse = &layout.flat.reverse[first..first + left.min(WIDTH)];
        left = left.saturating_sub(WIDTH);
        reverse.iter().zip(fresh).for_each(|(&other, fresh)| state.flat[other as usize] = fresh);
    }
}

/// Updates all labels at once: first all beliefs, then all messages, vector by vector.
#[inline(always)]
pub(super) fn flood<T: Odds, const L: usize>(
    layout: &MessageLayout,
    state: &mut MessageState<T, L>,
    damping: Option<Damping<T>>,
    watch: bool,
) {
    for node in 0..layout.nodes() {
        let belief = hear(layout, state, node, watch);
        state.flat_spread[layout.flat.start[node]..layout.flat.start[node + 1]].fill(belief);
    }
    for first in (0..layout.flat.reverse.len()).step_by(WIDTH) {
        let belief = vector(&state.flat_spread, first);
        let fresh = send(layout, state, first, &belief, damping);
        let (reverse, next) =
            (&layout.flat.reverse[first..first + WIDTH], &mut state.flat_next[..]);
        for (&other, fresh) in reverse.iter().zip(fresh) {
            next[other as usize] = fresh;
        }
    }
    std::mem::swap(&mut state.flat, &mut state.flat_next);
}
