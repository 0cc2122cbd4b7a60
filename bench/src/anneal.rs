//! Annealing on Biq Mac instances with proven optima, beside dwave-samplers.
//!
//! For each instance and method: how many of the seeds reach the optimum within the limit, the
//! median time they take, and how often a single restart ends in the optimum. One thread. The peers
//! run in the same call, from `PHEX_PEERS_PYTHON` (with `dwave-samplers`), by
//! `bench/peers/anneal_peers.py`, which says how their times are taken.

mod instances;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::anneal::{Method, Options, Problem, anneal};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use instances::Instance;

#[derive(Debug, Args)]
pub(crate) struct AnnealCommand {
    /// Where the results go
    #[arg(long, default_value = "bench/results/anneal.json")]
    out: PathBuf,
    /// The folder of instances
    #[arg(long, default_value = "../shared/data/ising")]
    data: PathBuf,
    /// Seeds an instance and method
    #[arg(long, default_value_t = 7)]
    seeds: u64,
    /// Seconds a seed may take
    #[arg(long, default_value_t = 2.0)]
    limit: f64,
    /// Only instances whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// A Python interpreter with dwave-samplers; without it only phex is measured
    #[arg(long, env = "PHEX_PEERS_PYTHON")]
    peers: Option<PathBuf>,
}

/// One method on one instance.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    family: String,
    instance: String,
    method: String,
    /// How many seeds reached the optimum within the limit.
    solved: usize,
    seeds: usize,
    /// The share of restarts that ended in the optimum.
    success: f64,
    /// Seconds to the optimum, the median over seeds; the limit where a seed did not reach it.
    median_seconds: f64,
    /// The lowest energy less the optimum: below zero, the optimum was none.
    gap: f64,
}

#[derive(Serialize)]
struct Results {
    command: &'static str,
    machine: Machine,
    limit_seconds: f64,
    summary: Vec<Summary>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Summary {
    family: String,
    method: String,
    instances: usize,
    solved: usize,
    mean_success: f64,
    median_seconds: f64,
}

const METHODS: [(&str, Method); 4] = [
    ("phex simulated", Method::Simulated),
    ("phex quantum", Method::Quantum),
    ("phex tabu", Method::Tabu),
    ("phex simulated + tabu", Method::SimulatedTabu),
];

pub(crate) fn run(command: &AnnealCommand) -> anyhow::Result<()> {
    let mut instances = instances::read(&command.data)?;
    instances.retain(|instance| instance.name.contains(&command.only));
    if instances.is_empty() {
        bail!("no instance in {}", command.data.display());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let mut rows = Vec::new();
    for instance in &instances {
        let problem = instance.problem()?;
        for (name, method) in METHODS {
            rows.push(pool.install(|| measure(command, instance, &problem, name, method)));
        }
    }
    match &command.peers {
        Some(python) => rows.extend(peers(command, python, &instances)?),
        None => eprintln!("no peers: set PHEX_PEERS_PYTHON"),
    }
    let summary = summarise(&rows);
    print(&summary, &rows);
    let machine = Machine::here();
    let command_line = "make bench ARGS=anneal";
    let limit_seconds = command.limit;
    let results = Results { command: command_line, machine, limit_seconds, summary, rows };
    std::fs::write(&command.out, serde_json::to_string_pretty(&results)? + "\n")
        .with_context(|| command.out.display().to_string())
}

fn measure(
    command: &AnnealCommand,
    instance: &Instance,
    problem: &Problem,
    name: &str,
    method: Method,
) -> Row {
    let mut times = Vec::new();
    let mut gap = f64::INFINITY;
    for seed in 0..command.seeds {
        let start = Instant::now();
        let mut round = 0;
        let time = loop {
            let target = Some(instance.optimum);
            let seed = seed + 1000 * round;
            let options = Options { method, seed, target, ..Options::default() };
            let outcome = anneal(problem, &options);
            let time = start.elapsed().as_secs_f64();
            let best = outcome.solutions.first().map_or(f64::INFINITY, |best| best.energy);
            gap = gap.min(best - instance.optimum);
            if best <= instance.optimum || time > command.limit {
                break if best <= instance.optimum { time } else { f64::INFINITY };
            }
            round += 1;
        };
        times.push(time);
    }
    let outcome = anneal(problem, &Options { method, seed: 77, ..Options::default() });
    let reached = outcome.solutions.first().is_some_and(|best| best.energy <= instance.optimum);
    let success = if reached { outcome.reached as f64 / outcome.restarts as f64 } else { 0.0 };
    Row {
        family: instance.family.clone(),
        instance: instance.name.clone(),
        method: name.to_owned(),
        solved: times.iter().filter(|time| time.is_finite()).count(),
        seeds: times.len(),
        success,
        median_seconds: median(times).min(command.limit),
        gap,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the peers on the same instances.
fn peers(
    command: &AnnealCommand,
    python: &PathBuf,
    instances: &[Instance],
) -> anyhow::Result<Vec<Row>> {
    #[derive(Serialize)]
    struct Given<'a> {
        seeds: u64,
        limit: f64,
        /// The sweeps of simulated annealing: the peer's default, and ours.
        sweeps: [usize; 2],
        instances: &'a [Instance],
    }
    let sweeps = [1000, Options::default().sweeps];
    let given = Given { seeds: command.seeds, limit: command.limit, sweeps, instances };
    let folder = std::env::temp_dir().join(format!("phex-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (problems, results) = (folder.join("problems.json"), folder.join("results.json"));
    std::fs::write(&problems, serde_json::to_vec(&given)?)?;
    let script = "bench/peers/anneal_peers.py";
    let mut child = Command::new(python);
    // One thread each, also in the libraries of the peers.
    child.env("OMP_NUM_THREADS", "1").arg(script).args([&problems, &results]);
    let status = child.status().with_context(|| python.display().to_string())?;
    if !status.success() {
        bail!("{script}: {status}");
    }
    let rows = serde_json::from_slice(&std::fs::read(&results)?)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(rows)
}

fn summarise(rows: &[Row]) -> Vec<Summary> {
    let mut order: Vec<&str> = Vec::new();
    for row in rows {
        if !order.contains(&row.method.as_str()) {
            order.push(&row.method);
        }
    }
    let mut groups: BTreeMap<(&str, usize), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let at = order.iter().position(|method| *method == row.method).unwrap_or(0);
        groups.entry((&row.family, at)).or_default().push(row);
    }
    let summary = |((family, _), rows): ((&str, usize), Vec<&Row>)| Summary {
        family: family.to_owned(),
        method: rows[0].method.clone(),
        instances: rows.len(),
        solved: rows.iter().filter(|row| row.solved == row.seeds).count(),
        mean_success: rows.iter().map(|row| row.success).sum::<f64>() / rows.len() as f64,
        median_seconds: median(rows.iter().map(|row| row.median_seconds).collect()),
    };
    groups.into_iter().map(summary).collect()
}

/// The summary, with times as multiples of the fastest peer's of the family.
fn print(summary: &[Summary], rows: &[Row]) {
    println!(
        "| family | method | solved by all seeds | success a restart | median ms | × best peer |"
    );
    println!("|---|---|---:|---:|---:|---:|");
    for row in summary {
        let peers = summary
            .iter()
            .filter(|other| other.family == row.family && !other.method.starts_with("phex"));
        let best = peers.map(|peer| peer.median_seconds).fold(f64::INFINITY, f64::min);
        println!(
            "| {} | {} | {}/{} | {:.2} | {:.3} | {:.2} |",
            row.family,
            row.method,
            row.solved,
            row.instances,
            row.mean_success,
            1e3 * row.median_seconds,
            row.median_seconds / best
        );
    }
    for row in rows.iter().filter(|row| row.solved < row.seeds || row.gap < 0.0) {
        eprintln!(
            "{}: {} reached the optimum for {} of {} seeds (gap {})",
            row.instance, row.method, row.solved, row.seeds, row.gap
        );
    }
}
