//! Benchmarks: `make bench ARGS=graph`. Each prints a summary and writes it to `target/lab/NAME`, with its raw results.

mod anneal;
mod approx;
mod gibbs;
mod graph;
mod hmc;
mod infer;
mod overhead;
mod peers;
mod plan;
mod reconcile;
mod softmax;
mod train;
mod uai;

use clap::Subcommand;

/// A benchmark.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Annealing on instances with proven optima, beside dwave-samplers
    Anneal(anneal::AnnealCommand),
    /// How wrong approximate engines are, and whether they know it
    Approx(approx::ApproxCommand),
    /// Check, sparsify and convert hierarchies of 1k, 10k and 100k labels
    Graph(graph::GraphCommand),
    /// Train on hierarchical multi-label sets with published results
    Hmc(hmc::HmcCommand),
    /// Exact engines on ImageNet's labels, zero-shot graphs and growing trees
    Infer(infer::InferCommand),
    /// One call on a block of rows, to compare with the same call from Python
    Overhead(overhead::OverheadCommand),
    /// Gibbs sampling on ImageNet's labels: time per spin update, error of marginals
    Gibbs(gibbs::GibbsCommand),
    /// Loopy belief propagation and Gibbs sampling beside numpy, torch, PGMax and dwave-samplers
    Peers(peers::PeersCommand),
    /// Choosing an engine for hierarchies of data sets and random ones, under each exclusion rule
    Plan(plan::PlanCommand),
    /// Reconciling finished probabilities: time per row, beside cvxpy and scikit-learn
    Reconcile(reconcile::ReconcileCommand),
    /// Training on CIFAR-100 features: rows per second, and where the time goes
    Train(train::TrainCommand),
    /// Problems of the UAI 2014 competition with reference answers
    Uai(uai::UaiCommand),
}

pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Anneal(command) => anneal::run(command),
        BenchCommand::Approx(command) => approx::run(command),
        BenchCommand::Graph(command) => graph::run(command),
        BenchCommand::Hmc(command) => hmc::run(command),
        BenchCommand::Overhead(command) => overhead::run(command),
        BenchCommand::Infer(command) => infer::run(command),
        BenchCommand::Gibbs(command) => gibbs::run(command),
        BenchCommand::Peers(command) => peers::run(command),
        BenchCommand::Plan(command) => plan::run(command),
        BenchCommand::Reconcile(command) => reconcile::run(command),
        BenchCommand::Train(command) => train::run(command),
        BenchCommand::Uai(command) => uai::run(command),
    }
}
