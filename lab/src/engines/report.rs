//! Measurements as Markdown or JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::measure::EngineMeasurement;
use crate::harness::MarkdownTable;

#[derive(Serialize)]
pub(super) struct EnginesReport {
    pub(super) model: String,
    pub(super) labels: usize,
    pub(super) rows: usize,
    /// Where the scores come from, in words.
    pub(super) scores: String,
    /// What answers are compared with, if there is anything.
    pub(super) reference: Option<String>,
    pub(super) engines: Vec<EngineLine>,
    pub(super) refused: Vec<RefusedEngine>,
}

#[derive(Serialize)]
pub(super) struct RefusedEngine {
    pub(super) engine: String,
    pub(super) why: String,
}

/// An engine in a setting. Unknown and infinite numbers are null.
#[derive(Serialize)]
pub(super) struct EngineLine {
    engine: String,
    answers: &'static str,
    compile_milliseconds: f64,
    microseconds_per_row: f64,
    mean_error: Option<f64>,
    largest_error: Option<f64>,
    log_partition_error: Option<f64>,
    converged_rows: Option<usize>,
    doubtful_rows: usize,
    bounds_width: Option<f64>,
}

impl EngineLine {
    pub(super) fn new(engine: String, measured: &EngineMeasurement, rows: usize) -> EngineLine {
        EngineLine {
            engine,
            answers: measured.trust,
            compile_milliseconds: measured.compile_seconds * 1e3,
            microseconds_per_row: measured.run_seconds * 1e6 / rows as f64,
            mean_error: measured.distance.mean,
            largest_error: measured.distance.largest,
            log_partition_error: measured.distance.log_partition,
            converged_rows: measured.converged,
            doubtful_rows: measured.doubtful,
            bounds_width: measured.bounds_width,
        }
    }
}

impl EnginesReport {
    pub(super) fn markdown(&self) -> String {
        let mut out = format!(
            "{}: {} labels, {} rows, scores {}; one thread, double precision.\n",
            self.model, self.labels, self.rows, self.scores
        );
        let _ = match &self.reference {
            Some(reference) => writeln!(out, "Errors are against {reference}.\n"),
            None => {
                writeln!(out, "There is nothing to compare with: no engine is exact or samples.\n")
            }
        };
        let mut table = MarkdownTable::new(
            "",
            "engine | answers | compile ms | µs per row | mean error | largest error | log Z error | converged | doubtful | bounds width",
        );
        let dash = || String::from("–");
        let small = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.1e}"));
        for line in &self.engines {
            table.row([
                line.engine.clone(),
                String::from(line.answers),
                format!("{:.3}", line.compile_milliseconds),
                format!("{:.2}", line.microseconds_per_row),
                small(line.mean_error),
                small(line.largest_error),
                small(line.log_partition_error),
                line.converged_rows.map_or_else(dash, |rows| rows.to_string()),
                line.doubtful_rows.to_string(),
                line.bounds_width.map_or_else(dash, |width| format!("{width:.3}")),
            ]);
        }
        out.push_str(&table.markdown());
        if !self.refused.is_empty() {
            out.push_str("\nEngines that cannot handle the model:\n\n");
        }
        for refused in &self.refused {
            let _ = writeln!(out, "- {}: {}", refused.engine, refused.why);
        }
        out
    }
}
