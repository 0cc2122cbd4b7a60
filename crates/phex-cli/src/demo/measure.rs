//! Training by the recipe, and what the tables show.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phex::graph::{LabelId, RelationGraph};
use phex::infer::{Evidence, Options};
use phex::metrics::{
    Binning, Evaluation, EvaluationOptions, LabelTable, Reliability, Spread, class_reliability,
    class_report, evaluate,
};
use phex::model::Model;
use phex_io::Dataset;
use phex_train::{Flow, Observer, Progress, Recipe, TrainedRun, Trainer, TrainingChoices};

use crate::data::targets;
use crate::train::examples;

/// Training rows are drawn so many times.
pub(super) const DRAWS: u64 = 3;

/// Probabilities break a relation when they are off by more than this.
pub(super) const TOLERANCE: f64 = 0.01;

/// A method of a table, with what its draws measured.
pub(super) struct MeasuredMethod {
    pub(super) name: &'static str,
    /// The part of the rows that contradict themselves, the mean log-loss of a label, and the part of the rows
    /// whose most probable animal is right.
    pub(super) scores: [Spread; 3],
    /// Of the first draw.
    pub(super) first: Judged,
}

/// Probabilities of the test rows, compared with the truth.
pub(super) struct Judged {
    pub(super) probabilities: Vec<f32>,
    pub(super) evaluation: Evaluation,
    /// Of the most probable animal.
    pub(super) reliability: Reliability,
    accuracy: f64,
}

/// Trains as `phex train` does with these choices.
pub(super) fn train(
    graph: &RelationGraph,
    rows: &Dataset,
    choices: TrainingChoices,
) -> anyhow::Result<TrainedRun> {
    let examples = examples(rows, graph)?;
    let config = Recipe::STANDARD.config(&choices, &examples, graph)?;
    let options = Options { seed: config.seed, ..Options::default() };
    let trainer = Trainer::new(config, graph, &options, examples, None)?.without_baselines();
    let mut trained = trainer.run_measured(&mut StopOnSignal(crate::interrupt::flag()))?;
    trained.model.schema = Some(rows.schema.clone());
    Ok(trained)
}

/// Compares probabilities of the test rows with their labels, completed by the hard relations.
pub(super) fn judge(
    graph: &RelationGraph,
    animals: &[LabelId],
    test: &Dataset,
    probabilities: Vec<f32>,
) -> anyhow::Result<Judged> {
    let targets = targets(test)?;
    let evidence: Vec<Evidence> =
        (0..targets.rows()).flat_map(|row| targets.evidence(row)).collect();
    let options = EvaluationOptions { tolerance: TOLERANCE, ..EvaluationOptions::default() };
    let evaluation = evaluate(&options, graph, &Model::new(graph)?, &probabilities, &evidence)?;
    let table = LabelTable::new(graph.len(), &probabilities, &evidence)?;
    let reliability = class_reliability(&table, animals, Binning::EqualWidth, options.bins)?;
    let report = class_report(&table, animals, &[1])?;
    let accuracy = report.top.first().and_then(|top| top.accuracy).unwrap_or(f64::NAN);
    Ok(Judged { probabilities, evaluation, reliability, accuracy })
}

impl MeasuredMethod {
    /// A method with its draws; `None` without any.
    pub(super) fn of_draws(name: &'static str, draws: Vec<Judged>) -> Option<MeasuredMethod> {
        // Rounding would give equal values a deviation.
        let spread = |value: fn(&Judged) -> f64| {
            let values: Vec<f64> = draws.iter().map(value).collect();
            match values.first() {
                Some(first) if values.iter().all(|value| value == first) => {
                    Some(Spread::single(*first))
                }
                _ => Spread::of(&values),
            }
        };
        let scores = [
            spread(|judged| {
                let violations = &judged.evaluation.probability_violations;
                violations.violating_rows as f64 / violations.rows as f64
            })?,
            spread(|judged| judged.evaluation.log_loss.unwrap_or(f64::NAN))?,
            spread(|judged| judged.accuracy)?,
        ];
        let first = draws.into_iter().next()?;
        Some(MeasuredMethod { name, scores, first })
    }
}

/// Stops a run when a signal comes.
struct StopOnSignal(Arc<AtomicBool>);

impl Observer for StopOnSignal {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}
