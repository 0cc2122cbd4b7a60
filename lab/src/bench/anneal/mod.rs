//! Annealing on Biq Mac instances with proven optima, beside dwave-samplers.
//!
//! For each instance and method: how many seeds reach the optimum within the limit, the median time that they take, and
//! how often a single restart ends in the optimum. All run on one thread. The peers run in the same call, by the Python
//! interpreter `PHEX_PEERS_PYTHON` (with `dwave-samplers`) and `lab/peers/anneal_peers.py`, which says how their times are
//! taken.

mod instances;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::anneal::{AnnealMethod, AnnealOptions, Problem, anneal};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::harness::statistics::median;
use crate::harness::{MarkdownTable, ResultFolder, ResultPage, data};
use instances::AnnealInstance;

#[derive(Debug, Args)]
pub(crate) struct AnnealCommand {
    /// Where the results go [default: target/lab/anneal]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The folder of instances [default: ising in the folder of the data sets]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seeds per instance and method
    #[arg(long, default_value_t = 7)]
    seeds: u64,
    /// Seconds that a seed may take
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
struct AnnealRow {
    family: String,
    instance: String,
    method: String,
    /// How many seeds reached the optimum within the limit.
    solved: usize,
    seeds: usize,
    /// The share of restarts that ended in the optimum.
    success: f64,
    /// Seconds to the optimum, the median over seeds; the limit for a seed that does not reach it.
    median_seconds: f64,
    /// The lowest energy minus the optimum; it cannot be below zero if the optimum is one.
    gap: f64,
}

/// One method on the instances of a family.
#[derive(Debug, Serialize)]
struct FamilySummary {
    family: String,
    method: String,
    instances: usize,
    solved: usize,
    mean_success: f64,
    median_seconds: f64,
}

const METHODS: [(&str, AnnealMethod); 4] = [
    ("phex simulated", AnnealMethod::Simulated),
    ("phex quantum", AnnealMethod::Quantum),
    ("phex tabu", AnnealMethod::Tabu),
    ("phex simulated + tabu", AnnealMethod::SimulatedTabu),
];

pub(crate) fn run(command: &AnnealCommand) -> anyhow::Result<()> {
    let folder = ResultFolder::create(command.out.as_deref(), "anneal")?;
    let data = command.data.clone().unwrap_or_else(|| data::path("ising"));
    let mut instances = instances::read(&data)?;
    instances.retain(|instance| instance.name.contains(&command.only));
    if instances.is_empty() {
        bail!("no instance in {}", data.display());
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
        Some(python) => rows.extend(peers(command, folder.path(), python, &instances)?),
        None => eprintln!("no peers: set PHEX_PEERS_PYTHON"),
    }
    let summary = summarise(&rows);
    let about = format!(
        "Biq Mac instances with proven optima; {} seeds of at most {} s, one thread.",
        command.seeds, command.limit
    );
    let mut page = ResultPage::of_bench("anneal", "Annealing beside dwave-samplers", &about);
    page.tables.push(table(&summary));
    for row in rows.iter().filter(|row| row.solved < row.seeds || row.gap < 0.0) {
        eprintln!(
            "{}: {} reached the optimum for {} of {} seeds (gap {})",
            row.instance, row.method, row.solved, row.seeds, row.gap
        );
    }
    let results = json!({ "limit_seconds": command.limit, "summary": summary, "rows": rows });
    Ok(folder.write_bench(&page, &results)?)
}

fn measure(
    command: &AnnealCommand,
    instance: &AnnealInstance,
    problem: &Problem,
    name: &str,
    method: AnnealMethod,
) -> AnnealRow {
    let mut times = Vec::new();
    let mut gap = f64::INFINITY;
    for seed in 0..command.seeds {
        let start = Instant::now();
        let mut round = 0;
        let time = loop {
            let target = Some(instance.optimum);
            let seed = seed + 1000 * round;
            let options = AnnealOptions { method, seed, target, ..AnnealOptions::default() };
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
    let outcome = anneal(problem, &AnnealOptions { method, seed: 77, ..AnnealOptions::default() });
    let reached = outcome.solutions.first().is_some_and(|best| best.energy <= instance.optimum);
    let success = if reached { outcome.reached as f64 / outcome.restarts as f64 } else { 0.0 };
    AnnealRow {
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

/// Runs the peers on the same instances.
fn peers(
    command: &AnnealCommand,
    folder: &Path,
    python: &Path,
    instances: &[AnnealInstance],
) -> anyhow::Result<Vec<AnnealRow>> {
    #[derive(Serialize)]
    struct PeerProblems<'a> {
        seeds: u64,
        limit: f64,
        /// The sweeps of simulated annealing: the peer's default, and ours.
        sweeps: [usize; 2],
        instances: &'a [AnnealInstance],
    }
    let sweeps = [1000, AnnealOptions::default().sweeps];
    let given = PeerProblems { seeds: command.seeds, limit: command.limit, sweeps, instances };
    let (problems, results) = (folder.join("peer-problems.json"), folder.join("peer-results.json"));
    std::fs::write(&problems, serde_json::to_vec(&given)?)?;
    let script = "lab/peers/anneal_peers.py";
    let mut child = Command::new(python);
    // One thread, also in the libraries of the peers.
    child.env("OMP_NUM_THREADS", "1").arg(script).args([&problems, &results]);
    let status = child.status().with_context(|| python.display().to_string())?;
    if !status.success() {
        bail!("{script}: {status}");
    }
    Ok(serde_json::from_slice(&std::fs::read(&results)?)?)
}

fn summarise(rows: &[AnnealRow]) -> Vec<FamilySummary> {
    let mut order: Vec<&str> = Vec::new();
    for row in rows {
        if !order.contains(&row.method.as_str()) {
            order.push(&row.method);
        }
    }
    let mut groups: BTreeMap<(&str, usize), Vec<&AnnealRow>> = BTreeMap::new();
    for row in rows {
        let at = order.iter().position(|method| *method == row.method).unwrap_or(0);
        groups.entry((&row.family, at)).or_default().push(row);
    }
    let summary = |((family, _), rows): ((&str, usize), Vec<&AnnealRow>)| FamilySummary {
        family: family.to_owned(),
        method: rows[0].method.clone(),
        instances: rows.len(),
        solved: rows.iter().filter(|row| row.solved == row.seeds).count(),
        mean_success: rows.iter().map(|row| row.success).sum::<f64>() / rows.len() as f64,
        median_seconds: median(rows.iter().map(|row| row.median_seconds).collect()),
    };
    groups.into_iter().map(summary).collect()
}

/// The summary, with times as multiples of the fastest peer's in the family.
fn table(summary: &[FamilySummary]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "",
        "family | method | solved by all seeds | success per restart | median ms | × best peer",
    );
    for row in summary {
        let peers = summary
            .iter()
            .filter(|other| other.family == row.family && !other.method.starts_with("phex"));
        let best = peers.map(|peer| peer.median_seconds).fold(f64::INFINITY, f64::min);
        table.row([
            row.family.clone(),
            row.method.clone(),
            format!("{}/{}", row.solved, row.instances),
            format!("{:.2}", row.mean_success),
            format!("{:.3}", 1e3 * row.median_seconds),
            format!("{:.2}", row.median_seconds / best),
        ]);
    }
    table
}
