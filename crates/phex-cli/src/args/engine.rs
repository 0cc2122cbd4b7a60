//! Which engine, and how far it may go.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum, value_parser};
use phex::anneal::{self, Quantum, Shape};
use phex::infer::{
    Budget, GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions,
};

use super::numbers::{betas, between_zero_and_one, damping, positive, tolerance};

fn method_names() -> impl Iterator<Item = PossibleValue> {
    Method::all().map(|method| {
        let value = PossibleValue::new(method.name());
        if method == Method::ForestBp { value.alias(Method::FORMER_FOREST_BP) } else { value }
    })
}

/// Reads the name of a method, and says so where it is a former one.
fn method(name: &str) -> Result<Method, String> {
    if name == Method::FORMER_FOREST_BP {
        eprintln!("phex: the method `{name}` is now called `{}`", Method::ForestBp);
    }
    name.parse()
}

/// How to compile a graph for inference.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArguments {
    /// Engine; auto takes an exact one where it can, exact nothing else
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        env = "PHEX_METHOD",
        value_parser = PossibleValuesParser::new(method_names()).try_map(|name| method(&name))
    )]
    pub(crate) method: Method,
    /// Most operations a row that an engine may take
    #[arg(long, value_name = "OPERATIONS", env = "PHEX_BUDGET", value_parser = positive)]
    pub(crate) budget: Option<f64>,
    /// Most memory that an engine may take, in MiB
    #[arg(long, value_name = "MIB", env = "PHEX_MEMORY", value_parser = positive)]
    pub(crate) memory: Option<f64>,
    /// For family and count: count at most this many labels of a family; errors are certified
    #[arg(long, value_name = "COUNT")]
    pub(crate) cap: Option<usize>,
    /// Seed of everything random; 0 when not given
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
    #[arg(
        long,
        value_name = "N",
        default_value_t = MessageOptions::default().iterations,
        env = "PHEX_ITERATIONS",
        value_parser = value_parser!(u32).range(1..=1_000_000)
    )]
    iterations: u32,
    /// Stop when no belief changes by more than this; 0 runs all iterations
    #[arg(
        long,
        value_name = "CHANGE",
        default_value_t = MessageOptions::default().tolerance,
        env = "PHEX_TOLERANCE",
        value_parser = tolerance
    )]
    tolerance: f64,
    /// Part of the old message that is kept, 0 or more and below 1
    #[arg(
        long,
        value_name = "PART",
        default_value_t = MessageOptions::default().damping,
        env = "PHEX_DAMPING",
        value_parser = damping
    )]
    damping: f64,
    /// Order of messages; flooding is the paper's
    #[arg(long, value_name = "ORDER", default_value = "in-place", env = "PHEX_SCHEDULE")]
    schedule: Order,
    /// Exclusion groups as counting factors, or as the paper's pairs
    #[arg(long, value_name = "FORM", default_value = "cardinality", env = "PHEX_GROUPS")]
    groups: Groups,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling (gibbs, and the check of forest-bp)")]
struct SamplingArguments {
    /// Chains of each row
    #[arg(
        long,
        value_name = "N",
        default_value_t = SamplingOptions::default().chains,
        env = "PHEX_CHAINS",
        value_parser = value_parser!(u32).range(1..=1_000_000)
    )]
    chains: u32,
    /// Sweeps before the first that counts
    #[arg(
        long,
        value_name = "N",
        default_value_t = SamplingOptions::default().burn_in,
        env = "PHEX_BURN_IN",
        value_parser = value_parser!(u32).range(0..=1_000_000_000)
    )]
    burn_in: u32,
    /// Sweeps that count
    #[arg(
        long,
        value_name = "N",
        default_value_t = SamplingOptions::default().sweeps,
        env = "PHEX_SWEEPS",
        value_parser = value_parser!(u32).range(1..=1_000_000_000)
    )]
    sweeps: u32,
    /// Temperatures of parallel tempering; 1 is plain sampling
    #[arg(
        long,
        value_name = "N",
        default_value_t = SamplingOptions::default().temperatures,
        value_parser = value_parser!(u32).range(1..=1000)
    )]
    temperatures: u32,
    /// Factor on all log-weights at the hottest temperature, between 0 and 1
    #[arg(
        long,
        value_name = "FACTOR",
        default_value_t = SamplingOptions::default().hottest,
        value_parser = between_zero_and_one
    )]
    hottest: f64,
    /// Samples by which forest-bp checks a row; 0 leaves the check out
    #[arg(
        long,
        value_name = "SAMPLES",
        default_value_t = SamplingOptions::default().check,
        value_parser = value_parser!(u32).range(0..=1_000_000)
    )]
    check: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Annealing (anneal)")]
struct AnnealArguments {
    /// How to search for the best label sets
    #[arg(long, value_name = "NAME", default_value = "simulated-tabu", env = "PHEX_ANNEALER")]
    annealer: Annealer,
    /// Independent searches; annealers round them up to a multiple of 16
    #[arg(
        long,
        value_name = "N",
        default_value_t = anneal::Options::default().restarts as u64,
        env = "PHEX_RESTARTS",
        value_parser = value_parser!(u64).range(1..=100_000_000)
    )]
    restarts: u64,
    /// Sweeps over all labels a restart
    #[arg(
        long,
        value_name = "N",
        default_value_t = anneal::Options::default().sweeps as u64,
        env = "PHEX_ANNEAL_SWEEPS",
        value_parser = value_parser!(u64).range(1..=100_000_000)
    )]
    anneal_sweeps: u64,
    /// Copies of quantum annealing
    #[arg(
        long,
        value_name = "N",
        default_value_t = Quantum::default().slices as u64,
        value_parser = value_parser!(u64).range(2..=1024)
    )]
    slices: u64,
    /// How the inverse temperature grows
    #[arg(long, value_name = "SHAPE", default_value = "geometric")]
    shape: Growth,
    /// Hottest and coldest inverse temperature; from the problem when not given
    #[arg(long, value_name = "HOT,COLD", value_parser = betas)]
    beta: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    InPlace,
    Flooding,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Groups {
    Cardinality,
    Pairs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Annealer {
    SimulatedTabu,
    Simulated,
    Quantum,
    Tabu,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Growth {
    Geometric,
    Linear,
}

impl EngineArguments {
    pub(crate) fn options(&self) -> Options {
        let default = Budget::default();
        Options {
            method: self.method,
            budget: Budget {
                operations: self.budget.unwrap_or(default.operations),
                bytes: self.memory.map_or(default.bytes, |mib| mib * 1024.0 * 1024.0),
            },
            cap: self.cap,
            seed: self.seed.unwrap_or(0),
            messages: self.messages.options(),
            sampling: self.sampling.options(),
            anneal: self.anneal.options(),
        }
    }

    /// To search for the best label sets. How long that takes is set by its own flags, whatever the
    /// budget; a signal ends it.
    pub(crate) fn search(&self) -> Options {
        let mut options = Options { method: Method::Anneal, ..self.options() };
        options.budget.operations = f64::INFINITY;
        options.anneal.stop = Some(crate::interrupt::flag());
        options
    }
}

impl MessageArguments {
    fn options(&self) -> MessageOptions {
        MessageOptions {
            schedule: match self.schedule {
                Order::InPlace => MessageOrder::InPlace,
                Order::Flooding => MessageOrder::Flooding,
            },
            groups: match self.groups {
                Groups::Cardinality => GroupForm::Cardinality,
                Groups::Pairs => GroupForm::Pairs,
            },
            damping: self.damping,
            iterations: self.iterations,
            tolerance: self.tolerance,
        }
    }
}

impl SamplingArguments {
    fn options(&self) -> SamplingOptions {
        SamplingOptions {
            chains: self.chains,
            burn_in: self.burn_in,
            sweeps: self.sweeps,
            temperatures: self.temperatures,
            hottest: self.hottest,
            check: self.check,
        }
    }
}

impl AnnealArguments {
    fn options(&self) -> anneal::Options {
        anneal::Options {
            method: match self.annealer {
                Annealer::SimulatedTabu => anneal::Method::SimulatedTabu,
                Annealer::Simulated => anneal::Method::Simulated,
                Annealer::Quantum => anneal::Method::Quantum,
                Annealer::Tabu => anneal::Method::Tabu,
            },
            restarts: self.restarts as usize,
            sweeps: self.anneal_sweeps as usize,
            schedule: anneal::Cooling {
                shape: match self.shape {
                    Growth::Geometric => Shape::Geometric,
                    Growth::Linear => Shape::Linear,
                },
                beta: self.beta,
            },
            quantum: Quantum { slices: self.slices as usize, ..Quantum::default() },
            ..anneal::Options::default()
        }
    }
}
