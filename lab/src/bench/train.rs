//! Training on CIFAR-100 features with 90 % of the rows relabelled to their superclass: rows per second on one core,
//! where the time goes, and how much memory it takes beyond the data.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use phex::Named as _;
use phex::graph::{RelationGraph, Strength};
use phex::infer::Options;
use phex::learn::Loss;
use phex_train::{
    Config, EpochRecord, Examples, HeadConfig, ObjectiveConfig, Observer, OptimiserConfig, Stage,
    StrengthSetting, Trainer,
};
use serde::Serialize;
use serde_json::json;

use crate::experiment::{HierarchyData, RelabelledData, Relations, RowSample};
use crate::harness::table::{short, whole_percent};
use crate::harness::timing::{resident_mib, use_one_thread};
use crate::harness::{MarkdownTable, ResultFolder, ResultPage, data};

#[derive(Debug, Args)]
pub(crate) struct TrainCommand {
    /// Where the results go [default: target/lab/train]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Rows per step
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Epochs, of which the last one counts
    #[arg(long, default_value_t = 3)]
    epochs: usize,
}

#[derive(Debug, Serialize)]
struct TrainRow {
    head: &'static str,
    relations: String,
    loss: &'static str,
    engine: String,
    rows: usize,
    rows_per_second: f64,
    products: f64,
    inference: f64,
    optimiser: f64,
    gathering: f64,
    /// How much more memory the process has at the end of an epoch than before the run, in MiB.
    memory_mib: f64,
}

pub(crate) fn run(command: &TrainCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "train")?;
    let root = data::path("");
    let (_, data) = RelabelledData::load(HierarchyData::Cifar100, &root, false)?;
    let mut rows = Vec::new();
    let heads: [(&'static str, Vec<usize>); 2] = [("linear", vec![]), ("512 hidden", vec![512])];
    // Fewer rows first, because peaks only grow.
    for rows_a_class in [125, 0] {
        let sample = data.training(rows_a_class, 0.9, Relations::Hard, 1);
        for (name, hidden) in &heads {
            for (strength, loss) in [
                (StrengthSetting::All(Strength::Hard), Loss::Joint),
                (StrengthSetting::All(Strength::U(0.5)), Loss::Joint),
                (StrengthSetting::All(Strength::U(0.5)), Loss::Marginal),
            ] {
                if rows_a_class > 0 && loss == Loss::Marginal {
                    continue;
                }
                let config = config(command, hidden, strength, loss);
                rows.push(measure(name, config, &data.graph, &sample)?);
            }
        }
    }
    let about = format!(
        "CIFAR-100 features, 90 % of the rows relabelled to their superclass; one core, batches of {}. \
         Shares are percentages of the time of the last epoch.",
        command.batch
    );
    let mut page = ResultPage::of_bench("train", "Training", &about);
    page.tables.push(table(&rows));
    Ok(folder.write_bench(&page, &json!({ "batch": command.batch, "runs": rows }))?)
}

fn table(rows: &[TrainRow]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "",
        "head | relations | loss | engine | rows | rows/s | matrix products | inference | optimiser | gathering | MiB of training",
    );
    for row in rows {
        table.row([
            String::from(row.head),
            row.relations.clone(),
            String::from(row.loss),
            row.engine.clone(),
            row.rows.to_string(),
            format!("{:.0}", row.rows_per_second),
            whole_percent(row.products),
            whole_percent(row.inference),
            whole_percent(row.optimiser),
            whole_percent(row.gathering),
            short(row.memory_mib),
        ]);
    }
    table
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
struct LastEpoch {
    record: Option<EpochRecord>,
    memory: f64,
}

impl Observer for LastEpoch {
    fn epoch(&mut self, record: &EpochRecord) {
        self.record = Some(record.clone());
        self.memory = self.memory.max(resident_mib());
    }
}

fn measure(
    head: &'static str,
    config: Config,
    graph: &RelationGraph,
    sample: &RowSample,
) -> anyhow::Result<TrainRow> {
    let relations = config.stages[0].strength.to_string();
    let loss = match config.objective {
        ObjectiveConfig::Relations { loss } => loss.name(),
        _ => "none",
    };
    let before = resident_mib();
    let examples = Examples::new(&sample.features, &sample.targets, graph)?;
    let trainer = Trainer::new(config, graph, &Options::default(), examples, None)?;
    let engine = trainer.engine().map_or("none", |engine| engine.plan().method.name()).to_owned();
    let mut last = LastEpoch { record: None, memory: 0.0 };
    trainer.run(&mut last)?;
    let record = last.record.context("no epoch ran")?;
    let (profile, seconds) = (record.profile, record.seconds);
    Ok(TrainRow {
        head,
        relations,
        loss,
        engine,
        rows: sample.features.rows,
        rows_per_second: sample.features.rows as f64 / seconds,
        products: profile.head / seconds,
        inference: profile.inference / seconds,
        optimiser: profile.optimiser / seconds,
        gathering: profile.rows / seconds,
        memory_mib: last.memory - before,
    })
}
