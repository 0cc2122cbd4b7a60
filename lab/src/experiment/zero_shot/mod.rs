//! Zero-shot learning: recognising classes without a single training row by their attributes.
//!
//! The labels are classes (a one-of group) and attributes. Predicates are their relations: hard (HEX), of one strength, or
//! of strengths that follow graded predicates ([`relations`]). A linear head is trained on rows of the seen classes
//! through the relations ([`through`]), and then has to tell which unseen class a row belongs to. The baselines are DAP
//! ([`attributes`]) and a bilinear map ([`bilinear`]).
//!
//! Each fold of classes is tested once. The learning rate and the length of every entry are tuned by the same trials on
//! validation classes, which are folds among the training classes. Then the entry is trained on all of these and tested.
//! Entries that are chosen among others ("tuned", the recipe) are the best ones on validation classes. An experiment costs
//! folds × entries × (validations × learning rates + 1) runs.

mod attributes;
mod bilinear;
mod data;
mod entry;
mod folds;
mod generated;
mod job;
mod linear;
mod logits;
mod noise;
mod read;
mod read_apy;
mod relations;
mod report;
mod settings;
mod solve;
mod through;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use phex::graph::RelationGraph;

use data::ZeroShotData;
use entry::MethodEntry;
use folds::Fold;
use job::{ZeroShotAnswer, ZeroShotJob, ZeroShotMethod};
pub(crate) use logits::{AttributeFold, LogitSettings};
pub(crate) use settings::AttributeData;
pub(crate) use settings::ZeroShotSettings;

use crate::Error;
use crate::experiment::Findings;
use crate::harness::JobQueue;

/// The results of one entry in one fold.
#[derive(Debug, Clone)]
struct Tested {
    /// The best setting on validation classes.
    chosen: ZeroShotMethod,
    /// Its mean accuracy per validation class.
    validation: f64,
    /// Its mean accuracy per test class.
    test: f64,
    /// Learned factors on the costs.
    factors: Vec<f64>,
}

/// The graph of all classes and attributes of a data set, all relations hard.
pub(crate) fn hard_graph(name: AttributeData, folder: &Path) -> Result<RelationGraph, Error> {
    let predicates = read::read(name, folder, 0)?.predicates;
    let classes: Vec<usize> = (0..predicates.classes.len()).collect();
    let costs = relations::costs(&predicates, relations::PredicateStrengths::Hard);
    Ok(relations::graph(&predicates, &costs, &classes)?)
}

/// Runs a zero-shot experiment on the data sets of a folder. A miniature uses generated data if the data are missing.
///
/// # Errors
/// [`Error::Specification`], [`Error::NoData`], errors in the data, and errors of the runs.
pub(super) fn run(
    settings: &ZeroShotSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    settings.check()?;
    let mut settings = settings.clone();
    let mut data = match read::read(settings.data, folder, settings.seed) {
        Err(Error::NoData { .. }) if quick => {
            settings.data = AttributeData::Generated;
            settings.detector_area = None;
            generated::generate(settings.seed)
        }
        read => read?,
    };
    if settings.data != AttributeData::Generated {
        data.limit(settings.rows_a_class);
    }
    data.noise = settings.detector_area.map(noise::separation);
    let entries = MethodEntry::all(&settings);
    let folds = Fold::all(&data, settings.folds, settings.seed);
    let mut results = vec![Vec::new(); entries.len()];
    for fold in &folds {
        for (all, found) in
            results.iter_mut().zip(run_fold(&settings, &data, fold, &entries, queue)?)
        {
            all.push(found);
        }
    }
    Ok(report::outcome(&settings, &data, &entries, &results))
}

/// Tunes every entry on validation classes, then tests it.
fn run_fold(
    settings: &ZeroShotSettings,
    data: &ZeroShotData,
    fold: &Fold,
    entries: &[MethodEntry],
    queue: &JobQueue<'_>,
) -> Result<Vec<Tested>, Error> {
    let work = |job: &ZeroShotJob, stop: &AtomicBool| job.run(data, fold, stop);
    let trials: Vec<Vec<ZeroShotMethod>> =
        entries.iter().map(|entry| entry.trials(settings)).collect();
    let mut jobs = Vec::new();
    for method in trials.iter().flatten() {
        for number in 0..settings.validations {
            jobs.push(ZeroShotJob::new(settings, fold, Some(number), method.clone()));
        }
    }
    let part = format!("fold {} of {}", fold.index + 1, settings.folds);
    let found = queue.run(format!("{part}: validation").as_str(), &jobs, work)?;
    let mut found = found.chunks(settings.validations);
    let mut chosen = Vec::new();
    for methods in &trials {
        let mut best: Option<(ZeroShotMethod, f64)> = None;
        for (method, found) in methods.iter().zip(&mut found) {
            for setting in 0..found[0].accuracies.len() {
                let sum: f64 = found.iter().map(|found| found.accuracies[setting]).sum();
                let mean = sum / found.len() as f64;
                if best.as_ref().is_none_or(|(_, most)| mean > *most) {
                    best = Some((method.only(setting), mean));
                }
            }
        }
        let nothing = || Error::Broken { message: String::from("an entry has no trial") };
        chosen.push(best.ok_or_else(nothing)?);
    }
    let jobs: Vec<ZeroShotJob> = chosen
        .iter()
        .map(|(method, _)| ZeroShotJob::new(settings, fold, None, method.clone()))
        .collect();
    let tests: Vec<ZeroShotAnswer> = queue.run(format!("{part}: test").as_str(), &jobs, work)?;
    let results = chosen.into_iter().zip(tests).map(|((chosen, validation), found)| Tested {
        chosen,
        validation,
        test: found.accuracies.first().copied().unwrap_or(0.0),
        factors: found.factors,
    });
    Ok(results.collect())
}

#[cfg(test)]
mod tests;
