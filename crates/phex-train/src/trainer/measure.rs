//! A run to its end, with its model measured on the rows that it did not train on.

use phex::decide::Classes;
use phex::infer::Plan;
use phex::metrics::{Evaluation, EvaluationOptions, TruthClosure};

use super::{Flow, Observer, Progress, Trainer};
use crate::baselines::{Baselines, leaf_sums_config};
use crate::compare::{Comparison, LEAF_SUMS};
use crate::config::{Metric, ObjectiveConfig};
use crate::head::Head;
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
    /// Whether the model was trained once more on all rows after it was measured.
    pub trained_again: bool,
    /// Labels that learning moved to another parent, in sentences.
    pub moves: Vec<String>,
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
        let sums = self.train_leaf_sums(observer)?;
        let again = self.train_on_all_rows(observer)?;
        let (training, validation, compares) = (self.training, self.validation, self.compares);
        let rows = std::mem::take(&mut self.rows);
        let held_out = std::mem::take(&mut self.held_out);
        let given = self.graph.clone();
        let moves = self.repaired.as_ref().map_or(Vec::new(), |repaired| repaired.moves.clone());
        let mut model = self.into_model()?;
        let closure = TruthClosure::new(&given);
        let (measured_sums, kept_sums) = sums.map_or((None, None), |[a, b]| (Some(a), Some(b)));
        if compares {
            let frequencies = training.frequencies(&rows, &closure);
            model.baselines = Some(Baselines { frequencies, leaf_sums: measured_sums });
        }
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
            if let Some(kept) = &model.baselines {
                let features = examples.features;
                comparison = Some(model.compare(&given, features, &judged, &kept.frequencies)?);
            }
            evaluation = Some(judged.evaluation);
        }
        let validation_rows = examples.map_or(0, |examples| examples.rows());
        // From here on the model and its baselines are those of all rows, where all were used.
        let trained_again = again.is_some();
        if let Some(kept) = &mut model.baselines {
            kept.leaf_sums = kept_sums;
            if trained_again {
                let all: Vec<u32> = (0..training.rows() as u32).collect();
                kept.frequencies = training.frequencies(&all, &closure);
            }
        }
        let model = model.with_head_of(again);
        let rows = rows.len();
        Ok(TrainedRun {
            fingerprint,
            plan,
            rows,
            validation_rows,
            trained_again,
            moves,
            evaluation,
            comparison,
            model,
        })
    }

    /// Sums of leaves, trained on the same rows in the same stages: a baseline of linear heads for rows
    /// that list one label each. First the head to compare with on validation rows, then the one to keep;
    /// they differ where the model is trained once more on all rows. `None` where it does not apply or
    /// nothing is compared.
    fn train_leaf_sums(&self, observer: &mut dyn Observer) -> Result<Option<[Head; 2]>, Error> {
        let has_relations = matches!(self.config.objective, ObjectiveConfig::Relations { .. });
        let applies = has_relations && self.config.head.hidden.is_empty() && self.compares;
        if !applies || !self.training.list_one_label(&self.graph) {
            return Ok(None);
        }
        let mut config = leaf_sums_config(&self.config);
        config.validation.all_rows = self.uses_all_rows();
        let (training, validation) = (self.training, self.validation);
        let mut trainer = Trainer::new(config, &self.graph, &self.options, training, validation)?;
        trainer.weights.clone_from(&self.weights);
        let observer = &mut Stoppable { observer, stage: LEAF_SUMS };
        trainer.run_stages(observer)?;
        let again = trainer.train_on_all_rows(observer)?;
        let measured = trainer.into_model()?.head;
        let kept = again.map_or_else(|| measured.clone(), |model| model.head);
        Ok(Some([measured, kept]))
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
