//! Our kernels beside numpy, torch, PGMax and dwave-samplers: the same problems on one thread.
//!
//! Loopy belief propagation runs 20 iterations without damping or tolerance, over pairs, in single precision. Our time is
//! that of the whole engine, with beliefs and the Bethe estimate of log Z; peers compute only marginals. Peers run by
//! `lab/peers/run_all.py`, with one process per cell. Their time is the best CPU time, which other processes disturb less
//! than the clock. Ours is the best wall-clock time, or the mean CPU time if that is less because others used the core.

mod problem;
mod report;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::infer::{Block, Engine, GroupForm, Method, Options, Want};
use serde::Serialize;
use serde_json::json;

use crate::harness::setups::{self, EngineSetup};
use crate::harness::timing::{time, use_one_thread};
use crate::harness::{ResultFolder, ResultPage};
use problem::PeerProblem;

#[derive(Debug, Args)]
pub(crate) struct PeersCommand {
    /// Where the results, problem files and the peers' reports go [default: target/lab/peers]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
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
    /// Run only our kernels, beside the peers' reports of an earlier run if there are any
    #[arg(long)]
    ours: bool,
}

/// Our batches; those of peers are in the problem files.
const BATCHES: [usize; 5] = [1, 4, 64, 256, 4096];
/// Ratios are relative to our time at this batch.
const REFERENCE: usize = 256;
const ITERATIONS: f64 = 20.0;
/// How long each of our timings is repeated.
const SECONDS: f64 = 1.0;

/// One implementation on one problem at one batch.
#[derive(Debug, Serialize)]
struct PeerRow {
    problem: &'static str,
    implementation: String,
    batch: usize,
    /// The best CPU time of peers; the lesser of the best time and the mean CPU time of ours.
    milliseconds: f64,
    /// The median wall-clock time.
    median: f64,
    /// Per message over a pair, for ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    nanoseconds_message: Option<f64>,
    /// The largest difference from our marginals.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<f64>,
    /// CPU time over wall-clock time; below 0.9 another process used the core.
    #[serde(skip_serializing_if = "Option::is_none")]
    undisturbed: Option<f64>,
    /// Relative to ours (flooding) at the reference batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// Relative to ours (flooding) at the same batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_same_batch: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<f64>,
}

/// The time of a spin update of a sampler.
#[derive(Debug, Serialize)]
struct SpinUpdate {
    problem: &'static str,
    implementation: String,
    nanoseconds: f64,
    median: Option<f64>,
    ratio: f64,
    required: Option<f64>,
}

pub(crate) fn run(command: &PeersCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "peers")?;
    let work = folder.path();
    let mut problems = vec![
        PeerProblem::imagenet("imagenet", false, &[1, 64, 256])?,
        PeerProblem::grid("grid20", 20, &[1, 64, 256]),
        PeerProblem::grid("grid100", 100, &[1, 64]),
        PeerProblem::imagenet("imagenet-group", true, &[1, 4])?,
    ];
    problems.retain(|problem| problem.name.contains(&command.only));
    let (mut rows, mut updates) = (Vec::new(), Vec::new());
    for problem in &problems {
        problem.write(work)?;
        let marginals = ours(problem, &mut rows)?;
        if problem.group.is_empty() {
            updates.push(our_updates(problem)?);
        }
        if !command.ours {
            run_peers(command, work, problem)?;
        }
        report::read_peers(work, problem, &marginals, &mut rows)?;
        report::read_sampler(work, problem, &mut updates)?;
    }
    let about = "One thread, single precision, 20 iterations of LBP.";
    let mut page = ResultPage::of_bench("peers", "LBP and Gibbs sampling beside peers", about);
    page.tables = report::tables(&rows, &updates).to_vec();
    Ok(folder.write_bench(&page, &json!({ "rows": rows, "updates": updates }))?)
}

/// Measures our kernels; returns the marginals of flooding.
fn ours(problem: &PeerProblem, rows: &mut Vec<PeerRow>) -> anyhow::Result<Vec<f32>> {
    let mut marginals = Vec::new();
    let n = problem.model.len();
    for (at, EngineSetup { name, options }) in
        [setups::paper(), setups::in_place()].into_iter().enumerate()
    {
        let engine = Engine::compile(Arc::clone(&problem.model), &options)?;
        for batch in BATCHES {
            let scores = problem.batch(batch);
            let block = Block::new(n, &scores);
            if at == 0 && batch == REFERENCE {
                marginals = engine.run(&block, Want::default())?.marginals;
            }
            let timing = time(SECONDS, || engine.run(&block, Want::default()))?;
            let per_row = 1e3 / batch as f64;
            let milliseconds = per_row * timing.undisturbed();
            let messages = ITERATIONS * problem.messages() as f64;
            rows.push(PeerRow {
                problem: problem.name,
                implementation: format!("phex {name}"),
                batch,
                milliseconds,
                median: per_row * timing.median,
                // Messages at a one-of group cost less than the pairs that they stand for.
                nanoseconds_message: problem
                    .group
                    .is_empty()
                    .then_some(1e6 * milliseconds / messages),
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

/// 64 chains of one row over pairs, like the peer.
fn our_updates(problem: &PeerProblem) -> anyhow::Result<SpinUpdate> {
    let mut options = Options { method: Method::Gibbs, ..Options::default() };
    options.messages.groups = GroupForm::Pairs;
    let engine = Engine::compile(Arc::clone(&problem.model), &options)?;
    let scores = problem.batch(1);
    let block = Block::new(problem.model.len(), &scores);
    let timing = time(SECONDS, || engine.run(&block, Want::default()))?;
    let sampling = options.sampling;
    let sweeps = f64::from(sampling.burn_in + sampling.sweeps);
    let spins = problem.model.len() as f64 * sweeps * f64::from(sampling.chains);
    Ok(SpinUpdate {
        problem: problem.name,
        implementation: String::from("phex gibbs, 64 chains, with set-up"),
        nanoseconds: 1e9 * timing.undisturbed() / spins,
        median: Some(1e9 * timing.median / spins),
        ratio: 1.0,
        required: None,
    })
}

fn run_peers(command: &PeersCommand, work: &Path, problem: &PeerProblem) -> anyhow::Result<()> {
    let python = command.peers_venv.join("bin/python");
    let mut child = Command::new(&python);
    child.arg("lab/peers/run_all.py").arg(problem.path(work));
    child.arg("--out").arg(work).arg("--venv").arg(&command.peers_venv);
    child.arg("--pgmax-venv").arg(&command.pgmax_venv);
    child.arg("--budget").arg(command.budget.to_string());
    // Keeps its table apart from ours.
    let output = child.stdout(std::io::stderr()).status();
    let status = output.with_context(|| format!("{} (make peers)", python.display()))?;
    if !status.success() {
        bail!("lab/peers/run_all.py: {status}");
    }
    Ok(())
}
