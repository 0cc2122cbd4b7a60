//! `H = A V Aᵀ` factored as `L D Lᵀ`, for several rows of probabilities side by side.
//!
//! `V` changes with every step, but the pattern of `H` does not. So the order of elimination (least
//! degree first) and the place of every product are found once, and a factorisation is a fixed list
//! of multiplications without branches, `L` lanes at a time. (Crates for sparse factorisations
//! solve one system at a time, with indices looked up as they go.)
//!
//! A label in many rows, such as a parent of many children that do not exclude each other, would
//! connect all of them. Such *wide* labels stay unknowns of their own:
//!
//! ```text
//! | H'   a_w     |        H' = Σ over other labels of v_i a_i a_iᵀ
//! | a_wᵀ  −1/v_w |        (eliminating w gives v_w a_w a_wᵀ)
//! ```
//!
//! Every row keeps at least one label in `H'`, so its pivot is positive. A factorisation costs one
//! multiplication and subtraction per update, and a solution two per entry.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::compile::NONE;
use super::system::RowSystem;
use crate::lists::Lists;
use crate::numeric::{Elementary, Lanes};

/// A label in more rows than this is wide.
const WIDE: usize = 16;

/// The most updates of a factorisation. Beyond, it would cost more than ascent.
const MOST_UPDATES: usize = 20_000_000;

/// One product `±v_i` of `H`.
#[derive(Debug, Clone, Copy)]
struct Term {
    label: u32,
    entry: u32,
    negative: bool,
}

/// The order of elimination and the pattern of the factor.
#[derive(Debug, Clone)]
pub(in crate::reconcile) struct Elimination {
    /// Where each row, and after them each wide label, is in the order.
    pub(in crate::reconcile) position: Vec<u32>,
    wide: Vec<u32>,
    /// The positions below the diagonal of each column.
    column: Lists<u32>,
    /// Where the products of pairs of a column's entries go: for each entry, those with the entries
    /// before it.
    target: Vec<u32>,
    /// What each label adds to entries, and to diagonals.
    terms: Vec<Term>,
    diagonals: Vec<(u32, u32)>,
    /// Entries that are always 1 or −1: wide labels in rows.
    fixed: Vec<(u32, bool)>,
}

/// The labels of each row with their signs, turned around: the rows of each label.
fn rows_of(system: &RowSystem) -> Lists<(u32, bool)> {
    let entries = (0..system.len()).flat_map(|row| {
        let members =
            system.members.of(row).iter().map(move |&i| (i as usize, (row as u32, false)));
        let upper = system.upper[row];
        members.chain((upper != NONE).then_some((upper as usize, (row as u32, true))))
    });
    Lists::by_key(system.labels.len(), entries)
}

/// The labels that stay unknowns.
fn wide_labels(system: &RowSystem, rows: &Lists<(u32, bool)>) -> Vec<u32> {
    let n = system.labels.len();
    let degree = |label: usize| rows.of(label).len();
    let mut wide: Vec<bool> = (0..n).map(|label| degree(label) > WIDE).collect();
    for row in 0..system.len() {
        let upper = system.upper[row];
        let all = || {
            let members = system.members.of(row).iter().copied();
            members.chain((upper != NONE).then_some(upper)).map(|label| label as usize)
        };
        if all().all(|label| wide[label])
            && let Some(least) = all().min_by_key(|&label| degree(label))
        {
            wide[least] = false;
        }
    }
    (0..n as u32).filter(|&label| wide[label as usize]).collect()
}

impl Elimination {
    /// Finds the order and the pattern. `None` when the factor would be too large.
    pub(in crate::reconcile) fn of(system: &RowSystem) -> Option<Elimination> {
        let m = system.len();
        let rows = rows_of(system);
        let wide = wide_labels(system, &rows);
        let mut is_wide = vec![NONE; system.labels.len()];
        for (at, &label) in wide.iter().enumerate() {
            is_wide[label as usize] = (m + at) as u32;
        }
        let mut near: Vec<Vec<u32>> = vec![Vec::new(); m + wide.len()];
        for (label, &variable) in is_wide.iter().enumerate() {
            let mine = rows.of(label);
            if variable != NONE {
                for &(row, _) in mine {
                    near[row as usize].push(variable);
                    near[variable as usize].push(row);
                }
            } else {
                for &(a, _) in mine {
                    near[a as usize].extend(mine.iter().map(|row| row.0).filter(|&b| b != a));
                }
            }
        }
        for list in &mut near {
            list.sort_unstable();
            list.dedup();
        }
        let (position, columns) = order(near)?;
        let column = Lists::new(&columns);
        let target = targets(&columns, &column)?;
        let place = |r: u32, c: u32| -> u32 {
            let (r, c) = (position[r as usize], position[c as usize]);
            let (below, column_at) = (r.max(c), r.min(c) as usize);
            let at = columns[column_at].binary_search(&below).unwrap_or_default();
            (column.range(column_at).start + at) as u32
        };
        let (mut terms, mut diagonals, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for (label, &variable) in is_wide.iter().enumerate() {
            let mine = rows.of(label);
            if variable != NONE {
                fixed.extend(mine.iter().map(|&(row, minus)| (place(row, variable), minus)));
                continue;
            }
            for (at, &(a, minus)) in mine.iter().enumerate() {
                diagonals.push((label as u32, position[a as usize]));
                for &(b, other) in &mine[..at] {
                    let (entry, negative) = (place(a, b), minus != other);
                    terms.push(Term { label: label as u32, entry, negative });
                }
            }
        }
        terms.sort_by_key(|term| (term.entry, term.label));
        diagonals.sort_by_key(|&(label, at)| (at, label));
        Some(Elimination { position, wide, column, target, terms, diagonals, fixed })
    }

    /// How many unknowns there are: rows and wide labels.
    pub(in crate::reconcile) fn unknowns(&self) -> usize {
        self.position.len()
    }

    /// How many entries the factor has below its diagonal.
    pub(in crate::reconcile) fn entries(&self) -> usize {
        self.column.items().len()
    }

    /// How many multiplications a factorisation takes.
    pub(in crate::reconcile) fn updates(&self) -> usize {
        self.target.len() + self.entries()
    }
}

/// The order by least degree, and the entries of each column.
fn order(mut near: Vec<Vec<u32>>) -> Option<(Vec<u32>, Vec<Vec<u32>>)> {
    let n = near.len();
    let mut queue: BinaryHeap<Reverse<(usize, u32)>> =
        near.iter().enumerate().map(|(at, list)| Reverse((list.len(), at as u32))).collect();
    let mut position = vec![NONE; n];
    let mut columns: Vec<Vec<u32>> = Vec::with_capacity(n);
    let (mut updates, mut merged) = (0usize, Vec::new());
    while let Some(Reverse((degree, pivot))) = queue.pop() {
        if position[pivot as usize] != NONE || degree != near[pivot as usize].len() {
            continue;
        }
        position[pivot as usize] = columns.len() as u32;
        let mine = std::mem::take(&mut near[pivot as usize]);
        updates += mine.len() * (mine.len() + 1) / 2;
        if updates > MOST_UPDATES {
            return None;
        }
        for &other in &mine {
            merge(&near[other as usize], &mine, [other, pivot], &mut merged);
            std::mem::swap(&mut near[other as usize], &mut merged);
            queue.push(Reverse((near[other as usize].len(), other)));
        }
        columns.push(mine);
    }
    for column in &mut columns {
        column.iter_mut().for_each(|at| *at = position[*at as usize]);
        column.sort_unstable();
    }
    Some((position, columns))
}

/// The union of two ascending lists, without two numbers.
fn merge(a: &[u32], b: &[u32], without: [u32; 2], out: &mut Vec<u32>) {
    out.clear();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => break,
        };
        i += usize::from(a.get(i) == Some(&next));
        j += usize::from(b.get(j) == Some(&next));
        if !without.contains(&next) {
            out.push(next);
        }
    }
}

fn targets(columns: &[Vec<u32>], column: &Lists<u32>) -> Option<Vec<u32>> {
    let mut target = Vec::new();
    for list in columns {
        for (at, &row) in list.iter().enumerate() {
            for &other in &list[..at] {
                let found = columns[other as usize].binary_search(&row).ok()?;
                target.push((column.range(other as usize).start + found) as u32);
            }
        }
    }
    Some(target)
}

/// The numbers of a factorisation.
#[derive(Debug)]
pub(in crate::reconcile) struct Factor<T, const L: usize> {
    pub(in crate::reconcile) diagonal: Vec<Lanes<T, L>>,
    entries: Vec<Lanes<T, L>>,
    inverse: Vec<Lanes<T, L>>,
}

impl<T: Elementary, const L: usize> Factor<T, L> {
    pub(in crate::reconcile) fn new(plan: &Elimination) -> Factor<T, L> {
        Factor {
            diagonal: vec![Lanes::NONE; plan.unknowns()],
            entries: vec![Lanes::NONE; plan.entries()],
            inverse: vec![Lanes::NONE; plan.unknowns()],
        }
    }

    pub(in crate::reconcile) fn copy_from(&mut self, other: &Factor<T, L>) {
        self.diagonal.copy_from_slice(&other.diagonal);
        self.entries.copy_from_slice(&other.entries);
    }

    /// Fills in `H` from the slopes `v` of the labels. The caller may then change the diagonal.
    #[inline(always)]
    pub(in crate::reconcile) fn assemble(&mut self, plan: &Elimination, slope: &[Lanes<T, L>]) {
        self.diagonal.iter_mut().for_each(|d| *d = Lanes::NONE);
        self.entries.iter_mut().for_each(|d| *d = Lanes::NONE);
        for &(label, at) in &plan.diagonals {
            self.diagonal[at as usize] += slope[label as usize];
        }
        for term in &plan.terms {
            let (out, v) =
                (&mut self.entries[term.entry as usize].0, &slope[term.label as usize].0);
            for l in 0..L {
                out[l] += if term.negative { -v[l] } else { v[l] };
            }
        }
        for &(entry, negative) in &plan.fixed {
            let one = if negative { -T::ONE } else { T::ONE };
            self.entries[entry as usize] = Lanes([one; L]);
        }
        let rows = plan.unknowns() - plan.wide.len();
        for (at, &label) in plan.wide.iter().enumerate() {
            let pivot = plan.position[rows + at] as usize;
            for l in 0..L {
                let v = slope[label as usize].0[l];
                let least = T::from_f64(1e-30);
                self.diagonal[pivot].0[l] = -(T::ONE / if v > least { v } else { least });
            }
        }
    }

    /// Factors in place. A pivot of a row that rounding has eaten up is replaced by `floor` times
    /// its diagonal.
    #[inline(always)]
    pub(in crate::reconcile) fn factorise(&mut self, plan: &Elimination, floor: T) {
        self.inverse.copy_from_slice(&self.diagonal);
        let mut at = 0;
        for j in 0..self.diagonal.len() {
            let (mut inverse, start) = (self.diagonal[j].0, self.inverse[j].0);
            for l in 0..L {
                let least = floor * start[l];
                let sound = inverse[l] > least;
                let lost = (least > T::ZERO) & !sound;
                inverse[l] = T::ONE / if lost { least } else { inverse[l] };
            }
            self.inverse[j].0 = inverse;
            let range = plan.column.range(j);
            let below = plan.column.of(j);
            let first = range.start;
            for (a, &row) in below.iter().enumerate() {
                let x = self.entries[first + a].0;
                let mut scaled = x;
                for l in 0..L {
                    scaled[l] = x[l] * inverse[l];
                }
                let out = &mut self.diagonal[row as usize].0;
                for l in 0..L {
                    out[l] -= x[l] * scaled[l];
                }
                let targets = &plan.target[at..at + a];
                let (done, rest) = self.entries.split_at_mut(range.end);
                for (source, &target) in done[first..first + a].iter().zip(targets) {
                    let out = &mut rest[target as usize - range.end].0;
                    for l in 0..L {
                        out[l] -= source.0[l] * scaled[l];
                    }
                }
                at += a;
            }
        }
    }

    /// Solves in place. The right side is in the order of elimination.
    #[inline(always)]
    pub(in crate::reconcile) fn solve(&self, plan: &Elimination, right: &mut [Lanes<T, L>]) {
        for j in 0..right.len() {
            let x = right[j] * self.inverse[j];
            let entries = &self.entries[plan.column.range(j)];
            for (entry, &row) in entries.iter().zip(plan.column.of(j)) {
                right[row as usize] = right[row as usize] - *entry * x;
            }
            right[j] = x;
        }
        for j in (0..right.len()).rev() {
            let mut x = Lanes::NONE;
            let entries = &self.entries[plan.column.range(j)];
            for (entry, &row) in entries.iter().zip(plan.column.of(j)) {
                x += *entry * right[row as usize];
            }
            right[j] = right[j] - x * self.inverse[j];
        }
    }
}
