//! Reads the peers' reports, and makes the tables.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::problem::PeerProblem;
use super::{PeerRow, REFERENCE, SpinUpdate};
use crate::harness::MarkdownTable;
use crate::harness::table::short;

/// By how much two implementations in single precision may differ after 20 iterations.
const TOLERANCE: f64 = 1e-3;
/// How many times slower each peer has to be on ImageNet's labels.
const REQUIRED: [(&str, f64); 4] =
    [("numpy", 12.0), ("torch", 19.0), ("torch-compile", 12.0), ("pgmax", 200.0)];
const REQUIRED_SAMPLER: f64 = 15.0;
const REQUIRED_GROUP: f64 = 1000.0;

/// Reads the reports of `run_all.py` on a problem.
pub(super) fn read_peers(
    folder: &Path,
    problem: &PeerProblem,
    marginals: &[f32],
    rows: &mut Vec<PeerRow>,
) -> anyhow::Result<()> {
    let our = |batch: usize| {
        let same = |row: &&PeerRow| row.problem == problem.name && row.batch == batch;
        rows.iter().find(same).map(|row| row.milliseconds)
    };
    let ours: Vec<(usize, Option<f64>)> =
        [1, 4, 64, 256].into_iter().map(|batch| (batch, our(batch))).collect();
    for (peer, required) in REQUIRED {
        for &(batch, same) in &ours {
            let file = folder.join(format!("lbp-{}-{peer}-{batch}.json", problem.name));
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            let report: Value = serde_json::from_str(&text)?;
            let number = |key: &str| report[key].as_f64();
            let milliseconds = number("cpu_ms_per_row_best").context("no time in a report")?;
            let theirs = report["marginals"].as_array().context("no marginals in a report")?;
            let theirs = theirs.iter().filter_map(Value::as_array).flatten();
            let gaps = theirs
                .zip(marginals)
                .map(|(a, b)| (a.as_f64().unwrap_or(f64::INFINITY) - f64::from(*b)).abs());
            let difference = gaps.fold(0.0, f64::max);
            if difference > TOLERANCE {
                eprintln!("{} {peer}: marginals differ from ours by {difference}", problem.name);
            }
            let is_group = !problem.group.is_empty();
            let required = match (is_group, problem.name, peer) {
                (true, _, "pgmax") => Some(REQUIRED_GROUP),
                (false, "imagenet", _) => Some(required),
                _ => None,
            };
            let reference = ours.iter().find(|(batch, _)| *batch == REFERENCE);
            let reference = reference.and_then(|(_, time)| *time);
            rows.push(PeerRow {
                problem: problem.name,
                implementation: peer.to_owned(),
                batch,
                milliseconds,
                median: number("ms_per_row_median").unwrap_or(f64::NAN),
                nanoseconds_message: None,
                difference: Some(difference),
                undisturbed: number("cpu_over_wall"),
                ratio: reference.map(|ours| milliseconds / ours),
                ratio_same_batch: same.map(|ours| milliseconds / ours),
                required,
            });
        }
    }
    Ok(())
}

/// Reads the report of the sampler.
pub(super) fn read_sampler(
    folder: &Path,
    problem: &PeerProblem,
    updates: &mut Vec<SpinUpdate>,
) -> anyhow::Result<()> {
    let file = folder.join(format!("gibbs-{}.json", problem.name));
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(()) };
    let report: Value = serde_json::from_str(&text)?;
    let ours = updates.last().map_or(f64::NAN, |ours| ours.nanoseconds);
    for kind in ["gibbs", "metropolis"] {
        // CPU time with set-up, like ours: wall-clock time would include other processes.
        let number = |value: &Value| value.as_f64().context("no time in a report");
        let spins = number(&report["reads"])? * number(&report["sweeps"])?;
        let spins = spins * problem.model.len() as f64;
        let nanoseconds = 1e9 * number(&report[kind]["best_cpu_s"])? / spins;
        updates.push(SpinUpdate {
            problem: problem.name,
            implementation: format!("dwave-samplers, {kind}"),
            nanoseconds,
            median: None,
            ratio: nanoseconds / ours,
            required: (problem.name == "imagenet").then_some(REQUIRED_SAMPLER),
        });
    }
    Ok(())
}

/// The tables of belief propagation and of samplers.
pub(super) fn tables(rows: &[PeerRow], updates: &[SpinUpdate]) -> [MarkdownTable; 2] {
    let optional = |value: Option<f64>| value.map(short).unwrap_or_default();
    let mut messages = MarkdownTable::new(
        "Loopy belief propagation",
        "problem | implementation | batch | ms per row, best (median) | ns per message | × phex at batch 256 | required | × phex at this batch | differs by | CPU / wall-clock time",
    );
    for row in rows {
        messages.row([
            row.problem.to_owned(),
            row.implementation.clone(),
            row.batch.to_string(),
            format!("{} ({})", short(row.milliseconds), short(row.median)),
            optional(row.nanoseconds_message),
            optional(row.ratio),
            optional(row.required),
            optional(row.ratio_same_batch),
            optional(row.difference),
            optional(row.undisturbed),
        ]);
    }
    let mut samplers = MarkdownTable::new(
        "Samplers",
        "problem | sampler | ns per spin update | median | × phex | required",
    );
    for update in updates {
        samplers.row([
            update.problem.to_owned(),
            update.implementation.clone(),
            short(update.nanoseconds),
            optional(update.median),
            short(update.ratio),
            optional(update.required),
        ]);
    }
    [messages, samplers]
}
