//! Chooses the engine for a model, and reports why it was chosen and what it costs.
//!
//! `auto` tries the engines in the order of the registry: the engines for hard forests, the closed
//! form, the engines for other forests, the list of states of hard models, the junction tree, and
//! brute force. It takes the first that can handle the model within the budget.
//!
//! States are counted before they are listed, because listing visits every label for each state. A
//! junction tree counts them exactly in one pass: with scores of zero, Z is their number and the
//! sum of the marginals is the mean number of labels on. They are listed only where that makes a row
//! cheaper. [`Budget::search`] bounds both the junction tree and the list, and the plan says where
//! this ended a search. When no exact engine can handle the model, `auto` takes forests joined by
//! messages, or else messages alone. The reasons of the engines that were refused become part of the
//! plan.

use std::fmt;

use serde::Serialize;

use super::exact::states::States;
use super::kernel::{Kernel, Size};
use super::registry::AnswerKind;
use super::{Answers, Block, Budget, Diagnosis, Method, Options};
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
                // A junction tree says whether its search ended early.
                let detail = kernel.detail().filter(|_| method == Method::Junction);
                let why = detail.map_or_else(
                    || String::from("requested"),
                    |detail| format!("requested; {detail}"),
                );
                let plan = describe(method, &*kernel, why, Vec::new());
                Ok((kernel, plan))
            }
            Err(why) => Err(Error::Unfit { refused: vec![Refusal { method, why }] }),
        };
    }
    let mut refused = Vec::new();
    let approximate: &[Method] =
        if options.method == Method::Auto { &[Method::ForestBp, Method::Lbp] } else { &[] };
    for method in Method::exact().chain(approximate.iter().copied()) {
        let compiled = match method {
            Method::States if model.is_hard() => listed_or_joined(model, options, &mut refused),
            // It was tried to count the states.
            Method::Junction if model.is_hard() => continue,
            _ => compile(model, method, options)
                .map(|kernel| match cheaper_states(model, options, method, &*kernel) {
                    Some(states) => (Method::States, states),
                    None => (method, kernel),
                })
                .map_err(|why| refused.push(Refusal { method, why }))
                .ok(),
        };
        if let Some((method, kernel)) = compiled {
            let plan = describe(method, &*kernel, why(method, &*kernel), refused);
            return Ok((kernel, plan));
        }
    }
    Err(Error::Unfit { refused })
}

/// Lists of states that cost no more operations per row than this are not compared.
const FEW_OPERATIONS: f64 = 1e5;

/// A list of states runs about this many times as many operations in the same time as a junction
/// tree does, because it reads its tables in order.
const LIST_SPEED: f64 = 3.0;

/// `states` or `junction` for a hard model: the faster of them.
fn listed_or_joined(
    model: &Model,
    options: &Options,
    refused: &mut Vec<Refusal>,
) -> Option<(Method, Box<dyn Kernel>)> {
    let list = || compile(model, Method::States, options);
    let junction = compile(model, Method::Junction, options);
    let states = match &junction {
        Err(_) => list(),
        Ok(junction) => {
            let StateCount { states, on } = StateCount::new(model, &**junction);
            let operations = States::predicted_operations(states, on);
            if operations <= FEW_OPERATIONS.max(LIST_SPEED * junction.operations()) {
                list()
            } else {
                Err(format!("{states:.3e} legal states are slower than a junction tree"))
            }
        }
    };
    match (states, junction) {
        (Ok(states), _) => Some((Method::States, states)),
        (Err(why), Ok(junction)) => {
            refused.push(Refusal { method: Method::States, why });
            Some((Method::Junction, junction))
        }
        (Err(states), Err(junction)) => {
            refused.push(Refusal { method: Method::States, why: states });
            refused.push(Refusal { method: Method::Junction, why: junction });
            None
        }
    }
}

/// The size of a list of states, before it is made.
struct StateCount {
    states: f64,
    /// The labels that are on, summed over the states.
    on: f64,
}

impl StateCount {
    /// Counts with an exact engine of a hard model: scores that cancel its biases give every legal
    /// state the same weight.
    fn new(model: &Model, kernel: &dyn Kernel) -> StateCount {
        let scores: Vec<f64> = model.bias().iter().map(|bias| -bias).collect();
        let mut marginals = vec![0.0; scores.len()];
        let mut log_partition = [0.0];
        let mut answers = Answers {
            marginals: &mut marginals,
            log_partition: &mut log_partition,
            expectations: None,
            error: &mut [0.0],
            diagnosis: &mut [Diagnosis::default()],
            standard_errors: None,
        };
        kernel.run_double(&Block::new(scores.len(), &scores), &mut answers);
        let states = (log_partition[0] - model.constant()).exp();
        StateCount { states, on: states * marginals.iter().sum::<f64>() }
    }
}

/// Replaces `family` when a hard forest has so few legal states that listing them is cheaper.
fn cheaper_states(
    model: &Model,
    options: &Options,
    method: Method,
    family: &dyn Kernel,
) -> Option<Box<dyn Kernel>> {
    if method != Method::Family || !model.is_hard() || family.is_capped() {
        return None;
    }
    let StateCount { states, on } = StateCount::new(model, family);
    if States::predicted_operations(states, on) > 1.01 * family.operations() {
        return None;
    }
    let budget = Budget { operations: family.operations(), ..options.budget };
    let states = States::compile(model, &budget).ok()?;
    (states.operations() < family.operations()).then(|| Box::new(states) as Box<dyn Kernel>)
}

fn compile(model: &Model, method: Method, options: &Options) -> Result<Box<dyn Kernel>, String> {
    let Some(entry) = method.entry() else { return Err(format!("{method} is not an engine")) };
    let kernel = (entry.compile)(model, options).map_err(|unfit| unfit.to_string())?;
    within(&options.budget, kernel)
}

/// The kernel, unless it costs more than the budget allows.
fn within(budget: &Budget, kernel: Box<dyn Kernel>) -> Result<Box<dyn Kernel>, String> {
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
