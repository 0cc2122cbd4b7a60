//! Tables of scores as people have them: leaves only, columns without names of labels, and probabilities.

use std::path::Path;
use std::str::FromStr as _;

use anyhow::anyhow;
use phex::graph::RelationGraph;
use phex::infer::{PROBABILITY_FLOOR, ScoreForm, ScoreInput, unscored};
use phex_io::{Error, ScoreOptions, ScoreReader, TableFormat, read_label_names};

use crate::args::{LabelArguments, TableArguments};

/// Opens a table of scores, with advice if its columns do not match the labels.
pub(crate) fn open(
    path: &Path,
    arguments: &TableArguments,
    form: ScoreForm,
    labels: &[String],
    graph: Option<&RelationGraph>,
) -> anyhow::Result<ScoreReader> {
    let format = arguments.table_format.as_deref().map(TableFormat::from_str).transpose();
    let names = arguments.label_names.as_deref().map(read_label_names).transpose()?;
    let options = ScoreOptions {
        format: format.map_err(anyhow::Error::msg)?,
        keep: arguments.keep.clone(),
        missing: match arguments.missing {
            Some(score) => vec![Some(score); labels.len()],
            None => graph.map(unscored).unwrap_or_default(),
        },
        names,
        form,
        ..ScoreOptions::default()
    };
    ScoreReader::open_with(path, labels, &options).map_err(|error| explain(error, graph))
}

/// An error with the options that help.
fn explain(error: Error, graph: Option<&RelationGraph>) -> anyhow::Error {
    match &error {
        Error::MissingColumn { column, .. } => match graph {
            Some(graph) if graph.id(column).is_none() => error.into(),
            Some(graph) if !graph.has_one_leaf() => anyhow!(
                "{error}; --missing 0 gives labels without a column the score 0, and --single-label says that exactly \
                 one leaf is on, so that leaves are enough"
            ),
            _ => anyhow!("{error}; --missing 0 gives labels without a column the score 0"),
        },
        Error::UnknownColumn { column, .. } => anyhow!(
            "{error}; to pass it through, use --keep {column:?}; if columns are not named after labels, --label-names \
             FILE says which label each of them is"
        ),
        Error::ColumnCount { .. } => {
            anyhow!(
                "{error}; --label-names FILE says which labels its columns are, one name per line"
            )
        }
        _ => error.into(),
    }
}

/// Notes on how the columns were read.
pub(crate) fn notes(reader: &ScoreReader, labels: &[String], missing: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let without: Vec<usize> = reader.missing().collect();
    if let Some(first) = without.first() {
        let name = &labels[*first];
        let which = match without.len() {
            1 => format!("the label `{name}` has no column and gets"),
            count => format!("{count} labels, such as `{name}`, have no column and get"),
        };
        notes.push(match missing {
            Some(score) => format!("{which} the score {score}"),
            None => {
                format!("{which} the score 0: exactly one leaf is on, and all leaves have columns")
            }
        });
    }
    notes.extend(notes_on_columns(reader));
    notes
}

/// The labels that the columns stand for, if the list of `--label-names` is one of columns. A list of another length names
/// the numbers in a file of labels.
pub(crate) fn column_names(
    arguments: &LabelArguments,
    labels: usize,
) -> anyhow::Result<Option<Vec<String>>> {
    let names = arguments.label_names.as_deref().map(read_label_names).transpose()?;
    Ok(names.filter(|names| names.len() == labels))
}

/// A note on columns that number the rows.
pub(crate) fn ignored(columns: &[String]) -> Option<String> {
    Some(match columns.first()?.as_str() {
        "" => {
            String::from("the first column has no name, so it was left out: it looks like an index")
        }
        name => format!(
            "the column `{name}` was left out: it looks like an index; --keep {name:?} copies it to the output"
        ),
    })
}

/// Notes on what was left out and what nothing names.
pub(crate) fn notes_on_columns(reader: &ScoreReader) -> Vec<String> {
    ignored(reader.ignored()).into_iter().chain(by_position(reader)).collect()
}

/// A note on columns that nothing names.
fn by_position(reader: &ScoreReader) -> Option<String> {
    reader.is_by_position().then(|| {
        String::from(
            "the columns have no names and were taken to be the labels in the order of the graph (`phex graph labels`); \
             --label-names FILE gives another order",
        )
    })
}

/// Why rows that could be one softmax are not taken to be logits.
pub(crate) const SOFTMAX_OR_LOGITS: &str = "all scores are between 0 and 1, and each row sums to 1, as a softmax over the \
    leaves does: --scores-are probabilities reads them as that, and --scores-are logits as logits";

/// A note on what the numbers were taken to be.
pub(crate) fn form_note(input: &ScoreInput, is_form_given: bool) -> Option<String> {
    if input.is_softmax() {
        return Some(String::from(
            "the values are one softmax over the leaves: the rows sum to 1, and exactly one leaf is on",
        ));
    }
    if is_form_given || !input.looks_finished() {
        return None;
    }
    Some(format!(
        "all scores are between 0 and 1, as finished probabilities are, but scores are logits: say --scores-are \
         probabilities if they are probabilities (those below {PROBABILITY_FLOOR:e} count as that), or --scores-are logits; \
         `phex reconcile` makes finished probabilities consistent"
    ))
}
