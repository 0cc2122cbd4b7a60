//! `phex graph plan`: which engine is used for a graph, why, and what it costs.

use std::fmt::Write as _;
use std::sync::Arc;

use phex::Error;
use phex::infer::{Change, Method, Options, Plan, Refusal, changes_for_exactness};
use phex::model::Model;
use serde::Serialize;

use crate::args::PlanCommand;
use crate::{Outcome, output};

/// A plan, and the changes that would make it exact if it is not.
#[derive(Serialize)]
struct Planned<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
}

/// When no engine can handle the graph.
#[derive(Serialize)]
struct NoPlan {
    method: Option<()>,
    exact: bool,
    refused: Vec<Refusal>,
    /// Changes that would make an exact engine possible.
    changes: Vec<Change>,
}

pub(crate) fn run(command: &PlanCommand) -> anyhow::Result<Outcome> {
    let options = command.engine.options()?;
    let options = if options.method == Method::Anneal { command.engine.search()? } else { options };
    let model = Arc::new(command.input.model()?);
    match crate::say::engine(Arc::clone(&model), &options) {
        Ok(engine) => {
            let changes =
                if engine.plan().exact { Vec::new() } else { changes(command, &model, &options) };
            if command.json {
                output::json(&Planned { plan: engine.plan(), changes })?;
            } else {
                output::text(&(text(engine.plan()) + &advice(&changes)))?;
            }
            Ok(Outcome::Fine)
        }
        Err(Error::Unfit { refused }) => {
            let changes = changes(command, &model, &options);
            let none = NoPlan { method: None, exact: false, refused, changes };
            if command.json {
                output::json(&none)?;
            } else {
                output::text(&no_text(&none))?;
            }
            Ok(Outcome::Findings)
        }
        Err(error) => Err(error.into()),
    }
}

/// Changes that would make an exact engine possible: to the method that was named, or to the graph.
fn changes(command: &PlanCommand, model: &Arc<Model>, options: &Options) -> Vec<Change> {
    if !matches!(options.method, Method::Auto | Method::Exact) {
        let exact = Options { method: Method::Exact, cap: None, ..options.clone() };
        let exact = crate::say::engine(Arc::clone(model), &exact);
        if let Some(plan) = exact.ok().map(|engine| engine.plan().clone()).filter(|plan| plan.exact)
        {
            let change = format!("--method {}", plan.method);
            let Plan { method, operations, states, .. } = plan;
            return vec![Change { change, method, operations, states }];
        }
    }
    // Only graphs can be changed.
    command.input.graph().map_or(Vec::new(), |graph| changes_for_exactness(&graph, options))
}

fn text(plan: &Plan) -> String {
    let mut out = format!("{}: {}\n", plan.method, plan.why);
    let answers = match plan {
        Plan { exact: true, .. } => "exact",
        Plan { method: Method::Anneal, .. } => "best label sets found, not proven to be the best",
        Plan { approximate: true, .. } => "approximate, with a diagnosis of each row",
        _ => "certified, with a bound on each row",
    };
    let _ = writeln!(out, "  answers     {answers}");
    let _ = writeln!(out, "  operations  {:.2e} per row", plan.operations);
    let _ = writeln!(out, "  memory      {:.1} MiB", plan.bytes as f64 / (1024.0 * 1024.0));
    if let Some(states) = plan.states {
        let _ = writeln!(out, "  states      {states}");
    }
    if let (Some(width), Some(bag)) = (plan.width, plan.largest_bag) {
        let _ = writeln!(out, "  width       {width} variables in the largest bag, {bag} states");
    }
    for refusal in &plan.refused {
        let _ = writeln!(out, "  not {refusal}");
    }
    out
}

fn no_text(none: &NoPlan) -> String {
    let mut out = String::from("no engine can handle this graph within the budget\n");
    for refusal in &none.refused {
        let _ = writeln!(out, "  not {refusal}");
    }
    out + &advice(&none.changes)
}

fn advice(changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        let states = change.states.map(|n| format!(", {n} states")).unwrap_or_default();
        let _ = writeln!(
            out,
            "  would help: {} ({}, {:.1e} operations per row{states})",
            change.change, change.method, change.operations
        );
    }
    out
}
