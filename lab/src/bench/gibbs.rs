//! Gibbs sampling on ImageNet's labels, where labels without a common descendant exclude each other: time per spin
//! update, and the error of short runs against exact marginals.

use std::path::PathBuf;

use clap::Args;
use phex::graph::{ExclusionRule, Strength};
use phex::infer::{Block, Budget, Engine, GroupForm, Method, Options, Trust, Want};
use phex::model::Model;
use serde_json::json;

use crate::harness::data::{graph, imagenet_edges};
use crate::harness::timing::{time, use_one_thread};
use crate::harness::{MarkdownTable, ResultFolder, ResultPage, normal_scores};

#[derive(Debug, Args)]
pub(crate) struct GibbsCommand {
    /// Where the results go [default: target/lab/gibbs]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Sweeps before those that count
    #[arg(long, default_value_t = 10)]
    burn_in: u32,
    /// Sweeps that count
    #[arg(long, default_value_t = 20)]
    sweeps: u32,
    /// Only measure time, without exact answers
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(command: &GibbsCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let folder = ResultFolder::create(command.out.as_deref(), "gibbs")?;
    let edges = imagenet_edges()?;
    let mut table = MarkdownTable::new(
        "",
        "u | one of leaves | groups as | ns per spin update, best (best median) | error, mean / largest | standard error | R̂ − 1 | effective sample",
    );
    for (u, leaves) in [(0.1, false), (0.5, false), (1.5, false), (0.1, true), (0.5, true)] {
        let soft = Strength::U(u);
        let rule = ExclusionRule::NoCommonDescendant;
        let model = Model::new(&graph(&edges, rule, soft, soft, leaves)?)?;
        let n = model.len();
        let data = normal_scores::<f32>(4 * n, 1.0, 0);
        let block = Block::new(n, &data);
        let budget = Budget { operations: 1e10, bytes: 8e9, search: 1e11 };
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
            // Many short runs, of which some have the core to themselves.
            let (mut best, mut median) = (f64::MAX, f64::MAX);
            for _ in 0..8 {
                let timing = time(0.0, || engine.run(&one, Want::default()))?;
                (best, median) = (best.min(timing.best), median.min(timing.median));
            }
            let swept = f64::from(command.burn_in + command.sweeps);
            let spins = n as f64 * swept * f64::from(options.sampling.chains);
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
            table.row([
                u.to_string(),
                String::from(if leaves { "yes" } else { "no" }),
                format!("{groups:?}"),
                format!("{:.2} ({:.2})", 1e9 * best / spins, 1e9 * median / spins),
                error,
                format!("{standard:.5}"),
                format!("{:.3}", diagnosis.residual),
                format!("{:.2}", diagnosis.effective_sample.unwrap_or(1.0)),
            ]);
        }
    }
    let about = "ImageNet's labels, all relations soft; one thread, one row of 64 chains.";
    let mut page = ResultPage::of_bench("gibbs", "Gibbs sampling", about);
    page.tables.push(table);
    Ok(folder.write_bench(&page, &json!({}))?)
}
