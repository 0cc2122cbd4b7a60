//! Problems of the UAI 2014 inference competition, which come with reference answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::infer::{Block, Engine, Trust, Want};
use phex_io::{read_uai_marginals, read_uai_model, read_uai_partition};
use serde::Serialize;

use crate::engines::{self, Setup};
use crate::table::{Table, maybe};

#[derive(Debug, Args)]
pub(crate) struct UaiCommand {
    /// Where the results go; a table beside it, with the ending md
    #[arg(long, default_value = "bench/results/uai.json")]
    out: PathBuf,
    /// Only problems whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Skip engines whose plan asks for more operations
    #[arg(long, default_value_t = 3e10)]
    operations: f64,
}

/// One engine on one problem.
#[derive(Debug, Default, Serialize)]
struct Row {
    problem: String,
    labels: usize,
    engine: &'static str,
    /// The method that was chosen, for `exact`.
    method: Option<&'static str>,
    /// Over the states of all variables.
    mean_error: Option<f64>,
    max_error: Option<f64>,
    log10_z_error: Option<f64>,
    converged: Option<bool>,
    doubt: Option<&'static str>,
    seconds: Option<f64>,
    compile_seconds: Option<f64>,
    /// Why there is no answer.
    skipped: Option<String>,
}

/// A problem with its reference answers.
struct Problem {
    name: String,
    uai: phex_io::UaiModel,
    model: Arc<phex::model::Model>,
    evidence: Vec<phex::infer::Evidence>,
    marginals: Vec<Vec<f64>>,
    log10_z: f64,
}

pub(crate) fn run(command: &UaiCommand) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let folder = crate::data::path("uai");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "uai"));
    paths.retain(|path| path.to_string_lossy().contains(&command.only));
    paths.sort();
    if paths.is_empty() {
        bail!("no problem in {}", folder.display());
    }
    let mut rows = Vec::new();
    for path in &paths {
        let problem = Problem::read(path)?;
        for setup in engines::for_models() {
            let row = problem.measure(&setup, command.operations);
            eprintln!("{} {} {:?} s", row.problem, row.engine, row.seconds);
            rows.push(row);
        }
    }
    let table = table(&rows);
    println!("{table}");
    #[derive(Serialize)]
    struct Results {
        rows: Vec<Row>,
    }
    std::fs::write(command.out.with_extension("md"), table)?;
    crate::table::write(&command.out, "make bench ARGS=uai", Results { rows })
}

impl Problem {
    fn read(path: &Path) -> anyhow::Result<Problem> {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let uai = read_uai_model(path)?;
        Ok(Problem {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            evidence: uai.read_evidence(&beside(".evid"))?,
            model: Arc::new(uai.model.clone()),
            uai,
            marginals: read_uai_marginals(&beside(".MAR"))?,
            log10_z: read_uai_partition(&beside(".PR"))?,
        })
    }

    fn measure(&self, setup: &Setup, operations: f64) -> Row {
        let mut row = Row {
            problem: self.name.clone(),
            labels: self.model.len(),
            engine: setup.name,
            ..Row::default()
        };
        if let Err(error) = self.answer(setup, operations, &mut row) {
            row.skipped = Some(error.to_string());
        }
        row
    }

    fn answer(&self, setup: &Setup, operations: f64, row: &mut Row) -> anyhow::Result<()> {
        let start = Instant::now();
        let engine = Engine::compile(Arc::clone(&self.model), &setup.options)?;
        row.compile_seconds = Some(start.elapsed().as_secs_f64());
        let plan = engine.plan();
        row.method = plan.exact.then(|| plan.method.name());
        if plan.operations > operations {
            bail!("{:.0e} operations", plan.operations);
        }
        let zeros = vec![0.0f64; self.model.len()];
        let block = Block::new(zeros.len(), &zeros).with_evidence(&self.evidence);
        let start = Instant::now();
        let found = engine.run(&block, Want::default())?;
        row.seconds = Some(start.elapsed().as_secs_f64());
        let ours = self.uai.marginals(found.row(0));
        let pairs = self.marginals.iter().flatten().zip(ours.iter().flatten());
        let (mut sum, mut most, mut count) = (0.0, 0.0f64, 0.0);
        for (truth, ours) in pairs {
            let error = (truth - ours).abs();
            (sum, most, count) = (sum + error, most.max(error), count + 1.0);
        }
        // NaN is lost in a maximum, not in a sum.
        let mean: f64 = sum / count;
        row.mean_error = mean.is_finite().then_some(mean);
        row.max_error = mean.is_finite().then_some(most);
        let gap = (found.log_partition[0] / std::f64::consts::LN_10 - self.log10_z).abs();
        row.log10_z_error = gap.is_finite().then_some(gap);
        row.doubt = found.trust[0].doubt();
        if let Trust::Approximate(known) = found.trust[0] {
            row.converged = Some(known.converged);
        }
        if !mean.is_finite() {
            bail!("no answer: {:?}", found.status[0]);
        }
        Ok(())
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "problem",
        "labels",
        "engine",
        "mean error",
        "max error",
        "log10 Z error",
        "converged",
        "doubt",
        "seconds",
        "",
    ]);
    for row in rows {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let engine = match row.method {
            Some(method) => format!("{} ({method})", row.engine),
            None => row.engine.to_owned(),
        };
        // What an engine says of a model may be long; the first sentence is enough here.
        let note = row.skipped.as_deref().unwrap_or_default().replace('\n', " ");
        table.row(&[
            row.problem.clone(),
            row.labels.to_string(),
            engine,
            maybe(row.mean_error),
            maybe(row.max_error),
            maybe(row.log10_z_error),
            row.converged.map_or_else(String::new, yes),
            row.doubt.unwrap_or_default().to_owned(),
            maybe(row.seconds),
            note.chars().take(120).collect(),
        ]);
    }
    table.text().to_owned()
}
