//! `phex tune`: which strength of the relations serves best.
//!
//! Every strength of the grid is trained with every seed and measured on the validation rows.
//! `FOLDER/tune.json` has the runs that are done and is replaced after each, so that the same
//! command goes on where it stopped; the run at hand has a checkpoint beside it. The model of the
//! best strength comes into `FOLDER/model`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use phex::graph::Strength;
use phex::metrics::Spread;
use phex_io::write_text;
use phex_report::{MethodTable, MetricColumn, Page, Section, SettingsTable, StrengthCurve};
use phex_train::{
    Checkpoint, Config, Metric, SettingSummary, StrengthSetting, TrainedModel, Trial, Tuning,
};
use serde::Serialize;

use crate::args::TuneCommand;
use crate::device::Device;
use crate::infer::use_threads;
use crate::train::{self, Inputs, Job, Place, Sets, Wanted};
use crate::{Outcome, output, pages};

const RESULTS: &str = "tune.json";

/// What is printed at the end.
#[derive(Serialize)]
struct Summary<'a> {
    version: &'static str,
    command: &'static str,
    metric: &'static str,
    settings: Vec<SettingSummary>,
    best: SettingSummary,
    trials: &'a [Trial],
}

pub(crate) fn run(command: &TuneCommand) -> anyhow::Result<Outcome> {
    use_threads(command.run.threads);
    crate::interrupt::listen();
    let device = Device::open(command.run.device.device)?;
    let config = config(command)?;
    let model_place = Place::new(&command.out.join("model"))?;
    let graph = command.graph.given_graph()?;
    for &setting in &command.grid.0 {
        // All of them, before the first is trained and before anything is written.
        let config = with(&config, setting, config.seed);
        device
            .check(&config, &graph, &command.engine.options()?)
            .with_context(|| format!("strength {setting}"))?;
    }
    fs::create_dir_all(&command.out)
        .with_context(|| format!("{}: cannot be made", command.out.display()))?;
    model_place.check_report(command.run.report.as_deref())?;
    let trial_place = Place::new(&command.out.join("trial"))?;
    if command.run.restart {
        trial_place.forget()?;
        model_place.forget()?;
    }
    let metric = config.validation.metric;
    let results = command.out.join(RESULTS);
    let mut tuning =
        if command.run.restart { Tuning::new(metric) } else { read(&results, metric)? };
    let sets = Sets::read(&command.set, &graph)?;
    let config = command.settings.warmed_up(config, &sets.training, &graph)?;
    if sets.validation.is_none() && config.validation.fraction == 0.0 {
        bail!("strengths are compared on validation data: give --valid or --validation-fraction");
    }
    let job = |setting: StrengthSetting, seed: u64, about: String| {
        let mut options = command.engine.options()?;
        options.seed = seed;
        let config = with(&config, setting, seed);
        Job { config, graph: &graph, options, sets: &sets, device: &device, about }
    };
    let inputs = Inputs {
        graph: &command.graph.path,
        data: &command.set.data.data,
        validation: &command.set.valid,
    };
    let seeds = config.seed..config.seed.saturating_add(command.seeds);
    let total = command.grid.0.len() as u64 * command.seeds;
    let mut chosen = Tuning::new(metric);
    for (at, &setting) in command.grid.0.iter().enumerate() {
        for seed in seeds.clone() {
            let number = at as u64 * command.seeds + (seed - config.seed) + 1;
            let job = job(setting, seed, format!("{setting}, seed {seed} ({number} of {total})"));
            let trainer = job.trainer().with_context(|| job.about.clone())?;
            let fingerprint = trainer.fingerprint()?;
            if let Some(done) = tuning.find(setting, seed, &fingerprint) {
                chosen.add(done.clone());
                continue;
            }
            go_on_only_with(&trial_place, &fingerprint)?;
            let trained = job.run(trainer, &trial_place.checkpoint(), &command.run)?;
            let one_sided = trained.evaluation.as_ref().and_then(pages::one_sided);
            if let Some(why) = one_sided.filter(|_| metric == Metric::AuPrc) {
                bail!("the metric au-prc cannot choose: {why}; or take --metric accuracy");
            }
            let trial = Trial {
                setting,
                seed,
                value: measured(&trained.model)?,
                fingerprint,
                epochs: trained.model.history.len(),
                seconds: trained.model.history.iter().map(|record| record.seconds).sum(),
            };
            if !command.run.quiet {
                eprintln!("{}: {} {:.4}", job.about, metric.name(), trial.value);
            }
            chosen.add(trial.clone());
            tuning.add(trial);
            write_text(&results, &(serde_json::to_string_pretty(&tuning)? + "\n"))?;
            trial_place.forget()?;
        }
    }
    trial_place.forget()?;
    let Some(best) = chosen.best() else { bail!("no run has a result") };
    finish(command, &config, &chosen, best)?;
    if !command.no_refit {
        let job = job(best.setting, config.seed, format!("final, {}", best.setting));
        refit(command, &job, &model_place, &inputs)?;
    }
    Ok(Outcome::Fine)
}

/// The settings of all runs but their strength and seed.
fn config(command: &TuneCommand) -> anyhow::Result<Config> {
    let fraction = command.set.validation_fraction;
    let mut config = command.settings.config(command.engine.seed, fraction)?;
    if command.settings.strength.is_some() {
        bail!("--grid has the strengths to try; leave out --strength");
    }
    if config.validation.metric == Metric::Loss {
        if command.settings.metric.is_some() {
            bail!(
                "the loss under one strength is not that under another, so it cannot choose; take \
                 --metric au-prc or accuracy"
            );
        }
        config.validation.metric = Metric::AuPrc;
    }
    Ok(config)
}

/// The settings of one run. A warm-up has the strength of the stage after it.
fn with(config: &Config, setting: StrengthSetting, seed: u64) -> Config {
    let mut config = config.clone();
    config.seed = seed;
    let last = config.stages.len() - 1;
    let known = config.stages[last].strength;
    for (at, stage) in config.stages.iter_mut().enumerate() {
        if at == last || (at + 1 == last && stage.name == "warm-up" && stage.strength == known) {
            stage.strength = setting;
        }
    }
    config
}

/// The metric of the weights that were kept.
pub(crate) fn measured(model: &TrainedModel) -> anyhow::Result<f64> {
    let kept = model.best_epoch.unwrap_or(model.history.len());
    let record = model.history.iter().find(|record| record.epoch == kept);
    let value = record.and_then(|record| record.validation_metric);
    value.context("no validation row was measured; hold out more rows")
}

/// The runs that are done.
fn read(path: &Path, metric: Metric) -> anyhow::Result<Tuning> {
    if !path.exists() {
        return Ok(Tuning::new(metric));
    }
    let name = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(name)?;
    let tuning: Tuning = serde_json::from_str(&text).with_context(|| {
        format!("{}: no results of `phex tune`; --restart replaces them", name())
    })?;
    if tuning.metric != metric {
        bail!(
            "{}: these are results by the metric {}; --restart replaces them, or choose another \
             --out",
            name(),
            tuning.metric.name()
        );
    }
    Ok(tuning)
}

/// Writes and tells the results.
fn finish(
    command: &TuneCommand,
    config: &Config,
    tuning: &Tuning,
    best: SettingSummary,
) -> anyhow::Result<()> {
    let metric = tuning.metric.name();
    let settings = tuning.summary();
    let curve = curve(metric, &settings, best.setting);
    write_text(&command.out.join("strength.svg"), &curve.svg())?;
    if !command.run.no_report {
        let path = command.run.report.clone().unwrap_or_else(|| command.out.join("report.html"));
        write_text(&path, &page(command, config, &settings, &curve)?.html())?;
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
        return output::json(&Summary { version, command: "tune", metric, settings, best, trials });
    }
    output::text(&text)
}

/// Trains the model of the best strength, unless it is there.
fn refit(
    command: &TuneCommand,
    job: &Job<'_>,
    place: &Place,
    inputs: &Inputs<'_>,
) -> anyhow::Result<()> {
    let trainer = job.trainer()?;
    let fingerprint = trainer.fingerprint()?;
    if place.finished().is_some_and(|finished| finished == fingerprint) {
        return Ok(());
    }
    go_on_only_with(place, &fingerprint)?;
    let trained = job.run(trainer, &place.checkpoint(), &command.run)?;
    let (report, quiet) = (!command.run.no_report, command.run.quiet);
    let wanted = Wanted { report, report_file: None, json: false, quiet };
    train::write(place, job, &trained, inputs, &wanted)
}

/// A checkpoint of another run, before flags or data changed, is forgotten.
fn go_on_only_with(place: &Place, fingerprint: &str) -> anyhow::Result<()> {
    let same = |checkpoint: Checkpoint| checkpoint.fingerprint() == fingerprint;
    if Checkpoint::read(&place.checkpoint()).is_ok_and(same) { Ok(()) } else { place.forget() }
}

/// The paper's u = w / 4 of a setting, infinite for hard; other settings have no place on the axis.
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
    command: &TuneCommand,
    config: &Config,
    settings: &[SettingSummary],
    curve: &StrengthCurve,
) -> anyhow::Result<Page> {
    let row = |summary: &SettingSummary| (summary.setting.to_string(), vec![summary.spread]);
    let table = MethodTable {
        metrics: vec![MetricColumn { name: curve.metric.clone(), higher_is_better: true }],
        methods: settings.iter().map(row).collect(),
    };
    let title = command.out.file_name().unwrap_or_default().to_string_lossy();
    let mut config = serde_json::to_value(config)?;
    if let Some(stage) = config["stages"].as_array_mut().and_then(|stages| stages.last_mut()) {
        stage["strength"] = "as above".into();
    }
    let settings = SettingsTable::from_json(&config);
    Ok(Page {
        title: format!("Tuning of {title}"),
        subtitle: format!("{} strengths, {} seeds each", table.methods.len(), command.seeds),
        sections: vec![
            Section::new("Strength").with(curve).with(&table),
            Section::new("Settings").with(&settings),
        ],
    })
}
