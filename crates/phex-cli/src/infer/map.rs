//! `phex map`: the most probable label sets of each row.
//!
//! An exact engine gives them with their log-probabilities. Annealing gives the best sets that it found,
//! with their log-weights, because log Z is then unknown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use phex::Error;
use phex::infer::{Block, Engine, LabelSet, Method, Options, Plan, Refusal, RowStatus, Want};
use phex::model::Model;
use phex_io::{ScoreRows, ScoreValues};
use rayon::prelude::*;
use serde::Serialize;

use super::source::{Source, use_threads};
use super::{Summary, block, piece, progress};
use crate::args::{EngineArguments, MapCommand};
use crate::{Outcome, output};

/// Rows that are annealed at a time; each takes long.
const ANNEALED: usize = 64;

/// A label set as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    row: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<&'a str, &'a str>,
    rank: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_weight: Option<f64>,
    labels: Vec<&'a str>,
}

pub(crate) fn run(command: &MapCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    command.rows.files().writes_with_summary(&command.out).check()?;
    output::check_lines(&command.out)?;
    use_threads(command.rows.threads);
    let (model, graph) = command.rows.input.model_with_graph()?;
    let model = Arc::new(model);
    let (engine, plan) = compile(&model, &command.rows.engine)
        .with_context(|| command.rows.input.path.display().to_string())?;
    let mut source = Source::of(&command.rows, model.names(), graph.as_ref())?;
    let mut summary = Summary::of(plan);
    let annealed = engine.plan().method == Method::Anneal;
    if annealed {
        let asked = command.rows.engine.method == Method::Anneal;
        let why =
            if asked { "" } else { "no exact engine can handle the model within the budget: " };
        summary
            .note(format!("{why}these label sets are the best found, not proven to be the best"));
    }
    let keep = source.kept().to_vec();
    let json_lines = output::is_json_lines(&command.out);
    let mut out = output::create(&command.out)?;
    if !json_lines {
        use std::io::Write as _;
        let kept: String = keep.iter().map(|name| format!(",{}", output::cell(name))).collect();
        let weight = if annealed { "log_weight" } else { "log_probability" };
        writeln!(out, "row{kept},rank,{weight},labels")?;
    }
    let bar = progress(source.total());
    let most = if annealed { ANNEALED } else { piece(model.len()) };
    while let Some((ScoreRows { count, values, kept }, evidence)) = source.next(most)? {
        let scores = match values {
            ScoreValues::F32(scores) => scores.into_iter().map(f64::from).collect(),
            ScoreValues::F64(scores) => scores,
        };
        let rows = block(model.len(), &scores, evidence.as_deref());
        let (sets, status, log_partition) = if annealed {
            let (sets, status) = anneal(&engine, &rows, command.top)?;
            (sets, status, None)
        } else {
            let posterior = engine.run(&rows, Want::default())?;
            let sets = best(&engine, &rows, command.top, &posterior.status)?;
            (sets, posterior.status, Some(posterior.log_partition))
        };
        for (row, best) in sets.iter().enumerate() {
            for (rank, set) in best.iter().enumerate() {
                let kept = keep.iter().zip(&kept);
                let log_partition = log_partition.as_ref().map(|all| all[row]);
                let line = Line {
                    row: summary.rows + row as u64,
                    kept: kept.map(|(name, cells)| (name.as_str(), cells[row].as_str())).collect(),
                    rank: rank + 1,
                    log_probability: log_partition.map(|log| set.log_weight - log),
                    log_weight: log_partition.is_none().then_some(set.log_weight),
                    labels: names(&engine, set),
                };
                write(&mut out, &line, &keep, json_lines)?;
            }
        }
        bar.inc(count as u64);
        summary.add_status(&engine, &status);
    }
    output::finish(out)?;
    bar.finish_and_clear();
    source.notes().into_iter().for_each(|note| summary.note(note));
    summary.finish(start);
    summary.complain(command.rows.quiet);
    output::write_beside(&summary, &command.out)?;
    if command.rows.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

/// An engine for best label sets.
pub(crate) fn best_engine(
    model: &Arc<Model>,
    arguments: &EngineArguments,
) -> anyhow::Result<Engine> {
    Ok(compile(model, arguments)?.0)
}

/// An engine for best label sets, and its plan. `auto` anneals if no exact engine can answer.
fn compile(model: &Arc<Model>, arguments: &EngineArguments) -> anyhow::Result<(Engine, Plan)> {
    let search = || anyhow::Ok(crate::say::engine(Arc::clone(model), &arguments.search()?)?);
    let options = match arguments.method {
        Method::Anneal => {
            let engine = search()?;
            let plan = engine.plan().clone();
            return Ok((engine, plan));
        }
        // A cap on counts would only make the answers inexact.
        Method::Auto => Options { method: Method::Exact, cap: None, ..arguments.options()? },
        _ => arguments.options()?,
    };
    let exact = crate::say::engine(Arc::clone(model), &options).and_then(can_answer);
    match exact {
        Ok(engine) => {
            let plan = engine.plan().clone();
            Ok((engine, plan))
        }
        Err(error) if arguments.method != Method::Auto => Err(error.into()),
        Err(error) => {
            let engine = search()?;
            let mut plan = engine.plan().clone();
            plan.why = String::from("no exact engine finds the best label sets within the budget");
            plan.refused = match error {
                Error::Unfit { refused } => refused,
                Error::NotExact { method } => {
                    vec![Refusal { method, why: String::from("it is not exact on this model") }]
                }
                error => return Err(error.into()),
            };
            Ok((engine, plan))
        }
    }
}

/// Engines for forests leave best sets to a junction tree. It may not fit the budget, which must be
/// found before the first row is answered.
fn can_answer(engine: Engine) -> Result<Engine, Error> {
    if !engine.plan().exact {
        return Err(Error::NotExact { method: engine.plan().method });
    }
    if engine.plan().method == Method::Family {
        let labels = engine.model().len();
        engine.best(&Block::new(labels, &vec![0.0; labels]), 0, 1)?;
    }
    Ok(engine)
}

/// The best sets of rows that have an answer.
fn best(
    engine: &Engine,
    rows: &Block<'_, f64>,
    top: usize,
    status: &[RowStatus],
) -> Result<Vec<Vec<LabelSet>>, Error> {
    let best = |row: usize| match status[row] {
        RowStatus::Answered => engine.best(rows, row, top),
        _ => Ok(Vec::new()),
    };
    (0..rows.rows()).into_par_iter().map(best).collect()
}

/// The best sets found, and which rows have none.
fn anneal(
    engine: &Engine,
    rows: &Block<'_, f64>,
    top: usize,
) -> Result<(Vec<Vec<LabelSet>>, Vec<RowStatus>), Error> {
    let best = |row: usize| match engine.best(rows, row, top) {
        Ok(sets) if sets.is_empty() => Ok((sets, RowStatus::Impossible)),
        Ok(sets) => Ok((sets, RowStatus::Answered)),
        Err(Error::BadScore { label, .. }) => {
            let label = engine.model().names().iter().position(|name| *name == label);
            Ok((Vec::new(), RowStatus::BadScore { label: label.unwrap_or_default() }))
        }
        Err(error) => Err(error),
    };
    let found: Result<Vec<_>, Error> = (0..rows.rows()).into_par_iter().map(best).collect();
    Ok(found?.into_iter().unzip())
}

fn names<'e>(engine: &'e Engine, set: &LabelSet) -> Vec<&'e str> {
    let labels = engine.model().names().iter().zip(&set.on);
    labels.filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect()
}

/// One line of CSV, with the labels in one cell, separated by semicolons; or of JSON.
fn write(
    out: &mut impl std::io::Write,
    line: &Line<'_>,
    keep: &[String],
    json_lines: bool,
) -> anyhow::Result<()> {
    if json_lines {
        writeln!(out, "{}", serde_json::to_string(line)?)?;
        return Ok(());
    }
    let kept: String =
        keep.iter().map(|name| format!(",{}", output::cell(line.kept[name.as_str()]))).collect();
    let labels = output::label_list(&line.labels);
    let weight = line.log_probability.or(line.log_weight).unwrap_or(f64::NAN);
    writeln!(out, "{}{kept},{},{weight},{labels}", line.row, line.rank)?;
    Ok(())
}
