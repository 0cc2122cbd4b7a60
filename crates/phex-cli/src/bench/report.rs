//! Measurements as a table in Markdown, or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::measure::Measured;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) labels: usize,
    pub(super) rows: usize,
    /// Where the scores come from.
    pub(super) scores: String,
    /// What answers are compared with; none where there is nothing.
    pub(super) reference: Option<String>,
    pub(super) engines: Vec<Line>,
    pub(super) refused: Vec<Refused>,
}

#[derive(Serialize)]
pub(super) struct Refused {
    pub(super) engine: String,
    pub(super) why: String,
}

/// An engine in a setting. Numbers that are not known, or infinite, are null.
#[derive(Serialize)]
pub(super) struct Line {
    engine: String,
    answers: &'static str,
    compile_milliseconds: f64,
    microseconds_a_row: f64,
    mean_error: Option<f64>,
    largest_error: Option<f64>,
    log_partition_error: Option<f64>,
    converged_rows: Option<usize>,
    doubtful_rows: usize,
    bounds_width: Option<f64>,
}

impl Line {
    pub(super) fn new(engine: String, measured: &Measured, rows: usize) -> Line {
        Line {
            engine,
            answers: measured.trust,
            compile_milliseconds: measured.compile.as_secs_f64() * 1e3,
            microseconds_a_row: measured.run.as_secs_f64() * 1e6 / rows as f64,
            mean_error: measured.distance.mean,
            largest_error: measured.distance.largest,
            log_partition_error: measured.distance.log_partition,
            converged_rows: measured.converged,
            doubtful_rows: measured.doubtful,
            bounds_width: measured.bounds_width,
        }
    }
}

impl Report {
    pub(super) fn to_markdown(&self) -> String {
        let mut out = format!(
            "{}: {} labels, {} rows, scores {}; one thread, doubles.\n",
            self.model, self.labels, self.rows, self.scores
        );
        let _ = match &self.reference {
            Some(reference) => writeln!(out, "Errors are against {reference}."),
            None => {
                writeln!(out, "There is nothing to compare with: no engine is exact or samples.")
            }
        };
        out.push_str(
            "\n| engine | answers | compile ms | µs a row | mean error | largest error \
             | log Z error | converged | doubtful | bounds width |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for line in &self.engines {
            let small = |value: Option<f64>| match value {
                Some(value) => format!("{value:.1e}"),
                None => String::from("–"),
            };
            let converged = line.converged_rows.map_or(String::from("–"), |n| n.to_string());
            let width =
                line.bounds_width.map_or(String::from("–"), |width| format!("{width:.3}"));
            let _ = writeln!(
                out,
                "| {} | {} | {:.3} | {:.2} | {} | {} | {} | {converged} | {} | {width} |",
                line.engine,
                line.answers,
                line.compile_milliseconds,
                line.microseconds_a_row,
                small(line.mean_error),
                small(line.largest_error),
                small(line.log_partition_error),
                line.doubtful_rows,
            );
        }
        if !self.refused.is_empty() {
            out.push_str("\nDo not take it:\n\n");
        }
        for refused in &self.refused {
            let _ = writeln!(out, "- {}: {}", refused.engine, refused.why);
        }
        out
    }
}
