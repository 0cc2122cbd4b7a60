//! `phex map`: the most probable label sets of each row.

use std::io::{BufWriter, Write as _};
use std::time::Instant;

use phex::infer::{Block, Engine, LabelSet, RowStatus};
use phex_io::{Output, Values};
use serde::Serialize;

use super::source::Source;
use super::{PIECE, Summary, answer, progress};
use crate::args::MapCommand;
use crate::{Outcome, output};

/// A label set as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    row: u64,
    rank: usize,
    log_probability: f64,
    labels: Vec<&'a str>,
}

pub(crate) fn run(command: &MapCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let mut source = Source::open(&command.rows)?;
    let engine = source.engine.clone();
    let mut summary = Summary::new(&engine);
    let json_lines = command.out.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
    let mut out = BufWriter::new(Output::create(&command.out)?);
    if !json_lines {
        writeln!(out, "row,rank,log_probability,labels")?;
    }
    let bar = progress(source.total());
    while let Some((rows, evidence)) = source.next(PIECE)? {
        let scores = match rows.values {
            Values::F32(scores) => scores.into_iter().map(f64::from).collect(),
            Values::F64(scores) => scores,
        };
        let block = Block::new(engine.model().len(), &scores);
        let block = match &evidence {
            Some(evidence) => block.with_evidence(evidence),
            None => block,
        };
        let posterior = answer(&engine, &scores, evidence.as_deref())?;
        for row in 0..rows.count {
            if posterior.status[row] != RowStatus::Answered {
                continue;
            }
            let best = engine.best(&block, row, command.top)?;
            for (rank, set) in best.iter().enumerate() {
                let line = Line {
                    row: summary.rows + row as u64,
                    rank: rank + 1,
                    log_probability: set.log_weight - posterior.log_partition[row],
                    labels: names(&engine, set),
                };
                write(&mut out, &line, json_lines)?;
            }
            bar.inc(1);
        }
        summary.add(&engine, &posterior);
    }
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
    bar.finish_and_clear();
    summary.seconds = start.elapsed().as_secs_f64();
    summary.complain();
    if command.rows.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

fn names<'e>(engine: &'e Engine, set: &LabelSet) -> Vec<&'e str> {
    let labels = engine.model().names().iter().zip(&set.on);
    labels.filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect()
}

/// One line: JSON, or CSV with the labels in one cell, separated by semicolons.
fn write(out: &mut impl std::io::Write, line: &Line<'_>, json: bool) -> anyhow::Result<()> {
    if json {
        writeln!(out, "{}", serde_json::to_string(line)?)?;
        return Ok(());
    }
    let escaped: Vec<String> =
        line.labels.iter().map(|label| label.replace('\\', "\\\\").replace(';', "\\;")).collect();
    let labels = escaped.join(";");
    let labels = if labels.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", labels.replace('"', "\"\""))
    } else {
        labels
    };
    writeln!(out, "{},{},{},{labels}", line.row, line.rank, line.log_probability)?;
    Ok(())
}
