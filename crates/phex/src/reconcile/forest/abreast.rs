//! Eight rows of a forest side by side, from answers to a repaired and accounted output.
//!
//! The sums over the groups of a tree are short, and rounding takes branches, so a row by itself
//! uses a fraction of the CPU. Eight rows have the same tree, and every step is the same
//! instruction for all of them. No step mixes rows, so the bits of a row depend on no other row.

use multiversion::multiversion;

use crate::infer::Number;
use crate::reconcile::compile::{Families, NONE};
use crate::reconcile::rows::account::{Account, entries};
use crate::reconcile::rows::repair::{fit_abreast, violations};
use crate::reconcile::rows::{Chunk, RunSettings, accepted, round};

/// How many rows stand side by side: as many doubles as the widest vectors hold.
pub(in crate::reconcile) const ABREAST: usize = 8;

/// Rows side by side; the arrays are in the order of the nodes.
pub(in crate::reconcile) struct RowsAbreast<T> {
    /// The input as probabilities, and the values that are projected.
    input: Vec<[T; ABREAST]>,
    pub(in crate::reconcile) values: Vec<[f64; ABREAST]>,
    /// The answer.
    pub(in crate::reconcile) z: Vec<[f64; ABREAST]>,
    output: Vec<[T; ABREAST]>,
    /// What each label adds to the account, and how it shifts the loss of a truth.
    base: Vec<[f64; ABREAST]>,
    shift: Vec<[f64; ABREAST]>,
}

/// What became of a row.
#[derive(Debug, Clone, Copy)]
pub(in crate::reconcile) struct Settled {
    pub(in crate::reconcile) row: usize,
    pub(in crate::reconcile) account: Account,
    pub(in crate::reconcile) violation: f64,
    /// Whether the output was written. Otherwise a legal truth could be worse off.
    pub(in crate::reconcile) accepted: bool,
}

impl<T: Number> RowsAbreast<T> {
    pub(in crate::reconcile) fn new(forest: &Families) -> RowsAbreast<T> {
        let n = forest.nodes();
        RowsAbreast {
            input: vec![[T::ZERO; ABREAST]; n],
            values: vec![[0.0; ABREAST]; n],
            z: vec![[0.0; ABREAST]; n],
            output: vec![[T::ZERO; ABREAST]; n],
            base: vec![[0.0; ABREAST]; n],
            shift: vec![[0.0; ABREAST]; n],
        }
    }

    /// The largest violation of each of some rows by the input.
    pub(in crate::reconcile) fn violations(
        &mut self,
        chunk: &Chunk<'_, T>,
        forest: &Families,
        rows: &[usize],
    ) -> [f64; ABREAST] {
        gather(chunk.probabilities, chunk.labels, forest, rows, &mut self.input, |p| p);
        violations(forest, &self.input)
    }

    /// Reads the input and the values of some rows.
    pub(in crate::reconcile) fn open(
        &mut self,
        chunk: &Chunk<'_, T>,
        forest: &Families,
        rows: &[usize],
        settings: &RunSettings,
    ) {
        gather(chunk.probabilities, chunk.labels, forest, rows, &mut self.input, |p| p);
        let (cells, form) = chunk.source(settings.loss);
        gather(cells, chunk.labels, forest, rows, &mut self.values, T::to_f64);
        form.apply(self.values.as_flattened_mut(), T::CLIP);
    }

    /// Rounds, repairs and accounts for the answers in `z`, and writes those that are accepted.
    pub(in crate::reconcile) fn finish(
        &mut self,
        chunk: &mut Chunk<'_, T>,
        forest: &Families,
        rows: &[usize],
        settings: &RunSettings,
        last: bool,
        mut settled: impl FnMut(&mut Chunk<'_, T>, Settled),
    ) {
        let (values, input) = (self.values.as_flattened(), self.input.as_flattened());
        let z = self.z.as_flattened();
        round(settings.loss, values, z, input, self.output.as_flattened_mut());
        let violation = fit_abreast(forest, &mut self.output);
        let output = self.output.as_flattened();
        let (base, shift) = (self.base.as_flattened_mut(), self.shift.as_flattened_mut());
        entries(settings.loss, values, input, output, base, shift);
        let accounts = accounts(forest, &self.base, &mut self.shift, &self.output);
        for (lane, &row) in rows.iter().enumerate() {
            let account = accounts[lane];
            let accepted = accepted::<T>(account.gain, last);
            if accepted {
                let start = row * chunk.labels;
                let cells = &mut chunk.probabilities[start..start + chunk.labels];
                for (&label, values) in forest.labels.iter().zip(&self.output) {
                    cells[label as usize] = values[lane];
                }
            }
            settled(chunk, Settled { row, account, violation: violation[lane], accepted });
        }
    }
}

/// Reads the labels of a forest from some rows.
fn gather<T: Copy, U>(
    cells: &[T],
    labels: usize,
    forest: &Families,
    rows: &[usize],
    out: &mut [[U; ABREAST]],
    convert: impl Fn(T) -> U,
) {
    for (lane, &row) in rows.iter().enumerate() {
        let cells = &cells[row * labels..(row + 1) * labels];
        for (out, &label) in out.iter_mut().zip(&forest.labels) {
            out[lane] = convert(cells[label as usize]);
        }
    }
}

/// The account of each row (see `account`). `shift` is overwritten.
#[multiversion(targets = "simd")]
fn accounts<T: Number>(
    forest: &Families,
    base: &[[f64; ABREAST]],
    shift: &mut [[f64; ABREAST]],
    output: &[[T; ABREAST]],
) -> [Account; ABREAST] {
    let zero = [0.0; ABREAST];
    let (mut sum, mut mean, mut most) = (zero, zero, zero);
    for (node, &weight) in forest.weights.iter().enumerate() {
        for lane in 0..ABREAST {
            sum[lane] += base[node][lane] * weight;
            shift[node][lane] *= weight;
            mean[lane] += shift[node][lane] * output[node][lane].to_f64();
        }
    }
    // The most that a legal truth loses by the shift: children before parents.
    for g in (0..forest.groups()).rev() {
        let floor = if forest.equal[g] { f64::NEG_INFINITY } else { 0.0 };
        let mut best = [floor; ABREAST];
        for member in &shift[forest.members(g)] {
            for lane in 0..ABREAST {
                best[lane] = if best[lane] > member[lane] { best[lane] } else { member[lane] };
            }
        }
        let total = match forest.parent[g] {
            NONE => &mut most,
            parent => &mut shift[parent as usize],
        };
        for lane in 0..ABREAST {
            total[lane] += best[lane];
        }
    }
    let mut accounts = [Account::default(); ABREAST];
    for lane in 0..ABREAST {
        let gap = most[lane] - mean[lane];
        accounts[lane].gain = sum[lane] - most[lane];
        accounts[lane].gap = if gap > 0.0 { gap } else { 0.0 };
    }
    accounts
}
