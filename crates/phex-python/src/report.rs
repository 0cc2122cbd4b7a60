//! The findings of a check, as objects.

use std::sync::Arc;

use phex::graph::{self, SourceLocation};
use phex_report::escape_markup;
use pyo3::prelude::*;

use crate::errors::Failure;

/// How many findings a notebook shows.
const SHOWN: usize = 50;

/// The findings of a check.
#[pyclass(frozen, module = "phex")]
#[derive(Debug, Clone)]
pub(crate) struct Report(Arc<graph::Report>);

/// A mistake in a graph, or a warning.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    /// The kind: `dead-label`, `hierarchy-cycle` and so on.
    kind: String,
    /// `error` or `warning`.
    severity: &'static str,
    /// The labels concerned, the most important one first.
    labels: Vec<String>,
    /// What is wrong and, if known, what to do.
    message: String,
    /// The relations that prove it, in order.
    chain: Vec<Step>,
    /// The file, if known.
    file: Option<String>,
    /// The line, counted from 1, if known.
    line: Option<u32>,
}

/// One relation of a proof.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// `hierarchy`, `exclusion`, `one_of` or `rule`.
    relation: String,
    /// The parent, or the first label.
    a: String,
    /// The child, or the second label.
    b: String,
    /// The relation in words.
    text: String,
    /// The file, if known.
    file: Option<String>,
    /// The line, counted from 1, if known.
    line: Option<u32>,
}

/// A relation whose removal revives labels that can never be on.
#[pyclass(frozen, module = "phex", get_all)]
#[derive(Debug, Clone)]
pub(crate) struct RootCause {
    /// The relation to remove, in addition to those of the causes before it.
    remove: Step,
    /// The labels that this removal revives.
    revives: Vec<String>,
    /// How many labels this and the earlier removals revive together.
    revived: usize,
    /// How many labels are dead.
    dead: usize,
}

fn file(place: &SourceLocation) -> Option<String> {
    place.source.as_ref().map(|source| source.to_string())
}

fn severity(severity: graph::Severity) -> &'static str {
    match severity {
        graph::Severity::Error => "error",
        graph::Severity::Warning => "warning",
    }
}

impl Step {
    fn new(step: &graph::Step) -> Step {
        let relation = serde_json::to_value(step.relation);
        Step {
            relation: relation.ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default(),
            a: step.a.clone(),
            b: step.b.clone(),
            text: step.text.clone(),
            file: file(&step.place),
            line: step.place.line,
        }
    }
}

impl Finding {
    fn new(finding: &graph::Finding) -> Finding {
        Finding {
            kind: finding.kind.name(),
            severity: severity(finding.severity),
            labels: finding.labels.clone(),
            message: finding.message.clone(),
            chain: finding.chain.iter().map(Step::new).collect(),
            file: file(&finding.place),
            line: finding.place.line,
        }
    }

    fn place(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => String::new(),
        }
    }
}

impl Report {
    pub(crate) fn new(report: graph::Report) -> Report {
        Report(Arc::new(report))
    }
}

#[pymethods]
impl Step {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Step: {}>", self.text)
    }
}

#[pymethods]
impl Finding {
    fn __str__(&self) -> String {
        let place = self.place();
        let place = if place.is_empty() { place } else { format!("{place}: ") };
        format!("{place}{}: {}", self.severity, self.message)
    }

    fn __repr__(&self) -> String {
        format!("<Finding {}: {}>", self.kind, self.message)
    }
}

#[pymethods]
impl RootCause {
    fn __repr__(&self) -> String {
        format!("<RootCause: without \"{}\" {} live>", self.remove.text, self.revives.len())
    }
}

#[pymethods]
impl Report {
    /// How many labels the graph has.
    #[getter]
    fn labels(&self) -> usize {
        self.0.labels
    }

    /// How many findings are errors.
    #[getter]
    fn errors(&self) -> usize {
        self.0.errors
    }

    /// How many findings are warnings.
    #[getter]
    fn warnings(&self) -> usize {
        self.0.warnings
    }

    /// The findings, sorted by severity, kind and place.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.0.findings().iter().map(Finding::new).collect()
    }

    /// A few relations whose removal, in this order, revives most labels that can never be on.
    #[getter]
    fn root_causes(&self) -> Vec<RootCause> {
        let cause = |cause: &graph::RootCause| RootCause {
            remove: Step::new(&cause.remove),
            revives: cause.revives.clone(),
            revived: cause.revived,
            dead: cause.dead,
        };
        self.0.root_causes.iter().map(cause).collect()
    }

    /// Whether there are no findings.
    #[getter]
    fn is_clean(&self) -> bool {
        self.0.is_clean()
    }

    /// The findings of one kind, such as `dead-label`.
    fn of_kind(&self, kind: &str) -> Vec<Finding> {
        let found = self.0.findings().iter().filter(|finding| finding.kind.name() == kind);
        found.map(Finding::new).collect()
    }

    /// The whole report as JSON, as `phex graph check --json` writes it.
    fn to_json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(&*self.0).map_err(|error| Failure::Input(error.to_string()))
    }

    fn __len__(&self) -> usize {
        self.0.findings().len()
    }

    fn __str__(&self) -> String {
        self.0.to_text(true)
    }

    fn __repr__(&self) -> String {
        format!("<Report: {}>", self.0.summary())
    }

    /// A table for notebooks, root causes first.
    fn _repr_html_(&self) -> String {
        let mut html = format!("<p>{}</p>", escape_markup(&self.0.summary()));
        if let Some(causes) = self.0.root_cause_summary() {
            html.push_str(&format!("<p>{}</p>", escape_markup(&causes)));
        }
        let findings: Vec<Finding> =
            self.0.findings().iter().take(SHOWN).map(Finding::new).collect();
        if findings.is_empty() {
            return html;
        }
        let placed = findings.iter().any(|finding| !finding.place().is_empty());
        let titles = ["severity", "kind", "where", "message"];
        let shown = titles.iter().filter(|title| placed || **title != "where");
        let head: String = shown.map(|title| format!("<th {LEFT}>{title}</th>")).collect();
        let rows: String = findings.iter().map(|finding| finding.html_row(placed)).collect();
        html.push_str(&format!(
            "<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        ));
        if let Some(more) = self.0.findings().len().checked_sub(SHOWN).filter(|&more| more > 0) {
            html.push_str(&format!("<p>and {more} more</p>"));
        }
        html
    }
}

const LEFT: &str = "style=\"text-align:left;vertical-align:top\"";

impl Finding {
    /// A row of the table; the relations of a longer proof are folded.
    fn html_row(&self, placed: bool) -> String {
        let colour = if self.severity == "error" { "#b3261e" } else { "#8a6d00" };
        let mut cells = vec![
            format!("<span style=\"color:{colour}\">{}</span>", self.severity),
            escape_markup(&self.kind).into_owned(),
        ];
        if placed {
            cells.push(escape_markup(&self.place()).into_owned());
        }
        let mut message = escape_markup(&self.message).into_owned();
        if self.chain.len() > 1 {
            let step = |step: &Step| format!("<li>{}</li>", escape_markup(&step.text));
            let steps: String = self.chain.iter().map(step).collect();
            message.push_str(&format!("<details><summary>why</summary><ol>{steps}</ol></details>"));
        }
        cells.push(message);
        let cells: String = cells.iter().map(|cell| format!("<td {LEFT}>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>")
    }
}
