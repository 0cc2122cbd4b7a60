//! Gibbs sampling on ImageNet's labels (every pair without a common descendant exclusive): time a
//! spin update, and the error of short runs against exact marginals.

use anyhow::Context as _;
use clap::Args;
use phex::graph::{ExclusionRule, Strength};
use phex::infer::{Block, Budget, Engine, GroupForm, Method, Options, Trust, Want};
use phex::model::Model;

use crate::data::{graph, imagenet_edges};
use crate::machine::time;
use crate::random::scores;

#[derive(Debug, Args)]
pub(crate) struct GibbsCommand {
    /// Sweeps before the first that counts
    #[arg(long, default_value_t = 10)]
    burn_in: u32,
    /// Sweeps that count
    #[arg(long, default_value_t = 20)]
    sweeps: u32,
    /// Time only: no exact answers
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(command: &GibbsCommand) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let edges = imagenet_edges().context("no ImageNet hierarchy (set PHEX_DATA)")?;
    println!(
        "| u | one of leaves | groups as | ns a spin update, best (best median of 5) | error, mean / largest \
         | standard error | R̂ − 1 | effective |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (u, leaves) in [(0.1, false), (0.5, false), (1.5, false), (0.1, true), (0.5, true)] {
        let soft = Strength::U(u);
        let rule = ExclusionRule::NoCommonDescendant;
        let model = Model::new(&graph(&edges, rule, soft, soft, leaves)?)?;
        let n = model.len();
        let data = scores::<f32>(4 * n, 1.0);
        let block = Block::new(n, &data);
        let budget = Budget { operations: 1e10, bytes: 8e9 };
        let exact = if command.quick {
            None
        } else {
            let options = Options { method: Method::Exact, budget, ..Options::default() };
            Some(Engine::compile(model.clone(), &options)?.run(&block, Want::default())?)
        };
        for groups in [GroupForm::Pairs, GroupForm::Cardinality] {
            let mut options = Options { method: Method::Gibbs, budget, ..Options::default() };
            options.messages.groups = groups;
            options.sampling.burn_in = command.burn_in;
            options.sampling.sweeps = command.sweeps;
            let engine = Engine::compile(model.clone(), &options)?;
            let one = block.slice(0..1);
            // Short runs, often: one of them has the core to itself.
            let times = || time(1, || drop(engine.run(&one, Want::default())));
            let (best, median) = (0..8)
                .map(|_| times())
                .fold((f64::MAX, f64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
            let swept = f64::from(command.burn_in + command.sweeps);
            let spins = n as f64 * swept * f64::from(options.sampling.chains) / 1e3;
            let want = Want { standard_errors: true, ..Want::default() };
            let sampled = engine.run(&block, want)?;
            let standard = sampled.standard_errors.iter().flatten().map(|&e| f64::from(e));
            let standard = standard.sum::<f64>() / (4 * n) as f64;
            let Trust::Approximate(diagnosis) = sampled.trust[0] else { continue };
            let error = exact.as_ref().map_or_else(String::new, |exact| {
                let pairs = sampled.marginals.iter().zip(&exact.marginals);
                let errors = pairs.map(|(a, b)| f64::from((a - b).abs()));
                let mean = errors.clone().sum::<f64>() / (4 * n) as f64;
                format!("{mean:.5} / {:.3}", errors.fold(0.0, f64::max))
            });
            println!(
                "| {u} | {leaves} | {groups:?} | {:.2} ({:.2}) | {error} | {standard:.5} | {:.3} | {:.2} |",
                best / spins,
                median / spins,
                diagnosis.residual,
                diagnosis.effective_sample.unwrap_or(1.0),
            );
        }
    }
    Ok(())
}
