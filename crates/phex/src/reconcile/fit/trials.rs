//! The loss of every row at points of a grid of parameters.
//!
//! Logarithms of temperatures, biases and logarithms of weights are multiples of small units. So the
//! searches of several folds meet at the same points, and each point is reconciled once. One point
//! costs a run of the reconciler on all rows.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::calibration::calibrated;
use super::levels::Levels;
use super::options::FitForm;
use super::parameters::FittedParameters;
use crate::Error;
use crate::graph::RelationGraph;
use crate::infer::{Engine, Evidence};
use crate::numeric::sigmoid;
use crate::reconcile::{
    FinishedRows, ReconcileEngine, ReconcileLoss, ReconcileOptions, Reconciler,
};

/// The units of log-temperatures, biases and log-weights.
pub(super) const UNITS: [f64; 3] = [0.01, 0.01, 0.05];

/// A probability below this counts as this, in losses: the odds are clipped to about e³⁰.
const LEAST: f64 = 1e-13;

/// The largest logarithm of a weight, in units: the ratio of two weights stays below 10⁹, and below 10⁴ where
/// `newton` takes steps, whose number grows with the ratio.
const HEAVIEST: i32 = 207;
const HEAVIEST_STEPS: i32 = 92;

/// Losses are only compared here, so rows are reconciled less precisely than in the end, and in fewer passes.
const ROUGHLY: f64 = 1e-5;
const PASSES: u32 = 40;

/// A point of the grid: for each level its log-temperature, bias and log-weight in units.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GridPoint {
    pub(super) infers: bool,
    pub(super) levels: Vec<[i32; 3]>,
}

impl GridPoint {
    pub(super) fn origin(form: FitForm, levels: usize) -> GridPoint {
        GridPoint { infers: form.infers(), levels: vec![[0; 3]; levels] }
    }

    /// The parameters of this point.
    pub(super) fn parameters(
        &self,
        form: FitForm,
        loss: ReconcileLoss,
        levels: &Levels,
    ) -> FittedParameters {
        let mut parameters = FittedParameters::neutral(form, loss, levels);
        for (level, at) in parameters.levels.iter_mut().zip(&self.levels) {
            let value = |slot: usize| f64::from(at[slot]) * UNITS[slot];
            (level.temperature, level.bias) = (value(0).exp(), value(1));
            level.weight = value(2).exp();
        }
        parameters
    }
}

/// Rows with their truths, and what was computed of them so far.
pub(super) struct Trials<'a> {
    graph: &'a RelationGraph,
    options: &'a ReconcileOptions,
    pub(super) levels: &'a Levels,
    pub(super) logits: &'a [f64],
    pub(super) truths: &'a [Evidence],
    /// The largest logarithm of a weight, in units.
    pub(super) heaviest: i32,
    engine: Option<Engine>,
    reconcilers: HashMap<Vec<i32>, Reconciler>,
    seen: HashMap<GridPoint, Arc<[f64]>>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        graph: &'a RelationGraph,
        options: &'a ReconcileOptions,
        levels: &'a Levels,
        logits: &'a [f64],
        truths: &'a [Evidence],
    ) -> Trials<'a> {
        let (reconcilers, seen) = (HashMap::new(), HashMap::new());
        let (heaviest, engine) = (HEAVIEST, None);
        Trials { graph, options, levels, logits, truths, heaviest, engine, reconcilers, seen }
    }

    /// Whether a form can be fitted on this graph. An error says why not.
    pub(super) fn prepare(&mut self, form: FitForm) -> Result<(), Error> {
        if form.infers() && self.engine.is_none() {
            self.engine = Some(super::calibration::exact_engine(self.graph)?);
        }
        if form.weighs() {
            let mut point = GridPoint::origin(form, self.levels.len());
            (0i32..).zip(&mut point.levels).for_each(|(depth, level)| level[2] = 2 * depth);
            let plan = self.reconciler(&point, form)?;
            if plan.plan().parts.iter().any(|part| part.engine == ReconcileEngine::Newton) {
                self.heaviest = HEAVIEST_STEPS;
            }
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.logits.len() / self.graph.len()
    }

    fn reconciler(&mut self, point: &GridPoint, form: FitForm) -> Result<Reconciler, Error> {
        let key: Vec<i32> = point.levels.iter().map(|level| level[2]).collect();
        if let Some(found) = self.reconcilers.get(&key) {
            return Ok(found.clone());
        }
        let parameters = point.parameters(form, self.options.loss, self.levels);
        let weights = parameters.weights(self.levels).map(|(weights, _)| weights);
        let options = ReconcileOptions {
            weights,
            tolerance: self.options.tolerance.max(ROUGHLY),
            passes: self.options.passes.min(PASSES),
            ..self.options.clone()
        };
        let compiled = Reconciler::compile(self.graph, &options)?.hasty();
        self.reconcilers.insert(key, compiled.clone());
        Ok(compiled)
    }

    /// The loss of every row of the input as it came.
    pub(super) fn input(&self) -> Vec<f64> {
        let read = if self.levels.heads { f64::exp } else { sigmoid };
        let p: Vec<f64> = self.logits.iter().map(|&z| read(z)).collect();
        row_losses(self.levels, self.options.loss, self.truths, &p)
    }

    /// The loss of every row, calibrated and reconciled.
    pub(super) fn losses(&mut self, form: FitForm, point: &GridPoint) -> Result<Arc<[f64]>, Error> {
        if let Some(found) = self.seen.get(point) {
            return Ok(Arc::clone(found));
        }
        let reconciler = self.reconciler(point, form)?;
        let parameters = point.parameters(form, self.options.loss, self.levels);
        let input = calibrated(&parameters, self.levels, self.engine.as_ref(), self.logits)?;
        let answer = reconciler.run(FinishedRows::Logits(&input))?;
        let losses = row_losses(self.levels, self.options.loss, self.truths, &answer.probabilities);
        let losses: Arc<[f64]> = losses.into();
        self.seen.insert(point.clone(), Arc::clone(&losses));
        Ok(losses)
    }
}

/// The loss of every row, over what is known of it.
pub(super) fn row_losses(
    levels: &Levels,
    loss: ReconcileLoss,
    truths: &[Evidence],
    probabilities: &[f64],
) -> Vec<f64> {
    let n = levels.labels();
    truths
        .par_chunks(n)
        .zip(probabilities.par_chunks(n))
        .map(|(truth, p)| match loss {
            ReconcileLoss::Categorical => {
                levels.members.iter().map(|head| head_loss(head, truth, p)).sum()
            }
            _ => truth.iter().zip(p).map(|(truth, &p)| label_loss(loss, *truth, p)).sum(),
        })
        .collect()
}

fn label_loss(loss: ReconcileLoss, truth: Evidence, p: f64) -> f64 {
    let right = match truth {
        Evidence::On => p,
        Evidence::Off => 1.0 - p,
        Evidence::Unknown => return 0.0,
    };
    if loss == ReconcileLoss::Brier { (1.0 - right).powi(2) } else { -right.max(LEAST).ln() }
}

/// Minus the logarithm of the probability of what is known of a distribution.
fn head_loss(head: &[usize], truth: &[Evidence], p: &[f64]) -> f64 {
    if let Some(&on) = head.iter().find(|&&at| truth[at] == Evidence::On) {
        return -p[on].max(LEAST).ln();
    }
    if head.iter().all(|&at| truth[at] == Evidence::Unknown) {
        return 0.0;
    }
    let possible = head.iter().filter(|&&at| truth[at] == Evidence::Unknown);
    -possible.map(|&at| p[at]).sum::<f64>().max(LEAST).ln()
}
