//! Rows of Parquet files: only the columns that are wanted are decoded.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::table::{Cell, Declared, Wanted};
use crate::tables::parquet_cells::{copy_numbers, copy_texts, is_number, is_text};
use crate::tables::parquet_file::{ParquetFile, damaged};
use crate::tables::source::Source;
use crate::{Error, TableLimits};

/// A column of the batch at hand.
enum Column {
    Unwanted,
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
    Lists(Vec<Option<Vec<String>>>),
}

pub(super) struct ParquetTable {
    path: String,
    names: Vec<String>,
    kinds: Vec<DataType>,
    kind_names: Vec<String>,
    file: Option<ParquetFile>,
    reader: Option<ParquetRecordBatchReader>,
    wanted: Vec<Wanted>,
    batch: Vec<Column>,
    batch_rows: usize,
    /// The row in the batch, and how many rows were read in all.
    at: usize,
    done: u64,
    rows: u64,
}

impl ParquetTable {
    pub(super) fn open(source: Source, limits: &TableLimits) -> Result<ParquetTable, Error> {
        let path = source.name.clone();
        let file = ParquetFile::open(source, limits)?;
        let fields = file.schema.fields().clone();
        let kinds: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(ParquetTable {
            path,
            names: fields.iter().map(|field| field.name().clone()).collect(),
            kind_names: kinds.iter().map(|kind| kind.to_string()).collect(),
            kinds,
            rows: file.rows,
            file: Some(file),
            reader: None,
            wanted: Vec::new(),
            batch: Vec::new(),
            batch_rows: 0,
            at: 0,
            done: 0,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn declared(&self, column: usize) -> Declared<'_> {
        match &self.kinds[column] {
            DataType::Boolean => Declared::Number,
            kind if is_number(kind) => Declared::Number,
            DataType::Utf8 => Declared::Text,
            _ => Declared::Other(&self.kind_names[column]),
        }
    }

    /// Opens the columns that are wanted.
    pub(super) fn want(&mut self, wanted: &[Wanted]) -> Result<(), Error> {
        for (column, kind) in self.kinds.iter().enumerate() {
            let list = matches!(kind, DataType::List(item) if is_text(item.data_type()));
            let good = match wanted[column] {
                Wanted::Nothing => true,
                Wanted::Values => is_text(kind),
                Wanted::Texts => is_text(kind) || list,
            };
            if !good {
                let (column, kind) = (self.names[column].clone(), &self.kind_names[column]);
                let message = format!("is of type {kind}, which is not read");
                return Err(Error::Column { path: self.path.clone(), column, message });
            }
        }
        let columns: Vec<usize> =
            (0..wanted.len()).filter(|&column| wanted[column] != Wanted::Nothing).collect();
        if let Some(file) = self.file.take() {
            let width = columns.len();
            self.reader = Some(file.batches(Some(columns), width)?);
        }
        self.wanted = wanted.to_vec();
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if self.done > 0 && self.at + 1 < self.batch_rows {
            self.at += 1;
            self.done += 1;
            return Ok(true);
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        loop {
            match reader.next() {
                None if self.done == self.rows => return Ok(false),
                None => {
                    let message = format!("{} rows are claimed and {} found", self.rows, self.done);
                    return Err(damaged(&self.path, message));
                }
                Some(Err(error)) => return Err(damaged(&self.path, error.to_string())),
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    self.batch = columns(&self.path, &batch, &self.wanted)?;
                    (self.batch_rows, self.at) = (batch.num_rows(), 0);
                    self.done += 1;
                    return Ok(true);
                }
            }
        }
    }

    pub(super) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        Ok(match &self.batch[column] {
            Column::Unwanted => Cell::Missing,
            Column::Numbers(numbers) => match numbers[self.at] {
                number if number.is_nan() => Cell::Missing,
                number => Cell::Number(number),
            },
            Column::Texts(texts) => texts[self.at].as_deref().map_or(Cell::Missing, Cell::Text),
            Column::Lists(lists) => lists[self.at].as_deref().map_or(Cell::Missing, Cell::List),
        })
    }

    pub(super) fn error(&self, column: &str, message: String) -> Error {
        let (path, column) = (self.path.clone(), column.to_owned());
        Error::Cell { path, row: self.done, column, message }
    }
}

/// The columns of a batch, with those that are not wanted in their places.
fn columns(path: &str, batch: &RecordBatch, wanted: &[Wanted]) -> Result<Vec<Column>, Error> {
    let mut arrays = batch.columns().iter();
    let mut columns = Vec::with_capacity(wanted.len());
    for &wanted in wanted {
        if wanted == Wanted::Nothing {
            columns.push(Column::Unwanted);
            continue;
        }
        let Some(array) = arrays.next() else { return Err(damaged(path, "a column is missing")) };
        let kind = array.data_type();
        columns.push(match array.as_list_opt::<i32>() {
            Some(lists) => {
                let texts = texts(lists.values());
                let offsets = lists.value_offsets();
                let list = |row: usize| {
                    let items = offsets[row] as usize..offsets[row + 1] as usize;
                    lists.is_valid(row).then(|| texts[items].iter().flatten().cloned().collect())
                };
                Column::Lists((0..lists.len()).map(list).collect())
            }
            None if wanted == Wanted::Values && (is_number(kind) || *kind == DataType::Boolean) => {
                let mut numbers = vec![f64::NAN; array.len()];
                // Every number may be there: none is refused.
                let _ = copy_numbers(array, 0, numbers.iter_mut());
                Column::Numbers(numbers)
            }
            None => Column::Texts(texts(array)),
        });
    }
    Ok(columns)
}

/// The texts of an array; none for nulls.
fn texts(array: &dyn Array) -> Vec<Option<String>> {
    let mut texts = Vec::with_capacity(array.len());
    copy_texts(array, 0, array.len(), &mut texts);
    let texts = texts.into_iter().enumerate();
    texts.map(|(row, text)| array.is_valid(row).then_some(text)).collect()
}
