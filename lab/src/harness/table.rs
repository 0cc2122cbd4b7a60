//! Markdown tables, and numbers as their cells show them.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkdownTable {
    /// What it shows; may be empty.
    pub title: String,
    /// The heading of each column.
    pub columns: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

impl MarkdownTable {
    /// A table without rows. The headings of its columns stand in one text, with `|` between them.
    pub fn new(title: &str, columns: &str) -> MarkdownTable {
        let columns = columns.split('|').map(|column| String::from(column.trim())).collect();
        MarkdownTable { title: String::from(title), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// The table as Markdown. All columns but the first are aligned to the right.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            let _ = write!(text, "{}\n\n", self.title);
        }
        let rule = "|---:".repeat(self.columns.len().saturating_sub(1));
        let _ = writeln!(text, "| {} |\n|---{rule}|", self.columns.join(" | "));
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// Two significant digits.
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

/// As [`short`], with a dash for an unknown value.
pub(crate) fn short_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("–"), short)
}

/// A share of one in whole percent.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}
