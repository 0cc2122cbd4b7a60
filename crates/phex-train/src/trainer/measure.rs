//! A run to its end, with its model measured on the rows that it did not train on.

use phex::decide::Classes;
use phex::infer::Plan;
use phex::metrics::{Evaluation, EvaluationOptions};

use super::{Observer, Trainer};
use crate::config::Metric;
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
}

impl Trainer<'_> {
    /// Trains to the end and evaluates the model on the validation rows, with the engine that it was
    /// trained with.
    ///
    /// # Errors
    /// As [`Trainer::run`] and [`Predictor::evaluate`].
    pub fn run_measured(mut self, observer: &mut dyn Observer) -> Result<TrainedRun, Error> {
        let fingerprint = self.fingerprint()?;
        self.run_stages(observer)?;
        // Not that of the last step: the kept strengths may be those of an earlier epoch.
        let objective = self.current_objective()?;
        let (training, validation) = (self.training, self.validation);
        let (rows, held_out) = (self.rows.len(), std::mem::take(&mut self.held_out));
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
        let accuracy = model.config.validation.metric == Metric::Accuracy;
        let classes = accuracy.then(Classes::default);
        let options = EvaluationOptions { classes, ..EvaluationOptions::default() };
        let evaluation = examples
            .map(|examples| predictor.evaluate_by(&given, &examples, &options, None))
            .transpose()?;
        let validation_rows = examples.map_or(0, |examples| examples.rows());
        Ok(TrainedRun { fingerprint, plan, rows, validation_rows, evaluation, model })
    }
}
