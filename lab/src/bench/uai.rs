//! Problems of the UAI 2014 inference competition, which come with reference answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use phex::infer::{Block, Engine, Trust, Want};
use phex_io::{read_uai_marginals, read_uai_model, read_uai_partition};
use serde::Serialize;
use serde_json::json;

use crate::harness::setups::{self, EngineSetup};
use crate::harness::table::short_or_dash;
use crate::harness::timing::use_one_thread;
use crate::harness::{MarkdownTable, ResultFolder, ResultPage, data};

#[derive(Debug, Args)]
pub(crate) struct UaiCommand {
    /// Where the results go [default: target/lab/uai]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Only problems whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Skip engines whose plan needs more operations
    #[arg(long, default_value_t = 3e10)]
    operations: f64,
}

/// One engine on one problem.
#[derive(Debug, Default, Serialize)]
struct UaiRow {
    problem: String,
    labels: usize,
    engine: String,
    /// The chosen method, for `exact`.
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
struct UaiProblem {
    name: String,
    uai: phex_io::UaiModel,
    model: Arc<phex::model::Model>,
    evidence: Vec<phex::infer::Evidence>,
    marginals: Vec<Vec<f64>>,
    log10_z: f64,
}

pub(crate) fn run(command: &UaiCommand) -> anyhow::Result<()> {
    use_one_thread()?;
    let results = ResultFolder::create(command.out.as_deref(), "uai")?;
    let folder = data::path("uai");
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
        let problem = UaiProblem::read(path)?;
        for setup in setups::for_models() {
            let row = problem.measure(&setup, command.operations);
            eprintln!("{} {} {:?} s", row.problem, row.engine, row.seconds);
            rows.push(row);
        }
    }
    let about = "One thread. Errors are against the reference answers of the competition.";
    let mut page = ResultPage::of_bench("uai", "Problems of the UAI 2014 competition", about);
    page.tables.push(table(&rows));
    Ok(results.write_bench(&page, &json!({ "rows": rows }))?)
}

impl UaiProblem {
    fn read(path: &Path) -> anyhow::Result<UaiProblem> {
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let uai = read_uai_model(path)?;
        Ok(UaiProblem {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            evidence: uai.read_evidence(&beside(".evid"))?,
            model: Arc::new(uai.model.clone()),
            uai,
            marginals: read_uai_marginals(&beside(".MAR"))?,
            log10_z: read_uai_partition(&beside(".PR"))?,
        })
    }

    fn measure(&self, setup: &EngineSetup, operations: f64) -> UaiRow {
        let mut row = UaiRow {
            problem: self.name.clone(),
            labels: self.model.len(),
            engine: setup.name.clone(),
            ..UaiRow::default()
        };
        if let Err(error) = self.answer(setup, operations, &mut row) {
            row.skipped = Some(error.to_string());
        }
        row
    }

    fn answer(&self, setup: &EngineSetup, operations: f64, row: &mut UaiRow) -> anyhow::Result<()> {
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
        // A maximum hides NaN; a sum does not.
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

fn table(rows: &[UaiRow]) -> MarkdownTable {
    let mut table = MarkdownTable::new(
        "",
        "problem | labels | engine | mean error | max error | log10 Z error | converged | doubt | seconds | note",
    );
    for row in rows {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let engine = match row.method {
            Some(method) => format!("{} ({method})", row.engine),
            None => row.engine.clone(),
        };
        // A refusal may be long; its beginning is enough here.
        let note = row.skipped.as_deref().unwrap_or_default().replace('\n', " ");
        table.row([
            row.problem.clone(),
            row.labels.to_string(),
            engine,
            short_or_dash(row.mean_error),
            short_or_dash(row.max_error),
            short_or_dash(row.log10_z_error),
            row.converged.map_or_else(String::new, yes),
            row.doubt.unwrap_or_default().to_owned(),
            short_or_dash(row.seconds),
            note.chars().take(120).collect(),
        ]);
    }
    table
}
