//! Targets in separate files.

use std::path::Path;

use phex::graph::{LabelId, RelationGraph};

use super::labels::LabelReader;
use super::read::separator;
use super::{DatasetFormat, DatasetOptions, LabelForm, TargetOptions};
use crate::tables::cursor::{ColumnNeed, RecordCell, RecordCursor};
use crate::tables::input::open_lines;
use crate::{Error, EvidenceReader, Limits, TableFormat};

/// Roughly how many values of a matrix are read at a time.
const PIECE: usize = 1 << 20;

/// Adds the rows of a file.
pub(super) fn read(
    path: &Path,
    column: Option<&str>,
    options: &DatasetOptions,
    targets: &TargetOptions,
    graph: &RelationGraph,
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let format = DatasetFormat::of_file(path)?;
    let limits = &options.limits;
    match (format, column) {
        (None, None) => text(path, limits, targets, reader),
        (Some(DatasetFormat::Table(TableFormat::Npy)), None) => {
            let cursor = RecordCursor::open(path, format, limits)?;
            let flat = matches!(&cursor, RecordCursor::Npy(npy) if npy.is_flat());
            // A single column holds the number of a label in each row, unless the graph has only
            // one label.
            if flat || cursor.names().len() == 1 && graph.len() != 1 {
                one_column(cursor, 0, LabelForm::Id, (limits, targets), reader)
            } else {
                matrix(path, limits, graph, reader)
            }
        }
        (Some(DatasetFormat::Table(_)), None) => matrix(path, limits, graph, reader),
        (Some(DatasetFormat::Arff), None) => Err(Error::Table {
            path: path.display().to_string(),
            message: String::from("name the attribute of the ARFF file that holds the labels"),
        }),
        (_, Some(name)) => {
            let cursor = RecordCursor::open(path, format, limits)?;
            let found = cursor.names().iter().position(|column| column == name);
            let column = found.ok_or_else(|| Error::MissingColumn {
                path: cursor.path().to_owned(),
                column: name.to_owned(),
                count: 1,
            })?;
            one_column(cursor, column, targets.form, (limits, targets), reader)
        }
    }
}

fn full(path: &str, limits: &Limits) -> Error {
    let limit = limits.values;
    Error::TooMuchData { path: path.to_owned(), what: "labels of rows", limit }
}

fn one_column(
    mut cursor: RecordCursor,
    column: usize,
    form: LabelForm,
    (limits, targets): (&Limits, &TargetOptions),
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let mut needs = vec![ColumnNeed::Nothing; cursor.names().len()];
    needs[column] = ColumnNeed::Texts;
    cursor.select(&needs)?;
    let separator = separator(targets, &cursor);
    while cursor.next()? {
        let cell = cursor.cell(column);
        reader.row(cell, form, &separator).map_err(|message| cursor.error(column, message))?;
        if reader.is_full() {
            return Err(full(cursor.path(), limits));
        }
    }
    Ok(())
}

fn text(
    path: &Path,
    limits: &Limits,
    targets: &TargetOptions,
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let mut lines = open_lines(path, limits)?;
    let separator = targets.separator.as_deref().unwrap_or(";");
    while lines.next()? {
        let cell = RecordCell::Text(lines.text()?);
        reader.row(cell, targets.form, separator).map_err(|message| lines.error(message))?;
        if reader.is_full() {
            return Err(full(lines.path(), limits));
        }
    }
    Ok(())
}

fn matrix(
    path: &Path,
    limits: &Limits,
    graph: &RelationGraph,
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let names: Vec<String> = graph.labels().iter().map(|label| label.name.clone()).collect();
    let mut cursor = EvidenceReader::open(path, None, &names, &[], limits)?;
    let piece = (PIECE / names.len().max(1)).max(1);
    let mut row = 0;
    while let Some(rows) = cursor.next_rows(piece)? {
        for values in rows.values.chunks_exact(names.len()) {
            row += 1;
            let wrong = |message: String| Error::Table {
                path: path.display().to_string(),
                message: format!("row {row}: {message}"),
            };
            for (label, value) in (0..).zip(values) {
                if let Some(on) = value.is_on() {
                    reader.add(LabelId(label), on).map_err(wrong)?;
                }
            }
            reader.finish(true).map_err(wrong)?;
        }
        if reader.is_full() {
            return Err(full(&path.display().to_string(), limits));
        }
    }
    Ok(())
}
