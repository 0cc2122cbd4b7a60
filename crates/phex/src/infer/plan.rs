//! Which engine takes a model, why, and what it costs.
//!
//! `auto` tries the closed form, then the engines for forests, then counts the states of hard
//! models, then the junction tree, then certified enumeration; the first that takes the model
//! within the budget is compared with the cheaper ones that also do.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::brute::Brute;
use super::count::Count;
use super::family::Family;
use super::junction::Junction;
use super::kernel::Kernel;
use super::star::Star;
use super::states::States;
use super::subsets::Subsets;
use super::{Budget, Unfit};
use crate::Error;
use crate::model::Model;

/// A way of inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The cheapest exact engine within the budget.
    #[default]
    Auto,
    /// All 2ⁿ states.
    Brute,
    /// A softmax over the legal states of a hard model.
    States,
    /// Closed form for one one-of group of classes × attributes.
    Star,
    /// Inside–outside with counters, for forests.
    Family,
    /// Inside–outside over counts, for dense semantics on forests.
    Count,
    /// A junction tree over legal states, for anything of moderate width.
    Junction,
    /// The few classes that can be on together, with a bound on the rest.
    Subsets,
}

impl Method {
    /// Every method but `auto`, in the order in which `auto` tries them.
    pub const ENGINES: [Method; 7] = [
        Method::Star,
        Method::Count,
        Method::Family,
        Method::States,
        Method::Junction,
        Method::Brute,
        Method::Subsets,
    ];

    /// The name used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Brute => "brute",
            Method::States => "states",
            Method::Star => "star",
            Method::Family => "family",
            Method::Count => "count",
            Method::Junction => "junction",
            Method::Subsets => "subsets",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        let all = || std::iter::once(Method::Auto).chain(Method::ENGINES);
        all().find(|method| method.name() == text).ok_or_else(|| {
            let names: Vec<&str> = all().map(Method::name).collect();
            format!("`{text}` is not a method: {}", names.join(", "))
        })
    }
}

/// How to compile a model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// The way of inference.
    pub method: Method,
    /// What the engine may cost.
    pub budget: Budget,
    /// For `family` and `count`: count at most this many labels of a family; what is left out is
    /// bounded and reported. `None` counts all.
    pub cap: Option<usize>,
    /// The seed of the random restarts of elimination orders.
    pub seed: u64,
}

/// What was chosen, why, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The engine.
    pub method: Method,
    /// Whether its answers are exact; otherwise each row carries a certified bound.
    pub exact: bool,
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
    if options.method != Method::Auto {
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
    for method in Method::ENGINES {
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
        Method::Auto => return Err(String::from("auto is not an engine")),
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
        why,
        operations: kernel.operations(),
        bytes: kernel.bytes(),
        width: kernel.width(),
        largest_bag: kernel.largest_bag(),
        states: kernel.states(),
        refused,
    }
}
