//! `phex infer` and `phex map`: run rows of scores through an engine, a block at a time.

mod diagnosis;
mod map;
mod plan;
mod source;
mod summary;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use phex::infer::{Block, Engine, Evidence, Method, Posterior, Want};
use phex::numeric::Scalar;
use phex_io::{ScoreRows, ScoreValues, ScoreWriter};

use crate::args::InferCommand;
use crate::device::Device;
use crate::{Outcome, output};

use diagnosis::DiagnosisWriter;
pub(crate) use map::{best_engine, run as map};
pub(crate) use plan::run as plan;
pub(crate) use source::{Source, use_threads};
use summary::Summary;

/// Rows that are in memory at a time; fewer if the table is wide.
pub(crate) fn piece(labels: usize) -> usize {
    ((1 << 22) / labels.max(1)).clamp(64, 4096)
}

pub(crate) fn run(command: &InferCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let files = command.rows.files().writes_with_summary(&command.out);
    files.writes(command.diagnosis.iter().chain(&command.standard_errors)).check()?;
    output::check_table(&command.out)?;
    command.standard_errors.iter().try_for_each(|path| output::check_table(path))?;
    command.diagnosis.iter().try_for_each(|path| output::check_lines(path))?;
    use_threads(command.rows.threads);
    let device = Device::open(command.device.device)?;
    let (model, graph) = command.rows.input.model_with_graph()?;
    let engine = crate::say::engine(model, &command.rows.engine.options()?)
        .with_context(|| command.rows.input.path.display().to_string())?;
    let method = engine.plan().method;
    if method == Method::Anneal {
        bail!("`anneal` finds the best label sets, not probabilities; use `phex map`");
    }
    if command.standard_errors.is_some() && method != Method::Gibbs {
        bail!("`{method}` does not sample, so it has no standard errors; use --method gibbs");
    }
    let want = Want {
        standard_errors: command.standard_errors.is_some(),
        bounds: command.bounds,
        ..Want::default()
    };
    let runner = device.engine(&engine, want)?;
    let mut source = Source::of(&command.rows, engine.model().names(), graph.as_ref())?;
    let mut writers = Writers::create(command, &engine, &source)?;
    let mut summary = Summary::of(engine.plan().clone());
    summary.device = Some(device.name());
    if engine.plan().approximate && command.rows.engine.method == Method::Auto {
        summary.note(format!(
            "no exact engine can handle the model within the budget: `{method}` answers approximately; \
             see `graph plan`"
        ));
    }
    let bar = progress(source.total());
    let labels = engine.model().len();
    let piece = device.piece(piece(labels), labels);
    while let Some((rows, evidence)) = source.next(piece)? {
        let count = rows.count;
        match &rows.values {
            ScoreValues::F32(scores) => {
                let posterior = runner.run(&block(labels, scores, evidence.as_deref()), want)?;
                summary.add(&engine, &posterior);
                writers.write(posterior, ScoreValues::F32, rows)?;
            }
            ScoreValues::F64(scores) => {
                let posterior = runner.run(&block(labels, scores, evidence.as_deref()), want)?;
                summary.add(&engine, &posterior);
                writers.write(posterior, ScoreValues::F64, rows)?;
            }
        }
        bar.inc(count as u64);
    }
    writers.finish()?;
    bar.finish_and_clear();
    if command.bounds && summary.is_without_bounds() {
        summary.note(if engine.plan().approximate {
            "there are no bounds on log Z, because they exceed the budget for this model"
        } else {
            "there are no bounds on log Z, because this engine is not approximate"
        });
    }
    source.notes().into_iter().for_each(|note| summary.note(note));
    summary.finish(start);
    summary.complain(command.rows.quiet);
    if !command.rows.quiet && !command.rows.json {
        summary.tell();
    }
    output::write_beside(&summary, &command.out)?;
    if command.rows.json {
        output::summary(&summary, command.has_data_on_standard_output())?;
    }
    Ok(Outcome::Fine)
}

impl InferCommand {
    /// Every file that is written.
    fn files(&self) -> impl Iterator<Item = &Path> {
        let others = self.diagnosis.iter().chain(&self.standard_errors);
        std::iter::once(&self.out).chain(others).map(std::path::PathBuf::as_path)
    }

    fn has_data_on_standard_output(&self) -> bool {
        self.files().any(|file| file.as_os_str() == "-")
    }
}

/// The tables that a run writes.
struct Writers {
    marginals: ScoreWriter,
    standard_errors: Option<ScoreWriter>,
    diagnosis: Option<DiagnosisWriter>,
}

impl Writers {
    fn create(command: &InferCommand, engine: &Engine, source: &Source) -> anyhow::Result<Writers> {
        let table = |path: &Path| {
            let (labels, format) = (engine.model().names(), source.format(path));
            ScoreWriter::create(path, format, labels, source.kept(), source.precision())
        };
        Ok(Writers {
            marginals: table(&command.out)?,
            standard_errors: command.standard_errors.as_deref().map(table).transpose()?,
            diagnosis: command.diagnosis.as_deref().map(DiagnosisWriter::create).transpose()?,
        })
    }

    fn write<T: Scalar>(
        &mut self,
        posterior: Posterior<T>,
        values: impl Fn(Vec<T>) -> ScoreValues,
        rows: ScoreRows,
    ) -> anyhow::Result<()> {
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.write(&posterior)?;
        }
        let mut rows = ScoreRows { values: values(posterior.marginals), ..rows };
        self.marginals.write_rows(&rows)?;
        if let (Some(writer), Some(errors)) = (&mut self.standard_errors, posterior.standard_errors)
        {
            rows.values = values(errors);
            writer.write_rows(&rows)?;
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        // The answers come last, so that if they exist, everything else does.
        if let Some(diagnosis) = self.diagnosis {
            diagnosis.finish()?;
        }
        if let Some(standard_errors) = self.standard_errors {
            standard_errors.finish()?;
        }
        Ok(self.marginals.finish()?)
    }
}

/// A block of rows with their evidence.
pub(crate) fn block<'a, T: Scalar>(
    labels: usize,
    scores: &'a [T],
    evidence: Option<&'a [Evidence]>,
) -> Block<'a, T> {
    let block = Block::new(labels, scores);
    match evidence {
        Some(evidence) => block.with_evidence(evidence),
        None => block,
    }
}

/// A progress bar on standard error, if that is a terminal.
pub(crate) fn progress(total: Option<u64>) -> ProgressBar {
    let template = "{pos} rows {bar:40} {eta}";
    match (total, ProgressStyle::with_template(template)) {
        (Some(total), Ok(style)) => ProgressBar::new(total).with_style(style),
        _ => ProgressBar::new_spinner(),
    }
}
