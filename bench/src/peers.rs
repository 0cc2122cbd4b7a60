//! Our kernels beside numpy, torch, PGMax and dwave-samplers: the same problems, one thread.
//!
//! Loopy belief propagation runs 20 iterations without damping or tolerance, over pairs, in singles. Our
//! time is that of the whole engine: beliefs and the Bethe estimate of log Z are in it, peers compute
//! marginals only. Peers run by `bench/peers/run_all.py`, one process a cell; their time is the best CPU
//! time, which other processes disturb less than the clock; ours the best by the clock, or the mean CPU
//! time where that is less: then others had the core.

mod problem;
mod report;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::infer::{Block, Engine, GroupForm, Method, Options, Want};
use serde::Serialize;

use crate::engines::{self, Setup};
use crate::machine::time_for;
use problem::Problem;

#[derive(Debug, Args)]
pub(crate) struct PeersCommand {
    /// Where the results go
    #[arg(long, default_value = "bench/results/peers.json")]
    out: PathBuf,
    /// Where problem files and the peers' reports go
    #[arg(long, default_value = "target/peers")]
    work: PathBuf,
    /// The virtual environment of numpy, torch and dwave-samplers
    #[arg(long, default_value = ".venv-peers")]
    peers_venv: PathBuf,
    /// The virtual environment of PGMax
    #[arg(long, default_value = ".venv-pgmax")]
    pgmax_venv: PathBuf,
    /// Seconds that a peer may repeat a batch
    #[arg(long, default_value_t = 20.0)]
    budget: f64,
    /// Only problems whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Our kernels only, beside the peers' reports of an earlier run where there are any
    #[arg(long)]
    ours: bool,
}

/// Our batches; peers' are in the problem files.
const BATCHES: [usize; 5] = [1, 4, 64, 256, 4096];
/// Ratios are to our time at this batch.
const REFERENCE: usize = 256;
const ITERATIONS: f64 = 20.0;
/// How long each of our timings is repeated.
const SECONDS: f64 = 1.0;

/// One implementation on one problem at one batch.
#[derive(Debug, Serialize)]
struct Row {
    problem: &'static str,
    implementation: String,
    batch: usize,
    /// Of peers the best CPU time; of ours the best time or the mean CPU time, what is less.
    milliseconds: f64,
    /// The median by the clock.
    median: f64,
    /// For ours; a message over a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    nanoseconds_message: Option<f64>,
    /// The largest difference from our marginals.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<f64>,
    /// CPU time over wall time: below 0.9 another process had the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    undisturbed: Option<f64>,
    /// To ours (flooding) at the reference batch, and at the same batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_same_batch: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<f64>,
}

/// A spin update of a sampler.
#[derive(Debug, Serialize)]
struct Update {
    problem: &'static str,
    implementation: String,
    nanoseconds: f64,
    median: Option<f64>,
    ratio: f64,
    required: Option<f64>,
}

pub(crate) fn run(command: &PeersCommand) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    std::fs::create_dir_all(&command.work)?;
    let mut problems = vec![
        Problem::imagenet("imagenet", false, &[1, 64, 256])?,
        Problem::grid("grid20", 20, &[1, 64, 256]),
        Problem::grid("grid100", 100, &[1, 64]),
        Problem::imagenet("imagenet-group", true, &[1, 4])?,
    ];
    problems.retain(|problem| problem.name.contains(&command.only));
    let (mut rows, mut updates) = (Vec::new(), Vec::new());
    for problem in &problems {
        problem.write(&command.work)?;
        let marginals = ours(problem, &mut rows)?;
        if problem.group.is_empty() {
            updates.push(our_updates(problem)?);
        }
        if !command.ours {
            run_peers(command, problem)?;
        }
        report::read_peers(&command.work, problem, &marginals, &mut rows)?;
        report::read_sampler(&command.work, problem, &mut updates)?;
    }
    report::print(&rows, &updates);
    #[derive(Serialize)]
    struct Results {
        rows: Vec<Row>,
        updates: Vec<Update>,
    }
    crate::table::write(&command.out, "make bench ARGS=peers", Results { rows, updates })
}

/// Measures our kernels; the marginals are those of flooding.
fn ours(problem: &Problem, rows: &mut Vec<Row>) -> anyhow::Result<Vec<f32>> {
    let mut marginals = Vec::new();
    let n = problem.model.len();
    for (at, Setup { name, options }) in
        [engines::paper(), engines::in_place()].into_iter().enumerate()
    {
        let engine = Engine::compile(Arc::clone(&problem.model), &options)?;
        for batch in BATCHES {
            let scores = problem.batch(batch);
            let block = Block::new(n, &scores);
            if at == 0 && batch == REFERENCE {
                marginals = engine.run(&block, Want::default())?.marginals;
            }
            let timing = time_for(batch, SECONDS, || drop(engine.run(&block, Want::default())));
            let best = timing.best.min(timing.cpu.unwrap_or(f64::MAX));
            let messages = ITERATIONS * problem.messages() as f64;
            rows.push(Row {
                problem: problem.name,
                implementation: format!("phex {name}"),
                batch,
                milliseconds: best / 1e3,
                median: timing.median / 1e3,
                // Messages at a one-of group cost less than the pairs that they stand for.
                nanoseconds_message: problem.group.is_empty().then_some(1e3 * best / messages),
                difference: None,
                undisturbed: timing.cpu.map(|cpu| cpu / timing.median),
                ratio: None,
                ratio_same_batch: None,
                required: None,
            });
        }
    }
    Ok(marginals)
}

/// 64 chains of one row, over pairs as the peer has them.
fn our_updates(problem: &Problem) -> anyhow::Result<Update> {
    let mut options = Options { method: Method::Gibbs, ..Options::default() };
    options.messages.groups = GroupForm::Pairs;
    let engine = Engine::compile(Arc::clone(&problem.model), &options)?;
    let scores = problem.batch(1);
    let block = Block::new(problem.model.len(), &scores);
    let timing = time_for(1, SECONDS, || drop(engine.run(&block, Want::default())));
    let best = timing.best.min(timing.cpu.unwrap_or(f64::MAX));
    let sampling = options.sampling;
    let sweeps = f64::from(sampling.burn_in + sampling.sweeps);
    let spins = problem.model.len() as f64 * sweeps * f64::from(sampling.chains);
    Ok(Update {
        problem: problem.name,
        implementation: String::from("phex gibbs, 64 chains, with set-up"),
        nanoseconds: 1e3 * best / spins,
        median: Some(1e3 * timing.median / spins),
        ratio: 1.0,
        required: None,
    })
}

fn run_peers(command: &PeersCommand, problem: &Problem) -> anyhow::Result<()> {
    let python = command.peers_venv.join("bin/python");
    let mut child = Command::new(&python);
    child.arg("bench/peers/run_all.py").arg(problem.path(&command.work));
    child.arg("--out").arg(&command.work).arg("--venv").arg(&command.peers_venv);
    child.arg("--pgmax-venv").arg(&command.pgmax_venv);
    child.arg("--budget").arg(command.budget.to_string());
    // Its own table would come between ours.
    let output = child.stdout(std::io::stderr()).status();
    let status = output.with_context(|| format!("{} (make peers)", python.display()))?;
    if !status.success() {
        bail!("bench/peers/run_all.py: {status}");
    }
    Ok(())
}
