//! What a row costs: HEX and pHEX, exact and loopy, in prediction and in training.
//!
//! A row is predicted by one pass; a step of training takes a free and a clamped pass (one observed
//! label), by the same code as `phex train`. Each is repeated for a second and the fastest repetition
//! counts; jobs run alone, on one thread, in singles.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use phex::graph::{RelationGraph, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, Want};
use phex::learn::{Objective, gradients};
use phex::model::Model;
use serde::{Deserialize, Serialize};

use crate::graphs::{GraphName, classes};
use crate::outcome::{Outcome, Table};
use crate::random::Random;
use crate::relabelled::Inference;
use crate::{Error, Part, Runner};

/// The settings of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SpeedSettings {
    title: String,
    graphs: Vec<GraphName>,
    /// The strength of soft relations.
    u: f64,
    /// Rows of a batch.
    rows: usize,
    /// Seconds of repetitions of each measurement.
    seconds: f64,
}

/// Which relations and which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    HexExact,
    Exact,
    Blocks,
    Lbp,
}

impl Way {
    const ALL: [Way; 4] = [Way::HexExact, Way::Exact, Way::Blocks, Way::Lbp];

    fn title(self) -> &'static str {
        match self {
            Way::HexExact => "HEX, exact",
            Way::Exact => "pHEX, exact",
            Way::Blocks => "pHEX, blocks",
            Way::Lbp => "pHEX, LBP",
        }
    }

    fn options(self) -> Options {
        match self {
            Way::HexExact | Way::Exact => Options { method: Method::Exact, ..Options::default() },
            Way::Blocks => Options { method: Method::ForestBp, ..Options::default() },
            Way::Lbp => Inference::Lbp.options(0),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct Job {
    graph: GraphName,
    way: Way,
    u: f64,
    rows: usize,
    seconds: f64,
}

/// What was measured, or why it was not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Measured { labels: usize, engine: String, compile_ms: f64, predict_us: f64, train_us: f64 },
    Refused(String),
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &SpeedSettings,
    folder: &Path,
    quick: bool,
    runner: &Runner<'_>,
) -> Result<Outcome, Error> {
    let graphs = crate::graphs::present(&settings.graphs, folder, quick)?;
    let jobs: Vec<Job> = graphs
        .iter()
        .flat_map(|&graph| Way::ALL.map(|way| (graph, way)))
        .map(|(graph, way)| Job {
            graph,
            way,
            u: settings.u,
            rows: settings.rows,
            seconds: settings.seconds,
        })
        .collect();
    let work = |job: &Job, _: &AtomicBool| measure(job, &job.graph.load(folder)?);
    let answers = runner.run(Part { name: "measurements", alone: true }, &jobs, work)?;
    let mut table = Table::new(
        "One thread, singles: microseconds a row",
        &[
            "graph",
            "labels",
            "method",
            "engine",
            "compile ms",
            "prediction",
            "training",
            "× HEX in training",
        ],
    );
    let mut hex = f64::NAN;
    for (job, answer) in jobs.iter().zip(&answers) {
        let mut row = vec![String::from(job.graph.title())];
        match answer {
            Answer::Measured { labels, engine, compile_ms, predict_us, train_us } => {
                if job.way == Way::HexExact {
                    hex = *train_us;
                }
                row.extend([
                    labels.to_string(),
                    String::from(job.way.title()),
                    engine.clone(),
                    format!("{compile_ms:.1}"),
                    format!("{predict_us:.2}"),
                    format!("{train_us:.2}"),
                    format!("{:.1}", train_us / hex),
                ]);
            }
            Answer::Refused(why) => {
                row.extend([String::from("–"), String::from(job.way.title()), why.clone()]);
                row.extend(std::iter::repeat_n(String::from("–"), 4));
            }
        }
        table.rows.push(row);
    }
    let data = format!(
        "Batches of {} rows of normal scores with deviation 2, soft relations of u = {}; in training one label of a row is observed, a leaf or, of every other row, its parent. LBP: over pairs, in place, at most 30 iterations. What this machine has of cores and clock is in the numbers: compare them with each other.",
        settings.rows, settings.u
    );
    Ok(Outcome { title: settings.title.clone(), data, tables: vec![table], ..Outcome::default() })
}

fn measure(job: &Job, graph: &RelationGraph) -> Result<Answer, Error> {
    let graph = match job.way {
        Way::HexExact => graph.clone(),
        _ => graph.map_strengths(|_, _| Strength::U(job.u))?,
    };
    let start = Instant::now();
    let engine = match Engine::compile(Model::new(&graph)?, &job.way.options()) {
        Ok(engine) => engine,
        Err(refused) => return Ok(Answer::Refused(refused.to_string())),
    };
    let compile_ms = 1e3 * start.elapsed().as_secs_f64();
    let n = graph.len();
    let mut random = Random::new(0, "speed");
    let scores: Vec<f32> = (0..job.rows * n).map(|_| (2.0 * random.normal()) as f32).collect();
    let observed = observed(&graph, job.rows, &mut random);
    let free = Block::new(n, &scores);
    let clamped = free.with_evidence(&observed);
    let predict = fastest(job.seconds, || engine.run(&free, Want::default()).map(|_| ()))?;
    let objective = Objective::default();
    let train = fastest(job.seconds, || gradients(&engine, &clamped, None, objective).map(|_| ()))?;
    Ok(Answer::Measured {
        labels: n,
        engine: String::from(engine.plan().method.name()),
        compile_ms,
        predict_us: 1e6 * predict / job.rows as f64,
        train_us: 1e6 * train / job.rows as f64,
    })
}

/// A class of each row, of every other row its first parent.
fn observed(graph: &RelationGraph, rows: usize, random: &mut Random) -> Vec<Evidence> {
    let classes = classes(graph);
    let mut all = vec![Evidence::Unknown; rows * graph.len()];
    for row in 0..rows {
        let leaf = classes[random.below(classes.len())];
        let parent = graph.topology().parents(leaf).first().copied();
        let label = parent.filter(|_| row % 2 == 1).unwrap_or(leaf);
        all[row * graph.len() + label.index()] = Evidence::On;
    }
    all
}

/// The seconds of the fastest repetition.
fn fastest(
    seconds: f64,
    mut work: impl FnMut() -> Result<(), phex::Error>,
) -> Result<f64, phex::Error> {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    while best.is_infinite() || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
