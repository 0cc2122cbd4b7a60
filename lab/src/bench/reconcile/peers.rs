//! The same projection by cvxpy and scikit-learn, in a process of its own.
//!
//! A problem is a JSON header with a raw array of logits. `rows` are the inequalities `Σ members ≤ parent` (`≤ 1` if the
//! parent is −1), or equations. With nothing but pairs, the projection is the least-squares projection of the logits,
//! which suits OSQP. Otherwise CLARABEL minimises `Σ q log q + (1 − q) log(1 − q) − ℓ q`. The solver compiles the problem
//! once, and each row only sets a parameter.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use phex::graph::{ExclusionRule, LabelId, RelationGraph};
use phex::reconcile::{FinishedRows, Reconciler, SumLimit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::BesideUs;
use super::cases::ReconcileCase;
use crate::harness::MarkdownTable;
use crate::harness::table::short;

/// Who solves the same problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReconcilePeer {
    /// cvxpy with OSQP, on logits.
    Osqp,
    /// cvxpy with CLARABEL, on probabilities.
    Clarabel,
    /// `sklearn.isotonic.isotonic_regression`, on the logits of a chain.
    Isotonic,
}

impl ReconcilePeer {
    fn name(self) -> &'static str {
        match self {
            ReconcilePeer::Osqp => "osqp",
            ReconcilePeer::Clarabel => "clarabel",
            ReconcilePeer::Isotonic => "isotonic",
        }
    }

    fn title(self) -> &'static str {
        match self {
            ReconcilePeer::Osqp => "cvxpy, OSQP",
            ReconcilePeer::Clarabel => "cvxpy, CLARABEL",
            ReconcilePeer::Isotonic => "scikit-learn, isotonic_regression",
        }
    }

    /// How many rows it solves.
    fn rows(self) -> usize {
        if self == ReconcilePeer::Isotonic { 64 } else { 3 }
    }
}

/// The report of a peer.
#[derive(Debug, Deserialize)]
struct PeerReport {
    /// CPU seconds per row.
    call: f64,
    solver: Option<f64>,
    probabilities: Vec<f64>,
}

/// What a peer found on some rows of a case.
pub(super) struct PeerAnswer {
    case: String,
    pub(super) scores: &'static str,
    peer: ReconcilePeer,
    rows: usize,
    report: PeerReport,
    difference: f64,
}

impl PeerAnswer {
    pub(super) fn beside(self, ours: f64) -> BesideUs {
        BesideUs {
            case: self.case,
            scores: self.scores,
            peer: self.peer,
            rows: self.rows,
            call: 1e6 * self.report.call,
            solver: self.report.solver.map(|seconds| 1e6 * seconds),
            ours,
            difference: self.difference,
        }
    }
}

/// Runs a peer on the first "real" rows of a case.
pub(super) fn compare(
    venv: &Path,
    folder: &Path,
    case: &ReconcileCase,
    peer: ReconcilePeer,
    reconciler: &Reconciler,
) -> anyhow::Result<PeerAnswer> {
    let scores = case.scores.iter().find(|scores| scores.name == "real");
    let scores = scores.context("the case has no logits")?;
    let (n, rows) = (case.graph.len(), peer.rows());
    let values = &scores.values[..(rows * n).min(scores.values.len())];
    let rows = values.len() / n;
    let file = |kind: &str| folder.join(format!("{}.{kind}", case.name.replace([',', ' '], "-")));
    std::fs::write(file("bin"), values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())?;
    let head = json!({ "n": n, "peer": peer.name(), "logits": file("bin"), "rows": inequalities(&case.graph, reconciler) });
    std::fs::write(file("json"), head.to_string())?;
    let python = venv.join("bin/python");
    let mut child = Command::new(&python);
    child.arg("lab/peers/reconcile_peers.py").arg(file("json")).arg(file("out.json"));
    let status = child.status();
    let status = status.with_context(|| format!("{} (make bench-reconcile)", python.display()))?;
    if !status.success() {
        bail!("lab/peers/reconcile_peers.py: {status}");
    }
    let report: PeerReport = serde_json::from_slice(&std::fs::read(file("out.json"))?)?;
    let ours = reconciler.run(FinishedRows::Logits(values))?.probabilities;
    let pairs = ours.iter().zip(&report.probabilities);
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    Ok(PeerAnswer { case: case.name.clone(), scores: scores.name, peer, rows, report, difference })
}

/// An inequality or equation of the peer's problem.
#[derive(Debug, Serialize)]
struct PeerInequality {
    members: Vec<usize>,
    /// −1 for the limit 1.
    parent: i64,
    equal: bool,
}

/// The rows that describe a hierarchy, or a tree whose siblings exclude each other. Of any other relations there are
/// many descriptions, so the peer gets ours.
fn inequalities(graph: &RelationGraph, reconciler: &Reconciler) -> Vec<PeerInequality> {
    if graph.rule().is_some_and(|declared| declared.rule == ExclusionRule::NoCommonDescendant) {
        let limits = reconciler.limits().into_iter();
        let row = |limit: SumLimit| PeerInequality {
            members: limit.members.iter().map(|label| label.index()).collect(),
            parent: limit.above.map_or(-1, |label| label.index() as i64),
            equal: limit.equal,
        };
        return limits.map(row).collect();
    }
    let equal = !graph.one_of().is_empty();
    let index = |labels: &[LabelId]| labels.iter().map(|label| label.index()).collect::<Vec<_>>();
    let mut rows = Vec::new();
    if equal {
        let members = graph.roots().map(|label| label.index()).collect();
        rows.push(PeerInequality { members, parent: -1, equal });
    }
    for label in graph.ids() {
        let (children, parent) = (graph.topology().children(label), label.index() as i64);
        if children.is_empty() {
            continue;
        }
        if graph.rule().is_some() {
            rows.push(PeerInequality { members: index(children), parent, equal });
        } else {
            let row = |&child: &LabelId| {
                let members = vec![child.index()];
                PeerInequality { members, parent, equal }
            };
            rows.extend(children.iter().map(row));
        }
    }
    rows
}

pub(super) fn table(rows: &[BesideUs]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "Peers on the same rows, double precision; CPU time:",
        "case | scores | peer | rows | µs per row | of it in the solver | phex, µs per row | × phex | solver × phex | differs by",
    );
    for row in rows {
        let of_solver = |text: fn(f64, f64) -> f64| {
            row.solver.map_or(String::from("–"), |time| format!("{:.0}", text(time, row.ours)))
        };
        table.row([
            row.case.clone(),
            String::from(row.scores),
            String::from(row.peer.title()),
            row.rows.to_string(),
            format!("{:.0}", row.call),
            of_solver(|time, _| time),
            format!("{:.1}", row.ours),
            short(row.call / row.ours),
            of_solver(|time, ours| time / ours),
            format!("{:.0e}", row.difference),
        ]);
    }
    table
}
