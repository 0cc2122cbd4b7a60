//! Builds a [`Problem`] from terms.
//!
//! [`Builder::build`] removes fixed variables: their pairs become linear terms, and a counter with
//! `f` fixed members on becomes `C(f, 2) + f m + C(m, 2)`. The remaining variables are ordered:
//! single variables first, then the members of one group after another, so that searches run over
//! whole slices. Pairs inside a group never count and are dropped. Building costs O(pairs · log
//! pairs) time and O(n + pairs) memory, or n² for dense problems.

use crate::lists::Lists;
use std::ops::Range;

use super::problem::{Counter, Problem};
use crate::Error;

/// A dense copy of the pairs is kept when at least this fraction of them is present, up to
/// `DENSE_MOST`.
const DENSE_SHARE: f64 = 0.25;
const DENSE_MOST: usize = 4096;

/// Collects the terms of a [`Problem`].
#[derive(Debug, Clone, Default)]
pub struct Builder {
    linear: Vec<f64>,
    pairs: Vec<(u32, u32, f64)>,
    counters: Vec<(Vec<u32>, f64)>,
    groups: Vec<Vec<u32>>,
    fixed: Vec<Option<bool>>,
    constant: f64,
}

impl Builder {
    /// A form over `n` variables that is zero.
    pub fn new(n: usize) -> Builder {
        Builder { linear: vec![0.0; n], fixed: vec![None; n], ..Builder::default() }
    }

    /// Adds a constant to every energy.
    pub fn constant(&mut self, value: f64) -> &mut Builder {
        self.constant += value;
        self
    }

    /// Adds `value · x_a`.
    ///
    /// # Panics
    /// When there is no such variable. This also applies to the methods below.
    pub fn linear(&mut self, a: usize, value: f64) -> &mut Builder {
        self.linear[a] += value;
        self
    }

    /// Adds `value · x_a x_b`.
    pub fn pair(&mut self, a: usize, b: usize, value: f64) -> &mut Builder {
        assert!(a < self.linear.len() && b < self.linear.len(), "variables of the problem");
        if a == b {
            return self.linear(a, value);
        }
        self.pairs.push((a.min(b) as u32, a.max(b) as u32, value));
        self
    }

    /// Adds `cost` for each pair of these variables that is on.
    pub fn counter(&mut self, members: &[usize], cost: f64) -> &mut Builder {
        self.counters.push((self.distinct(members), cost));
        self
    }

    /// Requires that exactly one of these variables is on.
    pub fn one_of(&mut self, members: &[usize]) -> &mut Builder {
        self.groups.push(self.distinct(members));
        self
    }

    /// Fixes a variable.
    pub fn fix(&mut self, a: usize, on: bool) -> &mut Builder {
        self.fixed[a] = Some(on);
        self
    }

    fn distinct(&self, members: &[usize]) -> Vec<u32> {
        assert!(members.iter().all(|&a| a < self.linear.len()), "variables of the problem");
        let mut members: Vec<u32> = members.iter().map(|&a| a as u32).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Checks the terms and removes fixed variables.
    ///
    /// # Errors
    /// [`Error::Quadratic`] when a term is not finite or a variable is in two one-of groups.
    /// [`Error::NoLegalState`] when a group cannot have exactly one variable on.
    pub fn build(mut self) -> Result<Problem, Error> {
        self.settle_groups()?;
        let free: Vec<Vec<u32>> = self.groups.iter().map(|group| self.free(group)).collect();
        let n = self.linear.len();
        let mut grouped = vec![false; n];
        for &member in free.iter().flatten() {
            if std::mem::replace(&mut grouped[member as usize], true) {
                let reason = format!("variable {member} is in two one-of groups");
                return Err(Error::Quadratic { reason });
            }
        }
        let mut variables: Vec<u32> =
            (0..n as u32).filter(|&a| !grouped[a as usize] && self.is_free(a)).collect();
        let singles = variables.len();
        let mut groups = Vec::new();
        for group in free.iter().filter(|group| !group.is_empty()) {
            groups.push(variables.len()..variables.len() + group.len());
            variables.extend(group);
        }
        self.fold_counters();
        let (rows, largest_pair) = self.fold_pairs(&variables, &groups);
        let template: Vec<bool> = self.fixed.iter().map(|fixed| *fixed == Some(true)).collect();
        let on = template.iter().zip(&self.linear).filter(|(on, _)| **on);
        let constant = self.constant + on.map(|(_, linear)| linear).sum::<f64>();
        let linear: Vec<f64> = variables.iter().map(|&a| self.linear[a as usize]).collect();
        let place = places(n, &variables);
        let mut counters_of = vec![Vec::new(); variables.len()];
        let mut counters = Vec::new();
        for (members, cost) in &self.counters {
            let members: Vec<u32> = members.iter().map(|&a| place[a as usize]).collect();
            members.iter().for_each(|&at| counters_of[at as usize].push(counters.len() as u32));
            counters.push(Counter { cost: *cost, members });
        }
        let costs = counters.iter().map(|counter| counter.cost.abs());
        let terms = linear.iter().map(|value| value.abs()).chain(costs).chain([largest_pair]);
        // If the sum of all terms is finite, nothing can overflow later.
        if !terms.clone().chain([constant.abs()]).sum::<f64>().is_finite() {
            return Err(Error::Quadratic { reason: "a term is not a finite number".to_owned() });
        }
        let largest = terms.fold(0.0, f64::max);
        let dense = dense_rows(&rows, variables.len());
        Ok(Problem {
            variables,
            template,
            singles,
            groups,
            constant,
            linear,
            rows: Lists::new(&rows),
            dense,
            counters,
            counters_of: Lists::new(&counters_of),
            largest,
        })
    }

    fn is_free(&self, a: u32) -> bool {
        self.fixed[a as usize].is_none()
    }

    fn free(&self, members: &[u32]) -> Vec<u32> {
        members.iter().copied().filter(|&a| self.is_free(a)).collect()
    }

    /// When a member of a group is on, all others are off. When a single member is left, it is on.
    fn settle_groups(&mut self) -> Result<(), Error> {
        for group in &self.groups {
            let on = group.iter().filter(|&&a| self.fixed[a as usize] == Some(true)).count();
            let free = self.free(group);
            match (on, free.as_slice()) {
                (0, []) | (2.., _) => return Err(Error::NoLegalState),
                (1, free) => free.iter().for_each(|&a| self.fixed[a as usize] = Some(false)),
                (0, &[last]) => self.fixed[last as usize] = Some(true),
                _ => {}
            }
        }
        Ok(())
    }

    /// `C(f + m, 2) = C(f, 2) + f m + C(m, 2)` for `f` fixed members that are on.
    fn fold_counters(&mut self) {
        let mut counters = Vec::new();
        for (members, cost) in std::mem::take(&mut self.counters) {
            let on = members.iter().filter(|&&a| self.fixed[a as usize] == Some(true)).count();
            let on = on as f64;
            self.constant += cost * on * (on - 1.0) / 2.0;
            let free = self.free(&members);
            free.iter().for_each(|&a| self.linear[a as usize] += cost * on);
            match *free.as_slice() {
                [] | [_] => {}
                [a, b] => self.pairs.push((a, b, cost)),
                _ => counters.push((free, cost)),
            }
        }
        self.counters = counters;
    }

    /// The rows of the free variables, with both directions of each pair, and the largest entry.
    fn fold_pairs(
        &mut self,
        variables: &[u32],
        groups: &[Range<usize>],
    ) -> (Vec<Vec<(u32, f64)>>, f64) {
        let place = places(self.linear.len(), variables);
        let group_of = |at: u32| groups.partition_point(|group| group.end <= at as usize);
        let singles = groups.first().map_or(variables.len(), |group| group.start) as u32;
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_by_key(|&(a, b, _)| (a, b));
        pairs.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0.0 };
            same
        });
        let mut rows = vec![Vec::new(); variables.len()];
        let mut largest: f64 = 0.0;
        for (a, b, value) in pairs.into_iter().filter(|pair| pair.2 != 0.0) {
            match (self.fixed[a as usize], self.fixed[b as usize]) {
                (None, None) => {
                    let (a, b) = (place[a as usize], place[b as usize]);
                    if a >= singles && b >= singles && group_of(a) == group_of(b) {
                        continue;
                    }
                    // NaN must survive, but `max` would drop it.
                    largest = if value.is_finite() { largest.max(value.abs()) } else { f64::NAN };
                    rows[a as usize].push((b, value));
                    rows[b as usize].push((a, value));
                    if largest.is_nan() {
                        break;
                    }
                }
                (Some(true), None) => self.linear[b as usize] += value,
                (None, Some(true)) => self.linear[a as usize] += value,
                (Some(true), Some(true)) => self.constant += value,
                _ => {}
            }
        }
        rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|&(other, _)| other));
        (rows, largest)
    }
}

/// The new position of each given variable, for free ones only.
fn places(n: usize, variables: &[u32]) -> Vec<u32> {
    let mut place = vec![u32::MAX; n];
    variables.iter().enumerate().for_each(|(at, &a)| place[a as usize] = at as u32);
    place
}

fn dense_rows(rows: &[Vec<(u32, f64)>], n: usize) -> Option<Vec<f64>> {
    let entries: usize = rows.iter().map(Vec::len).sum();
    if n > DENSE_MOST || (entries as f64) < DENSE_SHARE * (n * n) as f64 || entries == 0 {
        return None;
    }
    let mut dense = vec![0.0; n * n];
    for (row, line) in rows.iter().zip(dense.chunks_exact_mut(n)) {
        row.iter().for_each(|&(other, value)| line[other as usize] = value);
    }
    Some(dense)
}
