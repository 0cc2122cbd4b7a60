//! How wrong approximate engines are, and whether they know it.
//!
//! The problems are random trees (exact by `family`) and the ImageNet graph with and without the one-of group over its
//! leaves (exact by `junction`), over strengths and kinds of scores. For each engine: errors of the marginals and of log Z,
//! convergence, doubt, and the time per row on one thread, in single precision, in blocks of a few rows. Then, over all
//! rows: do the rows that an engine doubts have larger errors?

mod problems;
mod report;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use phex::infer::{Block, Budget, Engine, Method, Options, Posterior, Trust, Want};
use phex::metrics::mean;
use phex::model::Model;
use serde::Serialize;
use serde_json::json;

use crate::harness::setups::{self, EngineSetup};
use crate::harness::timing::{Repetitions, repeat, use_one_thread};
use crate::harness::{ResultFolder, ResultPage};
use problems::{ImageNet, ScoreKind};

#[derive(Debug, Args)]
pub(crate) struct ApproxCommand {
    /// Where the results go [default: target/lab/approx]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Fewer strengths, graphs and rows
    #[arg(long)]
    quick: bool,
    /// Rows of scores per graph and cell; half as many on each of the trees
    #[arg(long, default_value_t = 8)]
    rows: usize,
    /// Also write the answer of each engine to each row, as CSV
    #[arg(long)]
    samples: Option<PathBuf>,
}

const STRENGTHS: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0];

/// An engine's answer to one row.
#[derive(Debug, Clone)]
struct RowAnswer {
    problem: &'static str,
    u: f64,
    scores: &'static str,
    engine: String,
    labels: usize,
    max_error: f64,
    mean_error: f64,
    converged: bool,
    doubtful: bool,
    log_z_error: Option<f64>,
    /// The width of the bounds on log Z.
    width: Option<f64>,
    effective_sample: Option<f64>,
    microseconds: f64,
}

/// The mean over the rows of a cell.
#[derive(Debug, Serialize)]
struct CellMean {
    problem: &'static str,
    u: f64,
    scores: &'static str,
    engine: String,
    rows: usize,
    max_error: f64,
    mean_error: f64,
    converged: f64,
    doubtful: f64,
    log_z_error: Option<f64>,
    width: Option<f64>,
    microseconds: f64,
}

struct ApproxBench {
    samples: Vec<RowAnswer>,
    notes: Vec<String>,
}

pub(crate) fn run(command: &ApproxCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "approx")?;
    let mut bench = ApproxBench { samples: Vec::new(), notes: Vec::new() };
    let strengths: &[f64] = if command.quick { &[0.3, 1.0] } else { &STRENGTHS };
    for &u in strengths {
        bench.trees(u, command)?;
    }
    match ImageNet::read() {
        Ok(imagenet) => {
            for leaves in [false, true] {
                for &u in strengths {
                    bench.imagenet(&imagenet, u, leaves, command)?;
                }
            }
        }
        Err(error) => bench.note(format!("skipped: the ImageNet hierarchy ({error})")),
    }
    if let Some(path) = &command.samples {
        report::write_samples(path, &bench.samples)?;
    }
    let cells = bench.cells();
    let (trust, correlations) = trust::signals(&bench.samples);
    let ratios = report::ratios(&cells);
    let about = bench.notes.join("\n\n");
    let mut page = ResultPage::of_bench("approx", "Errors of approximate engines", &about);
    page.tables = vec![report::errors(&cells), report::ratio_table(&ratios)];
    page.tables.extend(trust::tables(&trust, &correlations));
    let results = json!({
        "notes": bench.notes,
        "ratios": ratios,
        "trust": trust,
        "correlations": correlations,
        "cells": cells,
    });
    Ok(folder.write_bench(&page, &results)?)
}

impl ApproxBench {
    fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }

    fn trees(&mut self, u: f64, command: &ApproxCommand) -> anyhow::Result<()> {
        let sizes: &[usize] = if command.quick { &[30, 300] } else { &[30, 100, 300, 1000, 2000] };
        let rows = command.rows.div_ceil(2);
        for &labels in sizes {
            for branching in [3, 10, 50] {
                let seed = (labels * branching) as u64;
                let model = Arc::new(problems::tree(labels, branching, u, seed)?);
                for (kind, s) in [("s = 1", 1.0), ("s = 3", 3.0)] {
                    let scores = problems::diffuse(labels, rows, s, seed + 1);
                    let options = Options { method: Method::Family, ..Options::default() };
                    let exact = Engine::compile(Arc::clone(&model), &options)?;
                    self.engines(("trees", u, kind), &model, &scores, &exact)?;
                }
            }
        }
        eprintln!("trees, u = {u}: done");
        Ok(())
    }

    fn imagenet(
        &mut self,
        imagenet: &ImageNet,
        u: f64,
        leaves: bool,
        command: &ApproxCommand,
    ) -> anyhow::Result<()> {
        let problem = if leaves { "ImageNet, one of leaves" } else { "ImageNet" };
        let model = Arc::new(imagenet.model(u, leaves)?);
        let budget = Budget { operations: 1e11, bytes: 1e10, search: 1e12 };
        let options = Options { method: Method::Junction, budget, ..Options::default() };
        let start = Instant::now();
        let exact = match Engine::compile(Arc::clone(&model), &options) {
            Ok(engine) => engine,
            Err(error) => {
                self.note(format!(
                    "{problem}, u = {u}: the reference is tempered Gibbs sampling: {error}"
                ));
                let long = setups::tempered("reference", 12, 10_000);
                Engine::compile(Arc::clone(&model), &long.options)?
            }
        };
        eprintln!("{problem}, u = {u}: compiled in {:.1} s", start.elapsed().as_secs_f64());
        for (at, kind) in ScoreKind::ALL.into_iter().enumerate() {
            let scores = imagenet.scores(&model, kind, command.rows, 7 + at as u64);
            self.engines((problem, u, kind.name()), &model, &scores, &exact)?;
        }
        Ok(())
    }

    /// All engines on some rows of one model.
    fn engines(
        &mut self,
        (problem, u, kind): (&'static str, f64, &'static str),
        model: &Arc<Model>,
        scores: &[f32],
        exact: &Engine,
    ) -> anyhow::Result<()> {
        let n = model.len();
        let wide: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
        let truth = exact.run(&Block::new(n, &wide), Want::default())?;
        let block = Block::new(n, scores);
        for EngineSetup { name, options } in setups::for_graphs() {
            let engine = Engine::compile(Arc::clone(model), &options)?;
            // Short runs twice, of which the better counts.
            let repetitions = Repetitions { least: 1, most: 2, seconds: 0.1 };
            let (found, timing) = repeat(repetitions, || engine.run(&block, Want::default()))?;
            let microseconds = 1e6 * timing.best / block.rows() as f64;
            // Bounds for the table of trust are not part of the time.
            let widths = if name == setups::DEFAULT {
                let want = Want { bounds: true, ..Want::default() };
                widths(&engine.run(&block, want)?)
            } else {
                widths(&found)
            };
            for (row, width) in widths.into_iter().enumerate() {
                let pairs = truth.row(row).iter().zip(found.row(row));
                let errors = pairs.map(|(truth, found)| (truth - f64::from(*found)).abs());
                let (converged, effective_sample) = match found.trust[row] {
                    Trust::Approximate(known) => (known.converged, known.effective_sample),
                    Trust::Exact | Trust::Certified(_) => (true, None),
                };
                let gap = (found.log_partition[row] - truth.log_partition[row]).abs();
                self.samples.push(RowAnswer {
                    problem,
                    u,
                    scores: kind,
                    engine: name.clone(),
                    labels: n,
                    max_error: errors.clone().fold(0.0, f64::max),
                    mean_error: mean(errors).unwrap_or(f64::NAN),
                    converged,
                    doubtful: found.trust[row].doubt().is_some(),
                    log_z_error: gap.is_finite().then_some(gap),
                    width,
                    effective_sample,
                    microseconds,
                });
            }
        }
        Ok(())
    }

    fn cells(&self) -> Vec<CellMean> {
        let key = |sample: &RowAnswer| {
            (sample.problem, sample.u.to_bits(), sample.scores, sample.engine.clone())
        };
        let mut cells: Vec<(_, Vec<&RowAnswer>)> = Vec::new();
        for sample in &self.samples {
            match cells.iter_mut().find(|(known, _)| *known == key(sample)) {
                Some((_, rows)) => rows.push(sample),
                None => cells.push((key(sample), vec![sample])),
            }
        }
        cells.into_iter().map(|(_, rows)| CellMean::new(&rows)).collect()
    }
}

impl CellMean {
    fn new(rows: &[&RowAnswer]) -> CellMean {
        let of = |value: fn(&RowAnswer) -> f64| {
            mean(rows.iter().map(|row| value(row))).unwrap_or(f64::NAN)
        };
        let maybe = |value: fn(&RowAnswer) -> Option<f64>| {
            mean(rows.iter().filter_map(|row| value(row))).filter(|mean| !mean.is_nan())
        };
        CellMean {
            problem: rows[0].problem,
            u: rows[0].u,
            scores: rows[0].scores,
            engine: rows[0].engine.clone(),
            rows: rows.len(),
            max_error: of(|row| row.max_error),
            mean_error: of(|row| row.mean_error),
            converged: of(|row| f64::from(u8::from(row.converged))),
            doubtful: of(|row| f64::from(u8::from(row.doubtful))),
            log_z_error: maybe(|row| row.log_z_error),
            width: maybe(|row| row.width),
            microseconds: of(|row| row.microseconds),
        }
    }
}

fn widths(found: &Posterior<f32>) -> Vec<Option<f64>> {
    let width = |trust: &Trust| match trust {
        Trust::Approximate(known) => known.bounds.map(|(low, high)| high - low),
        Trust::Exact | Trust::Certified(_) => None,
    };
    found.trust.iter().map(width).collect()
}
