//! `phex infer` and `phex map`: rows of scores through an engine, a piece at a time.

mod map;
mod plan;
mod source;

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use phex::infer::{Block, Engine, Evidence, Posterior, RowStatus, Want};
use phex_io::{Rows, TableWriter, Values};
use serde::Serialize;

use crate::args::InferCommand;
use crate::{Outcome, output};

pub(crate) use map::run as map;
pub(crate) use plan::run as plan;
use source::Source;

/// Rows that are in memory at a time: fewer of wide tables.
fn piece(labels: usize) -> usize {
    ((1 << 22) / labels.max(1)).clamp(64, 4096)
}

/// Rows without an answer that are named; the rest are counted.
const NAMED: usize = 20;

/// What a run did.
#[derive(Debug, Serialize)]
struct Summary {
    version: &'static str,
    method: &'static str,
    exact: bool,
    rows: u64,
    seconds: f64,
    /// The largest certified error of a marginal; 0 when every row is exact.
    certified_error: f64,
    /// Rows that no legal state agrees with.
    impossible_rows: u64,
    /// Rows with a score that is NaN or infinite.
    bad_rows: u64,
    /// The first of both, in words.
    unanswered: Vec<String>,
    plan: phex::infer::Plan,
}

impl Summary {
    fn new(engine: &Engine) -> Summary {
        let plan = engine.plan().clone();
        Summary {
            version: env!("CARGO_PKG_VERSION"),
            method: plan.method.name(),
            exact: plan.exact,
            rows: 0,
            seconds: 0.0,
            certified_error: 0.0,
            impossible_rows: 0,
            bad_rows: 0,
            unanswered: Vec::new(),
            plan,
        }
    }

    /// Takes in what became of a piece of rows.
    fn add<T>(&mut self, engine: &Engine, posterior: &Posterior<T>) {
        for (at, status) in posterior.status.iter().enumerate() {
            let row = self.rows + at as u64;
            let text = match status {
                RowStatus::Answered => continue,
                RowStatus::BadScore { label } => {
                    self.bad_rows += 1;
                    let label = &engine.model().names()[*label];
                    format!("row {row}: the score of `{label}` is NaN, infinite or beyond ±1e30")
                }
                RowStatus::Impossible => {
                    self.impossible_rows += 1;
                    format!("row {row}: no legal label set agrees with the evidence")
                }
            };
            if self.unanswered.len() < NAMED {
                self.unanswered.push(text);
            }
        }
        self.rows += posterior.rows() as u64;
        self.certified_error = self.certified_error.max(posterior.certified_error());
    }

    /// Writes `OUT.run.json` beside an output file; streams and devices have no beside.
    fn write_beside(&self, out: &Path) -> anyhow::Result<()> {
        if !out.is_file() {
            return Ok(());
        }
        let mut beside = out.to_owned().into_os_string();
        beside.push(".run.json");
        let name = || beside.display().to_string();
        let text = serde_json::to_string_pretty(self)? + "\n";
        let mut file = phex_io::Output::create(beside.as_ref()).with_context(name)?;
        file.write_all(text.as_bytes()).and_then(|()| file.finish()).with_context(name)
    }

    /// Says on standard error what was not answered.
    fn complain(&self) {
        self.unanswered.iter().for_each(|text| eprintln!("phex: {text}; it has no answer"));
        let more = self.bad_rows + self.impossible_rows - self.unanswered.len() as u64;
        if more > 0 {
            eprintln!("phex: and {more} more rows");
        }
        if self.certified_error > 1e-3 {
            let error = self.certified_error;
            eprintln!("phex: marginals are certified only to within {error:.2}; see `graph plan`");
        }
    }
}

pub(crate) fn run(command: &InferCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let mut source = Source::open(&command.rows)?;
    let engine = source.engine.clone();
    let labels = engine.model().names();
    let (format, number) = (source.format(&command.out), source.number());
    let mut writer = TableWriter::create(&command.out, format, labels, source.kept(), number)?;
    let mut summary = Summary::new(&engine);
    let bar = progress(source.total());
    while let Some((rows, evidence)) = source.next(piece(labels.len()))? {
        let values = match &rows.values {
            Values::F32(scores) => {
                let posterior = answer(&engine, scores, evidence.as_deref())?;
                summary.add(&engine, &posterior);
                Values::F32(posterior.marginals)
            }
            Values::F64(scores) => {
                let posterior = answer(&engine, scores, evidence.as_deref())?;
                summary.add(&engine, &posterior);
                Values::F64(posterior.marginals)
            }
        };
        writer.write_rows(&Rows { count: rows.count, values, kept: rows.kept })?;
        bar.inc(rows.count as u64);
    }
    writer.finish()?;
    bar.finish_and_clear();
    summary.seconds = start.elapsed().as_secs_f64();
    summary.complain();
    summary.write_beside(&command.out)?;
    if command.rows.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

fn answer<T: phex::infer::Number>(
    engine: &Engine,
    scores: &[T],
    evidence: Option<&[Evidence]>,
) -> anyhow::Result<Posterior<T>> {
    let block = Block::new(engine.model().len(), scores);
    let block = match evidence {
        Some(evidence) => block.with_evidence(evidence),
        None => block,
    };
    Ok(engine.run(&block, Want::default())?)
}

/// A bar on standard error, where a person can see it.
fn progress(total: Option<u64>) -> ProgressBar {
    let template = "{pos} rows {bar:40} {eta}";
    match (total, ProgressStyle::with_template(template)) {
        (Some(total), Ok(style)) => ProgressBar::new(total).with_style(style),
        _ => ProgressBar::new_spinner(),
    }
}
