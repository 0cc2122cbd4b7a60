//! One run: trains on relabelled rows, chooses the epoch by validation rows, and measures on test rows.

use std::sync::atomic::AtomicBool;

use phex::graph::LabelId;
use phex::infer::{Evidence, Options};
use phex::learn::{Loss, Tie};
use phex::metrics::{LabelTable as ScoredRows, class_report};
use phex_train::{
    Config, Examples, HeadConfig, Metric, ObjectiveConfig, OptimiserConfig, RateSchedule, Stage,
    Start, StrengthConfig, StrengthSetting, TrainedModel, Trainer, ValidationConfig,
};
use serde::{Deserialize, Serialize};

use super::data::{RelabelledData, RowSample};
use super::settings::{Curriculum, Inference, JobSchedule, Relations, TrainingJob};
use crate::Error;
use crate::harness::StopObserver;

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TrainingAnswer {
    /// The share of validation rows whose most probable leaf is correct.
    pub(super) validation: f64,
    /// The same for test rows.
    pub(super) top_1: f64,
    /// The share of test rows whose leaf is among the five most probable.
    pub(super) top_5: f64,
    /// The engine of the last stage.
    pub(super) engine: String,
}

/// A model with the inference options of its last stage.
#[derive(Debug)]
pub(crate) struct StageModel {
    pub(crate) model: TrainedModel,
    pub(crate) options: Options,
    pub(crate) engine: &'static str,
}

/// Trains and measures.
pub(super) fn run(
    job: &TrainingJob,
    data: &RelabelledData,
    stop: &AtomicBool,
) -> Result<TrainingAnswer, Error> {
    let [validation, test] = data.evaluation(job.seed);
    let StageModel { model, options, engine } = train(job, data, &validation, stop)?;
    let [validation, _] = accuracies(&model, &options, &validation, data)?;
    let [top_1, top_5] = accuracies(&model, &options, &test, data)?;
    Ok(TrainingAnswer { validation, top_1, top_5, engine: String::from(engine) })
}

/// Trains; the validation rows choose the epoch.
pub(crate) fn train(
    job: &TrainingJob,
    data: &RelabelledData,
    validation: &RowSample,
    stop: &AtomicBool,
) -> Result<StageModel, Error> {
    let training = data.training(job.rows_a_class, job.relabelled, job.relations, job.seed);
    let mut last: Option<StageModel> = None;
    for (inference, config) in parts(job) {
        let options = inference.options(job.seed);
        let (rows, check) = (examples(&training, data)?, examples(validation, data)?);
        let mut trainer = Trainer::new(config, &data.graph, &options, rows, Some(check))?;
        if let Some(last) = &last {
            trainer.start_from(&last.model.head)?;
        }
        let engine = trainer.engine().map_or("none", |engine| engine.plan().method.name());
        let model = trainer.run(&mut StopObserver(stop)).map_err(|error| match error {
            phex_train::Error::Interrupted => Error::Interrupted,
            error => Error::Training(error),
        })?;
        last = Some(StageModel { model, options, engine });
    }
    last.ok_or_else(|| Error::Broken { message: String::from("it has no stage") })
}

fn examples<'d>(sample: &'d RowSample, data: &RelabelledData) -> Result<Examples<'d>, Error> {
    Ok(Examples::new(&sample.features, &sample.targets, &data.graph)?)
}

/// The share of rows whose leaf is the most probable, and among the five most probable.
pub(crate) fn accuracies(
    model: &TrainedModel,
    options: &Options,
    sample: &RowSample,
    data: &RelabelledData,
) -> Result<[f64; 2], Error> {
    let probabilities = model.predictor(options)?.predict(&sample.features)?;
    let rows = 0..sample.targets.rows();
    let evidence: Vec<Evidence> = rows.flat_map(|row| sample.targets.evidence(row)).collect();
    let rows = ScoredRows::new(data.graph.len(), &probabilities, &evidence)?;
    let leaves: Vec<_> = data.graph.leaves().collect();
    let report = class_report(&rows, &leaves, &[1, 5])?;
    let part = |at: usize| report.top.get(at).and_then(|top| top.accuracy).unwrap_or(f64::NAN);
    Ok([part(0), part(1)])
}

/// The share of rows whose leaf is the most probable: of all, and of those with a chosen leaf.
pub(crate) fn accuracy_of(
    model: &TrainedModel,
    options: &Options,
    sample: &RowSample,
    data: &RelabelledData,
    chosen: impl Fn(LabelId) -> bool,
) -> Result<(f64, Option<f64>), Error> {
    let probabilities = model.predictor(options)?.predict(&sample.features)?;
    let leaves: Vec<LabelId> = data.graph.leaves().collect();
    let [mut all, mut some] = [(0.0, 0.0); 2];
    for (row, p) in probabilities.chunks_exact(data.graph.len()).enumerate() {
        let best = leaves.iter().max_by(|a, b| p[a.index()].total_cmp(&p[b.index()]));
        let target = sample.targets.row(row).listed.first().map(|entry| LabelId(entry.label));
        let right = f64::from(u8::from(best.copied() == target));
        all = (all.0 + right, all.1 + 1.0);
        if target.is_some_and(&chosen) {
            some = (some.0 + right, some.1 + 1.0);
        }
    }
    Ok((all.0 / all.1, (some.1 > 0.0).then(|| some.0 / some.1)))
}

/// Parts that are trained one after another, each from the weights of the one before. A change of inference starts a
/// new part.
fn parts(job: &TrainingJob) -> Vec<(Inference, Config)> {
    let these = StrengthSetting::All(job.strength());
    let hard = StrengthSetting::All(phex::graph::Strength::Hard);
    let half = job.epochs.div_ceil(2);
    let leaf_share = job.leaf_share;
    let all = |strength, epochs| Stage { strength, epochs, leaf_share, ..Stage::default() };
    match job.curriculum {
        Curriculum::Plain => vec![(job.inference, config(job, vec![all(these, job.epochs)]))],
        Curriculum::WarmUp => {
            // For as many steps as one pass over all rows takes.
            let passes = (1.0 / (1.0 - job.relabelled).max(1e-3)).round().max(1.0) as usize;
            let last = all(these, job.epochs);
            vec![(job.inference, config(job, vec![last.clone().warm_up(passes), last]))]
        }
        Curriculum::HardFirst => vec![
            (Inference::Exact, config(&hardened(job), vec![all(hard, job.epochs)])),
            (job.inference, config(job, vec![all(these, half)])),
        ],
        Curriculum::HardLast => vec![
            (job.inference, config(job, vec![all(these, job.epochs)])),
            (Inference::Exact, config(&hardened(job), vec![all(hard, half)])),
        ],
    }
}

/// The same job with hard relations, which have no strengths to learn.
fn hardened(job: &TrainingJob) -> TrainingJob {
    TrainingJob { relations: Relations::Hard, u: None, inference: Inference::Exact, ..job.clone() }
}

fn config(job: &TrainingJob, stages: Vec<Stage>) -> Config {
    let start = if job.start > 0.0 { Start::Normal(job.start) } else { Start::Zero };
    let objective = match job.relations {
        Relations::Hard | Relations::Soft | Relations::Learned => {
            ObjectiveConfig::Relations { loss: Loss::Joint }
        }
        Relations::SoftmaxFine => ObjectiveConfig::Softmax { coarse: false },
        Relations::SoftmaxSums => ObjectiveConfig::Softmax { coarse: true },
        Relations::Sigmoids => ObjectiveConfig::Independent,
    };
    let schedule = match job.schedule {
        JobSchedule::Cosine => RateSchedule::Cosine { warm_up: 0.0 },
        JobSchedule::Constant => RateSchedule::Constant,
    };
    let strengths = match job.relations {
        Relations::Learned => {
            StrengthConfig::Learned { tie: Tie::Kind, prior: 0.01, learning_rate: 0.05, every: 10 }
        }
        _ => StrengthConfig::Fixed,
    };
    Config {
        head: HeadConfig {
            hidden: job.hidden.clone(),
            start,
            inner_scale: job.inner_scale,
            ..HeadConfig::default()
        },
        objective,
        optimiser: OptimiserConfig {
            learning_rate: job.learning_rate,
            batch: job.batch,
            schedule,
            ..OptimiserConfig::default()
        },
        stages,
        strengths,
        validation: ValidationConfig { metric: Metric::Accuracy, ..ValidationConfig::default() },
        seed: job.seed,
        ..Config::default()
    }
}
