//! The table that is reconciled: finished probabilities, or their logits.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::{anyhow, bail};
use phex::graph::RelationGraph;
use phex::infer::ScoreForm;
use phex_io::{Error, Precision, ScoreOptions, ScoreReader, ScoreRows, TableFormat};

use crate::args::ReconcileCommand;
use crate::say::say;
use crate::scores;

pub(super) struct FinishedTable {
    reader: ScoreReader,
    path: PathBuf,
    is_logits: bool,
    /// How many rows were read before the last block.
    before: u64,
    /// How many rows the last block has.
    last: u64,
}

impl FinishedTable {
    pub(super) fn open(
        command: &ReconcileCommand,
        graph: &RelationGraph,
    ) -> anyhow::Result<FinishedTable> {
        let (path, is_logits) = match (&command.probabilities, &command.scores) {
            (Some(path), _) => (path, false),
            (None, Some(path)) => (path, true),
            (None, None) => bail!("--probabilities FILE is missing: one column per label"),
        };
        let format = command.table_format.as_deref().map(TableFormat::from_str).transpose();
        let format = format.map_err(anyhow::Error::msg)?;
        let reader = open(path, format, command, graph, &command.keep)?;
        scores::notes_on_columns(&reader).iter().for_each(|note| say(format_args!("phex: {note}")));
        Ok(FinishedTable { reader, path: path.clone(), is_logits, before: 0, last: 0 })
    }

    pub(super) fn is_logits(&self) -> bool {
        self.is_logits
    }

    /// The format of the output: by its file name, or else that of the input.
    pub(super) fn format(&self, out: &Path) -> TableFormat {
        TableFormat::from_path(out).unwrap_or(self.reader.format())
    }

    pub(super) fn precision(&self) -> Precision {
        self.reader.precision()
    }

    pub(super) fn total(&self) -> Option<u64> {
        self.reader.rows()
    }

    pub(super) fn next(&mut self, most: usize) -> anyhow::Result<Option<ScoreRows>> {
        crate::interrupt::check()?;
        let rows = next_rows(&mut self.reader, most)?;
        self.before += self.last;
        self.last = rows.as_ref().map_or(0, |rows| rows.count as u64);
        Ok(rows)
    }

    /// An error about rows of the last block, with the file and the option that helps.
    pub(super) fn explain(&self, error: phex::Error) -> anyhow::Error {
        let path = self.path.display();
        match error {
            phex::Error::NotFinished { row, label, .. } => {
                let row = self.before + row as u64;
                anyhow!("{path}: row {row}: the score of `{label}` is NaN; every label needs one")
            }
            phex::Error::NotDistribution { row, label, sum } => {
                let row = (self.before + row as u64) as usize;
                anyhow!("{path}: {}", phex::Error::NotDistribution { row, label, sum })
            }
            error => explain_table(error, &path.to_string()),
        }
    }
}

/// An error about a table, with its name and the command that helps.
pub(super) fn explain_table(error: phex::Error, path: &str) -> anyhow::Error {
    match error {
        error @ phex::Error::OneSoftmax { .. } => anyhow!(
            "{path}: {error} (`phex infer --single-label` with columns for the leaves only)"
        ),
        error => anyhow!(error).context(path.to_owned()),
    }
}

/// Opens a table of probabilities or logits, with advice if it is of another kind.
pub(super) fn open(
    path: &Path,
    format: Option<TableFormat>,
    command: &ReconcileCommand,
    graph: &RelationGraph,
    keep: &[String],
) -> anyhow::Result<ScoreReader> {
    let names: Vec<String> = graph.labels().iter().map(|label| label.name.clone()).collect();
    let is_logits = command.probabilities.is_none();
    let options = ScoreOptions {
        format,
        keep: keep.to_vec(),
        names: scores::column_names(&command.labels, graph.len())?,
        form: if is_logits { ScoreForm::Logits } else { ScoreForm::Probabilities },
        ..ScoreOptions::default()
    };
    let others = graph.len() - graph.leaves().count();
    ScoreReader::open_with(path, &names, &options).map_err(|error| match &error {
        // Exactly the leaves have columns.
        Error::MissingColumn { column, count, .. }
            if others > 0
                && *count == others
                && graph.leaves().all(|leaf| graph.name(leaf) != column) =>
        {
            let form = if is_logits { "" } else { " --scores-are probabilities" };
            anyhow!(
                "{error}: only the leaves have columns; if the classifier decides between them, \
                 `phex infer --single-label{form}` gives the other labels"
            )
        }
        Error::ColumnCount { .. } => {
            anyhow!(
                "{error}; --label-names FILE says which labels its columns are, one name per line"
            )
        }
        _ => error.into(),
    })
}

/// The next rows, with advice if they are logits.
pub(super) fn next_rows(
    reader: &mut ScoreReader,
    most: usize,
) -> anyhow::Result<Option<ScoreRows>> {
    reader.next_rows(most).map_err(|error| match &error {
        Error::Cell { message, .. } if message.contains("probability") => {
            anyhow!("{error}; a table of logits is given with --scores")
        }
        _ => error.into(),
    })
}
