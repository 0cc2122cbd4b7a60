//! A reconciler with fitted parameters.

use std::sync::Arc;

use super::calibration::{calibrated, exact_engine, logits_of, pull_back};
use super::levels::Levels;
use super::parameters::FittedParameters;
use super::report::FitReport;
use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::{Engine, Number};
use crate::reconcile::{FinishedRows, ReconcileOptions, Reconciled, Reconciler};

/// Calibrates rows with fitted parameters, and reconciles them. It is cheap to clone and can be
/// shared between threads.
///
/// The guarantee holds against the calibrated input: for every legal truth, the loss of the output
/// is below that of [`FittedReconciler::calibrate`] by at least [`Reconciled::gain`], where the loss
/// of a label counts by its fitted weight; the mean weight is 1. How the output compares with the input as it came is
/// known for the held-out rows only, from the report.
#[derive(Debug, Clone)]
pub struct FittedReconciler {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    parameters: FittedParameters,
    levels: Levels,
    reconciler: Reconciler,
    engine: Option<Engine>,
    /// The mean weight of labels as they were compiled.
    unit: f64,
    report: Option<FitReport>,
}

impl FittedReconciler {
    /// A reconciler with parameters that were fitted before, for the same graph.
    ///
    /// # Errors
    /// [`Error::Unfittable`] when the parameters belong to a graph with other levels, or when
    /// weights are given. [`Error::OutOfRange`] for a parameter that no fit finds. Those of
    /// [`Reconciler::compile`].
    pub fn from_parameters(
        graph: &RelationGraph,
        parameters: &FittedParameters,
        options: &ReconcileOptions,
    ) -> Result<FittedReconciler, Error> {
        FittedReconciler::with_report(graph, parameters.clone(), options, None)
    }

    pub(super) fn with_report(
        graph: &RelationGraph,
        parameters: FittedParameters,
        options: &ReconcileOptions,
        report: Option<FitReport>,
    ) -> Result<FittedReconciler, Error> {
        if options.weights.is_some() {
            let reason = String::from("the weights of labels are fitted; give none");
            return Err(Error::Unfittable { reason });
        }
        let levels = Levels::of(graph, parameters.loss);
        parameters.check(&levels)?;
        let (weights, unit) = match parameters.weights(&levels) {
            Some((weights, unit)) => (Some(weights), unit),
            None => (None, 1.0),
        };
        let options = ReconcileOptions { loss: parameters.loss, weights, ..options.clone() };
        let reconciler = Reconciler::compile(graph, &options)?;
        let engine = if parameters.form.infers() { Some(exact_engine(graph)?) } else { None };
        let inner = Inner { parameters, levels, reconciler, engine, unit, report };
        Ok(FittedReconciler { inner: Arc::new(inner) })
    }

    /// The fitted parameters.
    pub fn parameters(&self) -> &FittedParameters {
        &self.inner.parameters
    }

    /// What the fit saw. `None` for parameters that were fitted before.
    pub fn report(&self) -> Option<&FitReport> {
        self.inner.report.as_ref()
    }

    /// The reconciler, with the fitted weights. They have a common factor that keeps the arithmetic
    /// safe.
    pub fn reconciler(&self) -> &Reconciler {
        &self.inner.reconciler
    }

    /// The calibrated logits of rows: the input that the guarantee refers to. For the categorical
    /// loss they are logarithms of probabilities.
    ///
    /// # Errors
    /// Those of [`Reconciler::run`].
    pub fn calibrate<T: Number>(&self, rows: FinishedRows<'_, T>) -> Result<Vec<T>, Error> {
        let inner = &*self.inner;
        inner.reconciler.check(rows)?;
        let logits = logits_of(rows, &inner.levels);
        if inner.parameters.keeps_logits() {
            return Ok(logits.into_iter().map(T::from_f64).collect());
        }
        let engine = inner.engine.as_ref();
        let logits = calibrated(&inner.parameters, &inner.levels, engine, &logits)?;
        Ok(logits.into_iter().map(T::from_f64).collect())
    }

    /// Calibrates a block of rows and makes it consistent.
    ///
    /// # Errors
    /// Those of [`Reconciler::run`].
    pub fn run<T: Number>(&self, rows: FinishedRows<'_, T>) -> Result<Reconciled<T>, Error> {
        let inner = &*self.inner;
        let mut answer = if inner.parameters.keeps_logits() {
            inner.reconciler.run(rows)?
        } else {
            inner.reconciler.run(FinishedRows::Logits(&self.calibrate(rows)?))?
        };
        answer.gain.iter_mut().chain(&mut answer.gap).for_each(|nats| *nats /= inner.unit);
        Ok(answer)
    }

    /// The derivative of a loss with respect to the input as it came, as [`Reconciler::gradient`]
    /// computes it, through the calibration.
    ///
    /// # Errors
    /// Those of [`Reconciler::gradient`], and [`Error::NoGradient`] for forms that infer.
    pub fn gradient<T: Number>(
        &self,
        rows: FinishedRows<'_, T>,
        answer: &[T],
        upstream: &[T],
    ) -> Result<Vec<T>, Error> {
        let inner = &*self.inner;
        if inner.parameters.keeps_logits() {
            return inner.reconciler.gradient(rows, answer, upstream);
        }
        let form = inner.parameters.form;
        if form.infers() {
            let reason = format!(
                "the fitted form `{form}` calibrates them by inference; fit again with the other forms only"
            );
            return Err(Error::NoGradient { reason });
        }
        let calibrated = self.calibrate(rows)?;
        let calibrated = FinishedRows::Logits(calibrated.as_slice());
        let mut gradient = inner.reconciler.gradient(calibrated, answer, upstream)?;
        pull_back(&inner.parameters, &inner.levels, rows, &mut gradient);
        Ok(gradient)
    }
}
