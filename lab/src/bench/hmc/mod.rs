//! Hierarchical multi-label classification: twelve sets with published results.
//!
//! The protocol is that of C-HMCNN (Giunchiglia and Lukasiewicz 2020): train on train and valid, test once, ten seeds.
//! AU(PRC) is the micro-averaged average precision over all classes but the roots. Then the same with a share of the known
//! labels removed from training. Every run uses one thread. Finished runs are kept in a journal, so that an interrupted
//! benchmark continues.

mod scores;
mod sets;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use phex::infer::{Evidence, Options};
use phex::learn::Loss;
use phex::metrics::{LabelTable as ScoredRows, Ranking, Spread};
use phex_train::{Examples, ObjectiveConfig, Silent, Trainer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;
use crate::harness::{
    ConsoleProgress, JobQueue, MarkdownTable, ResultFolder, ResultPage, data, stop,
};
pub(in crate::bench) use scores::finished_scores;
use sets::{HmcSet, LoadedSet, ROOTS, SETS};

#[derive(Debug, Args)]
pub(crate) struct HmcCommand {
    /// Where the runs and the summary go; runs in it are not repeated [default: target/lab/hmc]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Only sets whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Only methods whose name contains this: phex, independent, max
    #[arg(long, default_value = "")]
    method: String,
    /// Runs per method and set if no labels are removed
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Runs per method and set if labels are removed
    #[arg(long, default_value_t = 3)]
    missing_seeds: u64,
    /// The shares of known labels to remove
    #[arg(long, value_delimiter = ',', default_value = "0,0.5,0.9")]
    missing: Vec<f64>,
    /// How many runs at a time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Start no run after this many seconds
    #[arg(long)]
    seconds: Option<f64>,
}

const METHODS: [(&str, ObjectiveConfig); 3] = [
    ("phex", ObjectiveConfig::Relations { loss: Loss::Joint }),
    ("independent", ObjectiveConfig::Independent),
    ("max", ObjectiveConfig::MaxConstraint),
];

/// A run: everything that decides its answer.
#[derive(Debug, Clone, Copy, Serialize)]
struct HmcJob {
    #[serde(serialize_with = "name_of_set")]
    set: &'static HmcSet,
    #[serde(serialize_with = "name_of_method")]
    method: (&'static str, ObjectiveConfig),
    missing: f64,
    seed: u64,
}

fn name_of_set<S: serde::Serializer>(set: &HmcSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(set.name)
}

fn name_of_method<S: serde::Serializer>(
    method: &(&'static str, ObjectiveConfig),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.0)
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HmcAnswer {
    au_prc: f64,
    engine: String,
}

/// A finished run.
type FinishedRun = (HmcJob, HmcAnswer);

pub(crate) fn run(command: &HmcCommand) -> anyhow::Result<()> {
    let path = data::path("hmc");
    if !path.exists() {
        return Err(Error::NoData { path }.into());
    }
    let folder = ResultFolder::create(command.out.as_deref(), "hmc")?;
    let stop = stop::on_signal();
    if let Some(seconds) = command.seconds {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            stop.store(true, Ordering::Relaxed);
        });
    }
    let progress = ConsoleProgress::new(false);
    let queue = JobQueue::new(folder.journal(true)?, command.threads, &progress, &stop);
    let loaded: HashMap<&str, OnceLock<Arc<LoadedSet>>> =
        SETS.iter().map(|set| (set.name, OnceLock::new())).collect();
    let broken = |job: &HmcJob, error: anyhow::Error| {
        let message = format!("{} {}: {error:#}", job.set.name, job.method.0);
        Error::Broken { message }
    };
    let work = |job: &HmcJob, _: &AtomicBool| -> Result<HmcAnswer, Error> {
        let slot = &loaded[job.set.name];
        let data = match slot.get() {
            Some(data) => Arc::clone(data),
            None => {
                let data = Arc::new(job.set.load().map_err(|error| broken(job, error))?);
                Arc::clone(slot.get_or_init(|| data))
            }
        };
        train(job, &data).map_err(|error| broken(job, error))
    };
    let all = jobs(command);
    let is_wanted = |job: &&HmcJob| {
        job.set.name.contains(&command.only) && job.method.0.contains(&command.method)
    };
    let wanted: Vec<HmcJob> = all.iter().filter(is_wanted).copied().collect();
    match queue.run("runs", &wanted, work) {
        Err(Error::Interrupted) => eprintln!("stopped; the same command continues"),
        done => drop(done?),
    }
    progress.finish();
    let answers = queue.answers::<HmcJob, HmcAnswer>(&all)?;
    let runs = all.into_iter().zip(answers).filter_map(|(job, answer)| Some((job, answer?)));
    let runs: Vec<FinishedRun> = runs.collect();
    Ok(folder.write_bench(&page(command, &runs), &json!({ "runs": runs }))?)
}

fn jobs(command: &HmcCommand) -> Vec<HmcJob> {
    let mut jobs = Vec::new();
    for &missing in &command.missing {
        let seeds = if missing == 0.0 { command.seeds } else { command.missing_seeds };
        for seed in 0..seeds {
            for method in METHODS {
                jobs.extend(SETS.iter().map(|set| HmcJob { set, method, missing, seed }));
            }
        }
    }
    // First the runs with published results; then seed by seed, long runs first.
    jobs.sort_by_key(|job| {
        let later = job.missing > 0.0 || job.method.0 != "phex";
        (later, if later { job.seed } else { 0 }, !job.set.name.ends_with("GO"))
    });
    jobs
}

fn train(job: &HmcJob, data: &LoadedSet) -> anyhow::Result<HmcAnswer> {
    use anyhow::Context as _;
    let targets = data.targets(job.missing, job.seed)?;
    let examples = Examples::new(&data.training.features, &targets, &data.graph)?;
    let config = job.set.config(job.method.1, job.seed);
    let options = Options::default();
    let trainer = Trainer::new(config, &data.graph, &options, examples, None)?;
    let engine = trainer.engine().map_or("none", |engine| engine.plan().method.name());
    let model = trainer.run(&mut Silent)?;
    let predictor = model.predictor(&options)?;
    let test = &data.test;
    let targets = test.targets.as_ref().context("the test data have no labels")?;
    let (mut probabilities, mut evidence): (Vec<f32>, Vec<Evidence>) = (Vec::new(), Vec::new());
    for first in (0..test.rows()).step_by(256) {
        let rows = first..(first + 256).min(test.rows());
        probabilities.extend(predictor.probabilities(&test.features, rows.clone())?);
        rows.for_each(|row| evidence.extend(targets.evidence(row)));
    }
    let roots: Vec<_> = ROOTS.iter().filter_map(|name| data.graph.id(name)).collect();
    let rows = ScoredRows::new(data.graph.len(), &probabilities, &evidence)?.leave_out(&roots)?;
    let au_prc = Ranking::pooled(&rows).average_precision().context("no label is on")?;
    Ok(HmcAnswer { au_prc, engine: String::from(engine) })
}

fn page(command: &HmcCommand, runs: &[FinishedRun]) -> ResultPage {
    let about = "Mean ± standard deviation over seeds (their number), on test data.";
    let title = "AU(PRC) of twelve hierarchical multi-label sets";
    let mut page = ResultPage::of_bench("hmc", title, about);
    for &missing in &command.missing {
        let title = match missing {
            0.0 => String::from("All labels known:"),
            share => format!("{:.0} % of the known labels removed from training:", 100.0 * share),
        };
        let columns = "set | C-HMCNN, published | phex | engine | independent | max";
        let mut table = MarkdownTable::new(&title, columns);
        for set in &SETS {
            let of = |method: &str| {
                let chosen = |(job, _): &&FinishedRun| {
                    job.set.name == set.name && job.method.0 == method && job.missing == missing
                };
                runs.iter().filter(chosen).map(|(_, answer)| answer).collect::<Vec<_>>()
            };
            let cell = |method: &str| {
                let values: Vec<f64> = of(method).iter().map(|answer| answer.au_prc).collect();
                Spread::of(&values).map_or(String::from("–"), |spread| {
                    let Spread { mean, deviation, count } = spread;
                    let deviation = deviation.map(|deviation| format!(" ± {deviation:.4}"));
                    format!("{mean:.4}{} ({count})", deviation.unwrap_or_default())
                })
            };
            let published = format!("{:.3}", set.published);
            let engine = of("phex").first().map(|answer| answer.engine.clone());
            table.row([
                String::from(set.name),
                if missing == 0.0 { published } else { String::from("–") },
                cell("phex"),
                engine.unwrap_or_else(|| String::from("–")),
                cell("independent"),
                cell("max"),
            ]);
        }
        page.tables.push(table);
    }
    page
}
