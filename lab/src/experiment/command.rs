//! `lab experiment`: from the description of an experiment to tables and figures.

use std::path::PathBuf;

use clap::Args;

use super::Experiment;
use crate::harness::data::DEFAULT_FOLDER;
use crate::harness::{ConsoleProgress, JobQueue, ResultFolder, stop};

/// What was typed after `lab experiment`.
#[derive(Debug, Args)]
pub(crate) struct ExperimentCommand {
    /// A built-in experiment (imagenet, cifar100, recipe-imagenet, recipe-cifar100, wrong-edges, awa, cub, apy, speed, inference, reconcile), or a TOML file
    #[arg(value_name = "NAME")]
    name: String,
    /// The folder of the data sets
    #[arg(long, value_name = "FOLDER", env = "PHEX_DATA", default_value = DEFAULT_FOLDER)]
    data: PathBuf,
    /// Where runs, tables and figures go [default: target/lab/NAME]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Continue with the runs in that folder
    #[arg(long)]
    resume: bool,
    /// Run a miniature of a minute, on generated data if the real data are missing
    #[arg(long)]
    quick: bool,
    /// How many runs at a time [default: one per core]
    #[arg(long, value_name = "N", env = "PHEX_THREADS", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(command: &ExperimentCommand) -> anyhow::Result<()> {
    let experiment = Experiment::load(&command.name, command.quick)?;
    let name = format!("{}{}", experiment.name(), if command.quick { "-quick" } else { "" });
    let folder = ResultFolder::create(command.out.as_deref(), &name)?;
    let journal = folder.journal(command.resume)?;
    let stop = stop::on_signal();
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = command.threads.map_or_else(cores, usize::from);
    let progress = ConsoleProgress::new(command.quiet);
    let queue = JobQueue::new(journal, threads, &progress, &stop);
    let findings = experiment.run(&command.data, &queue)?;
    progress.finish();
    let page = findings.page();
    folder.write(&page, &findings)?;
    if command.json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        print!("{}", page.markdown());
    }
    if !command.quiet {
        eprintln!("tables and figures are in {}", folder.path().display());
    }
    Ok(())
}
