//! Sums of exponentials in the log domain, for rows side by side. Minus infinity represents a
//! weight of 0.

use crate::numeric::{Elementary, Lanes, larger_and_share, log_add_lane};

const NOTHING: f64 = f64::NEG_INFINITY;

/// `2 artanh(z)` for `|z| ≤ 1/3`, by its series, cut below rounding. It equals
/// `log((1 + x) / (1 + y))` for `z = (x − y) / (2 + x + y)`.
#[inline(always)]
fn twice_artanh(z: f64) -> f64 {
    const TERMS: [f64; 16] = [
        2.0 / 31.0,
        2.0 / 29.0,
        2.0 / 27.0,
        2.0 / 25.0,
        2.0 / 23.0,
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
        2.0,
    ];
    let square = z * z;
    let mut sum = 2.0 / 33.0;
    for term in TERMS {
        sum = sum * square + term;
    }
    sum * z
}

/// `log(eᵃ + eᵇ)`.
#[inline(always)]
pub(super) fn log_sum<const L: usize>(a: Lanes<f64, L>, b: Lanes<f64, L>) -> Lanes<f64, L> {
    a.zip(b, log_add_lane)
}

/// `log(eᵃ + eᵇ)` of two sums at once, in one loop over `both`, which is scratch memory.
#[inline(always)]
pub(super) fn log_sums<const L: usize>(
    a: [Lanes<f64, L>; 2],
    b: [Lanes<f64, L>; 2],
    both: &mut [Vec<f64>; 2],
) -> [Lanes<f64, L>; 2] {
    for (scratch, values) in both.iter_mut().zip([a, b]) {
        scratch.clear();
        values.iter().for_each(|value| scratch.extend_from_slice(&value.0));
    }
    let [first, second] = both;
    first.iter_mut().zip(second.iter()).for_each(|(a, b)| *a = log_add_lane(*a, *b));
    let mut sums = [Lanes::NONE; 2];
    sums.iter_mut().zip(first.chunks_exact(L)).for_each(|(sum, from)| sum.0.copy_from_slice(from));
    sums
}

/// The messages of some edges at once, each for some rows. This is one long loop, because only
/// those become vector instructions.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    /// The log-odds of the sender, without the message's own contribution.
    odds: Vec<f64>,
    /// The sender's costs off and on, for the receiver off and for the receiver on.
    costs: [Vec<f64>; 4],
    sent: Vec<f64>,
}

impl Batch {
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.odds.clear();
        self.costs.iter_mut().for_each(Vec::clear);
    }

    #[inline(always)]
    pub(super) fn push<const L: usize>(&mut self, odds: Lanes<f64, L>, costs: [[f64; 2]; 2]) {
        self.odds.extend_from_slice(&odds.0);
        let [[c00, c01], [c10, c11]] = costs;
        for (all, cost) in self.costs.iter_mut().zip([c00, c10, c01, c11]) {
            all.extend_from_slice(&[cost; L]);
        }
    }

    /// `log(Σ_x e^{B(x) − c(x, on)} / Σ_x e^{B(x) − c(x, off)})` of each, or 0 where one of the
    /// sums is 0: a message to a state that is excluded anyway.
    #[inline(always)]
    pub(super) fn send(&mut self) {
        let length = self.odds.len();
        self.sent.resize(length, 0.0);
        let [c00, c10, c01, c11] = &self.costs;
        let (c00, c10) = (&c00[..length], &c10[..length]);
        let (c01, c11) = (&c01[..length], &c11[..length]);
        let (odds, sent) = (&self.odds[..length], &mut self.sent[..length]);
        for at in 0..length {
            let off = if odds[at] > 0.0 { -odds[at] } else { 0.0 };
            let on = if odds[at] > 0.0 { 0.0 } else { odds[at] };
            let (above, x) = larger_and_share(off - c01[at], on - c11[at]);
            let (below, y) = larger_and_share(off - c00[at], on - c10[at]);
            let message = above - below + twice_artanh((x - y) / (2.0 + x + y));
            sent[at] = finite(message);
        }
    }

    /// One of the messages that were sent.
    #[inline(always)]
    pub(super) fn sent<const L: usize>(&self, at: usize) -> Lanes<f64, L> {
        let mut message = Lanes::NONE;
        message.0.copy_from_slice(&self.sent[at * L..(at + 1) * L]);
        message
    }
}

/// A message, or 0 where it would exclude a state, because the state is already excluded.
#[inline(always)]
pub(super) fn finite(message: f64) -> f64 {
    if message.abs() < f64::INFINITY { message } else { 0.0 }
}

/// The logs minus a cost.
#[inline(always)]
pub(super) fn less<const L: usize>(logs: Lanes<f64, L>, cost: f64) -> Lanes<f64, L> {
    logs.map(|log| log - cost)
}

/// The logs of the weights of many states, and their sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Total<const L: usize> {
    most: Lanes<f64, L>,
    /// The sum as a multiple of the largest weight.
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

    /// The share of a log-weight in the sum.
    #[inline(always)]
    pub(super) fn share(&self, log: Lanes<f64, L>) -> Lanes<f64, L> {
        let part = (log - self.most).map(Elementary::exp_downwards);
        part.zip(self.sum, |part, sum| if sum > 0.0 { part / sum } else { 0.0 })
    }

    /// The log of the sum without the listed states (ascending): by subtraction, or recomputed
    /// where that would cancel.
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
        let cancels = |lane: usize| rest.0[lane] <= 1e-3 * self.sum.0[lane];
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
