//! `phex tune`: which strength of the relations works best.
//!
//! Every strength of the grid is trained with every seed and measured on the validation rows.
//! `FOLDER/tune.json` has the finished runs and is replaced after each, so that the same command
//! continues where it stopped. The current run has a checkpoint beside it. The model of the best strength
//! is written to `FOLDER/model`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use phex::graph::{RelationGraph, Strength};
use phex::infer::Options;
use phex::metrics::Spread;
use phex_io::write_text;
use phex_report::{MethodTable, MetricColumn, Page, Section, SettingsTable, StrengthCurve};
use phex_train::{
    Config, Metric, Recipe, RunFolder, RunInputs, RunRecord, SettingSummary, Stage,
    StrengthSetting, TrainedModel, Trainer, TrainingChoices, Trial, Tuning,
};
use serde::Serialize;

use crate::args::TuneCommand;
use crate::device::Device;
use crate::infer::use_threads;
use crate::say::say;
use crate::train::{self, RunOutputs, TrainingTables, with_flag};
use crate::{Outcome, output};

const RESULTS: &str = "tune.json";
const CURVE: &str = "strength.svg";
const REPORT: &str = "report.html";

/// What is printed at the end.
#[derive(Serialize)]
struct TuningSummary<'a> {
    version: &'static str,
    command: &'static str,
    metric: &'static str,
    settings: Vec<SettingSummary>,
    best: SettingSummary,
    trials: &'a [Trial],
}

/// What all runs share.
struct TuningRuns<'a> {
    command: &'a TuneCommand,
    config: Config,
    graph: &'a RelationGraph,
    tables: &'a TrainingTables,
    device: &'a Device,
}

impl TuningRuns<'_> {
    /// A run with one strength and one seed, at its start.
    fn trainer(&self, setting: StrengthSetting, seed: u64) -> anyhow::Result<Trainer<'_>> {
        self.trainer_of(with_strength(&self.config, setting, seed))
    }

    /// The same for a run that is only measured on the validation rows: without baselines, and without
    /// training once more on all rows.
    fn trial(&self, setting: StrengthSetting, seed: u64) -> anyhow::Result<Trainer<'_>> {
        let mut config = with_strength(&self.config, setting, seed);
        config.validation.all_rows = false;
        Ok(self.trainer_of(config)?.without_baselines())
    }

    fn trainer_of(&self, config: Config) -> anyhow::Result<Trainer<'_>> {
        let (training, validation) = self.tables.examples(self.graph)?;
        let seed = config.seed;
        let options = Options { seed, ..self.command.engine.options()? };
        let trainer = Trainer::new(config, self.graph, &options, training, validation)?;
        self.device.trainer(trainer)
    }
}

pub(crate) fn run(command: &TuneCommand) -> anyhow::Result<Outcome> {
    use_threads(command.run.threads);
    crate::interrupt::listen();
    let device = Device::open(command.run.device.device)?;
    let choices = choices(command)?;
    let config = Recipe::STANDARD.settle(&choices).map_err(with_flag)?;
    let grid = command.grid.as_ref().map_or(Recipe::STANDARD.tuning_strengths, |grid| &grid.0);
    let seed_count = command.seeds.unwrap_or(Recipe::STANDARD.tuning_seeds);
    let model_folder = RunFolder::open(&command.out.join("model"))?;
    let files = command.set.files().reads(command.graph.files()).reads(&command.settings.config);
    let trial_folder = RunFolder::open(&command.out.join("trial"))?;
    let own = [RESULTS, CURVE].map(|name| command.out.join(name));
    let files =
        files.claims(model_folder.files()).claims([trial_folder.checkpoint_file()]).claims(own);
    files.claims(report_file(command)).check()?;
    let graph = command.graph.given_graph()?;
    for &setting in grid {
        // All of them, before the first is trained and before anything is written.
        let config = with_strength(&config, setting, config.seed);
        device
            .check(&config, &graph, &command.engine.options()?)
            .with_context(|| format!("strength {setting}"))?;
    }
    fs::create_dir_all(&command.out)
        .with_context(|| format!("{}: cannot be made", command.out.display()))?;
    RunOutputs { report_file: command.run.report.as_deref(), ..outputs(command) }
        .check(&model_folder)?;
    let metric = config.validation.metric;
    let results = command.out.join(RESULTS);
    let old = read(&results, metric, command.run.restart)?;
    check_old_files(command, old.is_some())?;
    let _locks = (trial_folder.lock()?, model_folder.lock()?);
    if command.run.restart {
        trial_folder.forget_checkpoint()?;
        model_folder.forget_checkpoint()?;
    }
    let old = old.filter(|_| !command.run.restart);
    let mut tuning = old.unwrap_or_else(|| Tuning::new(metric));
    let mut tables = TrainingTables::read(&command.set, &graph)?;
    tables.check_taxonomy(&command.set, &graph)?;
    let (training, _) = tables.examples(&graph)?;
    let config = Recipe::STANDARD.config(&choices, &training, &graph).map_err(with_flag)?;
    if tables.validation.is_none() && config.validation.fraction == 0.0 {
        bail!("strengths are compared on validation data: give --valid or --validation-fraction");
    }
    let seeds = config.seed..config.seed.saturating_add(seed_count);
    let total = grid.len() as u64 * seed_count;
    let runs = TuningRuns { command, config, graph: &graph, tables: &tables, device: &device };
    let mut chosen = Tuning::new(metric);
    for (at, &setting) in grid.iter().enumerate() {
        for seed in seeds.clone() {
            let number = at as u64 * seed_count + (seed - seeds.start) + 1;
            let about = format!("{setting}, seed {seed} ({number} of {total})");
            // Trials are compared with each other, on validation rows alone.
            let trainer = runs.trial(setting, seed).with_context(|| about.clone())?;
            let fingerprint = trainer.fingerprint()?;
            if let Some(done) = tuning.find(setting, seed, &fingerprint) {
                chosen.add(done.clone());
                continue;
            }
            trial_folder.forget_other_checkpoint(&fingerprint)?;
            let run = train::finish(trainer, &trial_folder, &command.run, &about)?;
            let trial = Trial {
                setting,
                seed,
                value: kept_metric(&run.model)?,
                fingerprint,
                epochs: run.model.history.len(),
                seconds: run.model.seconds(),
            };
            if !command.run.quiet {
                say(format_args!("{about}: {metric} {:.4}", trial.value));
            }
            chosen.add(trial.clone());
            tuning.add(trial);
            write_text(&results, &(serde_json::to_string_pretty(&tuning)? + "\n"))?;
            trial_folder.forget_checkpoint()?;
        }
    }
    trial_folder.forget_checkpoint()?;
    let Some(best) = chosen.best() else { bail!("no run has a result") };
    finish(&runs, &chosen, best, seed_count)?;
    if !command.no_refit {
        refit(&runs, best.setting, &model_folder)?;
    }
    Ok(Outcome::Fine)
}

/// The choices for all runs; the grid has the strengths.
fn choices(command: &TuneCommand) -> anyhow::Result<TrainingChoices> {
    let mut choices = command.settings.choices(command.engine.seed, command.set.held_out())?;
    if choices.strength.is_some() {
        bail!("--grid has the strengths to compare; leave out --strength");
    }
    if choices.metric == Some(Metric::Loss) {
        bail!(
            "losses under different strengths cannot be compared; use --metric au-prc or accuracy"
        );
    }
    if Recipe::STANDARD.settle(&choices).map_err(with_flag)?.validation.metric == Metric::Loss {
        choices.metric = Some(Recipe::STANDARD.tuning_metric);
    }
    Ok(choices)
}

/// What to write beside the model of the best strength.
fn outputs(command: &TuneCommand) -> RunOutputs<'static> {
    let (report, quiet) = (!command.run.no_report, command.run.quiet);
    RunOutputs { report, report_file: None, json: false, quiet }
}

/// The settings of one run. A warm-up has the strength of the next stage.
fn with_strength(config: &Config, setting: StrengthSetting, seed: u64) -> Config {
    let mut config = config.clone();
    config.seed = seed;
    let last = config.stages.len() - 1;
    let old = config.stages[last].strength;
    for (at, stage) in config.stages.iter_mut().enumerate() {
        let warms_up = at + 1 == last && stage.name == Stage::WARM_UP && stage.strength == old;
        if at == last || warms_up {
            stage.strength = setting;
        }
    }
    config
}

/// The validation metric of the kept weights.
pub(crate) fn kept_metric(model: &TrainedModel) -> anyhow::Result<f64> {
    let kept = model.best_epoch.unwrap_or(model.history.len());
    let record = model.history.iter().find(|record| record.epoch == kept);
    let value = record.and_then(|record| record.validation_metric);
    value.context("no rows were validated; hold out more rows")
}

/// The file of the report, if there is one.
fn report_file(command: &TuneCommand) -> Option<PathBuf> {
    let named = || command.run.report.clone().unwrap_or_else(|| command.out.join(REPORT));
    (!command.run.no_report).then(named)
}

/// Refuses to replace files in the folder that no tuning has written.
fn check_old_files(command: &TuneCommand, has_results: bool) -> anyhow::Result<()> {
    let named = command.run.report.is_some() || command.run.no_report;
    for (name, named) in [(CURVE, false), (REPORT, named)] {
        let path = command.out.join(name);
        if !has_results && !named && path.exists() {
            bail!(
                "{} would be replaced, and there is no `{RESULTS}` beside it, so it is not of `phex tune`; choose another \
                 --out",
                path.display()
            );
        }
    }
    Ok(())
}

/// The finished runs, if there are any.
fn read(path: &Path, metric: Metric, restart: bool) -> anyhow::Result<Option<Tuning>> {
    if !path.exists() {
        return Ok(None);
    }
    let name = || path.display().to_string();
    let text = phex_io::read_text(path)?;
    let tuning: Tuning = serde_json::from_str(&text).with_context(|| {
        format!("{}: not the results of `phex tune`; choose another --out", name())
    })?;
    if tuning.metric != metric && !restart {
        bail!(
            "{}: these results are of the metric {}; --restart replaces them, or choose another --out",
            name(),
            tuning.metric
        );
    }
    Ok(Some(tuning))
}

/// Writes and prints the results.
fn finish(
    runs: &TuningRuns<'_>,
    tuning: &Tuning,
    best: SettingSummary,
    seeds: u64,
) -> anyhow::Result<()> {
    let command = runs.command;
    let metric = tuning.metric.name();
    let settings = tuning.summary();
    let curve = curve(metric, &settings, best.setting);
    write_text(&command.out.join(CURVE), &curve.svg())?;
    if let Some(path) = report_file(command) {
        write_text(&path, &page(runs, &settings, &curve, seeds)?.html())?;
    }
    let mut text = format!("{:<12}{metric:>10}{:>12}{:>7}\n", "strength", "deviation", "seeds");
    for SettingSummary { setting, spread } in &settings {
        let Spread { mean, deviation, count } = spread;
        let deviation = deviation.map_or(String::from("–"), |value| format!("{value:.4}"));
        text.push_str(&format!(
            "{:<12}{mean:>10.4}{deviation:>12}{count:>7}\n",
            setting.to_string()
        ));
    }
    text.push_str(&format!("best: {}\n", best.setting));
    if command.run.json {
        let (version, trials) = (env!("CARGO_PKG_VERSION"), tuning.trials.as_slice());
        return output::json(&TuningSummary {
            version,
            command: "tune",
            metric,
            settings,
            best,
            trials,
        });
    }
    output::text(&text)
}

/// Trains the model of the best strength, unless it exists.
fn refit(
    runs: &TuningRuns<'_>,
    setting: StrengthSetting,
    folder: &RunFolder,
) -> anyhow::Result<()> {
    let TuningRuns { command, tables, device, .. } = runs;
    let trainer = runs.trainer(setting, runs.config.seed)?;
    let fingerprint = trainer.fingerprint()?;
    if folder.finished().is_some_and(|finished| finished == fingerprint) {
        return Ok(());
    }
    folder.forget_other_checkpoint(&fingerprint)?;
    let mut run = train::finish(trainer, folder, &command.run, &format!("final, {setting}"))?;
    run.model.schema = Some(tables.training.schema.clone());
    let inputs = RunInputs {
        graph: &command.graph.path,
        data: &command.set.data.data,
        validation: &command.set.valid,
    };
    let record = RunRecord::new(&run, "train", Some(inputs), device.name(), tables.notes.clone());
    outputs(command).write(folder, &run, &record, &tables.labels)
}

/// The paper's u = w / 4 of a setting, infinite for hard; `None` for settings that have no u.
fn strength(setting: StrengthSetting) -> Option<f64> {
    match setting {
        StrengthSetting::All(strength @ Strength::Hard) => Some(strength.cost()),
        StrengthSetting::All(strength) => Some(strength.cost() / 4.0),
        StrengthSetting::Given | StrengthSetting::Scale(_) => None,
    }
}

/// The metric by strength.
pub(crate) fn curve(
    metric: &str,
    settings: &[SettingSummary],
    best: StrengthSetting,
) -> StrengthCurve {
    let placed =
        settings.iter().filter_map(|summary| Some((strength(summary.setting)?, summary.spread)));
    let (hard, points): (Vec<_>, Vec<_>) = placed.partition(|(u, _)| u.is_infinite());
    StrengthCurve {
        metric: metric.to_owned(),
        points,
        hard: hard.first().map(|(_, value)| *value),
        chosen: strength(best),
    }
}

fn page(
    runs: &TuningRuns<'_>,
    settings: &[SettingSummary],
    curve: &StrengthCurve,
    seeds: u64,
) -> anyhow::Result<Page> {
    let row = |summary: &SettingSummary| (summary.setting.to_string(), vec![summary.spread]);
    let table = MethodTable {
        metrics: vec![MetricColumn { name: curve.metric.clone(), higher_is_better: true }],
        methods: settings.iter().map(row).collect(),
    };
    let title = runs.command.out.file_name().unwrap_or_default().to_string_lossy();
    let mut config = serde_json::to_value(&runs.config)?;
    if let Some(stage) = config["stages"].as_array_mut().and_then(|stages| stages.last_mut()) {
        stage["strength"] = "as above".into();
    }
    let settings = SettingsTable::from_json(&config);
    Ok(Page {
        title: format!("Tuning of {title}"),
        subtitle: format!("{} strengths, {seeds} seeds each", table.methods.len()),
        sections: vec![
            Section::new("Strength").with(curve).with(&table),
            Section::new("Settings").with(&settings),
        ],
    })
}
