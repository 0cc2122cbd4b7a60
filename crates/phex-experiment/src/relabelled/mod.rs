//! Relabelled data: most training rows know a parent of their class alone, all are judged by class.
//!
//! The paper's ImageNet experiment, with what decides its result as explicit factors: how weights start,
//! whether fine rows are learned first, hard relations before or after soft ones. A cell is a method at
//! one strength on one part of relabelled rows; each is tuned by the same learning rates on the
//! validation rows of the first seed, then run with every seed.

mod data;
mod report;
mod settings;
mod train;

use std::path::Path;

pub(crate) use data::{Data, Sample, cifar_graph};
use settings::Cell;
pub(crate) use settings::{
    Curriculum, DataName, Inference, Job, JobSchedule, RelabelledSettings, Relations,
};
use train::Answer;
pub(crate) use train::{Trained, accuracies, train};

use crate::{Error, Outcome, Runner};

/// A cell with its runs, by seed.
#[derive(Debug, Clone)]
struct Measured {
    cell: Cell,
    runs: Vec<Answer>,
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &RelabelledSettings,
    folder: &Path,
    quick: bool,
    runner: &Runner<'_>,
) -> Result<Outcome, Error> {
    let mut settings = settings.clone();
    if quick {
        // The miniature has learning rates of its own.
        settings.methods.iter_mut().for_each(|method| method.learning_rates = None);
    }
    settings.check()?;
    let (name, data) = Data::load(settings.data, folder, quick)?;
    settings.data = name;
    let cells = settings.cells();
    let trial = |cell: &Cell, learning_rate: f64, seed: u64| Job {
        learning_rate,
        seed,
        ..cell.job.clone()
    };
    let of_cell = |cell: &Cell| {
        let jobs = cell.rates.iter().map(|&rate| trial(cell, rate, 0));
        jobs.collect::<Vec<Job>>()
    };
    let trials: Vec<Job> = cells.iter().flat_map(of_cell).collect();
    let work = |job: &Job, stop: &_| train::run(job, &data, stop);
    let tried = runner.run("trials on validation rows", &trials, work)?;
    let chosen: Vec<f64> = cells
        .iter()
        .zip(tried.chunks(settings.learning_rates.len()))
        .map(|(cell, answers)| {
            let best = answers.iter().enumerate().reduce(|best, next| {
                if next.1.validation > best.1.validation { next } else { best }
            });
            best.map_or(f64::NAN, |(at, _)| cell.rates[at])
        })
        .collect();
    let jobs: Vec<Job> = cells
        .iter()
        .zip(&chosen)
        .flat_map(|(cell, &rate)| (0..cell.seeds).map(move |seed| trial(cell, rate, seed)))
        .collect();
    let mut answers = runner.run("runs", &jobs, work)?.into_iter();
    let measured: Vec<Measured> = cells
        .into_iter()
        .map(|cell| {
            let runs = answers.by_ref().take(cell.seeds as usize).collect();
            Measured { cell, runs }
        })
        .collect();
    Ok(report::outcome(&settings, &data, &measured))
}
