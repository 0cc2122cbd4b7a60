//! Training on CIFAR-100 features with 90 % of the rows relabelled to their superclass: rows a second on
//! one core, where the time goes, and how much memory it takes beyond the data.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};
use phex::infer::Options;
use phex::learn::Loss;
use phex_io::{
    DatasetOptions, Features, LabelForm, Target, TargetOptions, TargetSource, Targets, read_dataset,
};
use phex_train::{
    Config, EpochRecord, Examples, HeadConfig, ObjectiveConfig, Observer, OptimiserConfig, Stage,
    StrengthSetting, Trainer,
};
use serde::Serialize;

use crate::data;
use crate::machine::resident_mib;
use crate::random::Random;
use crate::table::{Table, percent, short, write};

#[derive(Debug, Args)]
pub(crate) struct TrainCommand {
    /// Where the results go
    #[arg(long, default_value = "bench/results/train.json")]
    out: PathBuf,
    /// Rows of a step
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Epochs; the last one counts
    #[arg(long, default_value_t = 3)]
    epochs: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    head: &'static str,
    relations: String,
    loss: &'static str,
    engine: String,
    rows: usize,
    rows_a_second: f64,
    products: f64,
    inference: f64,
    optimiser: f64,
    gathering: f64,
    /// How much more memory the process has at the end of an epoch than before the run, in MiB.
    memory_mib: f64,
}

pub(crate) fn run(command: &TrainCommand) -> anyhow::Result<()> {
    let folder = data::path("cifar100");
    if !folder.exists() {
        println!("skipped: there is no folder cifar100 in the data (PHEX_DATA)");
        return Ok(());
    }
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let graph = cifar_graph()?;
    let (features, targets) = cifar(&graph, 0.9)?;
    let mut rows = Vec::new();
    let heads: [(&'static str, Vec<usize>); 2] = [("linear", vec![]), ("512 hidden", vec![512])];
    // Fewer rows first, for peaks only grow.
    for part in [4, 1] {
        let count = features.rows / part;
        let (features, targets) = first(&features, &targets, count);
        for (name, hidden) in &heads {
            for (strength, loss) in [
                (StrengthSetting::All(Strength::Hard), Loss::Joint),
                (StrengthSetting::All(Strength::U(0.5)), Loss::Joint),
                (StrengthSetting::All(Strength::U(0.5)), Loss::Marginal),
            ] {
                if part != 1 && loss == Loss::Marginal {
                    continue;
                }
                let config = config(command, hidden, strength, loss);
                rows.push(measure(name, config, &graph, &features, &targets)?);
            }
        }
    }
    let mut table = Table::new(&[
        "head",
        "relations",
        "loss",
        "engine",
        "rows",
        "rows/s",
        "matrix products",
        "inference",
        "optimiser",
        "gathering",
        "MiB of training",
    ]);
    for row in &rows {
        table.row(&[
            String::from(row.head),
            row.relations.clone(),
            String::from(row.loss),
            row.engine.clone(),
            row.rows.to_string(),
            format!("{:.0}", row.rows_a_second),
            percent(row.products),
            percent(row.inference),
            percent(row.optimiser),
            percent(row.gathering),
            short(row.memory_mib),
        ]);
    }
    println!("{}", table.text());
    #[derive(Serialize)]
    struct Results {
        batch: usize,
        runs: Vec<Row>,
    }
    let results = Results { batch: command.batch, runs: rows };
    write(&command.out, "make bench ARGS=train", results)
}

fn config(
    command: &TrainCommand,
    hidden: &[usize],
    strength: StrengthSetting,
    loss: Loss,
) -> Config {
    Config {
        head: HeadConfig { hidden: hidden.to_vec(), ..HeadConfig::default() },
        objective: ObjectiveConfig::Relations { loss },
        optimiser: OptimiserConfig { batch: command.batch, ..OptimiserConfig::default() },
        stages: vec![Stage { strength, epochs: command.epochs, ..Stage::default() }],
        ..Config::default()
    }
}

/// Keeps the last epoch, and the most memory at the end of one.
struct Last {
    record: Option<EpochRecord>,
    memory: f64,
}

impl Observer for Last {
    fn epoch(&mut self, record: &EpochRecord) {
        self.record = Some(record.clone());
        self.memory = self.memory.max(resident_mib());
    }
}

fn measure(
    head: &'static str,
    config: Config,
    graph: &RelationGraph,
    features: &Features,
    targets: &Targets,
) -> anyhow::Result<Row> {
    let relations = config.stages[0].strength.to_string();
    let loss = match config.objective {
        ObjectiveConfig::Relations { loss } => loss.name(),
        _ => "none",
    };
    let before = resident_mib();
    let examples = Examples::new(features, targets, graph)?;
    let trainer = Trainer::new(config, graph, &Options::default(), examples, None)?;
    let engine = trainer.engine().map_or("none", |engine| engine.plan().method.name()).to_owned();
    let mut last = Last { record: None, memory: 0.0 };
    trainer.run(&mut last)?;
    let record = last.record.context("no epoch ran")?;
    let (profile, seconds) = (record.profile, record.seconds);
    Ok(Row {
        head,
        relations,
        loss,
        engine,
        rows: features.rows,
        rows_a_second: features.rows as f64 / seconds,
        products: profile.head / seconds,
        inference: profile.inference / seconds,
        optimiser: profile.optimiser / seconds,
        gathering: profile.rows / seconds,
        memory_mib: last.memory - before,
    })
}

/// Superclasses above classes, which exclude each other; one class is on.
fn cifar_graph() -> anyhow::Result<RelationGraph> {
    let text = std::fs::read_to_string(data::path("cifar100/labels.txt"))?;
    let mut builder = GraphBuilder::new();
    let mut coarse = Vec::new();
    for line in text.lines().filter(|line| line.chars().next().is_some_and(char::is_numeric)) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, fine, _, above] = fields[..] else { continue };
        builder.label(fine);
        coarse.push((above.to_owned(), fine.to_owned()));
    }
    for (above, fine) in &coarse {
        // Some superclasses and classes share a name with nothing; a mark keeps them apart anyway.
        builder.hierarchy(&format!("{above}*"), fine, None);
    }
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None).one_of_leaves("class");
    Ok(builder.build()?)
}

fn cifar(graph: &RelationGraph, coarse: f64) -> anyhow::Result<(Features, Targets)> {
    let mut targets = TargetOptions::new(TargetSource::Files {
        paths: vec![data::path("cifar100/labels_fine_train_uint8.npy")],
        column: None,
    });
    targets.form = LabelForm::Id;
    let options = DatasetOptions { targets: Some(targets), ..DatasetOptions::default() };
    let file = data::path("cifar100/features_effnet_lite0_pca256_f16_train.npy");
    let set = read_dataset(&[file], &options, Some(graph))?;
    let fine = set.targets.context("no labels")?;
    let mut random = Random::new(1);
    let mut relabelled = Targets::new(graph.len());
    for row in 0..fine.rows() {
        let label = fine.row(row).listed[0].label;
        let above = graph.topology().parents(phex::graph::LabelId(label)).first();
        let label = match above {
            Some(above) if random.uniform() < coarse => above.0,
            _ => label,
        };
        relabelled.push(&[Target { label, on: true }], false);
    }
    Ok((set.features, relabelled))
}

fn first(features: &Features, targets: &Targets, rows: usize) -> (Features, Targets) {
    // Rows are sorted by class: every so many of them.
    let every = features.rows / rows;
    let mut values = Vec::with_capacity(rows * features.columns);
    let mut kept = Targets::new(targets.labels());
    for row in (0..features.rows).step_by(every).take(rows) {
        values.extend_from_slice(features.row(row));
        kept.push(targets.row(row).listed, targets.row(row).others_off);
    }
    (Features { names: features.names.clone(), rows, columns: features.columns, values }, kept)
}
