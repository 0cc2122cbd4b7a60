//! What a row costs: HEX and pHEX, exact and loopy, in prediction and in training.
//!
//! Prediction takes one pass per row. A training step takes a free and a clamped pass (one known label), by the same
//! code as `phex train`. Each is repeated for a second, and the fastest repetition counts. Jobs run alone, on one
//! thread, in single precision.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use phex::graph::{RelationGraph, Strength};
use phex::infer::{Block, Engine, Evidence, Method, Options, Want};
use phex::learn::{Objective, gradients};
use phex::model::Model;
use serde::{Deserialize, Serialize};

use super::graphs::{GraphName, classes};
use super::relabelled::Inference;
use crate::Error;
use crate::experiment::Findings;
use crate::harness::MarkdownTable;
use crate::harness::RandomStream;
use crate::harness::timing::{Repetitions, repeat};
use crate::harness::{JobGroup, JobQueue};

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

/// Relations and engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpeedCase {
    HexExact,
    Exact,
    ForestBp,
    Lbp,
}

impl SpeedCase {
    const ALL: [SpeedCase; 4] =
        [SpeedCase::HexExact, SpeedCase::Exact, SpeedCase::ForestBp, SpeedCase::Lbp];

    fn title(self) -> &'static str {
        match self {
            SpeedCase::HexExact => "HEX, exact",
            SpeedCase::Exact => "pHEX, exact",
            SpeedCase::ForestBp => "pHEX, forest-bp",
            SpeedCase::Lbp => "pHEX, LBP",
        }
    }

    fn options(self) -> Options {
        match self {
            SpeedCase::HexExact | SpeedCase::Exact => {
                Options { method: Method::Exact, ..Options::default() }
            }
            SpeedCase::ForestBp => Options { method: Method::ForestBp, ..Options::default() },
            SpeedCase::Lbp => Inference::Lbp.options(0),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct SpeedJob {
    graph: GraphName,
    way: SpeedCase,
    u: f64,
    rows: usize,
    seconds: f64,
}

/// Measurements, or why the engine cannot handle the graph.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpeedAnswer {
    Timed { labels: usize, engine: String, compile_ms: f64, predict_us: f64, train_us: f64 },
    Refused(String),
}

/// Runs the experiment.
pub(crate) fn run(
    settings: &SpeedSettings,
    folder: &Path,
    quick: bool,
    queue: &JobQueue<'_>,
) -> Result<Findings, Error> {
    let graphs = super::graphs::present(&settings.graphs, folder, quick)?;
    let jobs: Vec<SpeedJob> = graphs
        .iter()
        .flat_map(|&graph| SpeedCase::ALL.map(|way| (graph, way)))
        .map(|(graph, way)| SpeedJob {
            graph,
            way,
            u: settings.u,
            rows: settings.rows,
            seconds: settings.seconds,
        })
        .collect();
    let work = |job: &SpeedJob, _: &AtomicBool| measure(job, &job.graph.load(folder)?);
    let answers = queue.run(JobGroup { name: "measurements", alone: true }, &jobs, work)?;
    let mut table = MarkdownTable::new(
        "One thread, single precision: microseconds per row",
        "graph | labels | method | engine | compile ms | prediction | training | × HEX in training",
    );
    let mut hex = f64::NAN;
    for (job, answer) in jobs.iter().zip(&answers) {
        let mut row = vec![String::from(job.graph.title())];
        match answer {
            SpeedAnswer::Timed { labels, engine, compile_ms, predict_us, train_us } => {
                if job.way == SpeedCase::HexExact {
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
            SpeedAnswer::Refused(why) => {
                row.extend([String::from("–"), String::from(job.way.title()), why.clone()]);
                row.extend(std::iter::repeat_n(String::from("–"), 4));
            }
        }
        table.rows.push(row);
    }
    let data = format!(
        "Batches of {} rows of normal scores with standard deviation 2, soft relations of u = {}; in training one label per row is known: a leaf or, in every other row, its parent. LBP: over pairs, in place, at most 30 iterations. The numbers depend on the machine: compare them with each other.",
        settings.rows, settings.u
    );
    Ok(Findings { title: settings.title.clone(), data, tables: vec![table], ..Findings::default() })
}

fn measure(job: &SpeedJob, graph: &RelationGraph) -> Result<SpeedAnswer, Error> {
    let graph = match job.way {
        SpeedCase::HexExact => graph.clone(),
        _ => graph.map_strengths(|_, _| Strength::U(job.u))?,
    };
    let start = Instant::now();
    let engine = match Engine::compile(Model::new(&graph)?, &job.way.options()) {
        Ok(engine) => engine,
        Err(refused) => return Ok(SpeedAnswer::Refused(refused.to_string())),
    };
    let compile_ms = 1e3 * start.elapsed().as_secs_f64();
    let n = graph.len();
    let mut random = RandomStream::new(0, "speed");
    let scores: Vec<f32> = (0..job.rows * n).map(|_| (2.0 * random.normal()) as f32).collect();
    let evidence = evidence(&graph, job.rows, &mut random);
    let free = Block::new(n, &scores);
    let clamped = free.with_evidence(&evidence);
    let repetitions = Repetitions { least: 1, most: usize::MAX, seconds: job.seconds };
    let (_, predict) = repeat(repetitions, || engine.run(&free, Want::default()))?;
    let objective = Objective::default();
    let (_, train) = repeat(repetitions, || gradients(&engine, &clamped, None, objective))?;
    Ok(SpeedAnswer::Timed {
        labels: n,
        engine: String::from(engine.plan().method.name()),
        compile_ms,
        predict_us: 1e6 * predict.best / job.rows as f64,
        train_us: 1e6 * train.best / job.rows as f64,
    })
}

/// One label per row is on: a class, or in every other row its first parent.
fn evidence(graph: &RelationGraph, rows: usize, random: &mut RandomStream) -> Vec<Evidence> {
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
