//! The engines that benchmarks compare: each with its options and a name.

use phex::infer::{
    Budget, GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions,
};

/// An engine with its options.
#[derive(Debug, Clone)]
pub(crate) struct EngineSetup {
    pub(crate) name: String,
    pub(crate) options: Options,
}

/// Far more than any engine needs in a benchmark, so that none is refused.
const BUDGET: Budget = Budget { operations: 1e12, bytes: 8e9, search: 1e12 };

fn setup(name: &str, method: Method) -> EngineSetup {
    let options = Options { method, budget: BUDGET, ..Options::default() };
    EngineSetup { name: String::from(name), options }
}

fn messages(name: &str, messages: MessageOptions) -> EngineSetup {
    let mut setup = setup(name, Method::Lbp);
    setup.options.messages = messages;
    setup
}

fn sampling(name: &str, sampling: SamplingOptions) -> EngineSetup {
    let mut setup = setup(name, Method::Gibbs);
    setup.options.sampling = sampling;
    setup
}

fn pairs(schedule: MessageOrder, damping: f64, iterations: u32, tolerance: f64) -> MessageOptions {
    MessageOptions { schedule, groups: GroupForm::Pairs, damping, iterations, tolerance }
}

/// The messages of the paper: flooding over pairs, 20 iterations, no damping.
pub(crate) fn paper_messages() -> MessageOptions {
    pairs(MessageOrder::Flooding, 0.0, 20, 0.0)
}

/// Loopy belief propagation as in the paper.
pub(crate) fn paper() -> EngineSetup {
    messages("lbp paper", paper_messages())
}

/// As [`paper`], but label after label: both schedules with equal work.
pub(crate) fn in_place() -> EngineSetup {
    messages("lbp in place 20", pairs(MessageOrder::InPlace, 0.0, 20, 0.0))
}

/// Damped flooding, which helps if the paper's messages do not converge.
pub(crate) const DAMPED: &str = "lbp damped";
/// Exact forests joined by messages, with the check by samples.
pub(crate) const FOREST_BP: &str = "forest-bp";
/// Belief propagation with cardinality factors, as by default.
pub(crate) const DEFAULT: &str = "lbp default";

/// The engines that are compared on label graphs.
pub(crate) fn for_graphs() -> Vec<EngineSetup> {
    let tolerance = MessageOptions::default().tolerance;
    // With no tolerance the paper's form could not say that it converged.
    let mut flooding = paper();
    flooding.options.messages.tolerance = tolerance;
    vec![
        flooding,
        messages(DAMPED, pairs(MessageOrder::Flooding, 0.5, 500, tolerance)),
        messages("lbp in place", pairs(MessageOrder::InPlace, 0.0, 200, tolerance)),
        setup(DEFAULT, Method::Lbp),
        setup(FOREST_BP, Method::ForestBp),
        setup("mean-field", Method::MeanField),
        setup("trw", Method::Trw),
        setup("gibbs", Method::Gibbs),
        sampling("gibbs 1000", SamplingOptions { sweeps: 1000, ..SamplingOptions::default() }),
    ]
}

/// The engines that are compared on models of any kind.
pub(crate) fn for_models() -> Vec<EngineSetup> {
    let tolerance = MessageOptions::default().tolerance;
    let mut exact = setup("exact", Method::Exact);
    exact.options.budget = Budget { operations: 1e10, bytes: 8e9, search: 1e11 };
    vec![
        exact,
        setup("lbp in place damped", Method::Lbp),
        messages("lbp flooding", pairs(MessageOrder::Flooding, 0.0, 200, tolerance)),
        setup(FOREST_BP, Method::ForestBp),
        setup("mean-field", Method::MeanField),
        setup("trw", Method::Trw),
        setup("gibbs", Method::Gibbs),
        tempered("gibbs tempered", 8, 1000),
    ]
}

/// Gibbs sampling with parallel tempering. Long enough, it replaces an exact answer that does not fit in memory.
pub(crate) fn tempered(name: &str, temperatures: u32, sweeps: u32) -> EngineSetup {
    let burn_in = sweeps / 4;
    sampling(name, SamplingOptions { temperatures, sweeps, burn_in, ..SamplingOptions::default() })
}
