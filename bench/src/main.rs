//! Benchmarks: `make bench ARGS=graph`. Results go to standard output as a table and to
//! `bench/results/` as JSON, with the machine that made them.

mod anneal;
mod approx;
mod data;
mod engines;
mod gibbs;
mod graph;
mod hmc;
mod infer;
mod machine;
mod overhead;
mod peers;
mod random;
mod table;
mod train;
mod uai;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Benchmarks of phex")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Annealing on instances with proven optima, beside dwave-samplers
    Anneal(anneal::AnnealCommand),
    /// How wrong approximate engines are, and whether they know it
    Approx(approx::ApproxCommand),
    /// Check, sparsify and convert hierarchies of 1k, 10k and 100k labels
    Graph(graph::GraphCommand),
    /// Hierarchical multi-label sets with published results: training through the relations
    Hmc(hmc::HmcCommand),
    /// Exact engines on ImageNet's labels, zero-shot graphs and growing trees
    Infer(infer::InferCommand),
    /// One call on a block of rows, for comparison with the same call from Python
    Overhead(overhead::OverheadCommand),
    /// Gibbs sampling on ImageNet's labels: time a spin update, error of marginals
    Gibbs(gibbs::GibbsCommand),
    /// Loopy belief propagation and Gibbs sampling beside numpy, torch, PGMax and dwave-samplers
    Peers(peers::PeersCommand),
    /// Training on CIFAR-100 features: rows a second, and where the time goes
    Train(train::TrainCommand),
    /// Problems of the UAI 2014 competition with reference answers
    Uai(uai::UaiCommand),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Anneal(command) => anneal::run(&command),
        Command::Approx(command) => approx::run(&command),
        Command::Graph(command) => graph::run(&command),
        Command::Hmc(command) => hmc::run(&command),
        Command::Overhead(command) => overhead::run(&command),
        Command::Infer(command) => infer::run(&command),
        Command::Gibbs(command) => gibbs::run(&command),
        Command::Peers(command) => peers::run(&command),
        Command::Train(command) => train::run(&command),
        Command::Uai(command) => uai::run(&command),
    }
}
