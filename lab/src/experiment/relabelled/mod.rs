//! Relabelled data: most training rows are labelled only with a parent of their class; all test rows are judged by
//! class.
//!
//! This is the ImageNet experiment of the paper, with the factors that decide its result: how weights start, whether rows
//! labelled with a leaf are learned first, and whether hard relations come before or after soft ones. A cell is a
//! method at one strength and one share of relabelled rows. Each is tuned by the same learning rates on the validation
//! rows of the first seed and then run with every seed.

mod data;
mod report;
mod settings;
mod train;

use std::path::Path;

pub(crate) use data::{MovedClasses, RelabelledData, RowSample, cifar_graph};
use settings::MethodCell;
pub(crate) use settings::{
    Curriculum, HierarchyData, Inference, JobSchedule, RelabelledSettings, Relations, TrainingJob,
};
use train::TrainingAnswer;
pub(crate) use train::{StageModel, accuracies, accuracy_of, train};

use crate::Error;
use crate::experiment::Findings;
use crate::harness::JobQueue;

/// A cell with its runs by seed.
#[derive(Debug, Clone)]
struct MeasuredCell {
    cell: MethodCell,
    runs: Vec<TrainingAnswer>,
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &RelabelledSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    let mut settings = settings.clone();
    if quick {
        // The miniature has learning rates of its own.
        settings.methods.iter_mut().for_each(|method| method.learning_rates = None);
    }
    settings.check()?;
    let (name, data) = RelabelledData::load(settings.data, folder, quick)?;
    settings.data = name;
    let cells = settings.cells();
    let trial = |cell: &MethodCell, learning_rate: f64, seed: u64| TrainingJob {
        learning_rate,
        seed,
        ..cell.job.clone()
    };
    let of_cell = |cell: &MethodCell| {
        let jobs = cell.rates.iter().map(|&rate| trial(cell, rate, 0));
        jobs.collect::<Vec<TrainingJob>>()
    };
    let trials: Vec<TrainingJob> = cells.iter().flat_map(of_cell).collect();
    let work = |job: &TrainingJob, stop: &_| train::run(job, &data, stop);
    let tried = queue.run("trials on validation rows", &trials, work)?;
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
    let jobs: Vec<TrainingJob> = cells
        .iter()
        .zip(&chosen)
        .flat_map(|(cell, &rate)| (0..cell.seeds).map(move |seed| trial(cell, rate, seed)))
        .collect();
    let mut answers = queue.run("runs", &jobs, work)?.into_iter();
    let measured: Vec<MeasuredCell> = cells
        .into_iter()
        .map(|cell| {
            let runs = answers.by_ref().take(cell.seeds as usize).collect();
            MeasuredCell { cell, runs }
        })
        .collect();
    Ok(report::outcome(&settings, &data, &measured))
}
