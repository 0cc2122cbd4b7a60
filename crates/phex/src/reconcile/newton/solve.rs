//! Rows in lanes, each on its own way from ascent to Newton's method.
//!
//! A row starts with three passes of coordinate ascent, which end what Newton's method handles
//! badly: multipliers that are far away. Then it takes Newton steps with little damping. Where the
//! dual value falls, it goes a quarter of the step, twice at most, and then back with thirty times
//! the damping. Where it stalls, it takes two passes of ascent, which never let the dual value fall.
//! Where the residual has not become smaller for `HOPELESS` steps, it ends.
//!
//! A row that has converged leaves its lane. Lanes are filled again when nearly all are empty,
//! because rows that start together share the passes of ascent and end at about the same time, and a
//! step costs as much for one lane as for all. No lane depends on another, so each row's result
//! depends on nothing but the row. A row that single precision cannot finish goes on by itself in
//! double precision.

use multiversion::multiversion;

use super::super::family::Stopping;
use super::elimination::Elimination;
use super::lanes::NewtonLanes;
use super::system::RowSystem;
use crate::numeric::{Grid, LogLane};

#[multiversion(targets = "simd")]
fn evaluate<T: LogLane + Grid, const L: usize>(state: &mut NewtonLanes<T, L>, system: &RowSystem) {
    state.evaluate(system);
}

#[multiversion(targets = "simd")]
fn sweep<T: LogLane + Grid, const L: usize>(
    state: &mut NewtonLanes<T, L>,
    system: &RowSystem,
    moving: &[T; L],
    backwards: bool,
) {
    state.sweep(system, moving, backwards);
}

#[multiversion(targets = "simd")]
fn newton<T: LogLane + Grid, const L: usize>(
    state: &mut NewtonLanes<T, L>,
    system: &RowSystem,
    plan: &Elimination,
    moving: &[T; L],
    damping: &[T; L],
) {
    state.newton(system, plan, moving, damping);
}

/// How many passes of ascent come first, and how many follow a stall.
const START: u32 = 3;
const AFTER_STALL: u32 = 2;

/// How precise the residual of a row is relative to its upper label. If that is unlikely, a tiny residual is a large part
/// of it, and truths with this label lose by the logarithm of that part.
const PRECISION: f64 = 1e-7;

/// After so many steps without a smaller residual, more do not help.
const HOPELESS: u32 = 150;

/// Lanes are filled again when at most one in so many is still busy.
const REFILL: usize = 6;

/// A row in a lane.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: usize,
    passes: u32,
    top: f64,
    damping: f64,
    quarters: u32,
    ascents: u32,
    /// Whether the step before was ascent, and the next one goes backwards.
    climbed: bool,
    backwards: bool,
    /// The smallest relative residual so far, and how long ago it was found.
    least: f64,
    since: u32,
}

/// What a lane does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Wait,
    Ascend,
    Newton,
    Finish,
    /// Continue alone, in double precision.
    Leave,
}

impl Place {
    fn new(row: usize) -> Place {
        Place {
            row,
            passes: 0,
            top: f64::NEG_INFINITY,
            damping: 1e-9,
            quarters: 0,
            ascents: START,
            climbed: false,
            backwards: false,
            least: f64::INFINITY,
            since: 0,
        }
    }

    /// Looks at the dual value and the residuals at the current multipliers, and chooses a move.
    fn decide<T: Grid>(
        &mut self,
        dual: f64,
        [residual, relative]: [f64; 2],
        stopping: Stopping,
        [alone, factored]: [bool; 2],
    ) -> Move {
        let noise = if alone { 1e-13 } else { 16.0 * T::STEP };
        let slack = noise * (1.0 + dual.abs());
        self.passes += 1;
        if dual.is_nan() || dual < self.top - slack {
            self.quarters += 1;
            if self.quarters > 2 {
                self.quarters = 0;
                self.damping = (self.damping * 30.0).clamp(1e-3, 30.0);
                self.ascents = if self.damping > 20.0 { AFTER_STALL } else { self.ascents };
            }
            self.since += 1;
            let stuck = self.passes >= stopping.passes.saturating_mul(2).max(60);
            let stuck = stuck || self.since > HOPELESS;
            return if stuck { Move::Finish } else { Move::Wait };
        }
        let rose = dual - self.top;
        if self.quarters == 0 {
            self.damping = (self.damping * 0.1).max(1e-9);
        }
        self.quarters = 0;
        self.top = self.top.max(dual);
        if relative < 0.9 * self.least {
            (self.least, self.since) = (relative, 0);
        } else {
            self.since += 1;
        }
        // A small residual that does not get smaller is all rounding. A large one will not get smaller any more.
        let small = residual < 1e3 * stopping.tolerance;
        let still = self.since > if small { 30 } else { HOPELESS };
        if relative < stopping.tolerance || still || self.passes >= stopping.passes {
            return Move::Finish;
        }
        if !alone && self.passes > 60 {
            return Move::Leave;
        }
        let stalled = rose < slack && residual > 1e-5 && !self.climbed && self.passes > START;
        if stalled {
            self.ascents = AFTER_STALL;
            self.damping = (self.damping * 30.0).clamp(1e-3, 30.0);
        }
        if self.ascents > 0 || !factored {
            self.ascents = self.ascents.saturating_sub(1);
            self.climbed = true;
            self.backwards = !self.backwards;
            return Move::Ascend;
        }
        self.climbed = false;
        Move::Newton
    }
}

/// Solves rows of one system. `load` fills in the logits of a row; `done` gets the multipliers and
/// the number of passes.
pub(super) fn solve<T: LogLane + Grid, const L: usize>(
    system: &RowSystem,
    plan: Option<&Elimination>,
    rows: &[usize],
    stopping: Stopping,
    mut load: impl FnMut(usize, &mut [f64]),
    mut done: impl FnMut(usize, &[f64], u32),
) {
    let stopping = Stopping { tolerance: stopping.tolerance.max(8.0 * T::STEP), ..stopping };
    let alone = L == 1;
    let mut state: NewtonLanes<T, L> = NewtonLanes::new(system, plan);
    state.small = T::from_f64(stopping.tolerance / PRECISION.max(1e3 * T::STEP));
    let mut single: Option<NewtonLanes<f64, 1>> = None;
    let mut logits = vec![0.0; system.labels.len()];
    let mut multipliers = vec![0.0; system.len()];
    let mut waiting = rows.iter().copied().peekable();
    let mut seats: [Option<Place>; L] = [None; L];
    loop {
        let empty = seats.iter().filter(|seat| seat.is_none()).count();
        if REFILL * empty >= (REFILL - 1) * L && waiting.peek().is_some() {
            for (lane, seat) in seats.iter_mut().enumerate() {
                if seat.is_some() {
                    continue;
                }
                let Some(row) = waiting.next() else { continue };
                load(row, &mut logits);
                for (score, &logit) in state.scores.iter_mut().zip(&logits) {
                    score.0[lane] = T::from_f64(logit);
                }
                for (lambda, best) in state.multiplier.iter_mut().zip(&mut state.best) {
                    (lambda.0[lane], best.0[lane]) = (T::ZERO, T::ZERO);
                }
                *seat = Some(Place::new(row));
            }
        }
        if seats.iter().all(Option::is_none) {
            return;
        }
        evaluate(&mut state, system);
        let (mut climbing, mut stepping) = ([T::ZERO; L], [T::ZERO; L]);
        let mut damping = [T::ZERO; L];
        let mut descending = [T::ZERO; L];
        for (lane, place) in seats.iter_mut().enumerate() {
            let Some(seat) = place else { continue };
            let residuals = [state.worst[lane].to_f64(), state.relative[lane].to_f64()];
            let dual = state.dual[lane];
            let action = seat.decide::<T>(dual, residuals, stopping, [alone, plan.is_some()]);
            if action != Move::Wait {
                for (best, lambda) in state.best.iter_mut().zip(&state.multiplier) {
                    best.0[lane] = lambda.0[lane];
                }
            }
            match action {
                Move::Wait => {
                    let quarter = T::from_f64(if seat.quarters == 0 { 0.0 } else { 0.25 });
                    for (lambda, best) in state.multiplier.iter_mut().zip(&state.best) {
                        let (lambda, best) = (&mut lambda.0[lane], best.0[lane]);
                        let back = best + quarter * (*lambda - best);
                        *lambda = if seat.quarters == 0 { best } else { back };
                    }
                }
                Move::Ascend if seat.backwards => descending[lane] = T::ONE,
                Move::Ascend => climbing[lane] = T::ONE,
                Move::Newton => {
                    stepping[lane] = T::ONE;
                    damping[lane] = T::from_f64(seat.damping.max(4.0 * T::STEP));
                }
                Move::Finish => {
                    for (value, best) in multipliers.iter_mut().zip(&state.best) {
                        *value = best.0[lane].to_f64();
                    }
                    done(seat.row, &multipliers, seat.passes);
                    *place = None;
                }
                Move::Leave => {
                    let other = single.get_or_insert_with(|| NewtonLanes::new(system, plan));
                    other.small = stopping.tolerance / PRECISION;
                    load(seat.row, &mut logits);
                    for (score, &logit) in other.scores.iter_mut().zip(&logits) {
                        score.0[0] = logit;
                    }
                    for (value, best) in multipliers.iter_mut().zip(&state.best) {
                        *value = best.0[lane].to_f64();
                    }
                    let passes = finish(other, system, plan, stopping, seat, &mut multipliers);
                    done(seat.row, &multipliers, passes);
                    *place = None;
                }
            }
        }
        for (moving, backwards) in [(&climbing, false), (&descending, true)] {
            if moving.iter().any(|&on| on > T::ZERO) {
                sweep(&mut state, system, moving, backwards);
            }
        }
        if let Some(plan) = plan
            && stepping.iter().any(|&on| on > T::ZERO)
        {
            newton(&mut state, system, plan, &stepping, &damping);
        }
    }
}

/// One row by itself, from given multipliers, which become those of the answer. Returns the number
/// of passes.
fn finish(
    state: &mut NewtonLanes<f64, 1>,
    system: &RowSystem,
    plan: Option<&Elimination>,
    stopping: Stopping,
    seat: &Place,
    multipliers: &mut [f64],
) -> u32 {
    let read = |to: &mut [crate::numeric::Lanes<f64, 1>], from: &[f64]| {
        to.iter_mut().zip(from).for_each(|(to, &from)| to.0[0] = from);
    };
    for (k, value) in multipliers.iter_mut().enumerate() {
        let (low, high) = system.range(k);
        *value = value.clamp(low, high);
    }
    read(&mut state.multiplier, multipliers);
    read(&mut state.best, multipliers);
    let mut place = Place { passes: seat.passes, ascents: 0, ..Place::new(seat.row) };
    loop {
        evaluate(state, system);
        let (dual, residuals) = (state.dual[0], [state.worst[0], state.relative[0]]);
        let action = place.decide::<f64>(dual, residuals, stopping, [true, plan.is_some()]);
        if action == Move::Wait {
            let quarter = if place.quarters == 0 { 0.0 } else { 0.25 };
            for (lambda, best) in state.multiplier.iter_mut().zip(&state.best) {
                lambda.0[0] = best.0[0] + quarter * (lambda.0[0] - best.0[0]);
            }
            continue;
        }
        state.best.copy_from_slice(&state.multiplier);
        match (action, plan) {
            (Move::Finish, _) => break,
            (Move::Newton, Some(plan)) => {
                newton(state, system, plan, &[1.0], &[place.damping]);
            }
            _ => sweep(state, system, &[1.0], place.backwards),
        }
    }
    multipliers.iter_mut().zip(&state.best).for_each(|(to, from)| *to = from.0[0]);
    place.passes
}
