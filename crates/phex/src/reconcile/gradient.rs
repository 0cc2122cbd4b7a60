//! Gradients through reconciling, for every engine (see `newton::tangent` for the equations).

use std::sync::OnceLock;

use rayon::prelude::*;

use super::compile::Part;
use super::forest::probabilities_of;
use super::newton::{SIDE, Tangent, TangentRow};
use super::{FinishedRows, ReconcileLoss, Reconciler};
use crate::Error;
use crate::infer::Number;

/// The rows of each part, found when a gradient is first wanted. `None` where their factor would be
/// too large.
#[derive(Debug, Default)]
pub(super) struct Tangents(OnceLock<Vec<Option<Tangent>>>);

impl Tangents {
    fn of(&self, parts: &[Part]) -> &[Option<Tangent>] {
        self.0.get_or_init(|| parts.par_iter().map(Part::tangent).collect())
    }
}

/// One row in double precision.
struct Derived {
    /// The input as probabilities, whether it was clipped, and the output.
    input: Vec<f64>,
    clipped: Vec<bool>,
    output: Vec<f64>,
    moved: Vec<bool>,
    /// `w (ℓ − z)`, or `w (p − q)`.
    shift: Vec<f64>,
    upstream: Vec<f64>,
}

impl Reconciler {
    /// The derivative of a loss with respect to the input, from `upstream`, its derivative with
    /// respect to `answer`, the probabilities that [`Reconciler::run`] found. The result has the form of `rows`: derivatives
    /// with respect to probabilities, or with respect to logits.
    ///
    /// Labels that never change get 0, and labels without relations pass on what they got. The
    /// answer is a smooth function of the input except where a relation just begins to bind; there,
    /// it counts as not binding. So rows that were consistent pass on what they got, apart from
    /// one-of groups, which always bind.
    ///
    /// ```
    /// use phex::graph::GraphBuilder;
    /// use phex::reconcile::{FinishedRows, ReconcileOptions, Reconciler};
    ///
    /// let mut builder = GraphBuilder::new();
    /// builder.hierarchy("animal", "dog", None);
    /// let reconciler = Reconciler::compile(&builder.build()?, &ReconcileOptions::default())?;
    /// let rows = FinishedRows::Logits(&[-1.0, 0.5]);
    /// let answer = reconciler.run(rows)?;
    /// // Both labels share the mean logit, and so half of the derivative each.
    /// let gradient = reconciler.gradient(rows, &answer.probabilities, &[1.0, 0.0])?;
    /// let q: f64 = answer.row(0)[0];
    /// assert!((gradient[0] - 0.5 * q * (1.0 - q)).abs() < 1e-12);
    /// assert_eq!(gradient[0], gradient[1]);
    /// # Ok::<(), phex::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Reconciler::run`], [`Error::Shape`] when the answer or `upstream` do not have the
    /// shape of the rows, and [`Error::NoGradient`] where a part of the graph is too large.
    pub fn gradient<T: Number>(
        &self,
        rows: FinishedRows<'_, T>,
        answer: &[T],
        upstream: &[T],
    ) -> Result<Vec<T>, Error> {
        let n = self.names().len();
        self.check(rows)?;
        let expected = rows.values().len();
        let shape = |what, found| Error::Shape { what, expected, found };
        if answer.len() != expected {
            return Err(shape("probabilities of the answer", answer.len()));
        }
        if upstream.len() != expected {
            return Err(shape("derivatives, one per probability of the answer", upstream.len()));
        }
        let tangents = self.tangents.of(&self.compiled.parts);
        if tangents.iter().any(Option::is_none) {
            let reason = String::from("the relations are too many");
            return Err(Error::NoGradient { reason });
        }
        let mut result = vec![T::ZERO; expected];
        result.par_chunks_mut(SIDE * n).enumerate().for_each(|(at, out)| {
            let first = at * SIDE;
            let derived: Vec<Derived> = (first..first + out.len() / n)
                .map(|row| self.derive(rows, answer, upstream, row))
                .collect();
            self.pull_rows(matches!(rows, FinishedRows::Logits(_)), tangents, derived, out);
        });
        Ok(result)
    }

    /// Reads a row.
    fn derive<T: Number>(
        &self,
        rows: FinishedRows<'_, T>,
        answer: &[T],
        upstream: &[T],
        row: usize,
    ) -> Derived {
        let n = self.names().len();
        let values = &rows.values()[row * n..(row + 1) * n];
        let mut input = values.to_vec();
        if matches!(rows, FinishedRows::Logits(_)) {
            probabilities_of(&mut input);
        }
        let output = &answer[row * n..(row + 1) * n];
        let brier = self.options().loss == ReconcileLoss::Brier;
        let logit = |p: f64| (p.ln() - (-p).ln_1p()).clamp(-T::CLIP, T::CLIP);
        let (mut clipped, mut shift) = (vec![false; n], vec![0.0; n]);
        for label in 0..n {
            let (p, q) = (input[label].to_f64(), output[label].to_f64());
            let raw = match rows {
                FinishedRows::Logits(_) => values[label].to_f64(),
                FinishedRows::Probabilities(_) => p.ln() - (-p).ln_1p(),
            };
            clipped[label] = raw.abs() > T::CLIP && !brier;
            if input[label] == output[label] {
                continue;
            }
            let weight = self.options().weights.as_ref().map_or(1.0, |weights| weights[label]);
            let change = if brier { p - q } else { raw.clamp(-T::CLIP, T::CLIP) - logit(q) };
            shift[label] = weight * change;
        }
        Derived {
            moved: input.iter().zip(output).map(|(p, q)| p != q).collect(),
            input: input.iter().map(|p| p.to_f64()).collect(),
            output: output.iter().map(|q| q.to_f64()).collect(),
            upstream: upstream[row * n..(row + 1) * n].iter().map(|g| g.to_f64()).collect(),
            clipped,
            shift,
        }
    }

    /// Writes the derivatives of some rows.
    fn pull_rows<T: Number>(
        &self,
        logits: bool,
        tangents: &[Option<Tangent>],
        mut rows: Vec<Derived>,
        out: &mut [T],
    ) {
        let n = self.names().len();
        let loss = self.options().loss;
        for (label, constant) in self.compiled.constant.iter().enumerate() {
            if constant.is_some() {
                rows.iter_mut().for_each(|row| row.upstream[label] = 0.0);
            }
        }
        for tangent in tangents.iter().flatten() {
            let labels = tangent.labels();
            let pick = |values: &[f64]| -> Vec<f64> {
                labels.iter().map(|&label| values[label as usize]).collect()
            };
            let moved = |row: &Derived| -> Vec<bool> {
                labels.iter().map(|&label| row.moved[label as usize]).collect()
            };
            let wanted: Vec<usize> = (0..rows.len())
                .filter(|&row| tangent.has_equations() || moved(&rows[row]).contains(&true))
                .collect();
            let local: Vec<[Vec<f64>; 3]> = wanted
                .iter()
                .map(|&row| &rows[row])
                .map(|row| [pick(&row.output), pick(&row.shift), pick(&row.upstream)])
                .collect();
            let changes: Vec<Vec<bool>> = wanted.iter().map(|&row| moved(&rows[row])).collect();
            let views: Vec<TangentRow<'_>> = local
                .iter()
                .zip(&changes)
                .map(|([output, shift, upstream], moved)| TangentRow {
                    output,
                    shift,
                    moved,
                    upstream,
                })
                .collect();
            let mut pulled = vec![vec![0.0; labels.len()]; wanted.len()];
            tangent.pull(&views, T::STEP, |q| curve(loss, q), &mut pulled);
            for (&row, pulled) in wanted.iter().zip(&pulled) {
                for (&label, &t) in labels.iter().zip(pulled) {
                    rows[row].upstream[label as usize] = t;
                }
            }
        }
        for (row, out) in rows.iter().zip(out.chunks_mut(n)) {
            for (label, out) in out.iter_mut().enumerate() {
                let (p, q, t) = (row.input[label], row.output[label], row.upstream[label]);
                let slope = match (loss, logits) {
                    (ReconcileLoss::Brier, false) => 1.0,
                    (ReconcileLoss::Brier, true) => p * (1.0 - p),
                    (ReconcileLoss::Categorical, true) => q,
                    (ReconcileLoss::Categorical, false) if p < 1e-300 => 0.0,
                    (ReconcileLoss::Categorical, false) => q / p,
                    (ReconcileLoss::Log, _) if row.moved[label] && row.clipped[label] => 0.0,
                    (ReconcileLoss::Log, true) => q * (1.0 - q),
                    (ReconcileLoss::Log, false) if !row.moved[label] => 1.0,
                    (ReconcileLoss::Log, false) => q * (1.0 - q) / (p * (1.0 - p)),
                };
                *out = T::from_f64(slope * t);
            }
        }
    }
}

/// `V` of a probability: how much it follows its logit.
fn curve(loss: ReconcileLoss, q: f64) -> f64 {
    match loss {
        ReconcileLoss::Log => q * (1.0 - q),
        ReconcileLoss::Brier => 1.0,
        ReconcileLoss::Categorical => q,
    }
}
