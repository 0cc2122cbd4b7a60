//! The derivative of an answer with respect to its input.
//!
//! Near the input, the rows `F` that bind stay the same, so the answer is a smooth function. With
//! `V = diag q (1 − q)` and the weights `W`, the loss's derivative `g = ∂L/∂q` becomes
//!
//! ```text
//! (A_F V W⁻¹ A_Fᵀ) y = A_F V W⁻¹ g,      t = g − A_Fᵀ y,      ∂L/∂ℓ_i = V_i t_i
//! ```
//!
//! (for the Brier score `V = 1`, and `∂L/∂p_i = t_i`; for softmax heads `V = q`). Which rows bind is read from the answer: a
//! row that is tight to the last bits, or nearly tight with a multiplier above rounding. The
//! multipliers solve the same equations with `w (ℓ − z)` in place of `g`. Costs two factorisations
//! per row, eight rows side by side.
//!
//! With nothing but hierarchy, labels that share a value form blocks, and `t` is the weighted share
//! of each label in the sum of `g` over its block: O(labels).

use multiversion::multiversion;

use super::super::compile::NONE;
use super::elimination::{Elimination, Factor};
use super::system::RowSystem;
use crate::numeric::Lanes;

/// How many rows are differentiated side by side.
pub(in crate::reconcile) const SIDE: usize = 8;

/// The rows of a part, ready to be differentiated through.
#[derive(Debug)]
pub(in crate::reconcile) struct Tangent {
    system: RowSystem,
    /// `None` where blocks say everything.
    elimination: Option<Elimination>,
}

/// What is differentiated, for one row.
#[derive(Debug, Clone, Copy)]
pub(in crate::reconcile) struct TangentRow<'a> {
    /// The output, `w (ℓ − z)` (or `w (p − q)` for the Brier score), and which labels changed.
    pub(in crate::reconcile) output: &'a [f64],
    pub(in crate::reconcile) shift: &'a [f64],
    pub(in crate::reconcile) moved: &'a [bool],
    /// `g`, and `t` afterwards.
    pub(in crate::reconcile) upstream: &'a [f64],
}

impl Tangent {
    /// `None` when the factor would be too large.
    pub(in crate::reconcile) fn of(system: RowSystem) -> Option<Tangent> {
        let elimination = Some(Elimination::of(&system)?);
        Some(Tangent { system, elimination })
    }

    /// For rows that are one label below another each, and answers that are exact: labels of a
    /// block have the same bits.
    pub(in crate::reconcile) fn of_blocks(system: RowSystem) -> Tangent {
        Tangent { system, elimination: None }
    }

    pub(in crate::reconcile) fn labels(&self) -> &[u32] {
        &self.system.labels
    }

    /// Whether rows bind although the input satisfies them.
    pub(in crate::reconcile) fn has_equations(&self) -> bool {
        self.system.equal.contains(&true)
    }

    /// `t` for up to [`SIDE`] rows. `step` is the distance of 1 to the next number of the rows' type,
    /// and `curve` is `V` of a probability.
    pub(in crate::reconcile) fn pull(
        &self,
        rows: &[TangentRow<'_>],
        step: f64,
        curve: impl Fn(f64) -> f64,
        out: &mut [Vec<f64>],
    ) {
        match &self.elimination {
            None => {
                for (row, out) in rows.iter().zip(out) {
                    self.share_blocks(row, out);
                }
            }
            Some(plan) => self.solve(plan, rows, step, curve, out),
        }
    }

    fn share_blocks(&self, row: &TangentRow<'_>, out: &mut [f64]) {
        let n = self.system.labels.len();
        let mut root: Vec<u32> = (0..n as u32).collect();
        fn find(root: &mut [u32], mut at: u32) -> u32 {
            while root[at as usize] != at {
                root[at as usize] = root[root[at as usize] as usize];
                at = root[at as usize];
            }
            at
        }
        for k in 0..self.system.len() {
            let (child, parent) = (self.system.members.of(k)[0], self.system.upper[k]);
            let (c, p) = (child as usize, parent as usize);
            if row.output[c] == row.output[p] && row.moved[c] && row.moved[p] {
                let (a, b) = (find(&mut root, child), find(&mut root, parent));
                root[a.max(b) as usize] = a.min(b);
            }
        }
        let (mut sum, mut weight) = (vec![0.0; n], vec![0.0; n]);
        for label in 0..n {
            let top = find(&mut root, label as u32) as usize;
            sum[top] += row.upstream[label];
            weight[top] += self.system.weights[label];
        }
        for (label, out) in out.iter_mut().enumerate() {
            let top = find(&mut root, label as u32) as usize;
            *out = self.system.weights[label] / weight[top] * sum[top];
        }
    }

    fn solve(
        &self,
        plan: &Elimination,
        rows: &[TangentRow<'_>],
        step: f64,
        curve: impl Fn(f64) -> f64,
        out: &mut [Vec<f64>],
    ) {
        let system = &self.system;
        let mut bench = Bench::new(system, plan);
        let mut shift = vec![Lanes::NONE; system.labels.len()];
        let mut given = shift.clone();
        for (lane, row) in rows.iter().enumerate() {
            for label in 0..system.labels.len() {
                let q = row.output[label];
                let v = curve(q).max(1e-30);
                bench.slope[label].0[lane] = v / system.weights[label];
                shift[label].0[lane] = row.shift[label];
                given[label].0[lane] = row.upstream[label];
            }
            for k in 0..system.len() {
                let found = Binding::of(system, k, row, step);
                bench.active[k].0[lane] = f64::from(u8::from(found.near));
                for &label in system.members.of(k) {
                    shift[label as usize].0[lane] -= found.spent;
                }
                if system.upper[k] != NONE {
                    shift[system.upper[k] as usize].0[lane] += found.spent;
                }
            }
        }
        differentiate(&mut bench, system, plan, &shift);
        for (lane, row) in rows.iter().enumerate() {
            for k in 0..system.len() {
                let found = Binding::of(system, k, row, step);
                let multiplier = bench.solution[plan.position[k] as usize].0[lane];
                let binds = found.tight || (found.near && multiplier > found.noise);
                bench.active[k].0[lane] = f64::from(u8::from(binds));
            }
        }
        differentiate(&mut bench, system, plan, &given);
        for (lane, out) in out.iter_mut().enumerate().take(rows.len()) {
            for (label, out) in out.iter_mut().enumerate() {
                *out = given[label].0[lane];
            }
            for k in 0..system.len() {
                let y = bench.solution[plan.position[k] as usize].0[lane];
                let y = if bench.active[k].0[lane] > 0.0 { y } else { 0.0 };
                system.members.of(k).iter().for_each(|&label| out[label as usize] -= y);
                if system.upper[k] != NONE {
                    out[system.upper[k] as usize] += y;
                }
            }
        }
    }
}

/// How a row of the system holds in an answer.
struct Binding {
    /// Tight up to rounding, or nearly so.
    tight: bool,
    near: bool,
    /// What a multiplier may be by rounding alone.
    noise: f64,
    /// The multiplier of a soft row whose segments below are used up.
    spent: f64,
}

impl Binding {
    fn of(system: &RowSystem, k: usize, row: &TangentRow<'_>, step: f64) -> Binding {
        let members = system.members.of(k);
        let upper = system.upper[k];
        let limit = if upper == NONE { 1.0 } else { row.output[upper as usize] };
        let sum: f64 = members.iter().map(|&label| row.output[label as usize]).sum();
        let is_moved = |label: &u32| row.moved[*label as usize];
        let moved = members.iter().any(is_moved) || (upper != NONE && is_moved(&upper));
        let size = (members.len() as f64).sqrt();
        let rounding = 16.0 * step * (1.0 + size) * limit;
        let close = (1e-4 * limit).min(1e-5);
        // A soft set may be tight at each of its whole numbers.
        let last = system.segments(k).saturating_sub(1) as f64;
        let segment = if last > 0.0 { (sum - limit).round().clamp(0.0, last) } else { 0.0 };
        let off = (sum - limit - segment).abs();
        let full = if sum > limit + segment + close { segment + 1.0 } else { segment };
        let unlikely = |label: &u32| {
            let q = row.output[*label as usize];
            system.weights[*label as usize] * step / (1.0 - q).max(step)
        };
        let noise: f64 = members.iter().map(unlikely).sum();
        Binding {
            tight: system.equal[k] || (moved && off <= rounding),
            near: system.equal[k] || (moved && off <= close.max(rounding)),
            noise: 1e-4f64.max(8.0 * noise),
            spent: if system.is_hard(k) { 0.0 } else { full * system.cap[k] },
        }
    }
}

struct Bench {
    factor: Factor<f64, SIDE>,
    slope: Vec<Lanes<f64, SIDE>>,
    active: Vec<Lanes<f64, SIDE>>,
    solution: Vec<Lanes<f64, SIDE>>,
}

impl Bench {
    fn new(system: &RowSystem, plan: &Elimination) -> Bench {
        Bench {
            factor: Factor::new(plan),
            slope: vec![Lanes([1.0; SIDE]); system.labels.len()],
            active: vec![Lanes::NONE; system.len()],
            solution: vec![Lanes::NONE; plan.unknowns()],
        }
    }
}

/// Solves `(A_F S A_Fᵀ) y = A_F S given`.
#[multiversion(targets = "simd")]
fn differentiate(
    bench: &mut Bench,
    system: &RowSystem,
    plan: &Elimination,
    given: &[Lanes<f64, SIDE>],
) {
    let Bench { factor, slope, active, solution } = bench;
    factor.assemble(plan, slope);
    solution.iter_mut().for_each(|right| *right = Lanes::NONE);
    for k in 0..system.len() {
        let at = plan.position[k] as usize;
        let mut right = [0.0; SIDE];
        let mut own = [0.0; SIDE];
        for &label in system.members.of(k) {
            let (v, g) = (&slope[label as usize].0, &given[label as usize].0);
            for l in 0..SIDE {
                right[l] += v[l] * g[l];
                own[l] += v[l];
            }
        }
        if system.upper[k] != NONE {
            let (v, g) = (&slope[system.upper[k] as usize].0, &given[system.upper[k] as usize].0);
            for l in 0..SIDE {
                right[l] -= v[l] * g[l];
                own[l] += v[l];
            }
        }
        for l in 0..SIDE {
            // A row that does not bind is taken out by an infinite diagonal. Rows that depend on each
            // other share what they do by a tiny one.
            let on = active[k].0[l] > 0.0;
            right[l] = if on { right[l] } else { 0.0 };
            let diagonal = factor.diagonal[at].0[l];
            factor.diagonal[at].0[l] = if on { diagonal + 1e-12 * own[l] } else { f64::INFINITY };
        }
        solution[at].0 = right;
    }
    factor.factorise(plan, 1e-13);
    factor.solve(plan, solution);
}
