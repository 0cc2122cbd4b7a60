//! Which engine takes a model, why, and what it costs.
//!
//! `auto` tries the closed form, then the engines for forests, then counts the states of hard
//! models, then the junction tree, then certified enumeration; the first that takes the model
//! within the budget is compared with the cheaper ones that also do. Where none does, exact blocks
//! joined by messages, and last messages alone.

use std::fmt;

use serde::Serialize;

use super::blocks::Blocks;
use super::brute::Brute;
use super::count::Count;
use super::family::Family;
use super::forests::Forests;
use super::gibbs::Gibbs;
use super::junction::Junction;
use super::kernel::Kernel;
use super::lbp::Lbp;
use super::mean_field::MeanField;
use super::star::Star;
use super::states::States;
use super::subsets::Subsets;
use super::trw::Trw;
use super::{Budget, Method, Options, Unfit};
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

/// Compiles by the method asked for, or by the best one.
pub(super) fn choose(model: &Model, options: &Options) -> Result<(Kernel, Plan), Error> {
    if !matches!(options.method, Method::Auto | Method::Exact) {
        return match compile(model, options.method, options) {
            Ok(kernel) => {
                let plan = describe(&kernel, String::from("it was asked for"), Vec::new());
                Ok((kernel, plan))
            }
            Err(why) => {
                Err(Error::Unfit { refused: vec![Refusal { method: options.method, why }] })
            }
        };
    }
    let mut refused = Vec::new();
    let approximate: &[Method] =
        if options.method == Method::Auto { &[Method::Blocks, Method::Lbp] } else { &[] };
    for method in Method::EXACT.into_iter().chain(approximate.iter().copied()) {
        match compile(model, method, options) {
            Ok(kernel) => {
                let kernel = cheaper_states(model, options, kernel);
                let plan = describe(&kernel, kernel.reason(), refused);
                return Ok((kernel, plan));
            }
            Err(why) => refused.push(Refusal { method, why }),
        }
    }
    Err(Error::Unfit { refused })
}

/// A hard forest may have so few legal states that listing them is cheaper.
fn cheaper_states(model: &Model, options: &Options, kernel: Kernel) -> Kernel {
    let Kernel::Family(family, _) = &kernel else { return kernel };
    if !model.is_hard() {
        return kernel;
    }
    let budget = Budget { operations: family.operations(), ..options.budget };
    match States::compile(model, &budget) {
        Ok(states) if states.operations() < family.operations() => Kernel::States(states),
        _ => kernel,
    }
}

/// Elimination orders that are tried.
const RESTARTS: usize = 4;

fn compile(model: &Model, method: Method, options: &Options) -> Result<Kernel, String> {
    let budget = &options.budget;
    let kernel = match method {
        Method::Auto | Method::Exact => return Err(format!("{method} is not an engine")),
        Method::Brute => Brute::compile(model).map(Kernel::Brute),
        Method::States => States::compile(model, budget).map(Kernel::States),
        Method::Star => Star::compile(model).map(Kernel::Star),
        Method::Family => Family::compile(model, options.cap, budget).map(Kernel::family),
        Method::Count => {
            Count::compile(model, options.cap, budget).map(|count| Kernel::Count(Box::new(count)))
        }
        Method::Junction => {
            Junction::compile(model, budget, RESTARTS, options.seed).map(Kernel::junction)
        }
        Method::Subsets => Subsets::compile(model, budget).map(Kernel::Subsets),
        Method::Lbp => Lbp::compile(model, options).map(|lbp| Kernel::Lbp(Box::new(lbp))),
        Method::Blocks => {
            Blocks::compile(model, options).map(|blocks| Kernel::Blocks(Box::new(blocks)))
        }
        Method::Anneal => {
            let options = crate::anneal::Options { seed: options.seed, ..options.anneal.clone() };
            Ok(Kernel::Anneal(Box::new(options)))
        }
        Method::MeanField => {
            MeanField::compile(model, options).map(|kernel| Kernel::MeanField(Box::new(kernel)))
        }
        Method::Trw => Trw::compile(model, options).map(|kernel| Kernel::Trw(Box::new(kernel))),
        Method::Forests => {
            Forests::compile(model, options).map(|kernel| Kernel::Forests(Box::new(kernel)))
        }
        Method::Gibbs => Gibbs::compile(model, options).map(Kernel::gibbs),
    };
    let kernel = kernel.map_err(|unfit| match unfit {
        Unfit::Shape(why) => why,
        Unfit::Budget { needs } => format!("over budget: {needs}"),
    })?;
    let (operations, bytes) = (kernel.operations(), kernel.bytes());
    if operations > budget.operations || bytes as f64 > budget.bytes {
        return Err(format!("over budget: {operations:.1e} operations a row, {bytes} bytes"));
    }
    Ok(kernel)
}

fn describe(kernel: &Kernel, why: String, refused: Vec<Refusal>) -> Plan {
    Plan {
        method: kernel.method(),
        exact: kernel.is_exact(),
        approximate: kernel.is_approximate(),
        why,
        operations: kernel.operations(),
        bytes: kernel.bytes(),
        width: kernel.width(),
        largest_bag: kernel.largest_bag(),
        states: kernel.states(),
        refused,
    }
}
