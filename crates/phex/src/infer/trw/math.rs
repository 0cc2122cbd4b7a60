//! Sums of exponentials in the log domain, for rows side by side. Minus infinity is a weight of 0.

use crate::infer::lanes::{Elementary, Lanes};

const NOTHING: f64 = f64::NEG_INFINITY;

/// The larger of two logs, and what the smaller is in parts of it.
#[inline(always)]
fn split(a: f64, b: f64) -> (f64, f64) {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    let gap = if low > NOTHING { low - high } else { NOTHING };
    (high, gap.exp_downwards())
}

/// `log(eᵃ + eᵇ)`.
#[inline(always)]
pub(super) fn log_sum(a: f64, b: f64) -> f64 {
    let (high, part) = split(a, b);
    high + part.ln_1p_unit()
}

/// `log((eᵃ + eᵇ) / (eᶜ + eᵈ))`, or 0 where one of the sums is 0: a message to a state that is
/// excluded anyway.
#[inline(always)]
pub(super) fn log_ratio(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let ((above, x), (below, y)) = (split(a, b), split(c, d));
    // (1 + x) / (1 + y) is in [1/2, 2], where the series holds.
    let ratio = above - below + ((x - y) / (1.0 + y)).ln_1p_unit();
    if ratio.is_finite() { ratio } else { 0.0 }
}

/// Log-odds as the logs of two weights, the larger 0: off, on.
#[inline(always)]
pub(super) fn weights(odds: f64) -> (f64, f64) {
    if odds > 0.0 { (-odds, 0.0) } else { (0.0, odds) }
}

/// Logs of weights of many states, with their sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Total<const L: usize> {
    most: Lanes<f64, L>,
    /// In parts of the most.
    pub(super) sum: Lanes<f64, L>,
}

/// Sums the weights of the states for which `keep` holds.
#[inline(always)]
pub(super) fn total<const L: usize>(
    logs: &[Lanes<f64, L>],
    keep: impl Fn(usize) -> bool,
) -> Total<L> {
    let mut most = Lanes([NOTHING; L]);
    for (_, &log) in logs.iter().enumerate().filter(|(state, _)| keep(*state)) {
        most = most.zip(log, |a, b| if a > b { a } else { b });
    }
    most = most.map(|most| if most > NOTHING { most } else { 0.0 });
    let mut sum = Lanes::NONE;
    for (_, &log) in logs.iter().enumerate().filter(|(state, _)| keep(*state)) {
        sum += (log - most).map(Elementary::exp_downwards);
    }
    Total { most, sum }
}

impl<const L: usize> Total<L> {
    /// The log of the sum.
    #[inline(always)]
    pub(super) fn log(&self) -> Lanes<f64, L> {
        self.most + self.sum.map(f64::ln)
    }

    /// The part of a log-weight in the sum.
    #[inline(always)]
    pub(super) fn share(&self, log: Lanes<f64, L>) -> Lanes<f64, L> {
        let part = (log - self.most).map(Elementary::exp_downwards);
        part.zip(self.sum, |part, sum| if sum > 0.0 { part / sum } else { 0.0 })
    }

    /// The log of the sum without the listed states (ascending): by subtraction, or anew where that
    /// would cancel.
    #[inline(always)]
    pub(super) fn log_without<E>(
        &self,
        logs: &[Lanes<f64, L>],
        listed: &[E],
        state: impl Fn(&E) -> usize,
    ) -> Lanes<f64, L> {
        if listed.len() == logs.len() {
            return Lanes([NOTHING; L]);
        }
        let mut rest = self.sum;
        for entry in listed {
            rest = rest - (logs[state(entry)] - self.most).map(Elementary::exp_downwards);
        }
        let cancels = |lane: usize| !(rest.0[lane] > 1e-3 * self.sum.0[lane]);
        let mut log = self.most + rest.map(|rest| if rest > 0.0 { rest.ln() } else { NOTHING });
        if (0..L).any(cancels) {
            let mut out = vec![false; logs.len()];
            listed.iter().for_each(|entry| out[state(entry)] = true);
            let anew = total(logs, |state| !out[state]).log();
            for lane in (0..L).filter(|&lane| cancels(lane)) {
                log.0[lane] = anew.0[lane];
            }
        }
        log
    }
}
