//! Parquet: a column a label, or one column of lists with an entry a label.
//!
//! Read in batches, whatever the size of the row groups.

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::cell::Cell;
use super::columns::{Use, Wanted};
use super::parquet_cells::{copy_numbers, copy_texts, is_number, is_text};
use super::parquet_file::{ParquetFile, damaged};
use super::source::Source;
use super::{Number, TableLimits};
use crate::Error;

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
        let file = ParquetFile::open(source, limits)?;
        let (columns, number) = layout(&file.schema, &path, wanted)?;
        let (rows, width) = (file.rows, columns.len().max(wanted.labels.len()));
        let reader = file.batches(None, width)?;
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
