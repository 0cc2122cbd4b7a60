//! `phex train`: from data through relations to a model.

mod display;
mod settings;
mod tables;
mod write;

use std::time::Duration;

use anyhow::anyhow;
use phex_train::{Error, Recipe, RunFolder, RunInputs, RunRecord, TrainedRun, Trainer};

use crate::Outcome;
use crate::args::{RunArguments, TrainCommand};
use crate::device::Device;
use crate::infer::use_threads;
use crate::say::say;
use display::ProgressDisplay;

pub(crate) use settings::with_flag;
pub(crate) use tables::{TrainingTables, examples};
pub(crate) use write::{RunOutputs, comparison_table};

pub(crate) fn run(command: &TrainCommand) -> anyhow::Result<Outcome> {
    use_threads(command.run.threads);
    crate::interrupt::listen();
    let device = Device::open(command.run.device.device)?;
    let folder = RunFolder::open(&command.out)?;
    let outputs = RunOutputs {
        report: !command.run.no_report,
        report_file: command.run.report.as_deref(),
        json: command.run.json,
        quiet: command.run.quiet,
    };
    outputs.check(&folder)?;
    let files = command.set.files().reads(command.graph.files()).reads(&command.settings.config);
    files.claims(folder.files()).writes(outputs.report_elsewhere(&folder)).check()?;
    let choices = command.settings.choices(command.engine.seed, command.set.held_out())?;
    // Settings are checked before data are read, which may take long.
    Recipe::STANDARD.settle(&choices).map_err(with_flag)?;
    let _lock = folder.lock()?;
    let graph = command.graph.given_graph()?;
    let mut tables = TrainingTables::read(&command.set, &graph)?;
    tables.check_taxonomy(&command.set, &graph)?;
    let (training, validation) = tables.examples(&graph)?;
    let config = Recipe::STANDARD.config(&choices, &training, &graph).map_err(with_flag)?;
    let mut options = command.engine.options()?;
    options.seed = config.seed;
    let trainer = Trainer::new(config, &graph, &options, training, validation)?;
    let trainer = device.trainer(trainer)?;
    if command.run.restart {
        folder.forget_checkpoint()?;
    } else if is_finished(&folder, &trainer)? {
        if !command.run.quiet {
            say(format_args!("phex: {} is already finished", command.out.display()));
        }
        return Ok(Outcome::Fine);
    }
    let mut run = finish(trainer, &folder, &command.run, "")?;
    run.model.schema = Some(tables.training.schema.clone());
    let inputs = RunInputs {
        graph: &command.graph.path,
        data: &command.set.data.data,
        validation: &command.set.valid,
    };
    let notes = tables.notes.clone();
    let record = RunRecord::new(&run, "train", Some(inputs), device.name(), notes);
    outputs.write(&folder, &run, &record, &tables.labels)?;
    Ok(Outcome::Fine)
}

fn is_finished(folder: &RunFolder, trainer: &Trainer<'_>) -> anyhow::Result<bool> {
    folder.is_finished(&trainer.fingerprint()?).map_err(|error| match error {
        Error::OtherModel { .. } => {
            anyhow!("{error}; --restart replaces it, or choose another --out")
        }
        error => error.into(),
    })
}

/// Trains to the end, from the checkpoint if there is one.
pub(crate) fn finish(
    mut trainer: Trainer<'_>,
    folder: &RunFolder,
    arguments: &RunArguments,
    about: &str,
) -> anyhow::Result<TrainedRun> {
    let resumed = folder.resume(&mut trainer).map_err(|error| match error {
        Error::Checkpoint { source, .. } => anyhow::Error::new(*source)
            .context("the checkpoint cannot be read; --restart starts over without it"),
        Error::OtherRun { message } => anyhow!(
            "{}: this is the checkpoint of another run: {message}; give the same flags and data to \
             resume that run, --restart to start over, or another --out",
            folder.checkpoint_file().display()
        ),
        error => error.into(),
    })?;
    if let Some(epochs) = resumed.filter(|_| !arguments.quiet) {
        say(format_args!("phex: resuming after {epochs} finished epochs"));
    }
    crate::interrupt::check()?;
    let seconds = arguments.checkpoint_every.unwrap_or(Recipe::STANDARD.checkpoint_seconds);
    let every = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let mut display = ProgressDisplay::new(arguments, trainer.config().validation.metric, about);
    if arguments.no_baselines {
        trainer = trainer.without_baselines();
    }
    let run = trainer.run_measured(&mut folder.keep_checkpoints(every, &mut display));
    display.finish();
    Ok(run?)
}
