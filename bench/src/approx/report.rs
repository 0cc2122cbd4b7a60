//! The tables of errors.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::{Cell, Sample};
use crate::engines;
use crate::table::{Table, maybe, percent, short};

pub(super) fn print(cells: &[Cell]) {
    println!("mean over rows of the largest error of a marginal / the mean error\n");
    let mut table = Table::new(&[
        "problem",
        "u",
        "scores",
        "engine",
        "rows",
        "max / mean error",
        "converged %",
        "doubtful %",
        "log Z error",
        "bounds",
        "µs a row",
    ]);
    for cell in cells {
        table.row(&[
            cell.problem.to_owned(),
            cell.u.to_string(),
            cell.evidence.to_owned(),
            cell.engine.to_owned(),
            cell.rows.to_string(),
            format!("{} / {}", short(cell.max_error), short(cell.mean_error)),
            percent(cell.converged),
            percent(cell.doubtful),
            maybe(cell.log_z_error),
            maybe(cell.width),
            format!("{:.0}", cell.microseconds),
        ]);
    }
    println!("{}", table.text());
}

/// How much smaller the error of `blocks` is than that of damped belief propagation.
#[derive(Debug, Serialize)]
pub(super) struct Ratio {
    problem: &'static str,
    u: f64,
    evidence: &'static str,
    damped: f64,
    blocks: f64,
    ratio: f64,
}

pub(super) fn ratios(cells: &[Cell]) -> Vec<Ratio> {
    let mut table =
        Table::new(&["problem", "u", "scores", "damped LBP", "blocks", "ratio of mean errors"]);
    let mut ratios = Vec::new();
    for damped in cells.iter().filter(|cell| cell.engine == engines::DAMPED) {
        let same = |cell: &&Cell| {
            cell.engine == engines::BLOCKS
                && (cell.problem, cell.evidence) == (damped.problem, damped.evidence)
                && cell.u == damped.u
        };
        // On trees `blocks` is exact, and a ratio to rounding says nothing.
        let Some(blocks) = cells.iter().find(same).filter(|cell| cell.problem != "trees") else {
            continue;
        };
        let ratio = damped.mean_error / blocks.mean_error;
        let Cell { problem, u, evidence, .. } = *damped;
        table.row(&[
            problem.to_owned(),
            u.to_string(),
            evidence.to_owned(),
            short(damped.mean_error),
            short(blocks.mean_error),
            short(ratio),
        ]);
        let (damped, blocks) = (damped.mean_error, blocks.mean_error);
        ratios.push(Ratio { problem, u, evidence, damped, blocks, ratio });
    }
    println!("{}", table.text());
    ratios
}

/// A line of CSV for each answer.
pub(super) fn write_samples(path: &Path, samples: &[Sample]) -> anyhow::Result<()> {
    let mut text = String::from(
        "problem,labels,u,scores,engine,max_error,mean_error,converged,doubtful,log_z_error,width,\
         effective_sample\n",
    );
    let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for sample in samples {
        let Sample { labels, u, evidence, engine, max_error, mean_error, .. } = sample;
        let Sample { converged, doubtful, .. } = sample;
        let problem = sample.problem.replace(',', "");
        let known = [sample.log_z_error, sample.width, sample.effective_sample].map(optional);
        let known = known.join(",");
        let _ = writeln!(
            text,
            "{problem},{labels},{u},{evidence},{engine},{max_error},{mean_error},{converged},\
             {doubtful},{known}"
        );
    }
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
