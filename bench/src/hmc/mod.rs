//! Hierarchical multi-label classification: twelve sets with published results.
//!
//! The protocol of C-HMCNN (Giunchiglia and Lukasiewicz 2020): train on train and valid, test once, ten
//! seeds; AU(PRC) is the micro-averaged average precision over all classes without the roots. Then the
//! same with a part of the observed labels removed from training. Each run is one thread's; what is done
//! is kept in a file of JSON lines, so that an interrupted benchmark goes on.

mod sets;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use phex::infer::{Evidence, Options};
use phex::learn::Loss;
use phex::metrics::{Ranking, Table as Scores};
use phex_train::{Examples, ObjectiveConfig, Silent, Trainer};
use serde::{Deserialize, Serialize};

use crate::table::Table;
use sets::{Loaded, ROOTS, SETS, Set};

#[derive(Debug, Args)]
pub(crate) struct HmcCommand {
    /// Where the results go, a line a run; a table beside it, with the ending md
    #[arg(long, default_value = "bench/results/hmc.jsonl")]
    out: PathBuf,
    /// Only sets whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Only methods whose name contains this: phex, independent, max
    #[arg(long, default_value = "")]
    method: String,
    /// Runs of each method on each set, when nothing is removed
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// Runs of each method on each set, when labels are removed
    #[arg(long, default_value_t = 3)]
    missing_seeds: u64,
    /// The parts of the observed labels that are removed
    #[arg(long, value_delimiter = ',', default_value = "0,0.5,0.9")]
    missing: Vec<f64>,
    /// Runs side by side
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Stop starting runs after this many seconds
    #[arg(long, default_value_t = f64::INFINITY)]
    seconds: f64,
}

/// One training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Run {
    set: String,
    method: String,
    missing: f64,
    seed: u64,
    au_prc: f64,
    seconds: f64,
    engine: String,
}

const METHODS: [(&str, ObjectiveConfig); 3] = [
    ("phex", ObjectiveConfig::Relations { loss: Loss::Joint }),
    ("independent", ObjectiveConfig::Independent),
    ("max", ObjectiveConfig::MaxConstraint),
];

struct Job {
    set: &'static Set,
    method: (&'static str, ObjectiveConfig),
    missing: f64,
    seed: u64,
}

pub(crate) fn run(command: &HmcCommand) -> anyhow::Result<()> {
    if !crate::data::path("hmc").exists() {
        println!("skipped: there is no folder hmc in the data (PHEX_DATA)");
        return Ok(());
    }
    let done = read(&command.out)?;
    let is_done = |job: &Job| {
        done.iter().any(|run| {
            run.set == job.set.name
                && run.method == job.method.0
                && run.missing == job.missing
                && run.seed == job.seed
        })
    };
    let jobs: Vec<Job> = jobs(command).into_iter().filter(|job| !is_done(job)).collect();
    println!("{} runs are done, {} to go", done.len(), jobs.len());
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&command.out)?;
    let results = Mutex::new((done, &mut file));
    let loaded: HashMap<&str, OnceLock<Arc<Loaded>>> =
        SETS.iter().map(|set| (set.name, OnceLock::new())).collect();
    let start = Instant::now();
    // A queue, so that what comes first is complete first.
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<()> {
        // A pool of one thread: runs are side by side, not their parts.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if start.elapsed().as_secs_f64() > command.seconds {
                break;
            }
            let slot = loaded.get(job.set.name).context("an unknown set")?;
            let data = match slot.get() {
                Some(data) => Arc::clone(data),
                None => {
                    let data = Arc::new(job.set.load().with_context(|| job.set.name)?);
                    Arc::clone(slot.get_or_init(|| data))
                }
            };
            let run = pool.install(|| train(job, &data));
            let run = run.with_context(|| format!("{} {}", job.set.name, job.method.0))?;
            println!(
                "{} {} {} seed {}: {:.4} in {:.0} s",
                run.set, run.method, run.missing, run.seed, run.au_prc, run.seconds
            );
            if let Ok(mut results) = results.lock() {
                writeln!(results.1, "{}", serde_json::to_string(&run)?)?;
                results.0.push(run);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let workers: Vec<_> = (0..command.threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a run broke"))??;
        }
        Ok(())
    })?;
    let (runs, _) = results.into_inner().map_err(|_| anyhow::anyhow!("a run broke"))?;
    let text = report(command, &runs);
    println!("{text}");
    std::fs::write(command.out.with_extension("md"), text)?;
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<Run>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| path.display().to_string()))
        .collect()
}

fn jobs(command: &HmcCommand) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &missing in &command.missing {
        let seeds = if missing == 0.0 { command.seeds } else { command.missing_seeds };
        for seed in 0..seeds {
            for method in METHODS.into_iter().filter(|(name, _)| name.contains(&command.method)) {
                for set in SETS.iter().filter(|set| set.name.contains(&command.only)) {
                    jobs.push(Job { set, method, missing, seed });
                }
            }
        }
    }
    // What was published for first; then seed by seed, long runs first.
    jobs.sort_by_key(|job| {
        let later = job.missing > 0.0 || job.method.0 != "phex";
        (later, if later { job.seed } else { 0 }, !job.set.name.ends_with("GO"))
    });
    jobs
}

fn train(job: &Job, data: &Loaded) -> anyhow::Result<Run> {
    let start = Instant::now();
    let targets = data.targets(job.missing, job.seed)?;
    let examples = Examples::new(&data.training.features, &targets, &data.graph)?;
    let config = job.set.config(job.method.1, job.seed);
    let options = Options::default();
    let trainer = Trainer::new(config, &data.graph, &options, examples, None)?;
    let engine = trainer.engine().map_or("none", |engine| engine.plan().method.name());
    let model = trainer.run(&mut Silent)?;
    let predictor = model.predictor(&options)?;
    let test = &data.test;
    let truths = test.targets.as_ref().context("the test data have no labels")?;
    let (mut probabilities, mut known): (Vec<f32>, Vec<Evidence>) = (Vec::new(), Vec::new());
    for first in (0..test.rows()).step_by(256) {
        let rows = first..(first + 256).min(test.rows());
        probabilities.extend(predictor.probabilities(&test.features, rows.clone())?);
        rows.for_each(|row| known.extend(truths.evidence(row)));
    }
    let roots: Vec<_> = ROOTS.iter().filter_map(|name| data.graph.id(name)).collect();
    let table = Scores::new(data.graph.len(), &probabilities, &known)?.leave_out(&roots)?;
    let au_prc = Ranking::pooled(&table).average_precision().context("no label is on")?;
    Ok(Run {
        set: String::from(job.set.name),
        method: String::from(job.method.0),
        missing: job.missing,
        seed: job.seed,
        au_prc,
        seconds: start.elapsed().as_secs_f64(),
        engine: String::from(engine),
    })
}

fn report(command: &HmcCommand, runs: &[Run]) -> String {
    let mut text = String::from(
        "# AU(PRC) of twelve hierarchical multi-label sets\n\nMade by `make bench ARGS=hmc`: mean ± deviation over seeds (their number), on test data.\n",
    );
    for &missing in &command.missing {
        text.push_str(&match missing {
            0.0 => String::from("\nAll labels observed:\n\n"),
            part => {
                format!("\n{:.0} % of the observed labels removed from training:\n\n", 100.0 * part)
            }
        });
        let mut table =
            Table::new(&["set", "C-HMCNN, published", "phex", "engine", "independent", "max"]);
        let mut reached = 0;
        for set in &SETS {
            let of = |method: &str| {
                let chosen = |run: &&Run| {
                    run.set == set.name && run.method == method && run.missing == missing
                };
                runs.iter().filter(chosen).collect::<Vec<_>>()
            };
            let values =
                |method: &str| of(method).iter().map(|run| run.au_prc).collect::<Vec<f64>>();
            let ours = mean_and_deviation(&values("phex"));
            reached += usize::from(ours.is_some_and(|(mean, _)| mean >= set.published));
            let published =
                if missing == 0.0 { format!("{:.3}", set.published) } else { String::from("–") };
            let engine = of("phex").first().map_or(String::from("–"), |run| run.engine.clone());
            let cell = |method: &str| {
                let values = values(method);
                mean_and_deviation(&values).map_or(String::from("–"), |(mean, deviation)| {
                    match values.len() {
                        1 => format!("{mean:.4} (1)"),
                        count => format!("{mean:.4} ± {deviation:.4} ({count})"),
                    }
                })
            };
            table.row(&[
                String::from(set.name),
                published,
                cell("phex"),
                engine,
                cell("independent"),
                cell("max"),
            ]);
        }
        text.push_str(table.text());
        if missing == 0.0 {
            text.push_str(&format!(
                "\nphex reaches the published value on {reached} of {} sets.\n",
                SETS.len()
            ));
        }
    }
    text
}

fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (!values.is_empty()).then(|| (mean, (square / (count - 1.0).max(1.0)).sqrt()))
}
