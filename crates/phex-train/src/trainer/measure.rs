//! A run to its end, with its model measured on the rows that it did not train on.

use phex::decide::Classes;
use phex::infer::{Options, Plan};
use phex::metrics::{Evaluation, EvaluationOptions, TruthClosure};

use super::{Flow, Observer, Progress, Trainer};
use crate::compare::{ComparedScores, Comparison, LEAF_SUMS, MODEL, signs};
use crate::config::{Metric, ObjectiveConfig, StrengthConfig, StrengthSetting};
use crate::model::{Predictor, TrainedModel};
use crate::{Error, Examples};

/// A finished run.
#[derive(Debug, Clone)]
pub struct TrainedRun {
    /// The model.
    pub model: TrainedModel,
    /// Which run it was: [`Trainer::fingerprint`].
    pub fingerprint: String,
    /// The plan of the model's engine, if the objective has relations.
    pub plan: Option<Plan>,
    /// Rows that were trained on.
    pub rows: usize,
    /// Rows that were validated on.
    pub validation_rows: usize,
    /// On the validation rows, if there are any.
    pub evaluation: Option<Evaluation>,
    /// The model beside what it has to beat, if there are validation rows and it was requested.
    pub comparison: Option<Comparison>,
}

impl<'a> Trainer<'a> {
    /// The same run without baselines beside its model.
    #[must_use]
    pub fn without_baselines(mut self) -> Trainer<'a> {
        self.compares = false;
        self
    }

    /// Trains to the end and evaluates the model on the validation rows, with the engine that it was
    /// trained with, beside what it has to beat.
    ///
    /// # Errors
    /// As [`Trainer::run`] and [`Predictor::evaluate`].
    pub fn run_measured(mut self, observer: &mut dyn Observer) -> Result<TrainedRun, Error> {
        let fingerprint = self.fingerprint()?;
        self.run_stages(observer)?;
        // Not that of the last step: the kept strengths may be those of an earlier epoch.
        let objective = self.current_objective()?;
        let leaf_sums = self.train_leaf_sums(observer)?;
        let (training, validation, compares) = (self.training, self.validation, self.compares);
        let rows = std::mem::take(&mut self.rows);
        let held_out = std::mem::take(&mut self.held_out);
        let given = self.graph.clone();
        let model = self.into_model()?;
        let plan = objective.engine().map(|engine| engine.plan().clone());
        let predictor = Predictor::new(&model, objective);
        let copied;
        let examples = match validation {
            Some(examples) => Some(examples),
            None if held_out.is_empty() => None,
            None => {
                copied = training.copy_rows(&held_out);
                Some(Examples::new(&copied.0, &copied.1, &model.graph)?)
            }
        };
        let accuracy = model.config.validation.metric == Metric::Accuracy
            || examples.is_some_and(|examples| examples.list_one_label(&given));
        let classes = accuracy.then(Classes::default);
        let options = EvaluationOptions { classes, ..EvaluationOptions::default() };
        let (mut evaluation, mut comparison) = (None, None);
        if let Some(examples) = &examples {
            let judged = predictor.evaluate_by(&given, examples, &options, None)?;
            if compares {
                let frequencies = training.frequencies(&rows, &TruthClosure::new(&given));
                let compared =
                    |name, p: &[f32]| ComparedScores::new(name, &given, p, &judged.truths);
                let mut baselines = Vec::new();
                if let Some(sums) = &leaf_sums {
                    let p = sums.predictor(&Options::default())?.predict(examples.features)?;
                    baselines.push(compared(LEAF_SUMS, &p)?);
                }
                baselines.push(ComparedScores::of_frequencies(
                    &given,
                    &frequencies,
                    &judged.truths,
                )?);
                comparison = Some(Comparison {
                    model: compared(MODEL, &judged.probabilities)?,
                    baselines,
                    signs: signs(&given, &judged.probabilities, &judged.truths),
                });
            }
            evaluation = Some(judged.evaluation);
        }
        let validation_rows = examples.map_or(0, |examples| examples.rows());
        let rows = rows.len();
        Ok(TrainedRun { fingerprint, plan, rows, validation_rows, evaluation, comparison, model })
    }

    /// Sums of leaves, trained on the same rows in the same stages: a baseline of linear heads for rows
    /// that list one label each. `None` where it does not apply or nothing is compared.
    fn train_leaf_sums(&self, observer: &mut dyn Observer) -> Result<Option<TrainedModel>, Error> {
        let has_relations = matches!(self.config.objective, ObjectiveConfig::Relations { .. });
        let validates = self.validation.is_some() || !self.held_out.is_empty();
        let is_linear = self.config.head.hidden.is_empty();
        let applies = has_relations && validates && is_linear && self.compares;
        if !applies || !self.training.list_one_label(&self.graph) {
            return Ok(None);
        }
        let mut config = self.config.clone();
        config.objective = ObjectiveConfig::Softmax { coarse: true };
        config.strengths = StrengthConfig::Fixed;
        config.head.inner_scale = 1.0;
        config.stages.iter_mut().for_each(|stage| stage.strength = StrengthSetting::Given);
        let (training, validation) = (self.training, self.validation);
        let mut trainer = Trainer::new(config, &self.graph, &self.options, training, validation)?;
        trainer.weights.clone_from(&self.weights);
        Ok(Some(trainer.run(&mut Stoppable { observer, stage: LEAF_SUMS })?))
    }
}

/// Shows progress under another name and passes on the wish to stop: a run within a run keeps no
/// checkpoints.
pub(super) struct Stoppable<'a> {
    pub(super) observer: &'a mut dyn Observer,
    pub(super) stage: &'static str,
}

impl Observer for Stoppable<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        match self.observer.progress(&Progress { stage: self.stage, ..*progress }) {
            Flow::Stop => Flow::Stop,
            Flow::Continue | Flow::Save => Flow::Continue,
        }
    }
}
