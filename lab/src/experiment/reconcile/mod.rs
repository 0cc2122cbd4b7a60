//! Finished probabilities made consistent, on real data: who is better off, and by how much.
//!
//! Classifiers that do not know the relations are trained, 20 % of their training rows are held out to fit parameters,
//! and every way to make probabilities consistent is judged on the same test rows.

mod heads;
mod methods;
mod report;
mod scores;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use phex::Named as _;
use phex::reconcile::{IllegalTruths, ReconcileLoss};
use serde::{Deserialize, Serialize};

use self::heads::{HeadSet, SetRelations};
use self::methods::{Consistency, MethodBench};
use self::scores::{MethodScores, row_losses};
use crate::Error;
use crate::experiment::Findings;
use crate::harness::JobQueue;

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReconcileSettings {
    title: String,
    seeds: u64,
    /// Where trained classifiers are kept.
    heads: PathBuf,
    sets: Vec<HeadSet>,
}

/// A classifier.
#[derive(Debug, Clone, Serialize)]
struct ReconcileJob {
    #[serde(flatten)]
    set: HeadSet,
    seed: u64,
}

/// What all methods made of it, and what the fit saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ReconcileAnswer {
    methods: Vec<(Consistency, Option<MethodScores>)>,
    held_out: usize,
    tested: usize,
    /// Test rows whose truth breaks a relation.
    illegal_tests: usize,
    illegal: usize,
    parameters: String,
    /// The cross-validated loss of each form.
    #[serde(default)]
    forms: Vec<(String, Option<f64>)>,
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &ReconcileSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    let path = folder.join("hmc");
    if !quick && !path.exists() {
        return Err(Error::NoData { path });
    }
    let sets = settings.sets.iter();
    let jobs: Vec<ReconcileJob> = (0..settings.seeds)
        .flat_map(|seed| sets.clone().map(move |set| ReconcileJob { set: set.clone(), seed }))
        .collect();
    let work = |job: &ReconcileJob, _: &AtomicBool| measure(job, folder, &settings.heads);
    let answers = queue.run("classifiers", &jobs, work)?;
    let of_set = |set: &HeadSet| {
        let runs = jobs.iter().zip(&answers).filter(|(job, _)| job.set == *set);
        (set.clone(), runs.map(|(_, answer)| answer.clone()).collect::<Vec<_>>())
    };
    let found: Vec<(HeadSet, Vec<ReconcileAnswer>)> = settings.sets.iter().map(of_set).collect();
    let data = format!(
        "{} seeds. Classifiers are trained on 65 % of the training rows, another 15 % choose their strength and epoch, and 20 % are held out for temperatures and fits. Test rows are those of the data sets. Log loss and Brier score are sums over labels (log loss of `heads`: over the two softmax heads) and means over rows; AU(PRC), F1 at one half and ECE (15 bins of equal width) pool all pairs of a row and a label; `exact` is the share of rows with every label right; `worse` the share of rows whose log loss is above raw.",
        settings.seeds
    );
    let tables = report::tables(&found);
    Ok(Findings { title: settings.title.clone(), data, tables, ..Findings::default() })
}

fn measure(job: &ReconcileJob, data: &Path, kept: &Path) -> Result<ReconcileAnswer, Error> {
    let heads = job.set.load(job.seed, data, kept)?;
    let loss = match job.set.relations {
        SetRelations::Heads => ReconcileLoss::Categorical,
        _ => ReconcileLoss::Log,
    };
    let bench = MethodBench::new(&heads, job.set.relations, loss)?;
    let graph = &heads.graph;
    let truths = &heads.test.truths;
    let raw = row_losses(graph, loss, truths, &bench.raw());
    let mut methods = Vec::new();
    for way in Consistency::ALL {
        let scores = match bench.answer(way)? {
            Some((p, note)) => Some(MethodScores::of(graph, loss, truths, &p, &raw, note)?),
            None => None,
        };
        methods.push((way, scores));
    }
    let report = bench.fitted.report();
    let levels = bench
        .fitted
        .parameters()
        .levels
        .iter()
        .map(|level| format!("{:.2}/{:.2}/{:.2}", level.temperature, level.bias, level.weight));
    let form = bench.fitted.parameters().form;
    let forms = report.map(|report| &report.candidates).into_iter().flatten();
    Ok(ReconcileAnswer {
        methods,
        forms: forms.map(|one| (one.form.to_string(), one.loss)).collect(),
        held_out: heads.held_out.truths.len() / graph.len(),
        tested: truths.len() / graph.len(),
        illegal_tests: IllegalTruths::of(graph, truths)?.rows,
        illegal: report.map_or(0, |report| report.illegal.rows),
        parameters: format!("{}: {}", form.name(), levels.collect::<Vec<_>>().join(" ")),
    })
}
