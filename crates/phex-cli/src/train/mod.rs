//! `phex train`: data through relations to a model.

mod job;
mod place;
mod settings;
mod watch;
mod write;

use anyhow::bail;

use crate::Outcome;
use crate::args::TrainCommand;
use crate::device::Device;
use crate::infer::use_threads;

pub(crate) use job::{Job, Sets, Trained};
pub(crate) use place::Place;
pub(crate) use write::{Inputs, Wanted, write};

pub(crate) fn run(command: &TrainCommand) -> anyhow::Result<Outcome> {
    use_threads(command.run.threads);
    crate::interrupt::listen();
    let device = Device::open(command.run.device.device)?;
    let place = Place::new(&command.out)?;
    place.check_report(command.run.report.as_deref())?;
    let config = command.settings.config(command.engine.seed, command.set.validation_fraction)?;
    let graph = command.graph.given_graph()?;
    let sets = Sets::read(&command.set, &graph)?;
    let config = command.settings.warmed_up(config, &sets.training, &graph)?;
    let mut options = command.engine.options()?;
    options.seed = config.seed;
    let about = String::new();
    let job = Job { config, graph: &graph, options, sets: &sets, device: &device, about };
    let trainer = job.trainer()?;
    if command.run.restart {
        place.forget()?;
    } else if place.has_model() && !place.checkpoint().exists() {
        if place.finished().as_deref() != Some(trainer.fingerprint()?.as_str()) {
            bail!(
                "{}: the folder has the model of another run; --restart replaces it, or choose \
                 another --out",
                command.out.display()
            );
        }
        if !command.run.quiet {
            eprintln!("phex: {} is finished already", command.out.display());
        }
        return Ok(Outcome::Fine);
    }
    let trained = job.run(trainer, &place.checkpoint(), &command.run)?;
    let inputs = Inputs {
        graph: &command.graph.path,
        data: &command.set.data.data,
        validation: &command.set.valid,
    };
    let wanted = Wanted {
        report: !command.run.no_report,
        report_file: command.run.report.as_deref(),
        json: command.run.json,
        quiet: command.run.quiet,
    };
    write(&place, &job, &trained, &inputs, &wanted)?;
    Ok(Outcome::Fine)
}
