//! Results: a Markdown table, and a file of JSON with the machine that made them.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use crate::machine::Machine;

/// A Markdown table; columns but the first are aligned to the right.
pub(crate) struct Table {
    text: String,
}

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Table {
        let rule = vec!["---:"; columns.len() - 1].join("|");
        Table { text: format!("| {} |\n|---|{rule}|\n", columns.join(" | ")) }
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Two significant digits, as one reads errors.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => String::from("–"),
        0.0 => String::from("0"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        size if size >= 0.01 => format!("{value:.3}"),
        size if size >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.0e}"),
    }
}

/// As [`short`], and a dash for what is not known.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("–"), short)
}

/// A part as a percentage.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0}", 100.0 * part)
}

/// The mean; NaN of nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}

/// The quantile of sorted values; NaN of nothing.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((part * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Writes results as JSON, with the command that makes them and the machine.
pub(crate) fn write(path: &Path, command: &str, results: impl Serialize) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct File<'a, R> {
        command: &'a str,
        machine: Machine,
        #[serde(flatten)]
        results: R,
    }
    let file = File { command, machine: Machine::here(), results };
    std::fs::write(path, serde_json::to_string_pretty(&file)? + "\n")
        .with_context(|| path.display().to_string())
}
