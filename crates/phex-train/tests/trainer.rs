//! Runs of the trainer on generated rows: it learns, stops, resumes and comes back from a bundle.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, RelationKind, Strength};
use phex::infer::{Accelerator, Backend, Block, Engine, Evidence, Options, Posterior, Want};
use phex::learn::Tie;
use phex::metrics::EvaluationOptions;
use phex::model::Relation;
use phex_io::{Features, Target, Targets, Tensor};
use phex_train::{
    Checkpoint, ClassWeights, Config, Error, Examples, Flow, HeadConfig, Metric, Norm,
    ObjectiveConfig, Observer, OptimiserConfig, Progress, RateSchedule, Recipe, RowChoice,
    RunFolder, RunRecord, Silent, Stage, Start, StrengthConfig, StrengthSetting, TrainedModel,
    Trainer, TrainingChoices, UpdateRule, ValidationConfig,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const COARSE: usize = 3;
const FINE: usize = 2;
const COLUMNS: usize = 8;

/// Three kinds of two kinds each; the six lowest exclude each other and one of them is on.
fn graph(strength: Strength) -> RelationGraph {
    let mut builder = tree(strength);
    builder.one_of_leaves("leaf");
    builder.build().unwrap()
}

/// The same where none of the lowest may be on.
fn tree(strength: Strength) -> GraphBuilder {
    let mut builder = GraphBuilder::new();
    for coarse in 0..COARSE {
        for fine in 0..FINE {
            builder.hierarchy(&format!("c{coarse}"), &format!("c{coarse}f{fine}"), Some(strength));
        }
    }
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, Some(strength));
    builder
}

/// Rows around a centre for each leaf; some of them are labelled with their coarse label alone.
fn rows(graph: &RelationGraph, count: usize, coarse: f64, seed: u64) -> (Features, Targets) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut uniform = move || random.random::<f64>();
    let mut targets = Targets::new(graph.len());
    let mut values = Vec::new();
    for row in 0..count {
        let (above, below) = (row % COARSE, row / COARSE % FINE);
        for column in 0..COLUMNS {
            let centre = f64::from(u8::from(column == above)) * 3.0
                + f64::from(u8::from(column == COARSE + below)) * 2.0;
            let noise: f64 = (0..6).map(|_| uniform()).sum::<f64>() - 3.0;
            // Now and then a value is missing.
            values.push(if uniform() < 0.02 { f32::NAN } else { (centre + noise) as f32 });
        }
        let name =
            if uniform() < coarse { format!("c{above}") } else { format!("c{above}f{below}") };
        let label = graph.id(&name).unwrap().0;
        targets.push(&[Target { label, on: true }], false);
    }
    let names = (0..COLUMNS).map(|at| format!("x{at}")).collect();
    (Features { names, rows: count, columns: COLUMNS, values }, targets)
}

fn accuracy(model: &TrainedModel, features: &Features, targets: &Targets) -> f64 {
    let predictor = model.predictor(&Options::default()).unwrap();
    let p = predictor.predict(features).unwrap();
    let leaves: Vec<usize> = model.graph.leaves().map(|leaf| leaf.index()).collect();
    let right = (0..features.rows).filter(|&row| {
        let p = &p[row * model.graph.len()..(row + 1) * model.graph.len()];
        let best = leaves.iter().copied().max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap();
        targets.row(row).listed[0].label as usize == best
    });
    right.count() as f64 / features.rows as f64
}

/// Everything that has state: averages, norms, dropout, learned strengths, stages, validation.
fn everything() -> Config {
    Config {
        head: HeadConfig {
            hidden: vec![12, 10],
            dropout: 0.2,
            input_dropout: 0.1,
            norm: Norm::Batch,
            start: Start::Normal(0.1),
            prior: true,
            feature_clip: 3.0,
            inner_scale: 0.5,
        },
        optimiser: OptimiserConfig {
            learning_rate: 5e-3,
            batch: 16,
            average: 0.9,
            clip: 5.0,
            schedule: RateSchedule::Cosine { warm_up: 0.1 },
            ..OptimiserConfig::default()
        },
        stages: vec![
            Stage {
                name: "warm up".into(),
                rows: RowChoice::MostSpecific,
                epochs: 2,
                ..Stage::default()
            },
            Stage {
                name: "all".into(),
                epochs: 4,
                leaf_share: 0.7,
                learning_rate: Some(3e-3),
                ..Stage::default()
            },
        ],
        strengths: StrengthConfig::Learned {
            tie: Tie::Kind,
            prior: 0.1,
            learning_rate: 0.05,
            every: 3,
        },
        validation: ValidationConfig {
            fraction: 0.2,
            metric: Metric::Accuracy,
            patience: 3,
            all_rows: false,
        },
        class_weights: ClassWeights::Balanced,
        seed: 5,
        ..Config::default()
    }
}

/// Validation happens when it is due, and after the last epoch.
#[test]
fn validation_is_as_rare_as_a_stage_asks() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 100, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let mut config = everything();
    config.validation.patience = 0;
    config.stages = vec![Stage { epochs: 7, validate_every: 3, ..Stage::default() }];
    let options = Options::default();
    let trainer = Trainer::new(config.clone(), &graph, &options, examples, None).unwrap();
    let model = trainer.run(&mut Silent).unwrap();
    let records = model.history.iter().filter(|record| record.validation_metric.is_some());
    let looked: Vec<usize> = records.map(|record| record.epoch).collect();
    assert_eq!(looked, [3, 6, 7]);
    assert!(model.best_epoch.is_some_and(|best| looked.contains(&best)));
    assert_eq!(Stage::default().warm_up(100).validate_every, 10);
    assert_eq!(Stage::default().warm_up(7).validate_every, 1);
    config.stages[0].validate_every = 0;
    assert!(config.check().is_err());
}

/// Stops after some steps and keeps the checkpoint as bytes on disk would.
struct Interrupting {
    steps: usize,
    path: std::path::PathBuf,
}

impl Observer for Interrupting {
    fn progress(&mut self, progress: &Progress<'_>) -> Flow {
        // These start again when they are interrupted: they would never end here.
        if ["cross-fit", "all rows"].contains(&progress.stage) {
            return Flow::Continue;
        }
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 { Flow::Stop } else { Flow::Continue }
    }

    fn save(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        checkpoint.write(&self.path)
    }
}

#[test]
fn a_run_that_is_interrupted_ends_with_the_same_bits() {
    same_bits(&everything());
}

#[test]
fn an_interrupted_run_with_cross_fitted_strengths_ends_with_the_same_bits() {
    same_bits(&Config { strengths: cross_fitted(), ..everything() });
}

/// Settings that train once more on all rows.
fn all_rows() -> Config {
    let validation = ValidationConfig { all_rows: true, ..everything().validation };
    Config { strengths: StrengthConfig::Fixed, validation, ..everything() }
}

#[test]
fn an_interrupted_run_that_trains_once_more_on_all_rows_ends_with_the_same_bits() {
    same_bits(&all_rows());
}

#[test]
fn all_rows_are_trained_on_for_the_epochs_that_validation_kept() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 200, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let new =
        |config: Config| Trainer::new(config, &graph, &Options::default(), examples, None).unwrap();
    let run = new(all_rows()).run_measured(&mut Silent).unwrap();
    assert_eq!((run.rows, run.validation_rows, run.trained_again), (160, 40, true));
    let mut config = all_rows();
    config.validation = ValidationConfig { fraction: 0.0, all_rows: false, ..config.validation };
    for stage in &mut config.stages {
        let records = run.model.history.iter().filter(|record| record.stage == stage.name);
        let values: Vec<f64> = records.map(|record| record.validation_metric.unwrap()).collect();
        let best = values.iter().copied().fold(0.0, f64::max);
        stage.epochs = 1 + values.iter().position(|value| *value == best).unwrap();
    }
    let direct = new(config).run(&mut Silent).unwrap();
    assert_eq!(run.model.head, direct.head);
    assert_eq!(run.model.standardiser, direct.standardiser);
    assert_eq!(new(all_rows()).run(&mut Silent).unwrap().head, direct.head);
    // What was measured is measured on the first head.
    let without = Config { validation: everything().validation, ..all_rows() };
    let first = new(without).run_measured(&mut Silent).unwrap();
    assert_eq!(run.evaluation, first.evaluation);
    assert_ne!(first.model.head, direct.head);
}

#[test]
fn baselines_come_back_from_a_bundle_and_damaged_ones_do_not() {
    let graph = graph(Strength::Hard);
    let (features, targets) = rows(&graph, 200, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let config = Config {
        stages: vec![Stage { epochs: 3, ..Stage::default() }],
        validation: ValidationConfig { fraction: 0.2, ..ValidationConfig::default() },
        ..Config::default()
    };
    let new = || Trainer::new(config.clone(), &graph, &Options::default(), examples, None).unwrap();
    let run = new().run_measured(&mut Silent).unwrap();
    let bundle = run.model.to_bundle(String::new()).unwrap();
    let back = TrainedModel::from_bundle(&bundle).unwrap();
    assert!(back.baselines.is_some() && back.baselines == run.model.baselines);
    let compare = |model: &TrainedModel, features: &Features, targets: &Targets| {
        let examples = Examples::new(features, targets, &graph).unwrap();
        let predictor = model.predictor(&Options::default()).unwrap();
        let options = EvaluationOptions::default();
        predictor.evaluate_beside_baselines(&examples, &options, None).unwrap().1
    };
    // On the rows that were held out, a model from disk is judged as at the end of its training.
    let held_out = examples.copy_rows(new().held_out());
    assert_eq!(Some(compare(&back, &held_out.0, &held_out.1)), run.comparison);
    let mut old = bundle.clone();
    old.tensors.retain(|name, _| !name.starts_with("baselines."));
    let old = TrainedModel::from_bundle(&old).unwrap();
    assert_eq!(old.baselines, None);
    let names: Vec<&str> =
        compare(&old, &held_out.0, &held_out.1).baselines.iter().map(|all| all.name).collect();
    assert_eq!(names, ["label frequencies"]);
    let none = new().without_baselines().run_measured(&mut Silent).unwrap();
    assert!(none.model.baselines.is_none() && none.comparison.is_none());

    let baselines: Vec<String> =
        bundle.tensors.keys().filter(|name| name.starts_with("baselines.")).cloned().collect();
    assert_eq!(baselines.len(), 3, "{baselines:?}");
    for name in baselines {
        for value in [f32::NAN, f32::INFINITY] {
            let mut damaged = bundle.clone();
            let tensor = damaged.tensors.get_mut(&name).unwrap();
            *tensor = Tensor::f32(&tensor.shape, vec![value; tensor.data.len()]);
            let error = TrainedModel::from_bundle(&damaged).unwrap_err().to_string();
            assert!(error.contains(&name), "{error}");
        }
        let mut short = bundle.clone();
        short.tensors.insert(name.clone(), Tensor::f32(&[1], vec![0.5]));
        let error = TrainedModel::from_bundle(&short).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("shape"), "{error}");
    }
}

fn cross_fitted() -> StrengthConfig {
    Recipe::STANDARD.learned_strengths(Tie::Relation, None)
}

fn same_bits(config: &Config) {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 200, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let new = || Trainer::new(config.clone(), &graph, &Options::default(), examples, None).unwrap();
    let whole = new().run(&mut Silent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let mut interruptions = 0;
    let resumed = loop {
        let mut trainer = new();
        if path.exists() {
            trainer.resume(&Checkpoint::read(&path).unwrap()).unwrap();
        }
        let steps = [1, 7, 3, 12, 5][interruptions % 5];
        match trainer.run(&mut Interrupting { steps, path: path.clone() }) {
            Ok(model) => break model,
            Err(Error::Interrupted) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(interruptions >= 5, "{interruptions}");
    assert_eq!(whole.head, resumed.head);
    assert_eq!(whole.best_epoch, resumed.best_epoch);
    assert_eq!(
        serde_json::to_string(&whole.graph).unwrap(),
        serde_json::to_string(&resumed.graph).unwrap()
    );
    let without_time = |model: &TrainedModel| -> Vec<(f64, Option<f64>, Vec<f64>)> {
        let records = model.history.iter();
        records.map(|r| (r.training_loss, r.validation_metric, r.strengths.clone())).collect()
    };
    assert_eq!(without_time(&whole), without_time(&resumed));
    // A checkpoint of other settings is refused.
    let other = Config { seed: 6, ..config.clone() };
    let mut other = Trainer::new(other, &graph, &Options::default(), examples, None).unwrap();
    let error = other.resume(&Checkpoint::read(&path).unwrap()).unwrap_err();
    assert!(matches!(error, Error::OtherRun { .. }), "{error}");
}

/// Leaves of four kinds, three of them under the wrong kind; their coarse rows have the right one. The
/// strengths of these three relations end below those of all others, and the leaves get their kind back.
#[test]
fn cross_fitting_finds_wrong_relations_and_helps() {
    const KINDS: usize = 4;
    let kind = |leaf: usize| format!("k{}", leaf / KINDS);
    let wrong = [1usize, 6, 11];
    let mut builder = GraphBuilder::new();
    for at in 0..KINDS {
        builder.label(&format!("k{at}"));
    }
    for leaf in 0..KINDS * KINDS {
        let above = if wrong.contains(&leaf) { (leaf + KINDS) % (KINDS * KINDS) } else { leaf };
        builder.hierarchy(&kind(above), &format!("f{leaf}"), Some(Strength::U(1.0)));
    }
    let graph = builder.single_label().build().unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut normal = move || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let columns = 12;
    let centres: Vec<Vec<f64>> = (0..KINDS * KINDS)
        .map(|_| (0..columns).map(|_| 1.3 * normal()).collect::<Vec<f64>>())
        .collect();
    let mut sample = |a_leaf: usize, coarse: bool| {
        let (mut values, mut targets) = (Vec::new(), Targets::new(graph.len()));
        for row in 0..a_leaf * KINDS * KINDS {
            let leaf = row % (KINDS * KINDS);
            values.extend(centres[leaf].iter().map(|centre| (centre + normal()) as f32));
            let is_coarse = coarse && !(row / (KINDS * KINDS)).is_multiple_of(5);
            let name = if is_coarse { kind(leaf) } else { format!("f{leaf}") };
            targets.push(&[Target { label: graph.id(&name).unwrap().0, on: true }], false);
        }
        let names = (0..columns).map(|at| format!("x{at}")).collect();
        (Features { names, rows: a_leaf * KINDS * KINDS, columns, values }, targets)
    };
    let (features, targets) = sample(60, true);
    let (test, truth) = sample(50, false);
    let run = |graph: &RelationGraph, learn: Option<Tie>| {
        let examples = Examples::new(&features, &targets, graph).unwrap();
        let choices = TrainingChoices {
            learn_strengths: learn,
            learning_rate: Some(5e-3),
            ..TrainingChoices::default()
        };
        let config = Recipe::STANDARD.config(&choices, &examples, graph).unwrap();
        let trainer = Trainer::new(config, graph, &Options::default(), examples, None).unwrap();
        trainer.run(&mut Silent).unwrap()
    };
    let exclusive = graph.map_strengths(|kind, strength| match kind {
        RelationKind::Exclusion => Strength::Hard,
        RelationKind::Hierarchy => strength,
    });
    let learned = run(&exclusive.unwrap(), Some(Tie::Relation));
    let (mut weak, mut strong) = (f64::NEG_INFINITY, f64::INFINITY);
    let costs = &learned.history.last().unwrap().strengths;
    assert_eq!(costs.len(), KINDS * KINDS);
    for (edge, cost) in graph.hierarchy().iter().zip(costs) {
        let name = graph.name(edge.child);
        match wrong.iter().any(|leaf| name == format!("f{leaf}")) {
            true => weak = weak.max(*cost),
            false => strong = strong.min(*cost),
        }
    }
    assert!(weak < strong, "{weak} {strong}");
    // All leaves are under their own parent now, and all relations are hard.
    for edge in learned.graph.hierarchy() {
        let leaf: usize = learned.graph.name(edge.child)[1..].parse().unwrap();
        assert_eq!(learned.graph.name(edge.parent), kind(leaf), "{leaf}");
    }
    assert!(learned.graph.is_hard() && learned.graph.is_single_label());
    assert_eq!(learned.graph.labels().len(), graph.len());
    let hard = run(&graph.map_strengths(|_, _| Strength::Hard).unwrap(), None);
    let (learned, hard) = (accuracy(&learned, &test, &truth), accuracy(&hard, &test, &truth));
    assert!(learned > hard + 0.05, "{learned} {hard}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let graph = graph(Strength::Hard);
    let (features, targets) = rows(&graph, 150, 0.5, 2);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let examples = Examples::new(&features, &targets, &graph).unwrap();
            let config = Config { strengths: StrengthConfig::Fixed, ..everything() };
            Trainer::new(config, &graph, &Options::default(), examples, None)
                .unwrap()
                .run(&mut Silent)
                .unwrap()
        })
    };
    assert_eq!(run(1).head, run(3).head);
}

#[test]
fn coarse_rows_help_and_the_bundle_answers_the_same() {
    let graph = graph(Strength::Hard);
    let (features, targets) = rows(&graph, 300, 0.9, 3);
    let (test_features, test_targets) = rows(&graph, 300, 0.0, 4);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let train = |objective: ObjectiveConfig, rule: UpdateRule| {
        let optimiser = OptimiserConfig { learning_rate: 0.02, rule, ..OptimiserConfig::default() };
        let config = Config { objective, optimiser, ..Config::default() };
        Trainer::new(config, &graph, &Options::default(), examples, None)
            .unwrap()
            .run(&mut Silent)
            .unwrap()
    };
    let hex = train(ObjectiveConfig::default(), UpdateRule::default());
    let fine = train(ObjectiveConfig::Softmax { coarse: false }, UpdateRule::default());
    let (with, without) = (
        accuracy(&hex, &test_features, &test_targets),
        accuracy(&fine, &test_features, &test_targets),
    );
    assert!(with > without && with > 0.8, "{with} {without}");
    let slow = train(ObjectiveConfig::default(), UpdateRule::Sgd { momentum: 0.9 });
    assert!(accuracy(&slow, &test_features, &test_targets) > 0.7);
    // Written and read, it says the same.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    phex_io::write_bundle(&path, &hex.to_bundle(String::from("# A card")).unwrap()).unwrap();
    let read = TrainedModel::read(&path).unwrap();
    assert_eq!(read.head, hex.head);
    assert_eq!(read.config, hex.config);
    let predict = |model: &TrainedModel| {
        model.predictor(&Options::default()).unwrap().predict(&test_features).unwrap()
    };
    assert_eq!(predict(&read), predict(&hex));
}

/// A run in a folder, stopped and resumed, leaves the model of an uninterrupted one.
#[test]
fn a_run_folder_resumes_and_knows_when_it_is_finished() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 200, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let new = || Trainer::new(everything(), &graph, &Options::default(), examples, None).unwrap();
    let whole = new().run_measured(&mut Silent).unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let folder = RunFolder::open(&temporary.path().join("model")).unwrap();
    let mut interruptions = 0;
    let run = loop {
        let mut trainer = new();
        assert!(!folder.is_finished(&trainer.fingerprint().unwrap()).unwrap());
        let resumed = folder.resume(&mut trainer).unwrap();
        assert_eq!(resumed.is_some(), interruptions > 0);
        let path = temporary.path().join("unused");
        let mut stopping = Interrupting { steps: 9, path };
        let mut keeper = folder.keep_checkpoints(Duration::from_secs(60), &mut stopping);
        match trainer.run_measured(&mut keeper) {
            Ok(run) => break run,
            Err(Error::Interrupted) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(interruptions >= 3, "{interruptions}");
    assert_eq!(whole.model.head, run.model.head);
    assert_eq!(whole.evaluation, run.evaluation);
    assert_eq!((run.rows, run.validation_rows), (160, 40));
    let notes = vec![String::from("a note")];
    let record = RunRecord::new(&run, "test", None, String::from("cpu"), notes);
    let lock = folder.lock().unwrap();
    let error = RunFolder::open(folder.path()).unwrap().lock().unwrap_err().to_string();
    assert!(error.contains("another process trains a model in this folder"), "{error}");
    assert!(folder.checkpoint_file().exists(), "kept until the model is written");
    folder.write(&run, &record, None, None).unwrap();
    drop(lock);
    assert!(!folder.checkpoint_file().parent().unwrap().exists());
    // What a killed process left is in nobody's way.
    std::fs::write(folder.path().join(".phex-17UAk8"), "half a repo").unwrap();
    std::fs::create_dir(temporary.path().join(".model.phex-new-17UAk8")).unwrap();
    std::fs::create_dir(temporary.path().join(".model.phex-old")).unwrap();
    std::fs::write(temporary.path().join(".model.phex-old/run.json"), "{}").unwrap();
    let folder = RunFolder::open(folder.path()).unwrap();
    drop(folder.lock().unwrap());
    folder.write(&run, &record, None, Some("<p>Made by phex")).unwrap();
    assert!(!folder.path().join(".phex-17UAk8").exists());
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1, "only the model");
    assert!(folder.report_file().exists());
    assert!(folder.is_finished(&new().fingerprint().unwrap()).unwrap());
    assert_eq!(TrainedModel::read(folder.path()).unwrap().head, whole.model.head);
    let card = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(card.contains("Trained on 160 rows") && card.contains("- a note"), "{card}");
    // Other weights make another run, as other settings do.
    let mut weighted = new();
    weighted.weigh(&vec![2.0; 200]).unwrap();
    let error = folder.is_finished(&weighted.fingerprint().unwrap()).unwrap_err();
    assert!(matches!(error, Error::OtherModel { .. }), "{error}");
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let error = RunFolder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("`thesis.txt`, which is not part of a model"), "{error}");
}

/// Early stopping keeps the best epoch and ends the stage.
#[test]
fn patience_ends_a_stage_at_its_best_epoch() {
    let graph = graph(Strength::Hard);
    let (features, targets) = rows(&graph, 60, 0.0, 5);
    let (other_features, other_targets) = rows(&graph, 300, 0.0, 6);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let validation = Examples::new(&other_features, &other_targets, &graph).unwrap();
    let config = Config {
        optimiser: OptimiserConfig {
            learning_rate: 0.1,
            weight_decay: 0.0,
            ..OptimiserConfig::default()
        },
        stages: vec![Stage { epochs: 200, ..Stage::default() }],
        validation: ValidationConfig { patience: 5, ..ValidationConfig::default() },
        ..Config::default()
    };
    let trainer =
        Trainer::new(config, &graph, &Options::default(), examples, Some(validation)).unwrap();
    let model = trainer.run(&mut Silent).unwrap();
    let best = model.best_epoch.unwrap();
    assert_eq!(model.history.len(), best + 5);
    let losses: Vec<f64> =
        model.history.iter().map(|record| record.validation_loss.unwrap()).collect();
    assert_eq!(losses.iter().copied().fold(f64::INFINITY, f64::min), losses[best - 1]);
}

#[test]
fn what_cannot_be_trained_on_is_named() {
    let graph = tree(Strength::Hard).build().unwrap();
    let (features, mut targets) = rows(&graph, 20, 0.0, 7);
    let label = |name: &str| Target { label: graph.id(name).unwrap().0, on: true };
    let mut broken = Targets::new(graph.len());
    for row in 0..19 {
        broken.push(targets.row(row).listed, false);
    }
    broken.push(&[label("c0f0"), label("c1")], false);
    let run = |targets: &Targets, config: Config| {
        let examples = Examples::new(&features, targets, &graph)?;
        Trainer::new(config, &graph, &Options::default(), examples, None)?.run(&mut Silent)
    };
    let error = run(&broken, Config::default()).unwrap_err().to_string();
    assert!(error.contains("row 19 (c0f0, c1)"), "{error}");
    // Soft relations allow it.
    let soft =
        Stage { strength: StrengthSetting::All(Strength::U(1.0)), epochs: 1, ..Stage::default() };
    run(&broken, Config { stages: vec![soft], ..Config::default() }).unwrap();
    targets.push(&[], false);
    let error = run(&targets, Config::default()).unwrap_err().to_string();
    assert!(error.contains("20 rows of features and 21 of labels"), "{error}");
    let bad = Config { seed: 1, stages: Vec::new(), ..Config::default() };
    assert!(run(&broken, bad).unwrap_err().to_string().contains("stages"));
    let rate = OptimiserConfig { learning_rate: 0.0, ..OptimiserConfig::default() };
    let error =
        run(&broken, Config { optimiser: rate, ..Config::default() }).unwrap_err().to_string();
    assert!(error.contains("optimiser.learning_rate"), "{error}");
}

#[test]
fn fine_tuning_starts_from_the_weights_of_a_trained_head() {
    let graph = graph(Strength::Hard);
    let (features, targets) = rows(&graph, 300, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let config = |learning_rate: f64, hidden: &[usize]| {
        let mut config = Config::default();
        config.optimiser.learning_rate = learning_rate;
        config.head.hidden = hidden.to_vec();
        config.stages[0].epochs = 2;
        config
    };
    let trainer = |rate: f64, hidden: &[usize]| {
        Trainer::new(config(rate, hidden), &graph, &Options::default(), examples, None).unwrap()
    };
    let first = trainer(0.01, &[5]).run(&mut Silent).unwrap();
    // Steps of nearly nothing: it stays where it starts.
    let mut second = trainer(1e-9, &[5]);
    second.start_from(&first.head).unwrap();
    let second = second.run(&mut Silent).unwrap();
    let (a, b) =
        (first.logits(&features, 0..300).unwrap(), second.logits(&features, 0..300).unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4));
    let error = trainer(0.01, &[6]).start_from(&first.head).unwrap_err().to_string();
    assert!(
        error.contains("the start model has 8 features") && error.contains("; this run needs "),
        "{error}"
    );
}

#[test]
fn a_warm_up_is_for_rows_of_which_some_leave_leaves_open() {
    let graph = graph(Strength::Hard);
    let (features, coarse) = rows(&graph, 100, 0.75, 2);
    let stages = |targets: &Targets| {
        let examples = Examples::new(&features, targets, &graph).unwrap();
        let choices = TrainingChoices::default();
        Recipe::STANDARD.config(&choices, &examples, &graph).unwrap().stages.len()
    };
    assert_eq!(stages(&coarse), 2);
    let (_, fine) = rows(&graph, 100, 0.0, 2);
    assert_eq!(stages(&fine), 1);
    // The same coarse labels, with all others known to be off: nothing is open.
    let mut whole = Targets::new(graph.len());
    (0..coarse.rows()).for_each(|row| whole.push(coarse.row(row).listed, true));
    assert_eq!(stages(&whole), 1);
    let mut listed = Targets::new(graph.len());
    for row in 0..whole.rows() {
        let evidence = whole.evidence(row);
        let target = |(label, entry): (usize, &Evidence)| Target {
            label: label as u32,
            on: *entry == Evidence::On,
        };
        listed.push(&evidence.iter().enumerate().map(target).collect::<Vec<_>>(), false);
    }
    assert_eq!(stages(&listed), 1);
}

/// The CPU as a device: it counts the rows that it answers, and has its limits.
#[derive(Debug, Default)]
struct Elsewhere {
    rows: Arc<AtomicUsize>,
    engines: Arc<AtomicUsize>,
    hard_only: bool,
}

#[derive(Debug)]
struct There {
    engine: Engine,
    rows: Arc<AtomicUsize>,
}

impl Accelerator for Elsewhere {
    fn move_engine(&self, engine: &Engine, want: Want) -> Result<Arc<dyn Backend>, phex::Error> {
        let refuse = |why: &str| Err(phex::Error::Device { source: why.into() });
        if want.expectations {
            return refuse("no expectations");
        }
        let is_soft = |relation: &Relation| matches!(relation, Relation::Hierarchy { cost, .. } if cost.is_finite());
        if self.hard_only && engine.model().relations().iter().any(is_soft) {
            return refuse("no soft relations");
        }
        self.engines.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(There { engine: engine.clone(), rows: Arc::clone(&self.rows) }))
    }
}

impl Backend for There {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run_single(
        &self,
        block: &Block<'_, f32>,
        want: Want,
    ) -> Result<Posterior<f32>, phex::Error> {
        self.rows.fetch_add(block.rows(), Ordering::Relaxed);
        self.engine.run(block, want)
    }

    fn run_double(
        &self,
        block: &Block<'_, f64>,
        want: Want,
    ) -> Result<Posterior<f64>, phex::Error> {
        self.rows.fetch_add(block.rows(), Ordering::Relaxed);
        self.engine.run(block, want)
    }
}

#[test]
fn a_device_has_a_part_in_the_work_and_none_in_what_the_run_is() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 120, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let config = Config { strengths: StrengthConfig::Fixed, ..everything() };
    let options = Options::default();
    let new = || Trainer::new(config.clone(), &graph, &options, examples, None).unwrap();
    let whole = new().run(&mut Silent).unwrap();
    let device = Elsewhere::default();
    let counted = Arc::clone(&device.rows);
    let device: Arc<dyn Accelerator> = Arc::new(device);
    let there = || new().on(Arc::clone(&device)).unwrap();
    assert_eq!(new().fingerprint().unwrap(), there().fingerprint().unwrap());
    // Here and there by turns, a few steps each, through both stages.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let mut turns = 0;
    let model = loop {
        let mut trainer = if turns % 2 == 0 { there() } else { new() };
        if path.exists() {
            trainer.resume(&Checkpoint::read(&path).unwrap()).unwrap();
        }
        let before = counted.load(Ordering::Relaxed);
        let ended = trainer.run(&mut Interrupting { steps: 5, path: path.clone() });
        let rows = counted.load(Ordering::Relaxed) - before;
        assert_eq!(rows > 0, turns % 2 == 0, "turn {turns}: {rows} rows");
        match ended {
            Ok(model) => break model,
            Err(Error::Interrupted) => turns += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(turns >= 4, "{turns}");
    assert_eq!(whole.head, model.head);

    let before = counted.load(Ordering::Relaxed);
    let predictor = model.predictor(&options).unwrap();
    let here = predictor.predict(&features).unwrap();
    assert_eq!(counted.load(Ordering::Relaxed), before);
    assert_eq!(here, predictor.on(&*device).unwrap().predict(&features).unwrap());
    assert_eq!(counted.load(Ordering::Relaxed), before + features.rows);
}

/// A warm-up and the stage after it, validation and the evaluation at the end share an engine.
#[test]
fn an_engine_is_compiled_once_for_all_stages_of_its_strength() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 60, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let mut config = Config { strengths: StrengthConfig::Fixed, ..everything() };
    let engines = |config: &Config| {
        let trainer =
            Trainer::new(config.clone(), &graph, &Options::default(), examples, None).unwrap();
        let device = Elsewhere::default();
        let engines = Arc::clone(&device.engines);
        trainer.on(Arc::new(device)).unwrap().run_measured(&mut Silent).unwrap();
        engines.load(Ordering::Relaxed)
    };
    assert_eq!(engines(&config), 1);
    config.stages[1].strength = StrengthSetting::All(Strength::Hard);
    assert_eq!(engines(&config), 2);
}

#[test]
fn what_a_device_does_not_take_is_said_before_training() {
    let graph = graph(Strength::U(0.5));
    let (features, targets) = rows(&graph, 60, 0.5, 1);
    let examples = Examples::new(&features, &targets, &graph).unwrap();
    let on = |config: Config, hard_only: bool| {
        let trainer = Trainer::new(config, &graph, &Options::default(), examples, None).unwrap();
        let device = Elsewhere { hard_only, ..Elsewhere::default() };
        trainer.on(Arc::new(device)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(on(everything(), false).unwrap_err(), "no expectations");
    // The second stage counts as the first does.
    let stage = |strength| Stage { strength, ..Stage::default() };
    let hard = stage(StrengthSetting::All(Strength::Hard));
    let stages = vec![hard.clone(), stage(StrengthSetting::Given)];
    assert_eq!(on(Config { stages, ..Config::default() }, true).unwrap_err(), "no soft relations");
    assert_eq!(on(Config { stages: vec![hard], ..Config::default() }, true), Ok(()));
    let objective = ObjectiveConfig::Independent;
    let refused = on(Config { objective, ..Config::default() }, false).unwrap_err();
    assert!(refused.contains("use the CPU"), "{refused}");
}
