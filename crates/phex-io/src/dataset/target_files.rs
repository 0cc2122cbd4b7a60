//! Targets in files of their own.

use std::path::Path;

use phex::graph::{LabelId, RelationGraph};

use super::labels::LabelReader;
use super::read::separator;
use super::table::{Cell, Table, Wanted};
use super::{DatasetFormat, DatasetOptions, LabelForm, TargetOptions, open_lines};
use crate::{Error, EvidenceReader, TableFormat};

/// How many numbers of a matrix are read at a time, about.
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
    let (limits, max_values) = (options.limits, options.max_values);
    let plain = DatasetOptions { format, limits, max_values, ..DatasetOptions::default() };
    match (format, column) {
        (None, None) => text(path, &plain, targets, reader),
        (Some(DatasetFormat::Table(TableFormat::Npy)), None) => {
            let Table::Npy(table) = Table::open(path, &plain)? else { return Ok(()) };
            // One column is one number a row, unless one column is what the graph has.
            if table.is_flat() || table.names().len() == 1 && graph.len() != 1 {
                one_column(Table::Npy(table), 0, LabelForm::Id, (&plain, targets), reader)
            } else {
                matrix(path, &plain, graph, reader)
            }
        }
        (Some(DatasetFormat::Table(_)), None) => matrix(path, &plain, graph, reader),
        (Some(DatasetFormat::Arff), None) => Err(Error::Table {
            path: path.display().to_string(),
            message: String::from("name the attribute of the ARFF file that has the labels"),
        }),
        (_, Some(name)) => {
            let table = Table::open(path, &plain)?;
            let found = table.names().iter().position(|column| column == name);
            let column = found.ok_or_else(|| Error::MissingColumn {
                path: table.path().to_owned(),
                column: name.to_owned(),
                count: 1,
            })?;
            one_column(table, column, targets.form, (&plain, targets), reader)
        }
    }
}

fn full(path: &str, options: &DatasetOptions) -> Error {
    let limit = options.max_values;
    Error::TooMuchData { path: path.to_owned(), what: "labels of rows", limit }
}

fn one_column(
    mut table: Table,
    column: usize,
    form: LabelForm,
    (options, targets): (&DatasetOptions, &TargetOptions),
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let mut wanted = vec![Wanted::Nothing; table.names().len()];
    wanted[column] = Wanted::Texts;
    table.want(&wanted)?;
    let separator = separator(targets, &table);
    while table.next()? {
        let cell = table.cell(column)?;
        reader.row(cell, form, &separator).map_err(|message| table.error(column, message))?;
        if reader.is_full() {
            return Err(full(table.path(), options));
        }
    }
    Ok(())
}

fn text(
    path: &Path,
    options: &DatasetOptions,
    targets: &TargetOptions,
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let mut lines = open_lines(path, &options.limits)?;
    let separator = targets.separator.as_deref().unwrap_or(";");
    while lines.next()? {
        let cell = Cell::Text(lines.text()?);
        reader.row(cell, targets.form, separator).map_err(|message| lines.error(message))?;
        if reader.is_full() {
            return Err(full(lines.path(), options));
        }
    }
    Ok(())
}

fn matrix(
    path: &Path,
    options: &DatasetOptions,
    graph: &RelationGraph,
    reader: &mut LabelReader<'_>,
) -> Result<(), Error> {
    let names: Vec<String> = graph.labels().iter().map(|label| label.name.clone()).collect();
    let mut table = EvidenceReader::open(path, None, &names, &[], &options.limits)?;
    let piece = (PIECE / names.len().max(1)).max(1);
    let mut row = 0;
    while let Some(rows) = table.next_rows(piece)? {
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
            return Err(full(&path.display().to_string(), options));
        }
    }
    Ok(())
}
