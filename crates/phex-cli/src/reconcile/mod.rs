//! `phex reconcile`: makes finished probabilities consistent, a block of rows at a time.

mod diagnosis;
mod fit;
mod summary;
mod table;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use phex::graph::RelationGraph;
use phex::infer::Number;
use phex::reconcile::{FinishedRows, ReconcileOptions, Reconciled, Reconciler, refuse_softmax};
use phex_io::{ScoreRows, ScoreValues, ScoreWriter};

use crate::args::ReconcileCommand;
use crate::files::CommandFiles;
use crate::infer::{piece, progress, use_threads};
use crate::{Outcome, output};

use diagnosis::ReconcileDiagnosis;
use fit::Compiled;
use summary::ReconcileSummary;
use table::FinishedTable;

pub(crate) fn run(command: &ReconcileCommand) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let files: Vec<&Path> = command.files().collect();
    let inputs = [&command.probabilities, &command.scores, &command.weights];
    let checked = CommandFiles::default().reads(command.input.files()).reads(&command.fit);
    let checked = checked.reads(inputs.into_iter().flatten()).reads(command.labels.files());
    checked.writes_with_summary(&command.out).writes(&command.diagnosis).check()?;
    output::check_table(&command.out)?;
    command.diagnosis.iter().try_for_each(|path| output::check_lines(path))?;
    use_threads(command.threads);
    let graph = command.input.graph()?;
    let compiled = compile(command, &graph)?;
    let reconciler = compiled.reconciler();
    let mut table = FinishedTable::open(command, &graph)?;
    crate::interrupt::listen();
    // Made after the first answer: it says what kind of table this is, and nothing is written before.
    let mut writers: Option<Writers> = None;
    let mut summary = ReconcileSummary::of(&compiled);
    let bar = progress(table.total());
    let piece = piece(graph.len());
    let job = Job { graph: &graph, compiled: &compiled, is_logits: table.is_logits() };
    while let Some(rows) = table.next(piece)? {
        let count = rows.count;
        match &rows.values {
            ScoreValues::F32(values) => {
                let answer = job.run(values, &mut summary).map_err(|e| table.explain(e))?;
                let writers = Writers::get(&mut writers, command, reconciler, &table)?;
                writers.write(answer, ScoreValues::F32, rows)?;
            }
            ScoreValues::F64(values) => {
                let answer = job.run(values, &mut summary).map_err(|e| table.explain(e))?;
                let writers = Writers::get(&mut writers, command, reconciler, &table)?;
                writers.write(answer, ScoreValues::F64, rows)?;
            }
        }
        bar.inc(count as u64);
    }
    Writers::get(&mut writers, command, reconciler, &table)?;
    writers.map(Writers::finish).transpose()?;
    bar.finish_and_clear();
    summary.finish(start);
    output::write_beside(&summary, &command.out)?;
    if command.json {
        output::summary(&summary, files.iter().any(|file| file.as_os_str() == "-"))?;
    }
    summary.tell();
    Ok(Outcome::Fine)
}

fn compile(command: &ReconcileCommand, graph: &RelationGraph) -> anyhow::Result<Compiled> {
    if command.fit.is_empty() && command.labels.is_given() {
        bail!("labels are those of the rows of --fit FILE, which is missing");
    }
    let names: Vec<String> = graph.labels().iter().map(|label| label.name.clone()).collect();
    let weights = command.weights.as_deref().map(|path| phex_io::read_label_weights(path, &names));
    let options = ReconcileOptions {
        loss: command.loss,
        weights: weights.transpose()?,
        tolerance: command.tolerance,
        engine: command.engine,
        ..ReconcileOptions::default()
    };
    if !command.fit.is_empty() {
        return Ok(Compiled::Fitted(fit::fitted(command, graph, options)?));
    }
    let reconciler = Reconciler::compile(graph, &options)
        .with_context(|| command.input.path.display().to_string())?;
    Ok(Compiled::Plain(reconciler))
}

/// What every block of rows needs.
struct Job<'a> {
    graph: &'a RelationGraph,
    compiled: &'a Compiled,
    is_logits: bool,
}

impl Job<'_> {
    fn run<T: Number>(
        &self,
        values: &[T],
        summary: &mut ReconcileSummary,
    ) -> Result<Reconciled<T>, phex::Error> {
        let rows = match self.is_logits {
            true => FinishedRows::Logits(values),
            false => FinishedRows::Probabilities(values),
        };
        let answer = self.compiled.run(rows)?;
        if summary.rows == 0 {
            // Before anything is written: the first block says what kind of table it is.
            refuse_softmax(self.graph, rows, &answer)?;
        }
        summary.add(rows, &answer);
        Ok(answer)
    }
}

impl ReconcileCommand {
    /// Every file that is written.
    fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.out).chain(&self.diagnosis).map(std::path::PathBuf::as_path)
    }
}

/// The tables that a run writes.
struct Writers {
    probabilities: ScoreWriter,
    diagnosis: Option<ReconcileDiagnosis>,
}

impl Writers {
    /// The open tables, which the first call creates.
    fn get<'w>(
        writers: &'w mut Option<Writers>,
        command: &ReconcileCommand,
        reconciler: &Reconciler,
        table: &FinishedTable,
    ) -> anyhow::Result<&'w mut Writers> {
        Ok(match writers {
            Some(writers) => writers,
            None => writers.insert(Writers::create(command, reconciler, table)?),
        })
    }

    fn create(
        command: &ReconcileCommand,
        reconciler: &Reconciler,
        table: &FinishedTable,
    ) -> anyhow::Result<Writers> {
        let (out, labels) = (command.out.as_path(), reconciler.names());
        let (format, precision) = (table.format(out), table.precision());
        Ok(Writers {
            probabilities: ScoreWriter::create(out, format, labels, &command.keep, precision)?,
            diagnosis: command.diagnosis.as_deref().map(ReconcileDiagnosis::create).transpose()?,
        })
    }

    fn write<T: Number>(
        &mut self,
        answer: Reconciled<T>,
        values: impl Fn(Vec<T>) -> ScoreValues,
        rows: ScoreRows,
    ) -> anyhow::Result<()> {
        if let Some(diagnosis) = &mut self.diagnosis {
            diagnosis.write(&answer)?;
        }
        let rows = ScoreRows { values: values(answer.probabilities), ..rows };
        Ok(self.probabilities.write_rows(&rows)?)
    }

    fn finish(self) -> anyhow::Result<()> {
        // The answers come last, so that if they exist, everything else does.
        if let Some(diagnosis) = self.diagnosis {
            diagnosis.finish()?;
        }
        Ok(self.probabilities.finish()?)
    }
}
