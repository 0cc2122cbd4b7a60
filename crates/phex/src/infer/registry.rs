//! The registry of engines: one entry per engine, in the order in which `auto` tries them.

use super::approximate::forest_bp::ForestBp;
use super::approximate::gibbs::Gibbs;
use super::approximate::lbp::Lbp;
use super::approximate::mean_field::MeanField;
use super::approximate::tree_reweighted::forests::Forests;
use super::approximate::tree_reweighted::trw::Trw;
use super::exact::brute::Brute;
use super::exact::count::Count;
use super::exact::family::Family;
use super::exact::junction::Junction;
use super::exact::paths::Paths;
use super::exact::star::Star;
use super::exact::states::States;
use super::kernel::Kernel;
use super::{Method, Options, Unfit};
use crate::anneal::BestSets;
use crate::model::Model;

/// The kind of answers that an engine gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// Exact, or certified where a cap leaves something out.
    Exact,
    /// Approximate, with a diagnosis per row.
    Approximate,
    /// The best label sets found, without probabilities.
    BestSets,
}

type Compile = fn(&Model, &Options) -> Result<Box<dyn Kernel>, Unfit>;

/// One engine.
pub(crate) struct EngineEntry {
    pub(crate) method: Method,
    /// The name on the command line and in results.
    pub(crate) name: &'static str,
    pub(crate) answer: AnswerKind,
    /// Why `auto` chose the engine, as the plan reports it.
    pub(crate) why: &'static str,
    pub(crate) compile: Compile,
}

const fn entry(
    method: Method,
    name: &'static str,
    answer: AnswerKind,
    why: &'static str,
    compile: Compile,
) -> EngineEntry {
    EngineEntry { method, name, answer, why, compile }
}

fn boxed<K: Kernel + 'static>(kernel: Result<K, Unfit>) -> Result<Box<dyn Kernel>, Unfit> {
    kernel.map(|kernel| Box::new(kernel) as Box<dyn Kernel>)
}

/// Every engine.
pub(crate) static ENGINES: [EngineEntry; 14] = [
    entry(
        Method::Paths,
        "paths",
        AnswerKind::Exact,
        "a hard forest, in which the labels that are on form paths",
        |model, _| boxed(Paths::compile(model)),
    ),
    entry(
        Method::Star,
        "star",
        AnswerKind::Exact,
        "one one-of group of classes, with attributes that are independent given the class",
        |model, options| boxed(Star::compile(model, &options.budget)),
    ),
    entry(
        Method::Count,
        "count",
        AnswerKind::Exact,
        "a forest with dense semantics",
        |model, options| boxed(Count::compile(model, options.cap, &options.budget)),
    ),
    entry(
        Method::Family,
        "family",
        AnswerKind::Exact,
        "a forest whose exclusions are between siblings",
        |model, options| boxed(Family::compile(model, options.cap, &options.budget)),
    ),
    entry(
        Method::States,
        "states",
        AnswerKind::Exact,
        "a hard model with few legal states",
        |model, options| boxed(States::compile(model, &options.budget)),
    ),
    entry(
        Method::Junction,
        "junction",
        AnswerKind::Exact,
        "no special shape, but narrow enough for a junction tree",
        |model, options| boxed(Junction::compile(model, &options.budget, ORDERS, options.seed)),
    ),
    entry(
        Method::Brute,
        "brute",
        AnswerKind::Exact,
        "a small model that no other engine can handle",
        |model, _| boxed(Brute::compile(model)),
    ),
    entry(
        Method::ForestBp,
        "forest-bp",
        AnswerKind::Approximate,
        "no exact engine fits the budget",
        |model, options| boxed(ForestBp::compile(model, options)),
    ),
    entry(
        Method::Lbp,
        "lbp",
        AnswerKind::Approximate,
        "neither an exact engine nor forest-bp fits the budget",
        |model, options| boxed(Lbp::compile(model, options)),
    ),
    entry(Method::Gibbs, "gibbs", AnswerKind::Approximate, "it samples", |model, options| {
        boxed(Gibbs::compile(model, options))
    }),
    entry(
        Method::MeanField,
        "mean-field",
        AnswerKind::Approximate,
        "a lower bound on log Z",
        |model, options| boxed(MeanField::compile(model, options)),
    ),
    entry(
        Method::Trw,
        "trw",
        AnswerKind::Approximate,
        "an upper bound on log Z",
        |model, options| boxed(Trw::compile(model, options)),
    ),
    entry(
        Method::Forests,
        "forests",
        AnswerKind::Approximate,
        "a mixture of forests, whose log Z is convex in the scores",
        |model, options| boxed(Forests::compile(model, options)),
    ),
    entry(
        Method::Anneal,
        "anneal",
        AnswerKind::BestSets,
        "it searches for the best label sets",
        |_, options| boxed(Ok(BestSets::new(&options.anneal, options.seed))),
    ),
];

/// How many elimination orders `junction` tries.
const ORDERS: usize = 4;

impl Method {
    /// The entry of an engine. `None` for `auto` and `exact`, which choose an engine.
    pub(crate) fn entry(self) -> Option<&'static EngineEntry> {
        ENGINES.iter().find(|entry| entry.method == self)
    }
}
