//! `lab engines`: time and error of every engine that can handle a model.
//!
//! All engines answer the same rows, on one thread, in double precision. Errors are against an exact engine or, if none
//! can handle the model, against long sampling.

mod measure;
mod reference;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Args, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use phex::infer::{Block, Budget, Evidence, Method, Options};
use phex::model::Model;
use phex_io::{EvidenceReader, IsingFormat, Limits, ReadOptions, ScoreReader, ScoreValues};

use crate::harness::normal_scores;
use crate::harness::setups::EngineSetup;
use measure::{BoundWidths, measure, setups};
use reference::Reference;
use report::{EngineLine, EnginesReport, RefusedEngine};

/// What was typed after `lab engines`.
#[derive(Debug, Args)]
pub(crate) struct EnginesCommand {
    /// A graph of any format that phex reads, or a UAI or Ising model
    #[arg(value_name = "GRAPH")]
    graph: PathBuf,
    /// Table of scores (logits), one column per label: CSV, npy or Parquet
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    /// Column of the tables that is not a label; may be repeated
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Table of known labels: 1 on, 0 off, empty unknown
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// Rows to take from the table of scores, or to draw without one
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// Without a table of scores: the standard deviation of normal scores. Models that hold their scores have
    /// one row of these unless it is given [default: 1]
    #[arg(long, value_name = "DEVIATION", conflicts_with = "scores")]
    spread: Option<f64>,
    /// Only this engine; `exact` for all exact ones
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: Method,
    /// Operations that an engine may take per row
    #[arg(long, value_name = "OPERATIONS", default_value_t = Budget::default().operations)]
    budget: f64,
    /// Most repetitions of each measurement, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=1000))]
    repetitions: u64,
    /// Seed of random scores and of sampling
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &EnginesCommand) -> anyhow::Result<()> {
    let (model, holds_scores) = read_model(&command.graph)?;
    let model = Arc::new(model);
    let budget = Budget { operations: command.budget, ..Budget::default() };
    let options =
        Options { method: command.method, budget, seed: command.seed, ..Options::default() };
    if options.method == Method::Anneal {
        return Err(phex::Error::BestOnly.into());
    }
    let (scores, origin) = scores(command, &model, holds_scores)?;
    let mut rows = Block::new(model.len(), &scores);
    let evidence = evidence(command, &model, rows.rows())?;
    if let Some(evidence) = &evidence {
        rows = rows.with_evidence(evidence);
    }
    let reference = Reference::find(&model, &options, &rows);
    let mut report = EnginesReport {
        model: command.graph.display().to_string(),
        labels: model.len(),
        rows: rows.rows(),
        scores: origin,
        reference: reference.as_ref().map(|reference| reference.name.clone()),
        engines: Vec::new(),
        refused: Vec::new(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().context("one thread")?;
    let (setups, mut widths) = (setups(&options), BoundWidths::default());
    let bar = progress(setups.len() as u64);
    for EngineSetup { name, options } in setups {
        bar.set_message(name.clone());
        let (reference, most) = (reference.as_ref(), command.repetitions as usize);
        let measured =
            pool.install(|| measure(&model, &options, &rows, most, reference, &mut widths));
        bar.inc(1);
        match measured {
            Ok(measured) => report.engines.push(EngineLine::new(name, &measured, rows.rows())),
            Err(why) => report.refused.push(RefusedEngine { engine: name, why }),
        }
    }
    bar.finish_and_clear();
    if command.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

/// A bar on standard error, if that is a terminal.
fn progress(total: u64) -> ProgressBar {
    match ProgressStyle::with_template("{pos} of {len} engines: {msg}") {
        Ok(style) => ProgressBar::new(total).with_style(style),
        Err(_) => ProgressBar::new_spinner(),
    }
}

/// The model of a file, and whether the file also holds its scores.
fn read_model(path: &Path) -> anyhow::Result<(Model, bool)> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("uai")) {
        return Ok((phex_io::read_uai(path)?, true));
    }
    if let Some(format) = IsingFormat::of_file(path) {
        return Ok((phex_io::read_ising(path, Some(format))?.to_model(), true));
    }
    let builder = phex_io::read_graph(path, &ReadOptions::default())?;
    let graph = builder.build().with_context(|| path.display().to_string())?;
    Ok((Model::new(&graph)?, false))
}

/// The scores of all rows, and where they come from, in words.
fn scores(
    command: &EnginesCommand,
    model: &Model,
    holds_scores: bool,
) -> anyhow::Result<(Vec<f64>, String)> {
    let count = command.rows as usize;
    if let Some(path) = &command.scores {
        let limits = Limits::default();
        let mut table = ScoreReader::open(path, None, model.names(), &command.keep, &limits)?;
        let Some(rows) = table.next_rows(count)? else {
            bail!("{}: there are no rows of scores", path.display());
        };
        let scores = match rows.values {
            ScoreValues::F32(scores) => scores.into_iter().map(f64::from).collect(),
            ScoreValues::F64(scores) => scores,
        };
        return Ok((scores, format!("from {}", path.display())));
    }
    if holds_scores && command.spread.is_none() {
        return Ok((vec![0.0; model.len()], String::from("those of the file")));
    }
    let (spread, seed) = (command.spread.unwrap_or(1.0), command.seed);
    let scores = normal_scores(count * model.len(), spread, seed);
    Ok((scores, format!("normal, of standard deviation {spread}, seed {seed}")))
}

/// The known labels of all rows.
fn evidence(
    command: &EnginesCommand,
    model: &Model,
    rows: usize,
) -> anyhow::Result<Option<Vec<Evidence>>> {
    let Some(path) = &command.evidence else { return Ok(None) };
    let limits = Limits::default();
    let mut table = EvidenceReader::open(path, None, model.names(), &command.keep, &limits)?;
    match table.next_rows(rows)? {
        Some(evidence) if evidence.count == rows => Ok(Some(evidence.values)),
        _ => bail!("{}: the evidence has fewer rows than the scores", path.display()),
    }
}
