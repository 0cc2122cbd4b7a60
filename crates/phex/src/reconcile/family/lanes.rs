//! The state of several rows side by side, and the steps of one parent.
//!
//! At fixed multipliers above it, everything below a label answers a change of its logit by a
//! monotone function. A pass sends the slope `ρ` of this function upwards instead of the function.
//! For a parent with the groups `g`, members `c`, `S = Σ q_c` and `κ = Σ ρ_c q_c (1 − q_c)`, the
//! equation of an active group is linearised in a form that stays nearly linear in the tails:
//!
//! ```text
//! r = log(S / q_v),     k = κ / S,           ν = 1 − q_v      (log form)
//! r = logit S − z_v,    k = κ / (S (1 − S)), ν = 1            (if one member dominates the group)
//! u = Σ r/k / (1 + Σ ν/k),   δ_g = (r − ν u) / k,   z_v += u,   ρ_v = 1 / (1 + Σ ν/k)
//! ```
//!
//! Newton's method alone steps a thousand times too far where two members are saturated. The two
//! largest logits of a group bound the step from below, exactly in that case.

use super::super::compile::Families;
use crate::numeric::{Lanes, LogLane};

/// Several rows of one forest. The arrays per node and per group are in the order of the forest.
#[derive(Debug)]
pub(super) struct LaneState<T, const L: usize> {
    /// The logits of the input.
    pub(super) scores: Vec<Lanes<T, L>>,
    /// The logits at the current multipliers, while a pass goes up: with the steps of what is below.
    pub(super) z: Vec<Lanes<T, L>>,
    /// `q`, `1 − q` and the slope `ρ` of inner nodes.
    q: Vec<Lanes<T, L>>,
    rest: Vec<Lanes<T, L>>,
    rho: Vec<Lanes<T, L>>,
    /// The multiplier of each group, its step in this pass, and its `ν / k`.
    pub(super) multiplier: Vec<Lanes<T, L>>,
    pub(super) step: Vec<Lanes<T, L>>,
    ratio: Vec<Lanes<T, L>>,
    /// The Newton term `r / k` and the lower bound of a step, for parents of several groups.
    newton: Vec<Lanes<T, L>>,
    least: Vec<Lanes<T, L>>,
    /// The multipliers where the dual value was best.
    pub(super) best: Vec<Lanes<T, L>>,
    /// The largest residual, and the dual value where the pass began, up to a constant of the row.
    pub(super) residual: [T; L],
    pub(super) dual: [f64; L],
    /// `Π (1 + e^{−|z|})` of some nodes, whose logarithm is taken now and then, and how many.
    product: [T; L],
    factors: u32,
    positive: [T; L],
    /// Solve each group by itself, exactly: plain coordinate ascent.
    pub(super) careful: bool,
}

impl<T: LogLane, const L: usize> LaneState<T, L> {
    pub(super) fn new(forest: &Families) -> LaneState<T, L> {
        let (nodes, groups) = (forest.nodes(), forest.groups());
        let of = |count: usize| vec![Lanes::NONE; count];
        let several = (0..nodes).any(|v| forest.below(v).len() > 1);
        LaneState {
            scores: of(nodes),
            z: of(nodes),
            q: of(nodes),
            rest: of(nodes),
            rho: of(nodes),
            multiplier: of(groups),
            step: of(groups),
            ratio: of(groups),
            newton: of(if several { groups } else { 0 }),
            least: of(if several { groups } else { 0 }),
            best: of(groups),
            residual: [T::ZERO; L],
            dual: [0.0; L],
            product: [T::ONE; L],
            factors: 0,
            positive: [T::ZERO; L],
            careful: false,
        }
    }
}

/// The larger and the smaller of two numbers, without the special cases of NaN.
#[inline(always)]
pub(in crate::reconcile) fn max<T: LogLane>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[inline(always)]
pub(in crate::reconcile) fn min<T: LogLane>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

#[inline(always)]
pub(in crate::reconcile) fn abs<T: LogLane>(a: T) -> T {
    if a < T::ZERO { -a } else { a }
}

/// `e^{−|z|}`, never 0.
#[inline(always)]
pub(in crate::reconcile) fn decay<T: LogLane>(z: T) -> T {
    let most = T::DEEPEST * T::from_f64(0.9);
    (-min(abs(z), most)).exp_negative()
}

/// `q` and `1 − q` from `z` and `e^{−|z|}`, each with full relative precision.
#[inline(always)]
pub(in crate::reconcile) fn halves<T: LogLane>(z: T, e: T) -> (T, T) {
    let large = T::ONE / (T::ONE + e);
    let small = e * large;
    if z > T::ZERO { (large, small) } else { (small, large) }
}

/// The parent of a group while its step is computed.
struct Above<T, const L: usize> {
    z: [T; L],
    /// `q` and `1 − q`.
    q: [T; L],
    rest: [T; L],
}

impl<T: LogLane, const L: usize> Above<T, L> {
    /// The upper limit 1 of roots.
    #[inline(always)]
    fn one() -> Above<T, L> {
        let z = [T::from_f64(40.0); L];
        Above { z, q: [T::ONE; L], rest: [T::ZERO; L] }
    }

    #[inline(always)]
    fn at(z: [T; L]) -> (Above<T, L>, [T; L]) {
        let mut above = Above { z, q: z, rest: z };
        let mut e = z;
        for l in 0..L {
            e[l] = decay(z[l]);
            (above.q[l], above.rest[l]) = halves(z[l], e[l]);
        }
        (above, e)
    }
}

/// What the members of a group add up to.
struct Sums<T, const L: usize> {
    /// `S`, `1 − S` and `κ`.
    sum: [T; L],
    room: [T; L],
    kappa: [T; L],
    /// The two largest logits and the slowest response.
    first: [T; L],
    second: [T; L],
    slowest: [T; L],
}

/// Numbers of a group step that do not depend on the lane.
struct GroupKind<T> {
    many: bool,
    root: bool,
    equal: bool,
    /// How far above the lower bound a step may go: `2 (log |g| + 1)`.
    reach: T,
}

impl<T: LogLane, const L: usize> LaneState<T, L> {
    /// Makes every part of the forest independent of what is above it, and takes no step.
    pub(super) fn stand_still(&mut self) {
        self.step.iter_mut().for_each(|step| *step = Lanes::NONE);
        self.ratio.iter_mut().for_each(|ratio| *ratio = Lanes::NONE);
        self.rho.iter_mut().for_each(|rho| *rho = Lanes([T::ONE; L]));
    }

    /// Counts a node in the dual value.
    #[inline(always)]
    fn account(&mut self, z: &[T; L], e: &[T; L]) {
        for l in 0..L {
            self.product[l] *= T::ONE + e[l];
            self.positive[l] += max(z[l], T::ZERO);
        }
        self.factors += 1;
        // Below the overflow of single precision.
        if self.factors == 100 {
            self.take_logarithm();
        }
    }

    #[inline(always)]
    fn take_logarithm(&mut self) {
        for l in 0..L {
            self.dual[l] -= self.product[l].ln_lane().to_f64() + self.positive[l].to_f64();
            self.product[l] = T::ONE;
            self.positive[l] = T::ZERO;
        }
        self.factors = 0;
    }

    /// Sums over the members of a group, shifted by the step so far.
    #[inline(always)]
    fn sums(&mut self, forest: &Families, g: usize, shifted: bool) -> Sums<T, L> {
        let low = [T::from_f64(-60.0); L];
        let (mut largest, mut room, mut others) = ([T::ZERO; L], [T::ONE; L], [T::ZERO; L]);
        let mut sums = Sums {
            sum: [T::ZERO; L],
            room: [T::ZERO; L],
            kappa: [T::ZERO; L],
            first: low,
            second: low,
            slowest: [T::ONE; L],
        };
        let step = self.step[g].0;
        for c in forest.members(g) {
            let leaf = forest.below(c).is_empty();
            let mut x = self.z[c].0;
            let rho = if leaf { [T::ONE; L] } else { self.rho[c].0 };
            let (mut q, mut rest) = (x, x);
            if leaf || shifted {
                let mut e = x;
                for l in 0..L {
                    if shifted {
                        x[l] -= rho[l] * step[l];
                    }
                    e[l] = decay(x[l]);
                    (q[l], rest[l]) = halves(x[l], e[l]);
                }
                if leaf && !shifted {
                    self.account(&x, &e);
                }
            } else {
                (q, rest) = (self.q[c].0, self.rest[c].0);
            }
            for l in 0..L {
                sums.kappa[l] += rho[l] * q[l] * rest[l];
                let larger = q[l] > largest[l];
                others[l] += if larger { largest[l] } else { q[l] };
                room[l] = if larger { rest[l] } else { room[l] };
                largest[l] = if larger { q[l] } else { largest[l] };
                sums.second[l] = max(sums.second[l], min(sums.first[l], x[l]));
                sums.first[l] = max(sums.first[l], x[l]);
                sums.slowest[l] = min(sums.slowest[l], rho[l]);
            }
        }
        for l in 0..L {
            sums.sum[l] = largest[l] + others[l];
            // Without cancellation where one member is nearly 1.
            sums.room[l] = room[l] - others[l];
        }
        sums
    }

    /// `r`, `k`, `ν` and the lower bounds of a step: by two members, and by all. `k` and `ν` are
    /// multiplied by the same number, which is the last entry, because the step needs only ratios.
    #[inline(always)]
    fn equation(above: &Above<T, L>, sums: &Sums<T, L>, kind: &GroupKind<T>, l: usize) -> [T; 6] {
        let (half, never) = (T::from_f64(0.5), T::from_f64(-1e3));
        let tiny = T::from_f64(1e-30);
        let (m1, m2) = (sums.first[l], sums.second[l]);
        let (sum, room) = (max(sums.sum[l], tiny), sums.room[l]);
        let alone = !kind.many || (m1 > T::ZERO && m2 < -m1);
        let logit = !kind.root && alone && room > tiny;
        let (rest, part) = if logit { (above.rest[l], room) } else { (T::ONE, T::ONE) };
        let r = max(sum * rest / max(above.q[l] * part, tiny), tiny).ln_lane();
        let spread = max(if logit { sum * room } else { sum }, tiny);
        let k = max(sums.kappa[l], T::from_f64(1e-14) * spread);
        let nu = if kind.root {
            T::ZERO
        } else if logit {
            T::ONE
        } else {
            above.rest[l]
        };
        // 1 / (s (1 + s)) gives both 1 / s and 1 / (1 + s).
        let slow = sums.slowest[l];
        let inverse = T::ONE / (slow * (T::ONE + slow));
        let (pair, over) = (m1 + m2, m1 - above.z[l]);
        let far = inverse * (T::ONE + slow);
        let by_pair = pair * half * if pair > T::ZERO { T::ONE } else { far };
        let by_pair = if kind.many { by_pair } else { never };
        let by_parent = over * if over > T::ZERO { half } else { inverse * slow };
        let by_parent = if kind.root { never } else { by_parent };
        [r, k, nu * spread, by_pair, max(by_pair, by_parent), spread]
    }

    /// The step of one group of a parent, or of roots without one. `first` says that it is the first
    /// group of its parent.
    #[inline(always)]
    pub(super) fn settle_one(
        &mut self,
        forest: &Families,
        g: usize,
        parent: Option<usize>,
        first: bool,
    ) {
        let kind = GroupKind {
            many: forest.members(g).len() > 1,
            root: parent.is_none(),
            equal: forest.equal[g],
            reach: T::from_f64(2.0 * ((forest.members(g).len() as f64).ln() + 1.0)),
        };
        let start = parent.map(|v| self.z[v].0);
        let mut above = match start {
            None => Above::one(),
            Some(z) => {
                let (above, e) = Above::at(z);
                if first {
                    self.account(&z, &e);
                }
                above
            }
        };
        let (rounds, still) =
            if self.careful { (40, T::from_f64(1e-12)) } else { (2, T::from_f64(0.03)) };
        let far = T::from_f64(1e9);
        let (mut low, mut high) = ([-far; L], [far; L]);
        let mut going = [true; L];
        self.step[g] = Lanes::NONE;
        for round in 0..rounds {
            let sums = self.sums(forest, g, round > 0);
            let lambda = self.multiplier[g].0;
            let (mut step, mut ratio) = (self.step[g].0, self.ratio[g].0);
            let mut again = false;
            for l in 0..L {
                let [r, k, nu, _, least, spread] = Self::equation(&above, &sums, &kind, l);
                let active = kind.equal || lambda[l] + step[l] > T::ZERO || r > T::ZERO;
                if round == 0 {
                    let residual = abs(sums.sum[l] - above.q[l]);
                    let counted = if active { residual } else { T::ZERO };
                    self.residual[l] = max(self.residual[l], counted);
                }
                let reached = max(least, T::ZERO) + kind.reach;
                let bound = if r > T::ZERO { least } else { min(least, T::ZERO) };
                let change = max(min(r * spread / (k + nu), reached), bound);
                low[l] = if r > T::ZERO { max(low[l], step[l]) } else { low[l] };
                high[l] = if r > T::ZERO { high[l] } else { min(high[l], step[l]) };
                let mut next = step[l] + change;
                let known = low[l] > -far && high[l] < far;
                let outside = known && (next < low[l] || next > high[l]);
                next = if outside { (low[l] + high[l]) * T::from_f64(0.5) } else { next };
                next = if kind.equal { next } else { max(next, -lambda[l]) };
                next = if active && going[l] { next } else { step[l] };
                ratio[l] = if going[l] { nu / k } else { ratio[l] };
                // An inactive group does not answer a change of its parent.
                let idle = !kind.equal && lambda[l] + next <= T::ZERO;
                ratio[l] = if idle || !active { T::ZERO } else { ratio[l] };
                let moved = abs(next - step[l]) > still;
                step[l] = next;
                going[l] = going[l] && moved;
                again |= going[l];
            }
            (self.step[g].0, self.ratio[g].0) = (step, ratio);
            if let Some(z) = start {
                let mut shifted = z;
                for l in 0..L {
                    shifted[l] = z[l] + step[l];
                }
                above = Above::at(shifted).0;
            }
            if !again {
                break;
            }
        }
        if self.careful {
            self.ratio[g] = Lanes::NONE;
        }
        if let Some(v) = parent {
            (self.z[v].0, self.q[v].0, self.rest[v].0) = (above.z, above.q, above.rest);
            for l in 0..L {
                self.rho[v].0[l] = T::ONE / (T::ONE + self.ratio[g].0[l]);
            }
        }
    }

    /// The step of a parent whose only group is one child. `q_c ≤ q_v` is `z_c ≤ z_v`, which is linear
    /// in the step, so one round without logarithms is exact.
    #[inline(always)]
    pub(super) fn settle_pair(&mut self, forest: &Families, v: usize, g: usize) {
        let (c, equal) = (forest.start[g] as usize, forest.equal[g]);
        let (below, start) = (self.z[c].0, self.z[v].0);
        let (mut above, e) = Above::at(start);
        self.account(&start, &e);
        let leaf = forest.below(c).is_empty();
        let (mut q, mut rho) = (self.q[c].0, self.rho[c].0);
        if leaf {
            let mut e = below;
            for l in 0..L {
                e[l] = decay(below[l]);
                q[l] = halves(below[l], e[l]).0;
            }
            self.account(&below, &e);
            rho = [T::ONE; L];
        }
        let (half, reach) = (T::from_f64(0.5), T::from_f64(2.0));
        let lambda = self.multiplier[g].0;
        let (mut step, mut ratio, mut slope) = (lambda, lambda, lambda);
        let mut shifted = start;
        for l in 0..L {
            let r = below[l] - start[l];
            let active = equal || lambda[l] > T::ZERO || r > T::ZERO;
            let residual = abs(q[l] - above.q[l]);
            self.residual[l] = max(self.residual[l], if active { residual } else { T::ZERO });
            // A slow answer from below may be no more than local.
            let most = max(r * half, T::ZERO) + reach;
            let free = min(r / (T::ONE + rho[l]), most);
            let next = if equal { free } else { max(free, -lambda[l]) };
            let next = if active { next } else { T::ZERO };
            let tied = active && (equal || lambda[l] + next > T::ZERO);
            step[l] = next;
            let least = T::from_f64(1e-14);
            ratio[l] = if tied { T::ONE / max(rho[l], least) } else { T::ZERO };
            slope[l] = if tied { rho[l] / (T::ONE + rho[l]) } else { T::ONE };
            shifted[l] = start[l] + next;
        }
        if self.careful {
            (ratio, slope) = ([T::ZERO; L], [T::ONE; L]);
        }
        above = Above::at(shifted).0;
        (self.step[g].0, self.ratio[g].0, self.rho[v].0) = (step, ratio, slope);
        (self.z[v].0, self.q[v].0, self.rest[v].0) = (above.z, above.q, above.rest);
    }

    /// The steps of several groups of one parent.
    #[inline(always)]
    pub(super) fn settle_several(&mut self, forest: &Families, v: usize) {
        let groups = forest.below(v);
        if self.careful {
            for g in groups.clone() {
                self.settle_one(forest, g, Some(v), g == groups.start);
            }
            self.rho[v] = Lanes([T::ONE; L]);
            return;
        }
        let start = self.z[v].0;
        let (mut above, e) = Above::at(start);
        self.account(&start, &e);
        let mut total = [T::ZERO; L];
        let mut going = [true; L];
        for g in groups.clone() {
            self.step[g] = Lanes::NONE;
        }
        for round in 0..2 {
            let (mut push, mut slope) = ([T::ZERO; L], [T::ZERO; L]);
            for g in groups.clone() {
                let many = forest.members(g).len() > 1;
                let kind = GroupKind { many, root: false, equal: forest.equal[g], reach: T::ZERO };
                let sums = self.sums(forest, g, round > 0);
                for l in 0..L {
                    let [r, k, nu, pair, _, spread] = Self::equation(&above, &sums, &kind, l);
                    let reached = self.multiplier[g].0[l] + self.step[g].0[l];
                    let active = kind.equal || reached > T::ZERO || r > T::ZERO;
                    if round == 0 {
                        let residual = abs(sums.sum[l] - above.q[l]);
                        let counted = if active { residual } else { T::ZERO };
                        self.residual[l] = max(self.residual[l], counted);
                    }
                    let inverse = if active { T::ONE / k } else { T::ZERO };
                    push[l] += r * spread * inverse;
                    slope[l] += nu * inverse;
                    self.newton[g].0[l] = r * spread * inverse;
                    let ratio = if going[l] { nu * inverse } else { self.ratio[g].0[l] };
                    self.ratio[g].0[l] = ratio;
                    let positive = max(pair, T::ZERO);
                    self.least[g].0[l] = if r > T::ZERO { positive } else { T::from_f64(-1e3) };
                }
            }
            let mut moved = [false; L];
            for g in groups.clone() {
                for l in 0..L {
                    let u = push[l] / (T::ONE + slope[l]);
                    let eight = T::from_f64(8.0);
                    let least = self.least[g].0[l];
                    let newton = self.newton[g].0[l] - self.ratio[g].0[l] * u;
                    let change = min(max(newton, -eight), max(least, T::ZERO) + eight);
                    let before = self.step[g].0[l];
                    let mut next = before + max(change, least);
                    if !forest.equal[g] {
                        next = max(next, -self.multiplier[g].0[l]);
                    }
                    next = if going[l] { next } else { before };
                    moved[l] |= abs(next - before) > T::from_f64(0.03);
                    total[l] += next - before;
                    self.step[g].0[l] = next;
                }
            }
            let mut again = false;
            let mut shifted = start;
            for l in 0..L {
                going[l] = going[l] && moved[l];
                again |= going[l];
                shifted[l] = start[l] + total[l];
            }
            above = Above::at(shifted).0;
            if !again {
                break;
            }
        }
        let mut sum = [T::ZERO; L];
        for g in groups {
            for l in 0..L {
                let reached = self.multiplier[g].0[l] + self.step[g].0[l];
                let idle = !forest.equal[g] && reached <= T::ZERO;
                let ratio = if idle { T::ZERO } else { self.ratio[g].0[l] };
                self.ratio[g].0[l] = ratio;
                sum[l] += ratio;
            }
        }
        (self.z[v].0, self.q[v].0, self.rest[v].0) = (above.z, above.q, above.rest);
        for l in 0..L {
            self.rho[v].0[l] = T::ONE / (T::ONE + sum[l]);
        }
    }

    /// The way up: the steps of all parents, children before parents, and the dual value and the
    /// largest residual at the start.
    #[inline(always)]
    pub(super) fn up(&mut self, forest: &Families) {
        self.residual = [T::ZERO; L];
        self.dual = [0.0; L];
        for v in (0..forest.nodes()).rev() {
            match forest.below(v).len() {
                0 => {}
                1 => {
                    let g = forest.first[v] as usize;
                    if forest.members(g).len() == 1 {
                        self.settle_pair(forest, v, g);
                    } else {
                        self.settle_one(forest, g, Some(v), true);
                    }
                }
                _ => self.settle_several(forest, v),
            }
        }
        for g in forest.roots() {
            // A free root is counted where its children are settled; alone it cannot be.
            if !forest.is_free(g) {
                self.settle_one(forest, g, None, true);
                for l in 0..L {
                    self.dual[l] -= self.multiplier[g].0[l].to_f64();
                }
            }
        }
        self.take_logarithm();
    }

    /// The way down: adds the steps, corrected for what happened above, to the multipliers.
    #[inline(always)]
    pub(super) fn down(&mut self, forest: &Families) {
        for g in forest.roots() {
            for l in 0..L {
                self.best[g].0[l] = self.multiplier[g].0[l];
                self.multiplier[g].0[l] += self.step[g].0[l];
            }
        }
        for v in 0..forest.nodes() {
            let up = forest.group[v] as usize;
            let leaf = forest.below(v).is_empty();
            let mut z = self.scores[v].0;
            let (lambda, step) = (self.multiplier[up].0, self.step[up].0);
            let mut change = z;
            for l in 0..L {
                z[l] -= lambda[l];
                change[l] = if leaf { T::ZERO } else { -self.rho[v].0[l] * step[l] };
            }
            for g in forest.below(v) {
                let old = self.multiplier[g].0;
                self.best[g].0 = old;
                for l in 0..L {
                    let moved = old[l] + self.step[g].0[l] - self.ratio[g].0[l] * change[l];
                    let new = if forest.equal[g] { moved } else { max(moved, T::ZERO) };
                    self.multiplier[g].0[l] = new;
                    self.step[g].0[l] = new - old[l];
                    z[l] += new;
                }
            }
            self.z[v].0 = z;
        }
    }
}
