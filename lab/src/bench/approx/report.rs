//! The tables of errors.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::{CellMean, RowAnswer};
use crate::harness::table::{short, short_or_dash, whole_percent};
use crate::harness::{MarkdownTable, setups};

pub(super) fn errors(cells: &[CellMean]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "Mean over rows of the largest error of a marginal / the mean error",
        "problem | u | scores | engine | rows | max / mean error | converged % | doubtful % | log Z error | bounds | µs per row",
    );
    for cell in cells {
        table.row([
            cell.problem.to_owned(),
            cell.u.to_string(),
            cell.scores.to_owned(),
            cell.engine.clone(),
            cell.rows.to_string(),
            format!("{} / {}", short(cell.max_error), short(cell.mean_error)),
            whole_percent(cell.converged),
            whole_percent(cell.doubtful),
            short_or_dash(cell.log_z_error),
            short_or_dash(cell.width),
            format!("{:.0}", cell.microseconds),
        ]);
    }
    table
}

/// How many times smaller the mean error of `forest-bp` is than that of damped belief propagation.
#[derive(Debug, Serialize)]
pub(super) struct ErrorRatio {
    problem: &'static str,
    u: f64,
    scores: &'static str,
    damped: f64,
    forest_bp: f64,
    ratio: f64,
}

pub(super) fn ratios(cells: &[CellMean]) -> Vec<ErrorRatio> {
    let mut ratios = Vec::new();
    for damped in cells.iter().filter(|cell| cell.engine == setups::DAMPED) {
        let same = |cell: &&CellMean| {
            cell.engine == setups::FOREST_BP
                && (cell.problem, cell.scores) == (damped.problem, damped.scores)
                && cell.u == damped.u
        };
        // On trees `forest-bp` is exact, and a ratio to rounding errors means nothing.
        let Some(cell) = cells.iter().find(same).filter(|cell| cell.problem != "trees") else {
            continue;
        };
        let (problem, u, scores) = (damped.problem, damped.u, damped.scores);
        let (damped, forest_bp) = (damped.mean_error, cell.mean_error);
        let ratio = damped / forest_bp;
        ratios.push(ErrorRatio { problem, u, scores, damped, forest_bp, ratio });
    }
    ratios
}

pub(super) fn ratio_table(ratios: &[ErrorRatio]) -> MarkdownTable {
    let columns = "problem | u | scores | damped LBP | forest-bp | ratio";
    let mut table = MarkdownTable::new("Mean errors of damped LBP and of `forest-bp`", columns);
    for ratio in ratios {
        table.row([
            ratio.problem.to_owned(),
            ratio.u.to_string(),
            ratio.scores.to_owned(),
            short(ratio.damped),
            short(ratio.forest_bp),
            short(ratio.ratio),
        ]);
    }
    table
}

/// Writes one line of CSV per answer.
pub(super) fn write_samples(path: &Path, answers: &[RowAnswer]) -> anyhow::Result<()> {
    let mut text = String::from(
        "problem,labels,u,scores,engine,max_error,mean_error,converged,doubtful,log_z_error,width,\
         effective_sample\n",
    );
    let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for answer in answers {
        let RowAnswer { labels, u, scores, engine, max_error, mean_error, .. } = answer;
        let RowAnswer { converged, doubtful, .. } = answer;
        let problem = answer.problem.replace(',', "");
        let known = [answer.log_z_error, answer.width, answer.effective_sample].map(optional);
        let known = known.join(",");
        let _ = writeln!(
            text,
            "{problem},{labels},{u},{scores},{engine},{max_error},{mean_error},{converged},\
             {doubtful},{known}"
        );
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
