//! Training and measuring the methods.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phex::decide::Classes;
use phex::infer::{Evidence, Options};
use phex::metrics::{
    Binning, Evaluation, EvaluationOptions, LabelTable, Reliability, Spread, class_reliability,
    class_report, evaluate,
};
use phex::model::Model;
use phex_io::{Dataset, Targets};
use phex_train::{Flow, Observer, Progress, TrainedRun, Trainer};
use rayon::prelude::*;

use super::methods::DemoMethod;
use super::world::World;
use crate::train::examples;
use crate::tune::kept_metric;

const TRAINING: usize = 3000;
const VALIDATION: usize = 500;
const TEST: usize = 2000;
const SEEDS: u64 = 3;
/// Probabilities break a relation when they are off by more than this.
pub(super) const TOLERANCE: f64 = 0.01;

/// The rows of one seed.
pub(super) struct SeedTables {
    pub(super) training: Dataset,
    pub(super) validation: Dataset,
}

/// All rows. Every seed has its own training and validation rows; all share the test rows.
pub(super) struct DemoTables {
    pub(super) seeds: Vec<SeedTables>,
    pub(super) test: Dataset,
}

/// One trained model on the test rows.
pub(super) struct DemoRun {
    pub(super) trained: TrainedRun,
    /// On the validation rows, at the epoch that was kept.
    pub(super) validation_accuracy: f64,
    pub(super) probabilities: Vec<f32>,
    /// On the test rows, by the hard relations.
    pub(super) evaluation: Evaluation,
    /// Of the most probable animal.
    pub(super) reliability: Reliability,
    kind_accuracy: f64,
}

impl DemoTables {
    pub(super) fn new(world: &World) -> DemoTables {
        let rows = |seed: u64| SeedTables {
            training: world.coarse(TRAINING, 100 + seed),
            validation: world.named(VALIDATION, 200 + seed),
        };
        let seeds = (0..SEEDS).map(rows).collect();
        DemoTables { seeds, test: world.named(TEST, 300) }
    }
}

/// A method with its runs, by seed.
pub(super) struct Tried<'m> {
    pub(super) method: &'m DemoMethod,
    pub(super) runs: Vec<DemoRun>,
}

/// Trains every method with every seed.
pub(super) fn train<'m>(
    world: &World,
    data: &DemoTables,
    methods: &'m [DemoMethod],
) -> anyhow::Result<Vec<Tried<'m>>> {
    let seeds = data.seeds.len();
    let run = |at: usize| run(world, data, &methods[at / seeds], at % seeds);
    let runs: anyhow::Result<Vec<DemoRun>> =
        (0..methods.len() * seeds).into_par_iter().map(run).collect();
    let mut runs = runs?.into_iter();
    let tried = |method| Tried { method, runs: runs.by_ref().take(seeds).collect() };
    Ok(methods.iter().map(tried).collect())
}

fn run(
    world: &World,
    data: &DemoTables,
    method: &DemoMethod,
    seed: usize,
) -> anyhow::Result<DemoRun> {
    let rows = &data.seeds[seed];
    let (training, validation) =
        (examples(&rows.training, &world.graph)?, examples(&rows.validation, &world.graph)?);
    let config = method.config(seed as u64, &training, world)?;
    let options = Options { seed: config.seed, ..Options::default() };
    let trainer = Trainer::new(config, &world.graph, &options, training, Some(validation))?;
    let mut trained =
        trainer.without_baselines().run_measured(&mut StopOnSignal(crate::interrupt::flag()))?;
    trained.model.schema = Some(rows.training.schema.clone());
    let test = examples(&data.test, &world.graph)?;
    let probabilities = trained.model.predictor(&options)?.predict(test.features)?;
    let evidence = evidence(test.targets);
    let judged = EvaluationOptions {
        classes: Some(Classes::Leaves),
        top: vec![1],
        tolerance: TOLERANCE,
        ..EvaluationOptions::default()
    };
    let hard = Model::new(&world.graph)?;
    let evaluation = evaluate(&judged, &world.graph, &hard, &probabilities, &evidence)?;
    let table = LabelTable::new(world.graph.len(), &probabilities, &evidence)?;
    let kinds = class_report(&table, &world.kinds, &[1])?;
    let animals: Vec<_> = world.graph.leaves().collect();
    let reliability = class_reliability(&table, &animals, Binning::EqualWidth, judged.bins)?;
    let validation_accuracy = kept_metric(&trained.model)?;
    Ok(DemoRun {
        trained,
        validation_accuracy,
        probabilities,
        evaluation,
        reliability,
        kind_accuracy: kinds.top.first().and_then(|top| top.accuracy).unwrap_or(f64::NAN),
    })
}

fn evidence(targets: &Targets) -> Vec<Evidence> {
    (0..targets.rows()).flat_map(|row| targets.evidence(row)).collect()
}

impl Tried<'_> {
    /// What the table shows: accuracy of animals and of kinds, the part of the rows that break
    /// relations, and the calibration error of the most probable animal.
    pub(super) fn scores(&self) -> [Spread; 4] {
        let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let accuracy = |run: &DemoRun| {
            let top = run.evaluation.classes.as_ref().and_then(|classes| classes.top.first());
            of(top.and_then(|top| top.accuracy))
        };
        let broken = |run: &DemoRun| {
            let violations = &run.evaluation.probability_violations;
            violations.violating_rows as f64 / violations.rows as f64
        };
        [
            self.mean(accuracy),
            self.mean(|run| run.kind_accuracy),
            self.mean(broken),
            self.mean(|run| of(run.reliability.expected_error())),
        ]
    }

    /// The accuracy of animals on the validation rows.
    pub(super) fn validation(&self) -> Spread {
        self.mean(|run| run.validation_accuracy)
    }

    fn mean(&self, value: impl Fn(&DemoRun) -> f64) -> Spread {
        let values: Vec<f64> = self.runs.iter().map(value).collect();
        Spread::of(&values).unwrap_or(Spread::single(f64::NAN))
    }
}

/// The method with the best accuracy on the validation rows; of equals the first.
pub(super) fn best<'t, 'm>(tried: &'t [Tried<'m>]) -> Option<&'t Tried<'m>> {
    tried.iter().reduce(
        |best, next| {
            if next.validation().mean > best.validation().mean { next } else { best }
        },
    )
}

/// Stops a run when a signal comes.
struct StopOnSignal(Arc<AtomicBool>);

impl Observer for StopOnSignal {
    fn progress(&mut self, _: &Progress<'_>) -> Flow {
        if self.0.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue }
    }
}
