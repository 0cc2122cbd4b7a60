//! Which engine takes a model, why, and what it costs.
//!
//! `auto` tries the closed form, then the engines for forests, then counts the states of hard
//! models, then the junction tree, then certified enumeration; the first that takes the model
//! within the budget is compared with the cheaper ones that also do. Where none does, exact blocks
//! joined by messages, and last messages alone.

use std::fmt;

use serde::Serialize;

use super::exact::states::States;
use super::kernel::{Kernel, Size};
use super::registry::AnswerKind;
use super::{Budget, Method, Options};
use crate::Error;
use crate::model::Model;

/// What was chosen, why, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The engine.
    pub method: Method,
    /// Whether its answers are exact.
    pub exact: bool,
    /// Whether its answers are approximate, each row with a diagnosis; otherwise, where they are not
    /// exact, each row has a certified bound.
    pub approximate: bool,
    /// Why this engine.
    pub why: String,
    /// Predicted elementary operations a row.
    pub operations: f64,
    /// Predicted bytes of tables and scratch memory.
    pub bytes: u64,
    /// The largest bag of the junction tree, in variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The largest bag of the junction tree, in legal states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_bag: Option<u64>,
    /// Legal states: of the model for `states`, of all bags for `junction`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<u64>,
    /// Engines that do not take the model, and why.
    pub refused: Vec<Refusal>,
}

/// An engine that does not take a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// The engine.
    pub method: Method,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.method, self.why)
    }
}

/// Compiles by the requested method, or by the best one.
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

/// A hard forest may have so few legal states that listing them is cheaper.
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
