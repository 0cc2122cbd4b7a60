//! Finished probabilities for other benchmarks: those of a linear head without relations, on test rows.

use anyhow::Context as _;
use phex::graph::RelationGraph;
use phex::infer::Options;
use phex_train::{
    Config, Examples, HeadConfig, ObjectiveConfig, OptimiserConfig, Silent, Stage, Trainer,
};

use super::sets::SETS;
use crate::Error;
use crate::harness::data;

/// The graph of a set, and the probabilities of its first test rows. The head is a logistic regression for each label,
/// trained for ten epochs.
pub(in crate::bench) fn finished_scores(
    name: &str,
    rows: usize,
) -> anyhow::Result<(RelationGraph, Vec<f64>)> {
    let path = data::path("hmc");
    if !path.exists() {
        return Err(Error::NoData { path }.into());
    }
    let set = SETS.iter().find(|set| set.name == name).context("there is no such set")?;
    let data = set.load()?;
    let targets = data.training.targets.as_ref().context("the training data have no labels")?;
    let examples = Examples::new(&data.training.features, targets, &data.graph)?;
    let config = Config {
        head: HeadConfig {
            hidden: Vec::new(),
            prior: true,
            feature_clip: 3.0,
            ..HeadConfig::default()
        },
        objective: ObjectiveConfig::Independent,
        optimiser: OptimiserConfig { learning_rate: 1e-3, batch: 32, ..OptimiserConfig::default() },
        stages: vec![Stage { epochs: 10, ..Stage::default() }],
        seed: 0,
        ..Config::default()
    };
    let options = Options::default();
    let trainer = Trainer::new(config, &data.graph, &options, examples, None)?;
    let model = trainer.run(&mut Silent)?;
    let rows = rows.min(data.test.rows());
    let probabilities = model.predictor(&options)?.probabilities(&data.test.features, 0..rows)?;
    Ok((data.graph, probabilities.into_iter().map(f64::from).collect()))
}
