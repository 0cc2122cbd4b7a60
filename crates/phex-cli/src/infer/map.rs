//! `phex map`: the most probable label sets of each row.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write as _};
use std::time::Instant;

use phex::Error;
use phex::infer::{Block, Engine, LabelSet, RowStatus};
use phex_io::{Output, Values};
use rayon::prelude::*;
use serde::Serialize;

use super::source::Source;
use super::{Summary, answer, piece, progress};
use crate::args::MapCommand;
use crate::{Outcome, output};

/// A label set as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    row: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept: BTreeMap<&'a str, &'a str>,
    rank: usize,
    log_probability: f64,
    labels: Vec<&'a str>,
}

pub(crate) fn run(command: &MapCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let mut source = Source::open(&command.rows)?;
    let engine = source.engine.clone();
    if !engine.plan().exact {
        return Err(Error::NotExact { method: engine.plan().method }.into());
    }
    let mut summary = Summary::new(&engine);
    let keep = source.kept().to_vec();
    let json_lines = command.out.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
    let mut out = BufWriter::new(Output::create(&command.out)?);
    if !json_lines {
        let kept: String = keep.iter().map(|name| format!(",{}", output::cell(name))).collect();
        writeln!(out, "row{kept},rank,log_probability,labels")?;
    }
    let bar = progress(source.total());
    while let Some((rows, evidence)) = source.next(piece(engine.model().len()))? {
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
        let best = |row: usize| match posterior.status[row] {
            RowStatus::Answered => engine.best(&block, row, command.top),
            _ => Ok(Vec::new()),
        };
        let sets: Vec<Vec<LabelSet>> =
            (0..rows.count).into_par_iter().map(best).collect::<Result<_, _>>()?;
        for (row, best) in sets.iter().enumerate() {
            for (rank, set) in best.iter().enumerate() {
                let kept = keep.iter().zip(&rows.kept);
                let line = Line {
                    row: summary.rows + row as u64,
                    kept: kept.map(|(name, cells)| (name.as_str(), cells[row].as_str())).collect(),
                    rank: rank + 1,
                    log_probability: set.log_weight - posterior.log_partition[row],
                    labels: names(&engine, set),
                };
                if json_lines {
                    writeln!(out, "{}", serde_json::to_string(&line)?)?;
                } else {
                    write(&mut out, &line, &keep)?;
                }
            }
        }
        bar.inc(rows.count as u64);
        summary.add(&engine, &posterior);
    }
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
    bar.finish_and_clear();
    summary.seconds = start.elapsed().as_secs_f64();
    summary.complain();
    summary.write_beside(&command.out)?;
    if command.rows.json {
        output::summary(&summary, command.out.as_os_str() == "-")?;
    }
    Ok(Outcome::Fine)
}

fn names<'e>(engine: &'e Engine, set: &LabelSet) -> Vec<&'e str> {
    let labels = engine.model().names().iter().zip(&set.on);
    labels.filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect()
}

/// One line of CSV, with the labels in one cell, separated by semicolons.
fn write(out: &mut impl std::io::Write, line: &Line<'_>, keep: &[String]) -> anyhow::Result<()> {
    let kept: String =
        keep.iter().map(|name| format!(",{}", output::cell(line.kept[name.as_str()]))).collect();
    let labels = output::label_list(&line.labels);
    writeln!(out, "{}{kept},{},{},{labels}", line.row, line.rank, line.log_probability)?;
    Ok(())
}
