//! What an experiment found: tables and figures as plain data.

use phex_report::Figure;
use serde::{Deserialize, Serialize};

use crate::harness::{MarkdownTable, ResultPage};

/// All that an experiment found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The name of the experiment.
    pub name: String,
    /// Its title in reports.
    pub title: String,
    /// The data in words, and what differs from the paper.
    pub data: String,
    /// Whether this is the miniature.
    pub quick: bool,
    /// The version that ran it.
    pub version: String,
    /// CPU seconds of all runs, each counted once.
    pub core_seconds: f64,
    /// The measurements.
    pub tables: Vec<MarkdownTable>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Findings {
    /// The summary.
    pub fn page(&self) -> ResultPage {
        let mode = if self.quick { " --quick" } else { "" };
        ResultPage {
            title: self.title.clone(),
            made_by: format!(
                "`cargo run --release -p lab -- experiment {}{mode}`, version {}: {:.0} core-seconds. Numbers are \
                 means ± standard errors",
                self.name, self.version, self.core_seconds
            ),
            about: self.data.clone(),
            tables: self.tables.clone(),
            figures: self.figures.clone(),
        }
    }
}
