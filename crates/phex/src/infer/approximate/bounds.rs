//! Computes an interval around log Z for rows that are answered approximately.
//!
//! Mean field gives the lower end and tree-reweighted messages the upper end. Both are valid
//! whether or not the messages converged. The cost is that of both engines.

use crate::infer::approximate::mean_field::MeanField;
use crate::infer::approximate::tree_reweighted::trw::Trw;
use crate::infer::{Answers, Block, Diagnosis, Method, NO_BOUND, Number, Options};
use crate::model::Model;

/// The engines for both ends. `None` where the answering engine itself gives that end.
#[derive(Debug)]
pub(crate) struct Bounds {
    lower: Option<MeanField>,
    upper: Option<Trw>,
}

impl Bounds {
    /// Returns `None` when one of the engines cannot handle the model within the budget.
    pub(crate) fn compile(model: &Model, options: &Options, method: Method) -> Option<Bounds> {
        let fits = |operations: f64, bytes: u64| {
            operations <= options.budget.operations && bytes as f64 <= options.budget.bytes
        };
        let mut bounds = Bounds { lower: None, upper: None };
        if method != Method::MeanField {
            let lower = MeanField::compile(model, options).ok()?;
            bounds.lower = fits(lower.operations(), lower.bytes()).then_some(lower);
            bounds.lower.as_ref()?;
        }
        if method != Method::Trw {
            let upper = Trw::compile(model, options).ok()?;
            bounds.upper = fits(upper.operations(), upper.bytes()).then_some(upper);
            bounds.upper.as_ref()?;
        }
        Some(bounds)
    }

    /// Adds the interval to the diagnosis of each row that the engine has answered.
    pub(crate) fn fill<T: Number>(&self, block: &Block<'_, T>, answers: &mut Answers<'_, T>) {
        let own = answers.log_partition.to_vec();
        let lower = self.lower.as_ref();
        let lower = lower.map_or(own.clone(), |engine| one_end(block, |b, a| engine.run(b, a)));
        let upper = self.upper.as_ref();
        let upper = upper.map_or(own, |engine| one_end(block, |b, a| engine.run(b, a)));
        let ends = lower.into_iter().zip(upper);
        for (diagnosis, (lower, upper)) in answers.diagnosis.iter_mut().zip(ends) {
            let lower = if lower == NO_BOUND { f64::NEG_INFINITY } else { lower };
            // Where both ends are exact, rounding may swap them.
            diagnosis.bounds = Some((lower, upper.max(lower)));
        }
    }
}

/// The log-partitions from one engine, without the rest of its answer.
fn one_end<T: Number>(
    block: &Block<'_, T>,
    run: impl Fn(&Block<'_, T>, &mut Answers<'_, T>),
) -> Vec<f64> {
    let mut log_partition = vec![0.0; block.rows()];
    let mut answers = Answers {
        marginals: &mut vec![T::ZERO; block.rows() * block.labels()],
        log_partition: &mut log_partition,
        expectations: None,
        error: &mut vec![0.0; block.rows()],
        diagnosis: &mut vec![Diagnosis::default(); block.rows()],
        standard_errors: None,
    };
    run(block, &mut answers);
    log_partition
}
