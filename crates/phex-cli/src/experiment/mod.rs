//! `phex experiment`: an experiment from its description to tables and figures.

mod watch;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use phex_experiment::{Experiment, Journal, Outcome as Found, Runner};

use crate::args::ExperimentCommand;
use crate::report::{figure_svg, write_whole};
use crate::{Outcome, output};
use watch::Bar;

pub(crate) fn run(command: &ExperimentCommand) -> anyhow::Result<Outcome> {
    let experiment = Experiment::load(&command.name, command.quick)?;
    let folder = match &command.out {
        Some(folder) => folder.clone(),
        None => PathBuf::from(format!(
            "phex-experiment-{}{}",
            experiment.name(),
            if command.quick { "-quick" } else { "" }
        )),
    };
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let journal = Journal::open(&folder.join("runs.jsonl"), command.resume)?;
    crate::interrupt::listen();
    let stop = crate::interrupt::flag();
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = command.threads.map_or_else(cores, usize::from);
    let bar = Bar::new(command.quiet);
    let runner = Runner::new(journal, threads, &bar, &stop);
    let found = experiment.run(&command.data, &runner)?;
    bar.finish();
    write(&found, &folder)?;
    if command.json {
        output::json(&found)?;
    } else {
        output::text(&found.markdown())?;
    }
    if !command.quiet {
        eprintln!("phex: tables and figures are in {}", folder.display());
    }
    Ok(Outcome::Fine)
}

fn write(found: &Found, folder: &Path) -> anyhow::Result<()> {
    for figure in &found.figures {
        write_whole(&folder.join(format!("{}.svg", figure.file)), &figure_svg(figure))?;
    }
    write_whole(&folder.join("result.md"), &found.markdown())?;
    let mut text = serde_json::to_string_pretty(found)?;
    text.push('\n');
    write_whole(&folder.join("result.json"), &text)
}
