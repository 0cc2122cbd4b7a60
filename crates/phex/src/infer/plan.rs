//! Chooses the engine for a model, and reports why it was chosen and what it costs.
//!
//! `auto` tries the engines in the order of the registry: the closed form, the engines for forests,
//! the list of states of hard models, the junction tree, and brute force. It takes the first that
//! can handle the model within the budget. A hard forest may have so few legal states that listing
//! them is cheaper, so that alternative is compared. When no exact engine can handle the model,
//! `auto` takes forests joined by messages, or else messages alone. The reasons of the engines that
//! were refused become part of the plan.

use std::fmt;

use serde::Serialize;

use super::exact::states::States;
use super::kernel::{Kernel, Size};
use super::registry::AnswerKind;
use super::{Budget, Method, Options};
use crate::Error;
use crate::model::Model;

/// The chosen engine, why it was chosen, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The engine.
    pub method: Method,
    /// Whether its answers are exact.
    pub exact: bool,
    /// Whether its answers are approximate, with a diagnosis per row. If they are neither
    /// approximate nor exact, each row has a certified bound.
    pub approximate: bool,
    /// Why this engine was chosen.
    pub why: String,
    /// Predicted elementary operations per row.
    pub operations: f64,
    /// Predicted bytes of tables and scratch memory.
    pub bytes: u64,
    /// The largest bag of the junction tree, in variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The largest bag of the junction tree, in legal states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_bag: Option<u64>,
    /// The number of legal states: of the model for `states`, in all bags for `junction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
    /// The engines that cannot handle the model, with reasons.
    pub refused: Vec<Refusal>,
}

/// An engine that cannot handle a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// The engine.
    pub method: Method,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.why)
    }
}

/// Compiles the model with the requested method, or chooses the best one.
pub(super) fn choose(model: &Model, options: &Options) -> Result<(Box<dyn Kernel>, Plan), Error> {
    if !matches!(options.method, Method::Auto | Method::Exact) {
        let method = options.method;
        return match compile(model, method, options) {
            Ok(kernel) => {
                let plan = describe(method, &*kernel, String::from("requested"), Vec::new());
                Ok((kernel, plan))
            }
            Err(why) => Err(Error::Unfit { refused: vec![Refusal { method, why }] }),
        };
    }
    let mut refused = Vec::new();
    let approximate: &[Method] =
        if options.method == Method::Auto { &[Method::ForestBp, Method::Lbp] } else { &[] };
    for method in Method::exact().chain(approximate.iter().copied()) {
        match compile(model, method, options) {
            Ok(kernel) => {
                let (method, kernel) = match cheaper_states(model, options, method, &*kernel) {
                    Some(states) => (Method::States, states),
                    None => (method, kernel),
                };
                let plan = describe(method, &*kernel, why(method, &*kernel), refused);
                return Ok((kernel, plan));
            }
            Err(why) => refused.push(Refusal { method, why }),
        }
    }
    Err(Error::Unfit { refused })
}

/// Replaces `family` when a hard forest has so few legal states that listing them is cheaper.
fn cheaper_states(
    model: &Model,
    options: &Options,
    method: Method,
    family: &dyn Kernel,
) -> Option<Box<dyn Kernel>> {
    if method != Method::Family || !model.is_hard() {
        return None;
    }
    let budget = Budget { operations: family.operations(), ..options.budget };
    let states = States::compile(model, &budget).ok()?;
    (states.operations() < family.operations()).then(|| Box::new(states) as Box<dyn Kernel>)
}

fn compile(model: &Model, method: Method, options: &Options) -> Result<Box<dyn Kernel>, String> {
    let budget = &options.budget;
    let Some(entry) = method.entry() else { return Err(format!("{method} is not an engine")) };
    let kernel = (entry.compile)(model, options).map_err(|unfit| unfit.to_string())?;
    let (operations, bytes) = (kernel.operations(), kernel.bytes());
    if operations > budget.operations || bytes as f64 > budget.bytes {
        return Err(format!("over budget: {operations:.1e} operations per row, {bytes} bytes"));
    }
    Ok(kernel)
}

fn why(method: Method, kernel: &dyn Kernel) -> String {
    let why = method.entry().map_or("", |entry| entry.why);
    match kernel.detail() {
        Some(detail) => format!("{why}; {detail}"),
        None => why.to_owned(),
    }
}

fn describe(method: Method, kernel: &dyn Kernel, why: String, refused: Vec<Refusal>) -> Plan {
    let Size { width, largest_bag, states } = kernel.size();
    let answer = method.entry().map(|entry| entry.answer);
    Plan {
        method,
        exact: answer == Some(AnswerKind::Exact) && !kernel.is_capped(),
        approximate: answer != Some(AnswerKind::Exact),
        why,
        operations: kernel.operations(),
        bytes: kernel.bytes(),
        width,
        largest_bag,
        states,
        refused,
    }
}
