//! Parquet files, read in batches, whatever the size of their row groups.
//!
//! Records need only some columns, and the others are not even decoded. Blocks copy the columns of a
//! batch straight to numbers.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::arrow::{copy_numbers, copy_texts, is_number, is_text, number_type};
use super::parquet_file::{ParquetFile, damaged};
use super::{
    BlockColumn, BlockColumns, BlockValue, ColumnNeed, ColumnType, RecordCell, bad_number,
};
use crate::error::RecordNumber;
use crate::tables::input::TableInput;
use crate::{Error, Limits};

/// A column of the current batch, decoded for records.
enum DecodedColumn {
    Unneeded,
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
    Lists(Vec<Option<Vec<String>>>),
}

/// A Parquet file that is being read.
pub(in crate::tables) struct ParquetCursor {
    path: String,
    names: Vec<String>,
    types: Vec<DataType>,
    type_names: Vec<String>,
    /// The file, until its columns are selected.
    file: Option<ParquetFile>,
    reader: Option<ParquetRecordBatchReader>,
    /// How many rows the footer claims.
    rows: u64,
    /// How many rows were read.
    done: u64,
    needs: Vec<ColumnNeed>,
    /// The columns of the current batch, its length, and the current row in it.
    decoded: Vec<DecodedColumn>,
    batch_rows: usize,
    at: usize,
    /// The batch that a block ended in, and how many of its rows were used.
    rest: Option<(RecordBatch, usize)>,
}

impl ParquetCursor {
    pub(super) fn open(input: TableInput, limits: &Limits) -> Result<ParquetCursor, Error> {
        let path = input.name.clone();
        let file = ParquetFile::open(input, limits)?;
        let fields = file.schema.fields().clone();
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(ParquetCursor {
            path,
            names: fields.iter().map(|field| field.name().clone()).collect(),
            type_names: types.iter().map(ToString::to_string).collect(),
            types,
            rows: file.rows,
            file: Some(file),
            reader: None,
            done: 0,
            needs: Vec::new(),
            decoded: Vec::new(),
            batch_rows: 0,
            at: 0,
            rest: None,
        })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn type_name(&self, column: usize) -> &str {
        &self.type_names[column]
    }

    pub(super) fn column_type(&self, column: usize) -> ColumnType<'_> {
        match &self.types[column] {
            DataType::Utf8 => ColumnType::Text,
            DataType::List(item) => ColumnType::Lists(number_type(item.data_type())),
            kind => number_type(kind).map_or(ColumnType::Other, ColumnType::Number),
        }
    }

    /// Opens the columns that are needed.
    pub(super) fn select(&mut self, needs: &[ColumnNeed]) -> Result<(), Error> {
        for (column, kind) in self.types.iter().enumerate() {
            let list = matches!(kind, DataType::List(item) if is_text(item.data_type()));
            let good = match needs[column] {
                ColumnNeed::Nothing => true,
                ColumnNeed::Values => is_text(kind),
                ColumnNeed::Texts => is_text(kind) || list,
            };
            if !good {
                let (column, kind) = (self.names[column].clone(), &self.type_names[column]);
                let message = format!("is of type {kind}, which is not supported");
                return Err(Error::Column { path: self.path.clone(), column, message });
            }
        }
        let columns: Vec<usize> =
            (0..needs.len()).filter(|&column| needs[column] != ColumnNeed::Nothing).collect();
        let width = columns.len();
        self.needs = needs.to_vec();
        self.start(Some(columns), width)
    }

    /// Opens all columns; a row has `width` values.
    pub(super) fn select_all(&mut self, width: usize) -> Result<(), Error> {
        self.start(None, width)
    }

    fn start(&mut self, columns: Option<Vec<usize>>, width: usize) -> Result<(), Error> {
        if let Some(file) = self.file.take() {
            self.reader = Some(file.batches(columns, width)?);
        }
        Ok(())
    }

    /// The next batch that has rows. All rows before it must have been counted.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        loop {
            match reader.next() {
                None if self.done == self.rows => return Ok(None),
                None => {
                    let message = format!(
                        "the footer claims {} rows and {} were found",
                        self.rows, self.done
                    );
                    return Err(damaged(&self.path, message));
                }
                Some(Err(error)) => return Err(damaged(&self.path, error.to_string())),
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => return Ok(Some(batch)),
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if self.at + 1 < self.batch_rows {
            self.at += 1;
        } else {
            let Some(batch) = self.next_batch()? else { return Ok(false) };
            self.decoded = decode(&self.path, &batch, &self.needs)?;
            (self.batch_rows, self.at) = (batch.num_rows(), 0);
        }
        self.done += 1;
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> RecordCell<'_> {
        match &self.decoded[column] {
            DecodedColumn::Unneeded => RecordCell::Missing,
            DecodedColumn::Numbers(numbers) => match numbers[self.at] {
                number if number.is_nan() => RecordCell::Missing,
                number => RecordCell::Number(number),
            },
            DecodedColumn::Texts(texts) => {
                texts[self.at].as_deref().map_or(RecordCell::Missing, RecordCell::Text)
            }
            DecodedColumn::Lists(lists) => {
                lists[self.at].as_deref().map_or(RecordCell::Missing, RecordCell::List)
            }
        }
    }

    pub(super) fn record(&self) -> RecordNumber {
        RecordNumber::Row(self.done)
    }

    /// Adds at most `max` rows and returns how many.
    pub(super) fn read_block<T: BlockValue>(
        &mut self,
        max: usize,
        columns: &BlockColumns,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<usize, Error> {
        let mut count = 0;
        while count < max {
            let (batch, used) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.next_batch()? {
                    Some(batch) => (batch, 0),
                    None => break,
                },
            };
            let rows = (batch.num_rows() - used).min(max - count);
            self.copy_rows(&batch, used, rows, columns, values, kept)?;
            count += rows;
            self.done += rows as u64;
            if used + rows < batch.num_rows() {
                self.rest = Some((batch, used + rows));
            }
        }
        Ok(count)
    }

    /// Adds `count` rows of a batch.
    fn copy_rows<T: BlockValue>(
        &self,
        batch: &RecordBatch,
        from: usize,
        count: usize,
        columns: &BlockColumns,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<(), Error> {
        let (start, width) = (values.len(), columns.labels.len());
        values.resize(start + count * width, T::MISSING);
        let out = &mut values[start..];
        for (&column, array) in columns.columns.iter().zip(batch.columns()) {
            match column {
                BlockColumn::Kept(column) => copy_texts(array, from, count, &mut kept[column]),
                BlockColumn::Label(label) => {
                    let cells = out[label..].iter_mut().step_by(width).take(count);
                    copy_numbers(array, from, cells).map_err(|(row, value)| {
                        self.bad_number::<T>(row, &columns.labels[label], value)
                    })?;
                }
                BlockColumn::AllLabels => self.copy_lists(array, from, &columns.labels, out)?,
                BlockColumn::Ignored => {}
            }
        }
        Ok(())
    }

    /// Adds rows of a column of lists, which have one item per label.
    fn copy_lists<T: BlockValue>(
        &self,
        array: &dyn Array,
        from: usize,
        labels: &[String],
        out: &mut [T],
    ) -> Result<(), Error> {
        let Some(lists) = array.as_list_opt::<i32>() else {
            return Err(damaged(&self.path, "a column of lists has another type"));
        };
        for (index, row) in out.chunks_exact_mut(labels.len()).enumerate() {
            if lists.is_null(from + index) {
                continue;
            }
            let offsets = lists.value_offsets();
            let (first, end) = (offsets[from + index] as usize, offsets[from + index + 1] as usize);
            if end - first != labels.len() {
                let (row, found, labels) =
                    (self.done + index as u64 + 1, end - first, labels.len());
                let message =
                    format!("row {row} has {found} entries and the model has {labels} labels");
                return Err(Error::Table { path: self.path.clone(), message });
            }
            copy_numbers(lists.values(), first, row.iter_mut())
                .map_err(|(label, value)| self.bad_number::<T>(index, &labels[label], value))?;
        }
        Ok(())
    }

    fn bad_number<T: BlockValue>(&self, row: usize, column: &str, value: f64) -> Error {
        bad_number::<T>(&self.path, self.done + row as u64 + 1, column, value)
    }
}

/// The columns of a batch for records.
fn decode(
    path: &str,
    batch: &RecordBatch,
    needs: &[ColumnNeed],
) -> Result<Vec<DecodedColumn>, Error> {
    let mut arrays = batch.columns().iter();
    let mut columns = Vec::with_capacity(needs.len());
    for &need in needs {
        if need == ColumnNeed::Nothing {
            columns.push(DecodedColumn::Unneeded);
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
                DecodedColumn::Lists((0..lists.len()).map(list).collect())
            }
            None if need == ColumnNeed::Values && is_number(kind) => {
                let mut numbers = vec![f64::NAN; array.len()];
                // Every number is allowed here, so this cannot fail.
                let _ = copy_numbers(array, 0, numbers.iter_mut());
                DecodedColumn::Numbers(numbers)
            }
            None => DecodedColumn::Texts(texts(array)),
        });
    }
    Ok(columns)
}

/// The texts of an array; `None` for nulls.
fn texts(array: &dyn Array) -> Vec<Option<String>> {
    let mut texts = Vec::with_capacity(array.len());
    copy_texts(array, 0, array.len(), &mut texts);
    let texts = texts.into_iter().enumerate();
    texts.map(|(row, text)| array.is_valid(row).then_some(text)).collect()
}
