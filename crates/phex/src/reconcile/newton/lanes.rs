//! The state of several rows side by side, and the steps of ascent and of Newton's method.
//!
//! **Ascent** solves one row after another for its own multiplier. `Σ σ(z_i − δ/w_i) = σ(z_a + δ/w_a)`
//! is solved in logarithms, which are nearly linear in the tails, inside a bracket. Two members, or
//! a member and the upper label, bound the step from below: exactly if all others are negligible.
//!
//! **Newton** maximises the quadratic model `rᵀΔ − ½ ΔᵀHΔ` over the ranges of the multipliers by a
//! primal–dual active set: solve for the free rows, hold those at their bound that passed it, free
//! those whose gradient points inside, and repeat. `H` has the pattern of [`Elimination`].

use super::super::compile::NONE;
use super::super::family::lanes::{abs, decay, halves, max, min};
use super::elimination::{Elimination, Factor};
use super::system::RowSystem;
use crate::numeric::{Grid, Lanes, LogLane};

/// How often the active set changes within one Newton step, and how long rows are freed.
const ROUNDS: usize = 14;
const FREEING: usize = 5;

/// The longest step of a multiplier.
const REACH: f64 = 20.0;

/// Several rows of one system.
#[derive(Debug)]
pub(super) struct NewtonLanes<T, const L: usize> {
    weight: Vec<T>,
    inverse: Vec<T>,
    uniform: bool,
    /// The logits of the input.
    pub(super) scores: Vec<Lanes<T, L>>,
    z: Vec<Lanes<T, L>>,
    q: Vec<Lanes<T, L>>,
    /// `q (1 − q) / w`.
    slope: Vec<Lanes<T, L>>,
    pub(super) multiplier: Vec<Lanes<T, L>>,
    pub(super) best: Vec<Lanes<T, L>>,
    /// `A q − b`, and the range of each multiplier (of its segment, if it is soft).
    residual: Vec<Lanes<T, L>>,
    low: Vec<Lanes<T, L>>,
    high: Vec<Lanes<T, L>>,
    /// Whether a row is free (1 or 0), and how much a row that is not moves.
    free: Vec<Lanes<T, L>>,
    held: Vec<Lanes<T, L>>,
    /// The diagonal of `H`, products with `H`, and the solution in the order of elimination.
    own: Vec<Lanes<T, L>>,
    product: Vec<Lanes<T, L>>,
    image: Vec<Lanes<T, L>>,
    solution: Vec<Lanes<T, L>>,
    factor: Option<(Factor<T, L>, Factor<T, L>)>,
    /// The dual value up to a constant of the row, and the largest residual of a free row.
    pub(super) dual: [f64; L],
    pub(super) worst: [T; L],
    /// The same with residuals relative to `q_a`, where that is below [`NewtonLanes::small`].
    pub(super) relative: [T; L],
    /// Where the upper label is less likely than this, residuals are relative.
    pub(super) small: T,
}

impl<T: LogLane + Grid, const L: usize> NewtonLanes<T, L> {
    pub(super) fn new(system: &RowSystem, plan: Option<&Elimination>) -> NewtonLanes<T, L> {
        let (n, m) = (system.labels.len(), system.len());
        let labels = || vec![Lanes::NONE; n];
        let rows = || vec![Lanes::NONE; m];
        NewtonLanes {
            weight: system.weights.iter().map(|&w| T::from_f64(w)).collect(),
            inverse: system.weights.iter().map(|&w| T::from_f64(1.0 / w)).collect(),
            uniform: system.weights.iter().all(|&w| w == 1.0),
            scores: labels(),
            z: labels(),
            q: labels(),
            slope: labels(),
            multiplier: rows(),
            best: rows(),
            residual: rows(),
            low: rows(),
            high: rows(),
            free: rows(),
            held: rows(),
            own: rows(),
            product: rows(),
            image: labels(),
            solution: vec![Lanes::NONE; plan.map_or(0, Elimination::unknowns)],
            factor: plan.map(|plan| (Factor::new(plan), Factor::new(plan))),
            dual: [0.0; L],
            worst: [T::ZERO; L],
            relative: [T::ZERO; L],
            small: T::ZERO,
        }
    }

    /// Adds a change of a row's multiplier to the logits.
    #[inline(always)]
    fn charge(&mut self, system: &RowSystem, k: usize, change: &[T; L]) {
        for &label in system.members.of(k) {
            let w = self.inverse[label as usize];
            let z = self.z[label as usize];
            self.z[label as usize] = z.zip(Lanes(*change), |z, change| z - w * change);
        }
        if system.upper[k] != NONE {
            let upper = system.upper[k] as usize;
            let w = self.inverse[upper];
            self.z[upper] = self.z[upper].zip(Lanes(*change), |z, change| z + w * change);
        }
    }

    /// Probabilities, slopes, dual values and residuals at the current multipliers.
    #[inline(always)]
    pub(super) fn evaluate(&mut self, system: &RowSystem) {
        self.z.copy_from_slice(&self.scores);
        self.dual = [0.0; L];
        for k in 0..system.len() {
            let lambda = self.multiplier[k].0;
            self.charge(system, k, &lambda);
        }
        self.squash();
        self.worst = [T::ZERO; L];
        self.relative = [T::ZERO; L];
        for k in 0..system.len() {
            self.weigh(system, k);
        }
    }

    /// `q` and slopes from `z`, and the share of the labels in the dual value.
    #[inline(always)]
    fn squash(&mut self) {
        let (mut product, mut positive) = ([T::ONE; L], [T::ZERO; L]);
        let last = self.z.len().saturating_sub(1);
        for i in 0..self.z.len() {
            let z = self.z[i].0;
            let mut e = z;
            for l in 0..L {
                e[l] = decay(z[l]);
                let (q, rest) = halves(z[l], e[l]);
                self.q[i].0[l] = q;
                self.slope[i].0[l] = q * rest * self.inverse[i];
            }
            if self.uniform {
                for l in 0..L {
                    product[l] *= T::ONE + e[l];
                    positive[l] += max(z[l], T::ZERO);
                }
                // Below the overflow of single precision.
                if i % 100 == 99 || i == last {
                    for l in 0..L {
                        self.dual[l] -= product[l].ln_lane().to_f64() + positive[l].to_f64();
                    }
                    (product, positive) = ([T::ONE; L], [T::ZERO; L]);
                }
            } else {
                let w = self.weight[i];
                for l in 0..L {
                    let softplus = (T::ONE + e[l]).ln_lane() + max(z[l], T::ZERO);
                    self.dual[l] -= (w * softplus).to_f64();
                }
            }
        }
    }

    /// The residual and the range of a row, and whether it starts free.
    #[inline(always)]
    fn weigh(&mut self, system: &RowSystem, k: usize) {
        let base = T::from_f64(system.base(k));
        let mut r = [-base; L];
        for &label in system.members.of(k) {
            let q = &self.q[label as usize].0;
            for l in 0..L {
                r[l] += q[l];
            }
        }
        let mut scale = [T::ONE; L];
        if system.upper[k] != NONE {
            let q = &self.q[system.upper[k] as usize].0;
            let tiny = T::from_f64(T::SMALLEST);
            for l in 0..L {
                r[l] -= q[l];
                scale[l] = max(self.small / max(q[l], tiny), T::ONE);
            }
        }
        let (low, high) = system.range(k);
        let (mut low, mut high) = ([T::from_f64(low); L], [T::from_f64(high); L]);
        let lambda = self.multiplier[k].0;
        if system.segments(k) > 0 {
            let cap = T::from_f64(system.cap[k]);
            let last = system.segments(k) - 1;
            for l in 0..L {
                let (segment, bounds) = segment(lambda[l], r[l], cap, last);
                r[l] -= segment;
                (low[l], high[l]) = bounds;
                self.dual[l] -= system.price(k, lambda[l].to_f64());
            }
        } else if system.upper[k] == NONE {
            for l in 0..L {
                self.dual[l] -= lambda[l].to_f64();
            }
        }
        let mut free = [T::ZERO; L];
        for l in 0..L {
            let down = (lambda[l] > low[l]) | (r[l] > T::ZERO);
            let up = (lambda[l] < high[l]) | (r[l] < T::ZERO);
            free[l] = if down & up & (low[l] < high[l]) { T::ONE } else { T::ZERO };
            let off = free[l] * abs(r[l]);
            self.worst[l] = max(self.worst[l], off);
            self.relative[l] = max(self.relative[l], off * scale[l]);
        }
        self.residual[k].0 = r;
        (self.low[k].0, self.high[k].0, self.free[k].0) = (low, high, free);
    }

    /// One pass of coordinate ascent, in lanes whose `moving` is 1.
    #[inline(always)]
    pub(super) fn sweep(&mut self, system: &RowSystem, moving: &[T; L], backwards: bool) {
        for at in 0..system.len() {
            let k = if backwards { system.len() - 1 - at } else { at };
            let (mut low, mut high) = (self.low[k].0, self.high[k].0);
            let lambda = self.multiplier[k].0;
            let mut step = if system.segments(k) > 1 {
                let (least, most) = system.range(k);
                (low, high) = ([T::from_f64(least); L], [T::from_f64(most); L]);
                self.search(system, k)
            } else {
                self.climb(system, k)
            };
            for l in 0..L {
                let next = max(min(lambda[l] + step[l], high[l]), low[l]);
                step[l] = if moving[l] > T::ZERO { next - lambda[l] } else { T::ZERO };
                self.multiplier[k].0[l] = lambda[l] + step[l];
            }
            if system.segments(k) > 1 {
                self.snap(system, k);
            }
            self.charge(system, k, &step);
        }
    }

    /// Puts the multiplier of a soft set exactly on a border of segments that it is very near to.
    fn snap(&mut self, system: &RowSystem, k: usize) {
        let cap = T::from_f64(system.cap[k]);
        for l in 0..L {
            let lambda = self.multiplier[k].0[l];
            let t = (lambda / cap).to_f64();
            if t != t.round() && (t - t.round()).abs() < 64.0 * T::STEP * (1.0 + t) {
                self.multiplier[k].0[l] = T::from_f64(t.round()) * cap;
            }
        }
    }

    /// The step that solves one row by itself.
    #[inline(always)]
    fn climb(&mut self, system: &RowSystem, k: usize) -> [T; L] {
        let members = system.members.of(k);
        let upper = system.upper[k];
        let mut step = [T::ZERO; L];
        match (members, upper) {
            (&[c], upper) if upper != NONE => {
                let (c, a) = (c as usize, upper as usize);
                let half = T::ONE / (self.inverse[c] + self.inverse[a]);
                for l in 0..L {
                    step[l] = (self.z[c].0[l] - self.z[a].0[l]) * half;
                }
            }
            (&[i, j], NONE) => {
                let (i, j) = (i as usize, j as usize);
                let half = T::ONE / (self.inverse[i] + self.inverse[j]);
                for l in 0..L {
                    step[l] = (self.z[i].0[l] + self.z[j].0[l]) * half;
                }
            }
            _ => self.bracket(system, k, &mut step),
        }
        step
    }

    /// Newton in logarithms, inside a bracket.
    #[inline(always)]
    fn bracket(&mut self, system: &RowSystem, k: usize, step: &mut [T; L]) {
        let members = system.members.of(k);
        let upper = system.upper[k];
        let (far, tiny) = (T::from_f64(1e9), T::from_f64(1e-30));
        let (twelve, still) = (T::from_f64(12.0), T::from_f64(1e-3));
        let (mut low, mut high) = ([-far; L], [far; L]);
        let mut going = [true; L];
        let lambda = self.multiplier[k].0;
        for _ in 0..6 {
            let mut sum = [T::ZERO; L];
            let mut kappa = [T::ZERO; L];
            // The two largest logits, with the inverse weights of their labels.
            let mut first = [T::from_f64(-60.0); L];
            let mut second = first;
            let (mut w1, mut w2) = ([T::ONE; L], [T::ONE; L]);
            for &label in members {
                let (z, w) = (&self.z[label as usize].0, self.inverse[label as usize]);
                for l in 0..L {
                    let y = z[l] - w * step[l];
                    let (q, rest) = halves(y, decay(y));
                    sum[l] += q;
                    kappa[l] += w * q * rest;
                    let (top, next) = (y > first[l], y > second[l]);
                    w2[l] = if top {
                        w1[l]
                    } else if next {
                        w
                    } else {
                        w2[l]
                    };
                    second[l] = if top { first[l] } else { max(second[l], y) };
                    w1[l] = if top { w } else { w1[l] };
                    first[l] = max(first[l], y);
                }
            }
            let (mut above, mut w) = ([T::from_f64(40.0); L], T::ZERO);
            if upper != NONE {
                w = self.inverse[upper as usize];
                for l in 0..L {
                    above[l] = self.z[upper as usize].0[l] + w * step[l];
                }
            }
            let mut again = false;
            for l in 0..L {
                let e = decay(above[l]);
                let (q, rest) = halves(above[l], e);
                let (q, rest) = if upper == NONE { (T::ONE, T::ZERO) } else { (q, rest) };
                let total = max(sum[l], tiny);
                let r = (total / max(q, tiny)).ln_lane();
                let slope = max(kappa[l] / total + w * rest, T::from_f64(1e-9));
                let pair = (first[l] + second[l]) / (w1[l] + w2[l]);
                let pair = if members.len() > 1 { pair } else { -far };
                let over = (first[l] - above[l]) / (w1[l] + w);
                let over = if upper == NONE { -far } else { over };
                let least = max(pair, over);
                low[l] = if r > T::ZERO { max(low[l], step[l]) } else { low[l] };
                high[l] = if r > T::ZERO { high[l] } else { min(high[l], step[l]) };
                let change = max(min(r / slope, max(least, T::ZERO) + twelve), least);
                let mut next = step[l] + change;
                let known = (low[l] > -far) & (high[l] < far);
                let outside = known & ((next < low[l]) | (next > high[l]));
                let middle = (low[l] + high[l]) * T::from_f64(0.5);
                next = if outside { middle } else { next };
                // A multiplier at 0 that would fall stays.
                let rests = !system.equal[k] & (lambda[l] + next <= T::ZERO) & (r < T::ZERO);
                let rests = rests & (step[l] == T::ZERO) & (lambda[l] == T::ZERO);
                next = if rests { T::ZERO } else { next };
                next = if going[l] { next } else { step[l] };
                going[l] &= abs(next - step[l]) > still;
                again |= going[l];
                step[l] = next;
            }
            if !again {
                return;
            }
        }
    }

    /// The step of a soft set, through all its segments, by halving.
    fn search(&mut self, system: &RowSystem, k: usize) -> [T; L] {
        let (_, most) = system.range(k);
        let cap = system.cap[k];
        let mut step = [T::ZERO; L];
        for (l, step) in step.iter_mut().enumerate() {
            let lambda = self.multiplier[k].0[l].to_f64();
            let (mut low, mut high) = (-lambda, most - lambda);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                let q = |label: &u32| {
                    let (z, w) = (self.z[*label as usize].0[l], self.inverse[*label as usize]);
                    crate::numeric::sigmoid(z.to_f64() - w.to_f64() * middle)
                };
                let sum: f64 = system.members.of(k).iter().map(q).sum();
                let limit = ((lambda + middle) / cap).floor() + 1.0;
                if sum > limit {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            *step = T::from_f64(0.5 * (low + high));
        }
        step
    }

    /// `product = H held`, with nothing for free rows unless `all` is set.
    #[inline(always)]
    fn multiply(&mut self, system: &RowSystem, all: bool) {
        self.image.iter_mut().for_each(|t| *t = Lanes::NONE);
        for k in 0..system.len() {
            let mut v = self.held[k];
            if !all {
                v = v.zip(self.free[k], |v, free| if free > T::ZERO { T::ZERO } else { v });
            }
            for &label in system.members.of(k) {
                self.image[label as usize] += v;
            }
            if system.upper[k] != NONE {
                let upper = system.upper[k] as usize;
                self.image[upper] = self.image[upper] - v;
            }
        }
        for k in 0..system.len() {
            let mut sum = Lanes::NONE;
            for &label in system.members.of(k) {
                sum += self.slope[label as usize] * self.image[label as usize];
            }
            if system.upper[k] != NONE {
                let upper = system.upper[k] as usize;
                sum = sum - self.slope[upper] * self.image[upper];
            }
            self.product[k] = sum;
        }
    }

    /// One step of Newton's method, in lanes whose `moving` is 1. `damping` is relative to the
    /// diagonal of `H`.
    #[inline(always)]
    pub(super) fn newton(
        &mut self,
        system: &RowSystem,
        plan: &Elimination,
        moving: &[T; L],
        damping: &[T; L],
    ) {
        let Some((mut start, mut factor)) = self.factor.take() else { return };
        start.assemble(plan, &self.slope);
        for k in 0..system.len() {
            let mut own = Lanes::NONE;
            for &label in system.members.of(k) {
                own += self.slope[label as usize];
            }
            if system.upper[k] != NONE {
                own += self.slope[system.upper[k] as usize];
            }
            self.own[k] = own;
            self.held[k] = Lanes::NONE;
            self.free[k] = self.free[k] * Lanes(*moving);
        }
        let floor = T::from_f64(T::STEP * 4.0);
        for round in 0..ROUNDS {
            if round == 0 {
                self.product.iter_mut().for_each(|product| *product = Lanes::NONE);
            } else {
                self.multiply(system, false);
            }
            factor.copy_from(&start);
            self.prepare(system, plan, &mut factor, damping);
            factor.factorise(plan, floor);
            factor.solve(plan, &mut self.solution);
            for k in 0..system.len() {
                let (free, held) = (self.free[k].0, self.held[k].0);
                let mut found = self.solution[plan.position[k] as usize].0;
                for l in 0..L {
                    found[l] = if free[l] > T::ZERO { found[l] } else { held[l] };
                }
                self.held[k].0 = found;
            }
            let freeing = round < FREEING;
            if freeing {
                self.multiply(system, true);
            }
            if !self.change_set(system, moving, damping, freeing) {
                break;
            }
        }
        self.factor = Some((start, factor));
        let reach = T::from_f64(REACH);
        for k in 0..system.len() {
            let (low, high) = (self.low[k].0, self.high[k].0);
            let (lambda, held) = (self.multiplier[k].0, self.held[k].0);
            let mut next = lambda;
            for l in 0..L {
                let step = max(min(held[l], reach), -reach);
                let inside = max(min(lambda[l] + step, high[l]), low[l]);
                next[l] = if moving[l] > T::ZERO { inside } else { lambda[l] };
            }
            self.multiplier[k].0 = next;
        }
    }

    /// The diagonal with its damping, and the right side. Rows that are not free are taken out: an
    /// infinite pivot does so, and unlike a huge one it leaves no tiny numbers behind.
    #[inline(always)]
    fn prepare(
        &mut self,
        system: &RowSystem,
        plan: &Elimination,
        factor: &mut Factor<T, L>,
        damping: &[T; L],
    ) {
        let (huge, tiny) = (T::from_f64(f64::INFINITY), T::from_f64(1e-30));
        self.solution.iter_mut().for_each(|right| *right = Lanes::NONE);
        for k in 0..system.len() {
            let at = plan.position[k] as usize;
            // Copies, because loops over lanes behind several references are not vectorised.
            let (free, own, known) = (self.free[k].0, self.own[k].0, self.product[k].0);
            let (mut diagonal, mut right) = (factor.diagonal[at].0, self.residual[k].0);
            for l in 0..L {
                let on = free[l] > T::ZERO;
                let damped = diagonal[l] + damping[l] * own[l] + tiny;
                diagonal[l] = if on { damped } else { huge };
                right[l] = if on { right[l] - known[l] } else { T::ZERO };
            }
            factor.diagonal[at].0 = diagonal;
            self.solution[at].0 = right;
        }
    }

    /// Holds rows that passed their range and frees rows that point inside it. Returns whether the
    /// active set changed in any lane.
    #[inline(always)]
    fn change_set(
        &mut self,
        system: &RowSystem,
        moving: &[T; L],
        damping: &[T; L],
        freeing: bool,
    ) -> bool {
        let slack = T::from_f64(16.0 * T::STEP);
        let mut changed = [T::ZERO; L];
        for k in 0..system.len() {
            if system.equal[k] {
                continue;
            }
            let (low, high) = (self.low[k].0, self.high[k].0);
            let (lambda, step) = (self.multiplier[k].0, self.held[k].0);
            let (free, r, product) = (self.free[k].0, self.residual[k].0, self.product[k].0);
            let own = self.own[k].0;
            let (mut now, mut held) = (free, step);
            for l in 0..L {
                let next = lambda[l] + step[l];
                let on = free[l] > T::ZERO;
                let under = on & (next < low[l] - slack);
                let over = on & (next > high[l] + slack);
                held[l] = if under { low[l] - lambda[l] } else { step[l] };
                held[l] = if over { high[l] - lambda[l] } else { held[l] };
                let gradient = r[l] - product[l] - damping[l] * own[l] * step[l];
                let inward = ((next <= low[l]) & (gradient > slack))
                    | ((next >= high[l]) & (gradient < -slack));
                let released = freeing & !on & inward & (low[l] < high[l]) & (moving[l] > T::ZERO);
                now[l] = if under | over { T::ZERO } else { now[l] };
                now[l] = if released { T::ONE } else { now[l] };
                changed[l] += if now[l] != free[l] { T::ONE } else { T::ZERO };
            }
            (self.free[k].0, self.held[k].0) = (now, held);
        }
        changed.iter().any(|&count| count > T::ZERO)
    }
}

/// The segment of a soft multiplier that the residual `r` of its first segment points into, and the
/// range of that segment. Segments are counted from 0.
#[inline(always)]
fn segment<T: LogLane + Grid>(lambda: T, r: T, cap: T, last: usize) -> (T, (T, T)) {
    let t = (lambda / cap).to_f64();
    let whole = t.round();
    let r = r.to_f64();
    let near = (t - whole).abs() <= 8.0 * T::STEP * (1.0 + t);
    let at = if !near {
        t.floor()
    } else if whole <= last as f64 && r > whole {
        whole
    } else if whole >= 1.0 && r < whole - 1.0 {
        whole - 1.0
    } else {
        // On the border, where both segments point at it.
        let segment = whole.min(last as f64);
        let segment =
            if r >= whole { T::from_f64(segment) } else { T::from_f64((whole - 1.0).max(0.0)) };
        return (segment, (lambda, lambda));
    };
    let at = at.clamp(0.0, last as f64);
    let low = if near && whole == at { lambda } else { T::from_f64(at) * cap };
    let high = if near && whole == at + 1.0 { lambda } else { T::from_f64(at + 1.0) * cap };
    (T::from_f64(at), (low, high))
}
