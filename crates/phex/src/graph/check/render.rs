//! Renders reports as text and Markdown. Their JSON form is the serialised report.

use std::fmt::Write as _;

use super::finding::{Finding, Report, RootCause, Severity};

/// Text shows this many findings of each kind and counts the rest.
const SHOWN: usize = 10;

impl Report {
    /// The report for a terminal: root causes first, then findings by kind. With `all` it shows
    /// every finding, otherwise a few of each kind and a count of the rest.
    pub fn to_text(&self, all: bool) -> String {
        let mut out = String::new();
        if let Some(summary) = self.root_cause_summary() {
            let _ = writeln!(out, "{summary}");
            for cause in self.main_causes() {
                let _ = writeln!(out, "  - {}{}", cause.remove.text, place_suffix(cause));
                let _ = writeln!(out, "    revives {}", names(&cause.revives));
            }
            out.push('\n');
        }
        for (kind, findings) in self.by_kind() {
            let severity = match findings[0].severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let shown = if all { findings.len() } else { SHOWN };
            for finding in findings.iter().take(shown) {
                if !finding.place.is_unknown() {
                    let _ = write!(out, "{}: ", finding.place);
                }
                let _ = writeln!(out, "{severity}[{kind}]: {}", finding.message);
            }
            if findings.len() > shown {
                let _ = writeln!(out, "  … and {} more of [{kind}]", findings.len() - shown);
            }
        }
        let _ = writeln!(out, "{}", self.summary());
        out
    }

    /// The report as Markdown, with every finding.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# Label graph check\n\n{}\n", self.summary());
        if let Some(summary) = self.root_cause_summary() {
            let _ = writeln!(out, "\n## Root causes\n\n{summary}\n");
            let _ = writeln!(out, "| remove | place | revives | together |\n|---|---|---:|---:|");
            for cause in &self.root_causes {
                let place = if cause.remove.place.is_unknown() {
                    String::new()
                } else {
                    cause.remove.place.to_string()
                };
                let text = cell(&cause.remove.text);
                let (revives, sum) = (cause.revives.len(), cause.revived);
                let _ = writeln!(out, "| {text} | {place} | {revives} | {sum} of {} |", cause.dead);
            }
        }
        for (kind, findings) in self.by_kind() {
            let _ = writeln!(out, "\n## {kind} ({})\n", findings.len());
            for finding in findings {
                let place = if finding.place.is_unknown() {
                    String::new()
                } else {
                    format!("`{}`: ", finding.place)
                };
                let _ = writeln!(out, "- {place}{}", finding.message);
            }
        }
        out
    }

    /// "1860 labels: 469 errors, 2 warnings".
    pub fn summary(&self) -> String {
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let labels = plural(self.labels, "label");
        if self.is_clean() {
            return format!("{labels}: nothing found");
        }
        let (errors, warnings) = (plural(self.errors, "error"), plural(self.warnings, "warning"));
        format!("{labels}: {errors}, {warnings}")
    }

    /// "Remove these 2 relations and 466 of 469 dead labels revive:"
    pub fn root_cause_summary(&self) -> Option<String> {
        let causes = self.main_causes();
        let last = causes.last()?;
        let these = match causes.len() {
            1 => String::from("this relation"),
            n => format!("these {n} relations"),
        };
        Some(format!("Remove {these} and {} of {} dead labels revive:", last.revived, last.dead))
    }

    /// The first few causes: until nine in ten dead labels revive, but at most ten.
    fn main_causes(&self) -> &[RootCause] {
        let enough = |cause: &RootCause| cause.revived * 10 >= cause.dead * 9;
        let count = self.root_causes.iter().position(enough).map_or(usize::MAX, |at| at + 1);
        &self.root_causes[..count.min(10).min(self.root_causes.len())]
    }

    /// The errors, one per line, a few of each kind.
    pub(crate) fn errors_as_text(&self) -> String {
        let mut out = String::new();
        for (kind, findings) in self.by_kind().filter(|(kind, _)| kind.refuses()) {
            for finding in findings.iter().take(SHOWN) {
                let place = if finding.place.is_unknown() {
                    String::new()
                } else {
                    format!("{}: ", finding.place)
                };
                let _ = writeln!(out, "  {place}{}", finding.message);
            }
            if findings.len() > SHOWN {
                let _ = writeln!(out, "  … and {} more of [{kind}]", findings.len() - SHOWN);
            }
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn by_kind(&self) -> impl Iterator<Item = (super::FindingKind, &[Finding])> {
        self.findings.chunk_by(|a, b| a.kind == b.kind).map(|chunk| (chunk[0].kind, chunk))
    }
}

fn place_suffix(cause: &RootCause) -> String {
    if cause.remove.place.is_unknown() {
        return String::new();
    }
    format!(" ({})", cause.remove.place)
}

/// "118 labels (a, b, c, …)".
fn names(labels: &[String]) -> String {
    let shown: Vec<&str> = labels.iter().take(3).map(String::as_str).collect();
    let more = if labels.len() > 3 { ", …" } else { "" };
    let plural = if labels.len() == 1 { "" } else { "s" };
    format!("{} label{plural} ({}{more})", labels.len(), shown.join(", "))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
