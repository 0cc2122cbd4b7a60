//! `phex bench engines`: what each engine takes and gives on one model.
//!
//! A measurement, not inference: the time a row on one thread, and the distance of each answer from
//! the exact one, or from long sampling where no exact engine takes the model.

mod measure;
mod reference;
mod report;

use std::sync::Arc;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use phex::infer::{Evidence, Method, Options};
use phex::model::Model;
use phex_io::{Rows, Values};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::args::{BenchCommand, EnginesCommand};
use crate::infer::{Source, block, zeros};
use crate::model::ModelFile;
use crate::{Outcome, interrupt, output};

use measure::{Setting, Widths, measure, settings};
use reference::Reference;
use report::{Line, Refused, Report};

pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<Outcome> {
    match command {
        BenchCommand::Engines(command) => engines(command),
    }
}

fn engines(command: &EnginesCommand) -> anyhow::Result<Outcome> {
    let model = Arc::new(command.input.model()?);
    let options = command.engine.options();
    if options.method == Method::Anneal {
        return Err(phex::Error::BestOnly.into());
    }
    let (scores, evidence) = rows(command, &model, &options)?;
    let rows = block(model.len(), &scores, evidence.as_deref());
    let reference = Reference::find(&model, &options, &rows);
    let mut report = Report {
        model: command.input.path.display().to_string(),
        labels: model.len(),
        rows: rows.rows(),
        scores: origin(command),
        reference: reference.as_ref().map(|reference| reference.name.clone()),
        engines: Vec::new(),
        refused: Vec::new(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().context("one thread")?;
    let (settings, mut widths) = (settings(&options), Widths::default());
    let bar = progress(settings.len() as u64);
    for Setting { name, options } in settings {
        interrupt::check()?;
        bar.set_message(name.clone());
        let (reference, again) = (reference.as_ref(), command.repetitions);
        let measured =
            pool.install(|| measure(&model, &options, &rows, again, reference, &mut widths));
        bar.inc(1);
        match measured {
            Ok(measured) => report.engines.push(Line::new(name, &measured, rows.rows())),
            Err(why) => report.refused.push(Refused { engine: name, why }),
        }
    }
    bar.finish_and_clear();
    if command.json {
        output::json(&report)?;
    } else {
        output::text(&report.to_markdown())?;
    }
    Ok(Outcome::Fine)
}

/// A bar on standard error, where a person can see it.
fn progress(total: u64) -> ProgressBar {
    match ProgressStyle::with_template("{pos} of {len} engines: {msg}") {
        Ok(style) => ProgressBar::new(total).with_style(style),
        Err(_) => ProgressBar::new_spinner(),
    }
}

/// The scores of all rows, and what is known of them.
fn rows(
    command: &EnginesCommand,
    model: &Model,
    options: &Options,
) -> anyhow::Result<(Vec<f64>, Option<Vec<Evidence>>)> {
    let drawn = if holds_scores(command) {
        zeros(model.len())
    } else {
        normal(command.count as usize, model.len(), command.spread.unwrap_or(1.0), options.seed)
    };
    let mut source = Source::open(&command.table, model.names(), Some(drawn))?;
    let Some((rows, evidence)) = source.next(command.count as usize)? else {
        bail!("there are no rows of scores");
    };
    let scores = match rows.values {
        Values::F32(scores) => scores.into_iter().map(f64::from).collect(),
        Values::F64(scores) => scores,
    };
    Ok((scores, evidence))
}

/// Whether the file of the model is all there is.
fn holds_scores(command: &EnginesCommand) -> bool {
    command.input.kind() != ModelFile::Graph && command.spread.is_none()
}

/// Where the scores come from, in words.
fn origin(command: &EnginesCommand) -> String {
    match &command.table.scores {
        Some(path) => format!("from {}", path.display()),
        None if holds_scores(command) => String::from("those of the file"),
        None => {
            let (spread, seed) = (command.spread.unwrap_or(1.0), command.engine.seed.unwrap_or(0));
            format!("normal, of standard deviation {spread}, seed {seed}")
        }
    }
}

/// Rows of normal scores, by Box and Muller.
fn normal(count: usize, labels: usize, spread: f64, seed: u64) -> Rows {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = || {
        let (radius, angle) = (1.0 - random.random::<f64>(), random.random::<f64>());
        spread * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    };
    let values = Values::F64((0..count * labels).map(|_| draw()).collect());
    Rows { count, values, kept: Vec::new() }
}
