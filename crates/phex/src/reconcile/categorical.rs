//! `categorical`: softmax heads on the levels of a taxonomy, exactly.
//!
//! Each level of a forest is a head: a distribution over its labels. Its loss is `−w log p_y`, where
//! `y` is its label that is on, and the losses of the heads are added. A truth is a path from a root
//! to a leaf, so consistent heads are sums of one distribution over the leaves. The projection is
//!
//! `argmin Σ_v w_v q_v log(q_v / p_v)` such that `q_v = Σ q_c` over the children of `v`.
//!
//! The levels are eliminated from the bottom. Given `q_v`, its children divide it in proportion to
//! `p_c`, which leaves the term `w q_v log(q_v / Σ p_c)`. With the term of `v` itself it is
//! `(w + w_v) q_v log(q_v / r_v)`, where
//!
//! `r_v = (Σ p_c)^{w / (w + w_v)} · p_v^{w_v / (w + w_v)}`.
//!
//! So `r_v` and the sum of the weights take the place of `p_v` and its weight, and the next level is
//! eliminated in the same way. The roots get `q ∝ r`, and each label divides its probability among
//! its children in proportion to their `r`. Every truth gains equally much. The cost is O(labels).

use super::FinishedRows;
use super::compile::{Component, Families, NONE};
use super::rows::account::Account;
use super::rows::repair;
use super::rows::{Chunk, accepted};
use crate::Error;
use crate::infer::Number;
use crate::numeric::ln_slice;

/// The probabilities of a head may sum to this much more or less than 1. They are normalised.
const SUM: f64 = 0.02;

/// Probabilities below this count as this, so that their logarithms are finite.
const LEAST: f64 = 1e-300;

/// Logits of heads beyond this count as this.
const MOST: f64 = 1e4;

/// A forest whose levels are softmax heads.
#[derive(Debug)]
pub(super) struct CategoricalPart {
    forest: Families,
    /// Level `k` has the nodes `levels[k]..levels[k + 1]`.
    levels: Vec<usize>,
}

/// Scratch memory for one row.
#[derive(Debug)]
struct HeadDesk<T> {
    input: Vec<T>,
    output: Vec<T>,
    /// `log p`.
    logs: Vec<f64>,
    /// `log r`, and then its exponential relative to the largest sibling.
    pooled: Vec<f64>,
    /// `Σ` of these exponentials over the children of each node.
    below: Vec<f64>,
    q: Vec<f64>,
}

impl CategoricalPart {
    pub(super) fn forest(&self) -> &Families {
        &self.forest
    }

    /// The heads of a part of the graph, or why it has none. `name` tells the name of a column.
    pub(super) fn of(
        part: &Component,
        weights: &[f64],
        name: impl Fn(u32) -> String,
    ) -> Result<CategoricalPart, Error> {
        let refuse = |reason: String| Err(Error::Unreconcilable { reason });
        let heads =
            "the categorical loss needs softmax heads: each level of a forest is one one-of group";
        let Some(forest) = Families::of(part, weights) else {
            let first = name(part.labels[0]);
            return refuse(format!(
                "{heads}, and the relations of `{first}` do not form such a forest; \
                 make the graph `single_label`, or use the log loss"
            ));
        };
        let n = forest.nodes();
        let mut depth = vec![0usize; n];
        for v in 0..n {
            let parent = forest.parent[forest.group[v] as usize];
            depth[v] = if parent == NONE { 0 } else { depth[parent as usize] + 1 };
        }
        let label = |v: usize| name(forest.labels[v]);
        if let Some(g) = (0..forest.groups()).find(|&g| !forest.equal[g]) {
            let v = forest.members(g).start;
            return refuse(format!(
                "{heads}, but the labels beside `{}` may all be off; declare a one-of group",
                label(v)
            ));
        }
        let deepest = depth[n - 1];
        if let Some(v) = (0..n).find(|&v| forest.below(v).len() > 1) {
            return refuse(format!("{heads}, but `{}` has several groups below it", label(v)));
        }
        let ends_early = |v: &usize| forest.below(*v).is_empty() && depth[*v] < deepest;
        if let Some(v) = (0..n).find(ends_early) {
            let (short, long) = (label(v), label(n - 1));
            return refuse(format!(
                "{heads}, but `{short}` has no label on the level of `{long}`; add one, or use the log loss"
            ));
        }
        if forest.roots().len() > 1 {
            return refuse(format!("{heads}, but the roots are in several groups"));
        }
        let mut levels: Vec<usize> =
            (0..n).filter(|&v| v == 0 || depth[v] > depth[v - 1]).collect();
        levels.push(n);
        for level in levels.windows(2) {
            let weights = &forest.weights[level[0]..level[1]];
            if let Some(at) = weights.iter().position(|weight| *weight != weights[0]) {
                return refuse(format!(
                    "`{}` and `{}` are labels of one softmax head, so they need the same weight",
                    label(level[0]),
                    label(level[0] + at)
                ));
            }
        }
        Ok(CategoricalPart { forest, levels })
    }

    /// How many equations there are.
    pub(super) fn rows(&self) -> usize {
        self.forest.groups()
    }

    /// Whether the heads of all rows are distributions.
    pub(super) fn check<T: Number>(
        &self,
        rows: FinishedRows<'_, T>,
        names: &[String],
    ) -> Result<(), Error> {
        let FinishedRows::Probabilities(values) = rows else { return Ok(()) };
        for (row, values) in values.chunks_exact(names.len()).enumerate() {
            for level in self.levels.windows(2) {
                let labels = &self.forest.labels[level[0]..level[1]];
                let sum: f64 = labels.iter().map(|&label| values[label as usize].to_f64()).sum();
                if (sum - 1.0).abs() > SUM {
                    let label = names[labels[0] as usize].clone();
                    return Err(Error::NotDistribution { row, label, sum });
                }
            }
        }
        Ok(())
    }

    /// Reconciles the rows of a chunk.
    pub(super) fn run<T: Number>(&self, chunk: &mut Chunk<'_, T>) {
        let n = self.forest.nodes();
        let mut desk = HeadDesk {
            input: vec![T::ZERO; n],
            output: vec![T::ZERO; n],
            logs: vec![0.0; n],
            pooled: vec![0.0; n],
            below: vec![1.0; n + 1],
            q: vec![0.0; n],
        };
        for row in 0..chunk.rows() {
            self.read(chunk, row, &mut desk);
            let off = repair::violation(&self.forest, &desk.input);
            if off == 0.0 {
                continue;
            }
            chunk.outcomes[row].see_violation(off);
            self.project(&mut desk);
            for (out, q) in desk.output.iter_mut().zip(&desk.q) {
                *out = T::from_f64(q.max(T::SMALLEST));
            }
            repair::fit(&self.forest, &mut desk.output);
            let account = self.account(&mut desk);
            if !accepted::<T>(account.gain, true) {
                chunk.outcomes[row].give_up();
                continue;
            }
            chunk.scatter(row, &self.forest.labels, &desk.output);
            let violation = repair::violation(&self.forest, &desk.output);
            chunk.outcomes[row].add(account, violation, 1, true, 1.0);
        }
    }

    /// Reads the heads of a row: their probabilities, and the normalised logarithms.
    fn read<T: Number>(&self, chunk: &mut Chunk<'_, T>, row: usize, desk: &mut HeadDesk<T>) {
        let start = row * chunk.labels;
        let labels = &self.forest.labels;
        let HeadDesk { input, logs, pooled, .. } = desk;
        match chunk.input {
            FinishedRows::Probabilities(values) => {
                for ((log, p), &label) in logs.iter_mut().zip(input.iter_mut()).zip(labels) {
                    *p = values[start + label as usize];
                    *log = p.to_f64();
                }
                for level in self.levels.windows(2) {
                    let head = &mut logs[level[0]..level[1]];
                    let sum: f64 = head.iter().sum();
                    // Rounding is not divided away: consistent heads keep their bits.
                    let scale = if (sum - 1.0).abs() <= repair::rounding::<T>(head.len(), 1.0) {
                        1.0
                    } else {
                        1.0 / sum
                    };
                    head.iter_mut().for_each(|p| *p = (*p * scale).max(LEAST));
                }
                ln_slice(logs);
            }
            FinishedRows::Logits(values) => {
                for (log, &label) in logs.iter_mut().zip(labels) {
                    *log = values[start + label as usize].to_f64().clamp(-MOST, MOST);
                }
                for level in self.levels.windows(2) {
                    let head = &mut logs[level[0]..level[1]];
                    let most = head.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = head.iter().map(|z| (z - most).exp()).sum();
                    let norm = most + sum.ln();
                    head.iter_mut().for_each(|z| *z = (*z - norm).max(LEAST.ln()));
                }
                pooled.copy_from_slice(logs);
                for (p, log) in input.iter_mut().zip(pooled.iter()) {
                    *p = T::from_f64(log.exp());
                }
                chunk.scatter(row, labels, input);
            }
        }
    }

    /// The projection, into `q`.
    fn project<T>(&self, desk: &mut HeadDesk<T>) {
        let forest = &self.forest;
        let HeadDesk { logs, pooled, below, q, .. } = desk;
        pooled.copy_from_slice(logs);
        let mut total = 0.0;
        for level in self.levels.windows(2).rev() {
            let weight = forest.weights[level[0]];
            for v in level[0]..level[1] {
                let groups = forest.below(v);
                if !groups.is_empty() {
                    let members = forest.members(groups.start);
                    let sum = exponentials(&mut pooled[members], &mut below[v]);
                    pooled[v] = (total * sum + weight * logs[v]) / (total + weight);
                }
            }
            total += weight;
        }
        let n = forest.nodes();
        exponentials(&mut pooled[forest.members(0)], &mut below[n]);
        for v in 0..n {
            let (mass, sum) = match forest.parent[forest.group[v] as usize] {
                NONE => (1.0, below[n]),
                parent => (q[parent as usize], below[parent as usize]),
            };
            q[v] = mass * (pooled[v] / sum);
        }
    }

    /// What every truth gains at least, by the output. Truths whose loss was infinite do not count.
    fn account<T: Number>(&self, desk: &mut HeadDesk<T>) -> Account {
        let forest = &self.forest;
        let HeadDesk { input, output, logs, pooled, q, .. } = desk;
        for ((log, out), q) in pooled.iter_mut().zip(output.iter()).zip(q.iter_mut()) {
            *q = out.to_f64();
            *log = q.max(LEAST);
        }
        ln_slice(pooled);
        let (mut least, mut divergence) = (f64::INFINITY, 0.0);
        for v in 0..forest.nodes() {
            let change = forest.weights[v] * (pooled[v] - logs[v]);
            divergence += q[v] * change;
            let above = match forest.parent[forest.group[v] as usize] {
                NONE => 0.0,
                parent => logs[parent as usize],
            };
            // From here on, `logs` has the sums from the root.
            logs[v] = if input[v] == T::ZERO { f64::INFINITY } else { above + change };
            if forest.below(v).is_empty() && logs[v] < least {
                least = logs[v];
            }
        }
        let gain = if least == f64::INFINITY { 0.0 } else { least };
        Account { gain, gap: (divergence - gain).max(0.0) }
    }
}

/// Replaces logarithms by exponentials relative to the largest. Returns the logarithm of the sum of
/// the exponentials, and stores their relative sum.
fn exponentials(logs: &mut [f64], sum: &mut f64) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.iter_mut().for_each(|log| *log = (*log - most).exp());
    *sum = logs.iter().sum();
    most + sum.ln()
}
