//! `family`: forests whose siblings exclude each other, by Newton's method with messages.
//!
//! The dual has one multiplier `λ_g` for each group. With `z_v = ℓ_v − λ_{up(v)} + Σ_{g below v}
//! λ_g` and `q = σ(z)`, it is `d(λ) = Σ softplus(ℓ) − softplus(z) − Σ_roots λ`. A pass goes up and
//! down the forest once and costs O(labels) (see [`lanes`]); near the end the error is squared in
//! every pass. Typical rows need 8 to 15 passes.
//!
//! Sixteen rows (single precision) or eight stand side by side. A row that has converged leaves its
//! lane and the next row enters it, so the result of a row depends on that row only. A row whose
//! dual value falls, or which stalls, leaves for a solver of its own in double precision, which
//! alternates passes with plain coordinate ascent from the best multipliers; the ascent never lets
//! the dual value fall.

#[allow(clippy::needless_range_loop)] // Loops over lanes index several arrays at once.
pub(super) mod lanes;

use multiversion::multiversion;

use self::lanes::LaneState;
use super::compile::Families;
use crate::numeric::{Grid, LogLane};

/// When the iterations stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stopping {
    pub(super) tolerance: f64,
    pub(super) passes: u32,
}

impl Stopping {
    /// For rows whose repair cost too much: another attempt goes on for longer, to a smaller residual.
    pub(super) fn harder(self) -> Stopping {
        Stopping { tolerance: self.tolerance * 1e-3, passes: self.passes.saturating_mul(8).max(64) }
    }
}

#[multiversion(targets = "simd")]
fn pass_up<T: LogLane, const L: usize>(state: &mut LaneState<T, L>, forest: &Families) {
    state.up(forest);
}

#[multiversion(targets = "simd")]
fn pass_down<T: LogLane, const L: usize>(state: &mut LaneState<T, L>, forest: &Families) {
    state.down(forest);
}

/// A row in a lane.
#[derive(Debug, Clone, Copy)]
struct Seat {
    row: usize,
    passes: u32,
    top: f64,
}

/// Solves rows of one forest. `load` fills in the logits of a row, in the order of the nodes; `done`
/// gets by how much the answer changes each of them, and the number of passes.
pub(super) fn solve<T: LogLane + Grid, const L: usize>(
    forest: &Families,
    rows: &[usize],
    stopping: Stopping,
    mut load: impl FnMut(usize, &mut [f64]),
    mut done: impl FnMut(usize, &[f64], u32),
) {
    let tolerance = stopping.tolerance.max(8.0 * T::STEP);
    // Rounding errors of the dual value.
    let noise = 16.0 * T::STEP;
    let mut state: LaneState<T, L> = LaneState::new(forest);
    let mut single: Option<LaneState<f64, 1>> = None;
    let mut logits = vec![0.0; forest.nodes()];
    let mut waiting = rows.iter().copied();
    let mut seats: [Option<Seat>; L] = [None; L];
    loop {
        for (lane, seat) in seats.iter_mut().enumerate() {
            if seat.is_some() {
                continue;
            }
            let Some(row) = waiting.next() else { continue };
            load(row, &mut logits);
            for (node, &logit) in logits.iter().enumerate() {
                let logit = T::from_f64(logit);
                (state.scores[node].0[lane], state.z[node].0[lane]) = (logit, logit);
            }
            state.multiplier.iter_mut().for_each(|lambda| lambda.0[lane] = T::ZERO);
            *seat = Some(Seat { row, passes: 0, top: f64::NEG_INFINITY });
        }
        if seats.iter().all(Option::is_none) {
            return;
        }
        pass_up(&mut state, forest);
        pass_down(&mut state, forest);
        for (lane, place) in seats.iter_mut().enumerate() {
            let Some(seat) = place else { continue };
            seat.passes += 1;
            let (dual, residual) = (state.dual[lane], state.residual[lane].to_f64());
            let slack = noise * (1.0 + dual.abs());
            let fell = dual.is_nan() || dual < seat.top - slack;
            let stalled = dual <= seat.top + slack && residual > 1e-3;
            seat.top = seat.top.max(dual);
            // In single precision a small residual may be all rounding.
            let still = dual <= seat.top + slack && residual < 100.0 * tolerance;
            let fine = residual < tolerance || (seat.passes > 24 && still);
            let trouble = fell || stalled || (seat.passes > 60 && !fine);
            if !fell && (fine || seat.passes >= stopping.passes) {
                read(forest, &state, lane, &mut logits);
                done(seat.row, &logits, seat.passes);
                *place = None;
            } else if trouble {
                let alone = single.get_or_insert_with(|| LaneState::new(forest));
                for (best, start) in state.best.iter().zip(&mut alone.multiplier) {
                    start.0[0] = best.0[lane].to_f64();
                }
                load(seat.row, &mut logits);
                for (score, &logit) in alone.scores.iter_mut().zip(&logits) {
                    score.0[0] = logit;
                }
                let passes = seat.passes + ascend(alone, forest, stopping, seat.passes);
                read(forest, alone, 0, &mut logits);
                done(seat.row, &logits, passes);
                *place = None;
            }
        }
    }
}

/// By how much the answer of a lane changes each logit.
fn read<T: LogLane, const L: usize>(
    forest: &Families,
    state: &LaneState<T, L>,
    lane: usize,
    changes: &mut [f64],
) {
    for (v, change) in changes.iter_mut().enumerate() {
        let lambda = |g: usize| state.multiplier[g].0[lane].to_f64();
        let below: f64 = forest.below(v).map(lambda).sum();
        *change = below - lambda(forest.group[v] as usize);
    }
}

/// One row by itself, from given multipliers: Newton passes, and plain ascent wherever the dual
/// value falls or stalls. Returns the number of passes.
fn ascend(state: &mut LaneState<f64, 1>, forest: &Families, stopping: Stopping, taken: u32) -> u32 {
    let (mut top, mut careful, mut hold) = (f64::NEG_INFINITY, 2u32, 1u32);
    let mut passes = 0;
    for v in 0..forest.nodes() {
        let lambda = |g: usize| state.multiplier[g].0[0];
        let below: f64 = forest.below(v).map(lambda).sum();
        state.z[v].0[0] = state.scores[v].0[0] + below - lambda(forest.group[v] as usize);
    }
    // The multipliers at `top`, because those of the pass before are overwritten.
    let mut best: Vec<f64> = state.multiplier.iter().map(|lambda| lambda.0[0]).collect();
    while passes == 0 || taken + passes < stopping.passes.max(2) {
        let before: Vec<f64> = state.multiplier.iter().map(|lambda| lambda.0[0]).collect();
        state.careful = careful > 0;
        pass_up(state, forest);
        passes += 1;
        let (dual, residual) = (state.dual[0], state.residual[0]);
        let slack = 1e-13 * (1.0 + dual.abs());
        if dual < top - slack {
            // Back to the best multipliers.
            for (lambda, &best) in state.multiplier.iter_mut().zip(&best) {
                lambda.0[0] = best;
            }
            state.stand_still();
            state.down(forest);
            hold = (2 * hold + 1).min(16);
            careful = hold;
            continue;
        }
        best = before;
        let stalled = dual <= top + slack && residual > 1e-4;
        top = top.max(dual);
        state.down(forest);
        if residual < stopping.tolerance {
            break;
        }
        if stalled {
            hold = (2 * hold + 1).min(16);
            careful = hold;
        } else {
            careful = careful.saturating_sub(1);
        }
    }
    passes
}
