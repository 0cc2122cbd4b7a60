//! What an experiment found: tables and figures as plain data, which others print and draw.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::statistics::Summary;

/// All that an experiment found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment.
    pub name: String,
    /// What it is called in reports.
    pub title: String,
    /// On which data, in words: also what differs from the paper.
    pub data: String,
    /// Whether this is the miniature.
    pub quick: bool,
    /// The version that ran it.
    pub version: String,
    /// Processor seconds of all runs, each counted once.
    pub core_seconds: f64,
    /// What was measured.
    pub tables: Vec<Table>,
    /// What is drawn.
    pub figures: Vec<Figure>,
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The head of each column.
    pub columns: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(|&column| String::from(column)).collect();
        Table { title: String::from(title), columns, rows: Vec::new() }
    }

    /// The table as Markdown, numbers to the right.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n\n| {} |\n|---", self.title, self.columns.join(" | "));
        text.push_str(&"|---:".repeat(self.columns.len().saturating_sub(1)));
        text.push_str("|\n");
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// Panels side by side with the same series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub file: String,
    /// What it shows, and on what.
    pub title: String,
    /// What the axes are.
    pub x: String,
    /// What the axes are.
    pub y: String,
    /// From left to right.
    pub panels: Vec<FigurePanel>,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigurePanel {
    /// What sets it apart.
    pub title: String,
    /// What is drawn.
    pub series: Vec<FigureSeries>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureSeries {
    /// What it is.
    pub name: String,
    /// How it is drawn.
    pub line: Line,
    /// By x; a level has none.
    pub points: Vec<(Option<f64>, Summary)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// Solid: constant strengths by exact inference.
    Solid,
    /// Dotted: variable strengths.
    Dotted,
    /// Short dashes: another way of inference.
    Dashed,
    /// Horizontal, dashed: does not depend on x.
    Level,
    /// Horizontal, grey: a baseline.
    Baseline,
}

impl Outcome {
    /// All tables as a page of Markdown that says how it was made; figures are linked to as SVG.
    pub fn markdown(&self) -> String {
        let mode = if self.quick { " --quick" } else { "" };
        let mut text = format!(
            "# {}\n\nMade by `phex experiment {}{mode}`, version {}: {:.0} core-seconds. Numbers are means ± standard errors.\n\n{}\n",
            self.title, self.name, self.version, self.core_seconds, self.data
        );
        for figure in &self.figures {
            let _ = write!(text, "\n![{}]({}.svg)\n", figure.title, figure.file);
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}", table.markdown());
        }
        text
    }
}
