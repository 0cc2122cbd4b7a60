//! The arguments that choose an engine and its limits.
//!
//! Ranges are checked by the core; [`EngineArguments::options`] names the flag of an option that is out of
//! its range.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use phex::anneal::{AnnealMethod, AnnealOptions, Cooling, CoolingShape, Quantum};
use phex::infer::{
    Budget, GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions,
};

use super::names::named;
use super::numbers::betas;
use crate::say::say;

fn method_names() -> impl Iterator<Item = PossibleValue> {
    Method::all().map(|method| {
        let value = PossibleValue::new(method.name());
        if method == Method::ForestBp { value.alias(Method::FORMER_FOREST_BP) } else { value }
    })
}

/// Reads the name of a method, and reports a former name.
fn method(name: &str) -> Result<Method, phex::Error> {
    if name == Method::FORMER_FOREST_BP {
        say(format_args!("phex: the method `{name}` is now called `{}`", Method::ForestBp));
    }
    name.parse()
}

/// How to compile a graph for inference.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArguments {
    /// Engine: `auto` prefers an exact one, `exact` allows no other
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        env = "PHEX_METHOD",
        value_parser = PossibleValuesParser::new(method_names()).try_map(|name| method(&name))
    )]
    pub(crate) method: Method,
    /// Most operations per row that an engine may need
    #[arg(long, value_name = "OPERATIONS", env = "PHEX_BUDGET")]
    pub(crate) budget: Option<f64>,
    /// Most memory that an engine may need, in MiB
    #[arg(long, value_name = "MIB", env = "PHEX_MEMORY")]
    pub(crate) memory: Option<f64>,
    /// Most steps that the search for an exact engine may take, of a nanosecond or two each
    #[arg(long, value_name = "STEPS", env = "PHEX_SEARCH")]
    pub(crate) search: Option<f64>,
    /// For family and count: count at most this many labels of a family; errors are certified
    #[arg(long, value_name = "COUNT")]
    pub(crate) cap: Option<usize>,
    /// Seed of everything random [default: 0]
    #[arg(long, value_name = "SEED", env = "PHEX_SEED")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    messages: MessageArguments,
    #[command(flatten)]
    sampling: SamplingArguments,
    #[command(flatten)]
    anneal: AnnealArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Messages (forest-bp, lbp, mean-field, trw)")]
struct MessageArguments {
    /// Stop after this many iterations
    #[arg(long, value_name = "N", default_value_t = MessageOptions::default().iterations, env = "PHEX_ITERATIONS")]
    iterations: u32,
    /// Stop when no belief changes by more than this; 0 runs all iterations
    #[arg(long, value_name = "CHANGE", default_value_t = MessageOptions::default().tolerance, env = "PHEX_TOLERANCE")]
    tolerance: f64,
    /// Fraction of the old message that is kept, 0 or more and below 1
    #[arg(long, value_name = "PART", default_value_t = MessageOptions::default().damping, env = "PHEX_DAMPING")]
    damping: f64,
    /// Order of messages; flooding is the paper's
    #[arg(long, value_name = "ORDER", default_value = "in-place", env = "PHEX_SCHEDULE", value_parser = named::<MessageOrder>())]
    schedule: MessageOrder,
    /// Exclusion groups as counting factors, or as the paper's pairs
    #[arg(long, value_name = "FORM", default_value = "cardinality", env = "PHEX_GROUPS", value_parser = named::<GroupForm>())]
    groups: GroupForm,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling (gibbs, and the check of forest-bp)")]
struct SamplingArguments {
    /// Chains per row
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().chains, env = "PHEX_CHAINS")]
    chains: u32,
    /// Sweeps before the first that counts
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().burn_in, env = "PHEX_BURN_IN")]
    burn_in: u32,
    /// Sweeps that count
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().sweeps, env = "PHEX_SWEEPS")]
    sweeps: u32,
    /// Temperatures of parallel tempering; 1 is plain sampling
    #[arg(long, value_name = "N", default_value_t = SamplingOptions::default().temperatures)]
    temperatures: u32,
    /// Factor on all log-weights at the hottest temperature, between 0 and 1
    #[arg(long, value_name = "FACTOR", default_value_t = SamplingOptions::default().hottest)]
    hottest: f64,
    /// Samples with which forest-bp checks a row; 0 skips the check
    #[arg(long, value_name = "SAMPLES", default_value_t = SamplingOptions::default().check)]
    check: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Annealing (anneal)")]
struct AnnealArguments {
    /// How to search for the best label sets
    #[arg(long, value_name = "NAME", default_value = "simulated-tabu", env = "PHEX_ANNEALER", value_parser = named::<AnnealMethod>())]
    annealer: AnnealMethod,
    /// Independent searches; annealers round them up to a multiple of 16
    #[arg(long, value_name = "N", default_value_t = AnnealOptions::default().restarts, env = "PHEX_RESTARTS")]
    restarts: usize,
    /// Sweeps over all labels per restart
    #[arg(long, value_name = "N", default_value_t = AnnealOptions::default().sweeps, env = "PHEX_ANNEAL_SWEEPS")]
    anneal_sweeps: usize,
    /// Copies of quantum annealing, 2 to 1024
    #[arg(long, value_name = "N", default_value_t = Quantum::default().slices)]
    slices: usize,
    /// How the inverse temperature grows
    #[arg(long, value_name = "SHAPE", default_value = "geometric", value_parser = named::<CoolingShape>())]
    shape: CoolingShape,
    /// Hottest and coldest inverse temperature [default: chosen by the problem]
    #[arg(long, value_name = "HOT,COLD", value_parser = betas)]
    beta: Option<(f64, f64)>,
}

impl EngineArguments {
    /// The checked options of the core.
    pub(crate) fn options(&self) -> anyhow::Result<Options> {
        let default = Budget::default();
        let (messages, sampling, anneal) = (&self.messages, &self.sampling, &self.anneal);
        let options = Options {
            method: self.method,
            budget: Budget {
                operations: self.budget.unwrap_or(default.operations),
                bytes: self.memory.map_or(default.bytes, |mib| mib * 1024.0 * 1024.0),
                search: self.search.unwrap_or(default.search),
            },
            cap: self.cap,
            seed: self.seed.unwrap_or(0),
            messages: MessageOptions {
                schedule: messages.schedule,
                groups: messages.groups,
                damping: messages.damping,
                iterations: messages.iterations,
                tolerance: messages.tolerance,
            },
            sampling: SamplingOptions {
                chains: sampling.chains,
                burn_in: sampling.burn_in,
                sweeps: sampling.sweeps,
                temperatures: sampling.temperatures,
                hottest: sampling.hottest,
                check: sampling.check,
            },
            anneal: AnnealOptions {
                method: anneal.annealer,
                restarts: anneal.restarts,
                sweeps: anneal.anneal_sweeps,
                schedule: Cooling { shape: anneal.shape, beta: anneal.beta },
                quantum: Quantum { slices: anneal.slices, ..Quantum::default() },
                ..AnnealOptions::default()
            },
        };
        match options.check() {
            Ok(()) => Ok(options),
            Err(phex::Error::OutOfRange { option, value, range }) => {
                // The one option whose flag has another name.
                let flag = if option == "operations" { "budget" } else { option };
                let flag = flag.replace('_', "-");
                Err(anyhow::anyhow!("--{flag} is {value}, but must be {range}"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Options for a search for the best label sets. Its own flags limit the time, not the budget, and a
    /// signal ends it.
    pub(crate) fn search(&self) -> anyhow::Result<Options> {
        let mut options = Options { method: Method::Anneal, ..self.options()? };
        options.budget.operations = f64::INFINITY;
        options.anneal.stop = Some(crate::interrupt::flag());
        Ok(options)
    }
}
