//! Where searches start: the temperatures and biases that are best before reconciling.
//!
//! Reconciling never makes the loss larger than that of the calibrated input, so the best calibrated
//! input is a good start. For one level it minimises `Σ softplus(±(aℓ + b)) + ½ log²a + ½ b²` over
//! the known entries, by Newton's method in `log a` and `b`. The priors keep levels with few entries
//! near 0. A step costs O(entries).

use rayon::prelude::*;

use super::options::FitForm;
use super::trials::{GridPoint, Trials, UNITS};
use crate::infer::Evidence;
use crate::numeric::{sigmoid, softplus};

const STEPS: usize = 40;
/// The largest log-temperature.
pub(super) const HOTTEST: f64 = 4.0;
/// The largest bias.
pub(super) const LARGEST_BIAS: f64 = 10.0;

/// Value, gradient and curvature in `a` and `b`.
#[derive(Debug, Clone, Copy, Default)]
struct Local {
    value: f64,
    slope: [f64; 2],
    bend: [f64; 3],
}

impl Local {
    fn and(self, other: Local) -> Local {
        let sum = |a: f64, b: f64| a + b;
        Local {
            value: self.value + other.value,
            slope: std::array::from_fn(|at| sum(self.slope[at], other.slope[at])),
            bend: std::array::from_fn(|at| sum(self.bend[at], other.bend[at])),
        }
    }
}

/// The start of a form, from the rows of `train`.
pub(super) fn start(form: FitForm, trials: &Trials<'_>, train: &[usize]) -> GridPoint {
    let levels = trials.levels.len();
    let mut point = GridPoint::origin(form, levels);
    let groups: Vec<Vec<usize>> = match form {
        FitForm::Identity | FitForm::Trust => return point,
        _ if form.is_per_level() => (0..levels).map(|level| vec![level]).collect(),
        _ => vec![(0..levels).collect()],
    };
    for group in groups {
        let (log_a, b) = optimum(trials, &group, train, form.biases());
        for level in group {
            point.levels[level][0] = (-log_a / UNITS[0]).round() as i32;
            point.levels[level][1] = (b / UNITS[1]).round() as i32;
        }
    }
    point
}

fn optimum(trials: &Trials<'_>, group: &[usize], train: &[usize], biased: bool) -> (f64, f64) {
    let (mut log_a, mut b) = (0.0f64, 0.0f64);
    let at = |log_a: f64, b: f64| -> Local {
        let a = log_a.exp();
        let parts: Vec<Local> =
            group.par_iter().map(|&level| local(trials, level, train, a, b)).collect();
        let mut sum = parts.into_iter().fold(Local::default(), Local::and);
        sum.value += 0.5 * (log_a * log_a + b * b);
        sum
    };
    let mut here = at(log_a, b);
    for _ in 0..STEPS {
        let a = log_a.exp();
        let (down, slant) = (a * here.slope[0] + log_a, here.slope[1] + b);
        let (steep, cross, flat) =
            (a * a * here.bend[0] + 1.0, a * here.bend[1], here.bend[2] + 1.0);
        let (mut step, mut shift) = if biased {
            let area = (steep * flat - cross * cross).max(1e-12 * steep * flat);
            ((flat * down - cross * slant) / area, (steep * slant - cross * down) / area)
        } else {
            (down / steep, 0.0)
        };
        step = step.clamp(-1.0, 1.0);
        shift = shift.clamp(-2.0, 2.0);
        let mut moved = false;
        for _ in 0..12 {
            let next = (
                (log_a - step).clamp(-HOTTEST, HOTTEST),
                (b - shift).clamp(-LARGEST_BIAS, LARGEST_BIAS),
            );
            let there = at(next.0, next.1);
            if there.value < here.value {
                (log_a, b) = next;
                here = there;
                moved = true;
                break;
            }
            (step, shift) = (step / 4.0, shift / 4.0);
        }
        if !moved || step.abs().max(shift.abs()) < 1e-3 {
            break;
        }
    }
    (log_a, b)
}

fn local(trials: &Trials<'_>, level: usize, train: &[usize], a: f64, b: f64) -> Local {
    let members = &trials.levels.members[level];
    let n = trials.logits.len() / trials.rows().max(1);
    let mut sum = Local::default();
    let mut logs = vec![0.0; members.len()];
    for &row in train {
        let (logits, truth) =
            (&trials.logits[row * n..(row + 1) * n], &trials.truths[row * n..(row + 1) * n]);
        if trials.levels.heads {
            let Some(on) = members.iter().position(|&at| truth[at] == Evidence::On) else {
                continue;
            };
            let fill = logs.iter_mut().zip(members);
            fill.for_each(|(log, &at)| *log = logits[at]);
            head(&logs, on, a, &mut sum);
            continue;
        }
        for &at in members {
            let Some(on) = truth[at].is_on() else { continue };
            let (logit, z) = (logits[at], a * logits[at] + b);
            let p = sigmoid(z);
            let (residual, bend) = (p - f64::from(u8::from(on)), p * (1.0 - p));
            sum.value += softplus(if on { -z } else { z });
            sum.slope[0] += residual * logit;
            sum.slope[1] += residual;
            sum.bend[0] += bend * logit * logit;
            sum.bend[1] += bend * logit;
            sum.bend[2] += bend;
        }
    }
    sum
}

/// Adds `log Σ exp(a·log p) − a·log p` of the label that is on.
fn head(logs: &[f64], on: usize, a: f64, sum: &mut Local) {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
    for &log in logs {
        let weight = (a * (log - top)).exp();
        total += weight;
        mean += weight * log;
        square += weight * log * log;
    }
    let (mean, square) = (mean / total, square / total);
    sum.value += total.ln() + a * (top - logs[on]);
    sum.slope[0] += mean - logs[on];
    sum.bend[0] += (square - mean * mean).max(0.0);
}
