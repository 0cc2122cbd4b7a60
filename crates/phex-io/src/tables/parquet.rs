//! Parquet: a column a label, or one column of lists with an entry a label.
//!
//! Read in batches of a few million numbers, whatever the size of the row groups. Sizes and places
//! that the footer claims are checked before anything is read; the schema of Arrow in the footer
//! is not used, so there are fewer types and less that can be damaged.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::cell::Cell;
use super::columns::{Use, Wanted};
use super::parquet_cells::{copy_numbers, copy_texts, is_number, is_text};
use super::parquet_pages::CheckedGroups;
use super::source::Source;
use super::{Number, TableLimits};
use crate::Error;

/// How many numbers a batch has at most, where it has more than one row.
const BATCH_NUMBERS: usize = 4 << 20;
/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;

/// What a column of the file is for.
#[derive(Debug, Clone, Copy)]
enum Column {
    One(Use),
    /// All labels in a list.
    List,
}

/// A Parquet file that is being read.
pub(super) struct ParquetRows {
    path: String,
    reader: ParquetRecordBatchReader,
    /// The batch at hand and how many of its rows were taken.
    batch: Option<(RecordBatch, usize)>,
    columns: Vec<Column>,
    labels: Vec<String>,
    number: Number,
    rows: u64,
    /// How many rows were taken.
    done: u64,
}

impl ParquetRows {
    pub(super) fn open(
        source: Source,
        wanted: &Wanted<'_>,
        limits: &TableLimits,
    ) -> Result<ParquetRows, Error> {
        let path = source.name.clone();
        let wrong = |message| Error::Table { path: path.clone(), message };
        let damaged = |error| parquet_error(&path, error);
        let file = source.into_file()?;
        let size = length(&file).map_err(|source| Error::Read { path: path.clone(), source })?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let footer = ArrowReaderMetadata::load(&file, options).map_err(damaged)?;
        let metadata = Arc::clone(footer.metadata());
        let rows = check(&metadata, size, limits).map_err(wrong)?;
        let (columns, number) = layout(footer.schema(), &path, wanted)?;
        let width = columns.len().max(wanted.labels.len());
        let batch = (BATCH_NUMBERS / width).clamp(1, BATCH_ROWS);
        let schema = metadata.file_metadata().schema_descr();
        let levels = parquet_to_arrow_field_levels(schema, ProjectionMask::all(), None);
        let levels = levels.map_err(damaged)?;
        let groups = CheckedGroups {
            file: Arc::new(file),
            metadata: Arc::clone(&metadata),
            rows: rows as usize,
        };
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch, None);
        let reader = reader.map_err(damaged)?;
        let labels = wanted.labels.to_vec();
        Ok(ParquetRows { path, reader, batch: None, columns, labels, number, rows, done: 0 })
    }

    /// The type of its numbers.
    pub(super) fn number(&self) -> Number {
        self.number
    }

    /// How many rows the footer claims.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds at most `max` rows and says how many there were.
    pub(super) fn read<T: Cell>(
        &mut self,
        max: usize,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<usize, Error> {
        let mut count = 0;
        while count < max {
            let (batch, taken) = match self.batch.take() {
                Some(batch) => batch,
                None => match self.reader.next() {
                    None => break,
                    Some(Ok(batch)) => (batch, 0),
                    Some(Err(error)) => return Err(damaged(&self.path, error.to_string())),
                },
            };
            let take = (batch.num_rows() - taken).min(max - count);
            self.take(&batch, taken, take, values, kept)?;
            count += take;
            self.done += take as u64;
            if taken + take < batch.num_rows() {
                self.batch = Some((batch, taken + take));
            }
        }
        if count < max && self.done != self.rows {
            let message = format!("{} rows are claimed and {} found", self.rows, self.done);
            return Err(damaged(&self.path, message));
        }
        Ok(count)
    }

    /// Adds `count` rows of a batch.
    fn take<T: Cell>(
        &self,
        batch: &RecordBatch,
        from: usize,
        count: usize,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<(), Error> {
        let (start, width) = (values.len(), self.labels.len());
        values.resize(start + count * width, T::MISSING);
        let out = &mut values[start..];
        for (&column, array) in self.columns.iter().zip(batch.columns()) {
            match column {
                Column::One(Use::Kept(column)) => {
                    copy_texts(array, from, count, &mut kept[column]);
                }
                Column::One(Use::Label(label)) => {
                    let cells = out[label..].iter_mut().step_by(width).take(count);
                    copy_numbers(array, from, cells)
                        .map_err(|(row, value)| self.bad_cell::<T>(row, label, value))?;
                }
                Column::List => self.take_lists(array, from, out)?,
            }
        }
        Ok(())
    }

    /// Adds rows from a column of lists.
    fn take_lists<T: Cell>(
        &self,
        array: &dyn Array,
        from: usize,
        out: &mut [T],
    ) -> Result<(), Error> {
        use arrow_array::cast::AsArray;
        let Some(lists) = array.as_list_opt::<i32>() else {
            return Err(damaged(&self.path, "a column of lists has another type"));
        };
        let width = self.labels.len();
        for (index, row) in out.chunks_exact_mut(width).enumerate() {
            if lists.is_null(from + index) {
                continue;
            }
            let offsets = lists.value_offsets();
            let (first, end) = (offsets[from + index] as usize, offsets[from + index + 1] as usize);
            if end - first != width {
                let (row, found) = (self.done + index as u64 + 1, end - first);
                let message = format!("row {row} has {found} entries and the model {width} labels");
                return Err(Error::Table { path: self.path.clone(), message });
            }
            copy_numbers(lists.values(), first, row.iter_mut())
                .map_err(|(label, value)| self.bad_cell::<T>(index, label, value))?;
        }
        Ok(())
    }

    fn bad_cell<T: Cell>(&self, row: usize, label: usize, value: f64) -> Error {
        let (row, column) = (self.done + row as u64 + 1, self.labels[label].clone());
        let message = format!("the cell is {value}; {}", T::EXPECTED);
        Error::Cell { path: self.path.clone(), row, column, message }
    }
}

/// The use of each column, and the type of the scores.
fn layout(
    schema: &Schema,
    path: &str,
    wanted: &Wanted<'_>,
) -> Result<(Vec<Column>, Number), Error> {
    let fields = schema.fields();
    let list_name = if wanted.evidence { "evidence" } else { "scores" };
    let is_list =
        |name: &str, kind: &DataType| name == list_name && matches!(kind, DataType::List(_));
    let names = fields.iter().map(|field| (field.name().as_str(), field.data_type()));
    let plain = names.clone().filter(|(name, kind)| !is_list(name, kind)).map(|(name, _)| name);
    let lists = names.clone().filter(|(name, kind)| is_list(name, kind)).count();
    let uses = match lists {
        0 => wanted.uses(path, plain)?,
        1 => Wanted { labels: &[], evidence: true, ..*wanted }.uses(path, plain)?,
        _ => {
            let column = list_name.to_owned();
            return Err(Error::DuplicateColumn { path: path.to_owned(), column });
        }
    };
    let mut uses = uses.into_iter();
    let mut columns = Vec::with_capacity(fields.len());
    let mut number = Number::F32;
    for (name, kind) in names {
        let (column, kind) = match kind {
            DataType::List(item) if is_list(name, kind) => (Column::List, item.data_type()),
            kind => match uses.next() {
                Some(use_) => (Column::One(use_), kind),
                None => continue,
            },
        };
        let (good, expected) = match column {
            Column::One(Use::Kept(_)) => (is_text(kind), "text, numbers and booleans can be kept"),
            _ if wanted.evidence => {
                let good = is_number(kind) || *kind == DataType::Boolean;
                (good, "evidence is booleans or numbers")
            }
            _ => (kind.is_floating(), "scores are numbers of floating point"),
        };
        if !good {
            let message = format!("the column `{name}` is of type {kind}; {expected}");
            return Err(Error::Table { path: path.to_owned(), message });
        }
        if !matches!(column, Column::One(Use::Kept(_))) && *kind == DataType::Float64 {
            number = Number::F64;
        }
        columns.push(column);
    }
    Ok((columns, number))
}

/// Checks what the footer claims and counts the rows.
fn check(metadata: &ParquetMetaData, size: u64, limits: &TableLimits) -> Result<u64, String> {
    let mut rows = 0u64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let broken = |what: &str| format!("the file is damaged: row group {index} has {what}");
        let count = u64::try_from(group.num_rows()).ok();
        let count = count.and_then(|count| rows.checked_add(count));
        rows = count.ok_or_else(|| broken("an impossible number of rows"))?;
        let mut unpacked = 0u64;
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let start = u64::try_from(start.min(column.data_page_offset())).ok();
            let end = u64::try_from(column.compressed_size()).ok().zip(start);
            let end = end.and_then(|(length, start)| start.checked_add(length));
            if end.is_none_or(|end| end > size) || column.num_values() < 0 {
                return Err(broken("a column that is not inside the file"));
            }
            let bytes = u64::try_from(column.uncompressed_size()).ok();
            let bytes = bytes.and_then(|bytes| unpacked.checked_add(bytes));
            unpacked = bytes.ok_or_else(|| broken("a column of an impossible size"))?;
        }
        if unpacked > limits.max_row_group {
            return Err(format!(
                "row group {index} unpacks to {unpacked} bytes and {} are allowed; write smaller \
                 row groups or raise the limit",
                limits.max_row_group
            ));
        }
    }
    Ok(rows)
}

fn length(file: &File) -> std::io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// An error of the Parquet library.
fn parquet_error(path: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(source) => Error::Read { path: path.to_owned(), source: *source },
            Err(error) => damaged(path, error.to_string()),
        },
        error => damaged(path, error.to_string()),
    }
}

fn damaged(path: &str, message: impl AsRef<str>) -> Error {
    let message = format!("this is no Parquet file or it is damaged: {}", message.as_ref());
    Error::Table { path: path.to_owned(), message }
}
