//! The quadratic form that a search minimises:
//!
//! `E(x) = constant + Σ linear_i x_i + Σ_{i<j} pair_ij x_i x_j + Σ_c cost_c · C(m_c, 2)`
//!
//! over 0/1 variables, where `m_c` counts the variables of counter `c` that are on, and exactly one
//! variable of each *one-of group* is on. An exclusion group is one counter, never k² pairs.
//!
//! Single variables come first, then the members of one group after another, so that searches run
//! over whole slices. Memory is O(n + pairs), or n² for dense problems.

use crate::lists::Lists;
use std::ops::Range;

/// Labels that share one cost for each pair that is on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counter {
    pub(super) cost: f64,
    pub(super) members: Vec<u32>,
}

/// A quadratic form with one-of groups and counters, ready to search.
///
/// ```
/// use phex::anneal::{Builder, AnnealOptions, anneal};
/// let mut builder = Builder::new(3);
/// builder.linear(0, -2.0).linear(1, -3.0).pair(0, 1, 4.0).pair(1, 2, -1.0);
/// let outcome = anneal(&builder.build()?, &AnnealOptions::default());
/// assert_eq!(outcome.solutions[0].energy, -4.0);
/// assert_eq!(outcome.solutions[0].state, [false, true, true]);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The given variable that each free variable represents.
    pub(super) variables: Vec<u32>,
    /// One value per given variable. Those of free variables are overwritten.
    pub(super) template: Vec<bool>,
    pub(super) singles: usize,
    pub(super) groups: Vec<Range<usize>>,
    pub(super) constant: f64,
    pub(super) linear: Vec<f64>,
    pub(super) rows: Lists<(u32, f64)>,
    /// An n × n matrix, if there are many pairs.
    pub(super) dense: Option<Vec<f64>>,
    pub(super) counters: Vec<Counter>,
    pub(super) counters_of: Lists<u32>,
    /// The largest coefficient.
    pub(super) largest: f64,
}

impl Problem {
    /// A form whose pairs are a symmetric matrix with a zero diagonal.
    pub(super) fn from_table(constant: f64, linear: Vec<f64>, table: Vec<f64>) -> Problem {
        let n = linear.len();
        let row = |line: &[f64]| {
            let line = line.iter().enumerate().filter(|(_, value)| **value != 0.0);
            line.map(|(at, &value)| (at as u32, value)).collect()
        };
        let rows: Vec<Vec<(u32, f64)>> = table.chunks_exact(n.max(1)).map(row).collect();
        let largest =
            linear.iter().chain(&table).fold(0.0, |most: f64, value| most.max(value.abs()));
        Problem {
            variables: (0..n as u32).collect(),
            template: vec![false; n],
            singles: n,
            groups: Vec::new(),
            constant,
            linear,
            rows: Lists::new(&rows),
            dense: Some(table),
            counters: Vec::new(),
            counters_of: Lists::new(&vec![Vec::new(); n]),
            largest,
        }
    }

    /// How many variables are free.
    pub fn free(&self) -> usize {
        self.variables.len()
    }

    /// How many variables there are, fixed ones included.
    pub fn len(&self) -> usize {
        self.template.len()
    }

    /// Whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.template.is_empty()
    }

    /// How many moves a search has: single variables and groups.
    pub(super) fn moves(&self) -> usize {
        self.singles + self.groups.len()
    }

    /// The energy of a state of the free variables.
    pub(super) fn free_energy(&self, state: &[bool]) -> f64 {
        let on = || state.iter().enumerate().filter(|(_, on)| **on).map(|(at, _)| at);
        let linear: f64 = on().map(|at| self.linear[at]).sum();
        let below = |at: usize| {
            let row = self.rows.of(at).iter().take_while(move |pair| (pair.0 as usize) < at);
            row.filter(|pair| state[pair.0 as usize]).map(|pair| pair.1).sum::<f64>()
        };
        let pairs: f64 = on().map(below).sum();
        let counted = self.counters.iter().map(|counter| {
            let m = counter.members.iter().filter(|&&at| state[at as usize]).count() as f64;
            counter.cost * m * (m - 1.0) / 2.0
        });
        self.constant + linear + pairs + counted.sum::<f64>()
    }

    /// The energy of a state of all variables. The values of fixed variables are ignored.
    ///
    /// # Panics
    /// When the state does not have one value per variable.
    pub fn energy(&self, state: &[bool]) -> f64 {
        assert_eq!(state.len(), self.len(), "one value per variable");
        self.free_energy(&self.restrict(state))
    }

    /// The values of the free variables.
    pub(super) fn restrict(&self, state: &[bool]) -> Vec<bool> {
        self.variables.iter().map(|&a| state[a as usize]).collect()
    }

    /// The values of all variables.
    pub(super) fn expand(&self, state: &[bool]) -> Vec<bool> {
        let mut all = self.template.clone();
        self.variables.iter().zip(state).for_each(|(&a, &on)| all[a as usize] = on);
        all
    }
}
