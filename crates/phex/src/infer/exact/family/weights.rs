//! The constants of a program in one number type.

use super::number::Semiring;
use super::plan::{ForestProgram, SiblingUnit};

/// The log-weights of a program as constants of one number type.
#[derive(Debug)]
pub(super) struct Weights<N: Semiring> {
    pub(super) values: Vec<N::Weight>,
    /// For each unit, the first count at which q^m, and the edges of m children, had to be clamped.
    pub(super) clamped: Vec<(usize, usize)>,
    /// ln C(m, 2).
    pub(super) choose: Vec<N::Weight>,
}

impl<N: Semiring> Weights<N> {
    /// Returns `None` when edges are so strong (but not hard) that the type cannot hold their
    /// weights.
    pub(super) fn new(plan: &ForestProgram) -> Option<Weights<N>> {
        let too_small = |weight: &f64| weight.is_finite() && *weight < -N::LIMIT;
        if plan.steps.iter().any(|step| too_small(&plan.log_weights[step.fall])) {
            return None;
        }
        let first = |from: usize, unit: &SiblingUnit| {
            let weights = &plan.log_weights[from..=from + unit.width];
            weights.iter().position(too_small).unwrap_or(usize::MAX)
        };
        let clamped = |unit: &SiblingUnit| {
            // The m-th child that turns on pays q^(m − 1).
            (first(unit.turns, unit).saturating_add(1), first(unit.falls, unit))
        };
        let widest = plan.units.iter().map(|unit| unit.width).max().unwrap_or(0);
        let choose = |m: usize| N::weight(((m * m.saturating_sub(1) / 2) as f64).ln());
        Some(Weights {
            values: plan.log_weights.iter().map(|&weight| N::weight(weight)).collect(),
            clamped: plan.units.iter().map(clamped).collect(),
            choose: (0..widest).map(choose).collect(),
        })
    }
}
