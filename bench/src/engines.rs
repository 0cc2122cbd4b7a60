//! The approximate engines that are compared, by name.

use phex::infer::{
    Budget, GroupForm, MessageOptions, MessageOrder, Method, Options, SamplingOptions,
};

/// An engine with its options.
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) options: Options,
}

/// Far above what any of them needs here: the benchmark is to see them run.
const BUDGET: Budget = Budget { operations: 1e12, bytes: 8e9 };

fn setup(name: &'static str, method: Method) -> Setup {
    Setup { name, options: Options { method, budget: BUDGET, ..Options::default() } }
}

fn messages(name: &'static str, method: Method, messages: MessageOptions) -> Setup {
    let mut setup = setup(name, method);
    setup.options.messages = messages;
    setup
}

fn sampling(name: &'static str, sampling: SamplingOptions) -> Setup {
    let mut setup = setup(name, Method::Gibbs);
    setup.options.sampling = sampling;
    setup
}

fn pairs(schedule: MessageOrder, damping: f64, iterations: u32, tolerance: f64) -> MessageOptions {
    MessageOptions { schedule, groups: GroupForm::Pairs, damping, iterations, tolerance }
}

/// The paper's: flooding over pairs, 20 iterations, no damping.
pub(crate) fn paper() -> Setup {
    let options = pairs(MessageOrder::Flooding, 0.0, 20, 0.0);
    messages("lbp paper", Method::Lbp, options)
}

/// As [`paper`], label after label: both schedules at equal work.
pub(crate) fn in_place() -> Setup {
    let options = pairs(MessageOrder::InPlace, 0.0, 20, 0.0);
    messages("lbp in place 20", Method::Lbp, options)
}

/// Damped flooding: what one does when the paper's does not converge.
pub(crate) const DAMPED: &str = "lbp damped";
/// Exact forests joined by messages, with the check by samples.
pub(crate) const BLOCKS: &str = "blocks";
/// Belief propagation with cardinality factors, as by default.
pub(crate) const DEFAULT: &str = "lbp default";

/// What label graphs are compared by.
pub(crate) fn for_graphs() -> Vec<Setup> {
    let tolerance = MessageOptions::default().tolerance;
    // With no tolerance the paper's form could not say that it converged.
    let mut flooding = paper();
    flooding.options.messages.tolerance = tolerance;
    vec![
        flooding,
        messages(DAMPED, Method::Lbp, pairs(MessageOrder::Flooding, 0.5, 500, tolerance)),
        messages("lbp in place", Method::Lbp, pairs(MessageOrder::InPlace, 0.0, 200, tolerance)),
        setup(DEFAULT, Method::Lbp),
        setup(BLOCKS, Method::ForestBp),
        setup("mean-field", Method::MeanField),
        setup("trw", Method::Trw),
        setup("gibbs", Method::Gibbs),
        sampling("gibbs 1000", SamplingOptions { sweeps: 1000, ..SamplingOptions::default() }),
    ]
}

/// What models of any kind are compared by.
pub(crate) fn for_models() -> Vec<Setup> {
    let tolerance = MessageOptions::default().tolerance;
    let mut exact = setup("exact", Method::Exact);
    exact.options.budget = Budget { operations: 1e10, bytes: 8e9 };
    vec![
        exact,
        setup("lbp in place damped", Method::Lbp),
        messages("lbp flooding", Method::Lbp, pairs(MessageOrder::Flooding, 0.0, 200, tolerance)),
        setup(BLOCKS, Method::ForestBp),
        setup("mean-field", Method::MeanField),
        setup("trw", Method::Trw),
        setup("gibbs", Method::Gibbs),
        tempered("gibbs tempered", 8, 1000),
    ]
}

/// Parallel tempering; long enough, it stands for an exact answer that does not fit the memory.
pub(crate) fn tempered(name: &'static str, temperatures: u32, sweeps: u32) -> Setup {
    let burn_in = sweeps / 4;
    sampling(name, SamplingOptions { temperatures, sweeps, burn_in, ..SamplingOptions::default() })
}
