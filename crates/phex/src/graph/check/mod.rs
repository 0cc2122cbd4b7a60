//! Checks a graph and explains what is wrong with it.
//!
//! `resolve` turns names into ids and finds everything that makes a graph unusable. `run` then
//! checks the graph that remains: labels that can never be on, with proofs and root causes, and
//! warnings. One run reports everything.

mod causes;
mod cycles;
mod dead;
mod finding;
mod names;
mod render;
mod resolve;
mod warnings;

pub use finding::{Finding, FindingKind, Report, RootCause, Severity, Step, StepRelation};
pub(super) use resolve::resolve;

use super::closure::Logic;
use super::{GraphBuilder, RelationGraph};

/// Everything that is wrong with the declarations, and the graph unless it is unusable.
pub(super) fn run(builder: &GraphBuilder) -> (Report, Option<RelationGraph>) {
    let (graph, mut findings) = resolve(builder);
    let usable = !findings.iter().any(|finding| finding.kind.refuses());
    let (more, causes) = analyse(&graph);
    findings.extend(more);
    let mut report = Report::new(graph.len(), findings);
    report.root_causes = causes;
    (report, usable.then_some(graph))
}

/// The findings for a graph whose names and strengths are valid.
fn analyse(graph: &RelationGraph) -> (Vec<Finding>, Vec<RootCause>) {
    let hard = Logic::hard(graph);
    let dead = dead::dead_labels(graph, &hard);
    let causes = causes::root_causes(graph, &hard, &dead);
    let mut findings: Vec<Finding> = dead.into_iter().map(|dead| dead.finding).collect();
    findings.extend(dead::groups(graph, &hard));
    findings.extend(warnings::warnings(graph, &hard));
    findings.extend(names::similar_names(graph));
    (findings, causes)
}

impl RelationGraph {
    /// Checks a frozen graph for labels that can never be on, and for warnings.
    pub fn check(&self) -> Report {
        let (findings, causes) = analyse(self);
        let mut report = Report::new(self.len(), findings);
        report.root_causes = causes;
        report
    }
}
