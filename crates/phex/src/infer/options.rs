//! The methods of inference and their options.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Budget;
use super::registry::{AnswerKind, ENGINES};
use crate::{Error, Named};

/// A method of inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The cheapest exact engine within the budget, or else the best approximate one.
    #[default]
    Auto,
    /// The cheapest exact engine within the budget, or else an error.
    Exact,
    /// Sums over all 2ⁿ states.
    Brute,
    /// A softmax over the legal states of a hard model.
    States,
    /// A softmax over the paths of a hard forest, with one exponential per label.
    Paths,
    /// A closed form for one one-of group of classes with attributes.
    Star,
    /// Inside–outside with counters, for forests.
    Family,
    /// Inside–outside over counts, for dense semantics on forests.
    Count,
    /// A junction tree over legal states, for any model of moderate width.
    Junction,
    /// Exact forests joined by messages on the relations that they do not cover. Formerly called
    /// `blocks`.
    #[serde(alias = "blocks")]
    ForestBp,
    /// Loopy belief propagation, the paper's method.
    Lbp,
    /// Mean field: a lower bound on log Z.
    MeanField,
    /// Tree-reweighted belief propagation: an upper bound on log Z.
    Trw,
    /// A tree-reweighted mixture of hierarchies in which each label keeps one parent. Meant for
    /// training.
    Forests,
    /// Gibbs sampling, with optional parallel tempering.
    Gibbs,
    /// Simulated annealing: best label sets only.
    Anneal,
}

impl Method {
    /// The former name of `forest-bp`. It is still accepted; code that reads it should tell the
    /// user the new name.
    pub const FORMER_FOREST_BP: &'static str = "blocks";

    /// The exact engines, in the order in which `auto` tries them.
    pub fn exact() -> impl Iterator<Item = Method> {
        Method::with(AnswerKind::Exact)
    }

    /// The approximate engines that compute marginals.
    pub fn approximate() -> impl Iterator<Item = Method> {
        Method::with(AnswerKind::Approximate)
    }

    /// Every method.
    pub fn all() -> impl Iterator<Item = Method> {
        [Method::Auto, Method::Exact].into_iter().chain(ENGINES.iter().map(|entry| entry.method))
    }

    fn with(answer: AnswerKind) -> impl Iterator<Item = Method> {
        ENGINES.iter().filter(move |entry| entry.answer == answer).map(|entry| entry.method)
    }

    /// The name used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Exact => "exact",
            engine => engine.entry().map_or("", |entry| entry.name),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Method, Error> {
        if text == Method::FORMER_FOREST_BP {
            return Ok(Method::ForestBp);
        }
        Method::all().find(|method| method.name() == text).ok_or_else(|| Error::UnknownChoice {
            what: "method",
            name: text.to_owned(),
            choices: Method::all().map(Method::name).collect::<Vec<_>>().join(", "),
        })
    }
}

/// How to compile a model.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The method of inference.
    pub method: Method,
    /// The largest allowed cost of the engine.
    pub budget: Budget,
    /// For `family` and `count`: how many labels of a family are counted at most. The error from
    /// what is left out is bounded and reported. `None` counts all.
    pub cap: Option<usize>,
    /// The seed of everything random: elimination orders, spanning trees, samples.
    pub seed: u64,
    /// For `lbp`, `forest-bp`, `mean-field` and `trw`.
    pub messages: MessageOptions,
    /// For `gibbs`, and for the check of `forest-bp`.
    pub sampling: SamplingOptions,
    /// For `anneal`. [`Options::seed`] and the requested number of sets replace its own.
    pub anneal: crate::anneal::AnnealOptions,
}

impl Options {
    /// Checks that every option is in its range. [`Engine::compile`](super::Engine::compile) calls
    /// this; adapters may call it earlier.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], which names the option.
    pub fn check(&self) -> Result<(), Error> {
        let (messages, sampling) = (&self.messages, &self.sampling);
        in_range("operations", self.budget.operations, ABOVE_0, |x| x > 0.0)?;
        in_range("memory", self.budget.bytes, ABOVE_0, |x| x > 0.0)?;
        in_range("search", self.budget.search, ABOVE_0, |x| x > 0.0)?;
        in_range("iterations", messages.iterations, "1 to 1,000,000", |x| {
            (1.0..=1e6).contains(&x)
        })?;
        in_range("tolerance", messages.tolerance, "0 or more", |x| (0.0..f64::MAX).contains(&x))?;
        in_range("damping", messages.damping, "0 or more and below 1", |x| {
            (0.0..1.0).contains(&x)
        })?;
        in_range("chains", sampling.chains, "1 to 1,000,000", |x| (1.0..=1e6).contains(&x))?;
        in_range("burn_in", sampling.burn_in, "0 to 1,000,000,000", |x| x <= 1e9)?;
        in_range("sweeps", sampling.sweeps, "1 to 1,000,000,000", |x| (1.0..=1e9).contains(&x))?;
        in_range("temperatures", sampling.temperatures, "1 to 1,000", |x| {
            (1.0..=1e3).contains(&x)
        })?;
        in_range("hottest", sampling.hottest, "between 0 and 1", |x| x > 0.0 && x < 1.0)?;
        in_range("check", sampling.check, "0 to 1,000,000", |x| x <= 1e6)?;
        self.anneal.check()
    }
}

const ABOVE_0: &str = "a number above 0";

/// Returns an error that names the option, unless its value is in range.
pub(crate) fn in_range(
    option: &'static str,
    value: impl Into<f64>,
    range: &'static str,
    holds: impl Fn(f64) -> bool,
) -> Result<(), Error> {
    let value = value.into();
    if holds(value) { Ok(()) } else { Err(Error::OutOfRange { option, value, range }) }
}

/// The order in which messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageOrder {
    /// One label after another, each with the newest messages. Converges where flooding oscillates.
    #[default]
    InPlace,
    /// All at once, from the previous messages, as in the paper.
    Flooding,
}

impl Named for MessageOrder {
    const WHAT: &'static str = "schedule";
    const CHOICES: &'static [(&'static str, MessageOrder)] =
        &[("in-place", MessageOrder::InPlace), ("flooding", MessageOrder::Flooding)];
}

/// How message passing represents exclusion groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupForm {
    /// One factor that counts its members.
    #[default]
    Cardinality,
    /// One edge per pair, as in the paper.
    Pairs,
}

impl Named for GroupForm {
    const WHAT: &'static str = "form of exclusion groups";
    const CHOICES: &'static [(&'static str, GroupForm)] =
        &[("cardinality", GroupForm::Cardinality), ("pairs", GroupForm::Pairs)];
}

/// How iterative engines run and when they stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageOptions {
    /// The order of messages.
    pub schedule: MessageOrder,
    /// How exclusion groups are represented.
    pub groups: GroupForm,
    /// The fraction of the old message that is kept, in `[0, 1)`.
    pub damping: f64,
    /// Stop after this many iterations.
    pub iterations: u32,
    /// Stop when no belief changes by more than this. 0 runs all iterations.
    pub tolerance: f64,
}

impl Default for MessageOptions {
    fn default() -> MessageOptions {
        MessageOptions {
            schedule: MessageOrder::InPlace,
            groups: GroupForm::Cardinality,
            damping: 0.3,
            iterations: 200,
            tolerance: 1e-6,
        }
    }
}

/// How sampling engines run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingOptions {
    /// The number of chains per row. They run in lanes of a vector.
    pub chains: u32,
    /// How many sweeps are discarded at the start.
    pub burn_in: u32,
    /// How many sweeps are counted.
    pub sweeps: u32,
    /// The number of temperatures of parallel tempering. 1 means plain Gibbs sampling.
    pub temperatures: u32,
    /// The factor on all log-weights at the hottest temperature, in `(0, 1)`.
    pub hottest: f64,
    /// How many samples `forest-bp` uses to check a row. 0 skips the check.
    pub check: u32,
}

impl Default for SamplingOptions {
    fn default() -> SamplingOptions {
        SamplingOptions {
            chains: 64,
            burn_in: 50,
            sweeps: 200,
            temperatures: 1,
            hottest: 0.1,
            check: 32,
        }
    }
}
