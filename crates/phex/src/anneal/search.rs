//! Local search on one state: what every move would change, and the descent to a local minimum.
//!
//! For every variable, the change of energy from flipping it is kept up to date:
//! `delta_i = (1 − 2 x_i) · ∂E/∂x_i`. A flip costs O(degree), or a whole vectorised row when the
//! problem is dense. Finding the best move costs O(n), vectorised. Switching a one-of group from
//! `a` to `b` changes the energy by `delta_a + delta_b`, minus the cost of each counter that holds
//! both.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::problem::Problem;

/// How many values are compared side by side.
const WIDTH: usize = 8;

/// Moves count as different when their energies differ by more than this fraction of the largest
/// term.
const ROUNDING: f64 = 1e-11;

/// A state and what each move would change.
#[derive(Debug, Clone)]
pub(super) struct Search<'p> {
    pub(super) problem: &'p Problem,
    /// 1 when off, −1 when on.
    pub(super) sign: Vec<f64>,
    pub(super) delta: Vec<f64>,
    /// The member of each group that is on.
    pub(super) current: Vec<usize>,
    pub(super) energy: f64,
    /// The first step at which a variable may move again.
    pub(super) until: Vec<f64>,
    /// For each group, whether a counter holds two of its members.
    overlaps: Vec<bool>,
    /// Changes smaller than this are rounding errors.
    pub(super) epsilon: f64,
}

/// The best move found: a variable, its group, and the change of energy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flip {
    pub(super) at: usize,
    pub(super) group: Option<usize>,
    pub(super) delta: f64,
}

impl<'p> Search<'p> {
    pub(super) fn new(problem: &'p Problem, state: &[bool]) -> Search<'p> {
        let overlaps = problem.groups.iter().map(|group| {
            let mut seen = std::collections::HashSet::new();
            let mut all = group.clone().flat_map(|at| problem.counters_of.of(at));
            all.any(|counter| !seen.insert(counter))
        });
        let mut search = Search {
            problem,
            sign: Vec::new(),
            delta: Vec::new(),
            current: Vec::new(),
            energy: 0.0,
            until: vec![0.0; problem.free()],
            overlaps: overlaps.collect(),
            epsilon: ROUNDING * problem.largest,
        };
        search.load(state);
        search
    }

    /// Restarts from another state. Costs O(n + pairs).
    pub(super) fn load(&mut self, state: &[bool]) {
        let problem = self.problem;
        self.delta.clone_from(&problem.linear);
        for at in (0..state.len()).filter(|&at| state[at]) {
            match &problem.dense {
                Some(dense) => {
                    let row = &dense[at * state.len()..(at + 1) * state.len()];
                    self.delta.iter_mut().zip(row).for_each(|(delta, value)| *delta += value);
                }
                None => {
                    for &(other, value) in problem.rows.of(at) {
                        self.delta[other as usize] += value;
                    }
                }
            }
        }
        // E = constant + Σ x (linear + field) / 2, before counters.
        let on = (0..state.len()).filter(|&at| state[at]);
        let twice: f64 = on.map(|at| self.delta[at] + problem.linear[at]).sum();
        self.energy = problem.constant + twice / 2.0;
        for counter in &problem.counters {
            let m = counter.members.iter().filter(|&&at| state[at as usize]).count() as f64;
            self.energy += counter.cost * m * (m - 1.0) / 2.0;
            for &at in &counter.members {
                let own = f64::from(u8::from(state[at as usize]));
                self.delta[at as usize] += counter.cost * (m - own);
            }
        }
        self.sign.clear();
        self.sign.extend(state.iter().map(|&on| if on { -1.0 } else { 1.0 }));
        self.delta.iter_mut().zip(&self.sign).for_each(|(delta, sign)| *delta *= sign);
        let member = |group: &std::ops::Range<usize>| {
            group.clone().find(|&at| state[at]).unwrap_or(group.start)
        };
        self.current = problem.groups.iter().map(member).collect();
    }

    pub(super) fn problem(&self) -> &'p Problem {
        self.problem
    }

    pub(super) fn energy(&self) -> f64 {
        self.energy
    }

    /// 1 for each variable that is off, −1 for each that is on.
    pub(super) fn signs(&self) -> &[f64] {
        &self.sign
    }

    /// What flipping each variable would change.
    pub(super) fn deltas(&self) -> &[f64] {
        &self.delta
    }

    pub(super) fn state(&self) -> Vec<bool> {
        self.sign.iter().map(|&sign| sign < 0.0).collect()
    }

    /// The changes of energy of all moves.
    pub(super) fn changes(&self) -> Vec<f64> {
        let mut changes = self.delta[..self.problem.singles].to_vec();
        for (group, range) in self.problem.groups.iter().enumerate() {
            let others = range.clone().filter(|&at| at != self.current[group]);
            changes.extend(others.map(|at| self.switch_change(group, at)));
        }
        changes
    }

    /// Every state that is one move away, with its energy.
    pub(super) fn neighbours(&self) -> impl Iterator<Item = (f64, Vec<bool>)> {
        let state = self.state();
        (0..state.len()).filter_map(move |at| {
            let mut next = state.clone();
            next[at] = !next[at];
            if at < self.problem.singles {
                return Some((self.energy + self.delta[at], next));
            }
            let group = self.problem.groups.partition_point(|group| group.end <= at);
            next[self.current[group]] = false;
            let change = self.switch_change(group, at);
            (self.current[group] != at).then_some((self.energy + change, next))
        })
    }

    fn switch_change(&self, group: usize, to: usize) -> f64 {
        let from = self.current[group];
        let both = self.delta[from] + self.delta[to];
        if !self.overlaps[group] {
            return both;
        }
        let counters = &self.problem.counters_of;
        let shared = counters.of(from).iter().filter(|c| counters.of(to).contains(c));
        both - shared.map(|&c| self.problem.counters[c as usize].cost).sum::<f64>()
    }

    pub(super) fn flip(&mut self, at: usize) {
        let change = self.sign[at];
        self.energy += self.delta[at];
        self.sign[at] = -change;
        self.delta[at] = -self.delta[at];
        let n = self.sign.len();
        match &self.problem.dense {
            Some(dense) => {
                let row = &dense[at * n..(at + 1) * n];
                add_row(&mut self.delta, &self.sign, row, change);
            }
            None => {
                for &(other, value) in self.problem.rows.of(at) {
                    let other = other as usize;
                    self.delta[other] += self.sign[other] * value * change;
                }
            }
        }
        for &counter in self.problem.counters_of.of(at) {
            let counter = &self.problem.counters[counter as usize];
            let cost = counter.cost * change;
            for &other in counter.members.iter().filter(|&&other| other as usize != at) {
                let other = other as usize;
                self.delta[other] += self.sign[other] * cost;
            }
        }
    }

    pub(super) fn make(&mut self, taken: Flip) {
        if let Some(group) = taken.group {
            let from = std::mem::replace(&mut self.current[group], taken.at);
            self.flip(from);
        }
        self.flip(taken.at);
    }

    /// The best move that is free at step `now`, or whose change is below `aspired`.
    pub(super) fn best_move(&self, now: f64, aspired: f64) -> Option<Flip> {
        let singles = self.problem.singles;
        let (delta, at) = lowest(&self.delta[..singles], &self.until[..singles], now, aspired);
        let mut best = (delta < f64::INFINITY).then_some(Flip { at, group: None, delta });
        let lowest_so_far = |best: &Option<Flip>| best.map_or(f64::INFINITY, |best| best.delta);
        for (group, range) in self.problem.groups.iter().enumerate() {
            let from = self.current[group];
            if self.overlaps[group] {
                for at in range.clone().filter(|&at| at != from) {
                    let delta = self.switch_change(group, at);
                    let allowed = self.until[at] <= now || delta < aspired;
                    if allowed && delta < lowest_so_far(&best) {
                        best = Some(Flip { at, group: Some(group), delta });
                    }
                }
                continue;
            }
            let base = self.delta[from];
            for part in [range.start..from, from + 1..range.end] {
                let (start, until) = (part.start, &self.until[part.clone()]);
                let (delta, at) = lowest(&self.delta[part], until, now, aspired - base);
                if delta + base < lowest_so_far(&best) {
                    best = Some(Flip { at: start + at, group: Some(group), delta: delta + base });
                }
            }
        }
        best
    }

    /// Descends to a local minimum, always by the best move.
    pub(super) fn descend(&mut self) {
        while let Some(best) = self.best_move(f64::INFINITY, f64::NEG_INFINITY)
            && best.delta < -self.epsilon
        {
            self.make(best);
        }
    }
}

/// A random state of the free variables.
pub(super) fn random_state(problem: &Problem, random: &mut Xoshiro256PlusPlus) -> Vec<bool> {
    let mut state = vec![false; problem.free()];
    state[..problem.singles].iter_mut().for_each(|on| *on = random.random());
    problem.groups.iter().for_each(|group| state[random.random_range(group.clone())] = true);
    state
}

#[multiversion::multiversion(targets = "simd")]
fn add_row(delta: &mut [f64], sign: &[f64], row: &[f64], change: f64) {
    for ((delta, sign), value) in delta.iter_mut().zip(sign).zip(row) {
        *delta += sign * (value * change);
    }
}

/// The smallest value that is free at `now` or below `aspired`, and its position. The value is
/// infinite when there is none.
#[multiversion::multiversion(targets = "simd")]
fn lowest(values: &[f64], until: &[f64], now: f64, aspired: f64) -> (f64, usize) {
    let mut low = [f64::INFINITY; WIDTH];
    let mut places = [0.0; WIDTH];
    let (mut values, mut until) = (values.chunks_exact(WIDTH), until.chunks_exact(WIDTH));
    let mut first = 0.0;
    for (value, until) in values.by_ref().zip(until.by_ref()) {
        for lane in 0..WIDTH {
            let allowed = (until[lane] <= now) | (value[lane] < aspired);
            let better = allowed & (value[lane] < low[lane]);
            low[lane] = if better { value[lane] } else { low[lane] };
            places[lane] = if better { first } else { places[lane] };
        }
        first += WIDTH as f64;
    }
    for (lane, (&value, &until)) in values.remainder().iter().zip(until.remainder()).enumerate() {
        if (until <= now || value < aspired) && value < low[lane] {
            (low[lane], places[lane]) = (value, first);
        }
    }
    let mut best = 0;
    for lane in 1..WIDTH {
        if low[lane] < low[best] {
            best = lane;
        }
    }
    (low[best], places[best] as usize + best)
}
