//! One cursor over tables of every format.
//!
//! A [`RecordCursor`] is used in one of two ways. [`RecordCursor::next`] goes through the records one
//! by one, and [`RecordCursor::cell`] gives their cells: this is how data sets are read.
//! [`RecordCursor::read_block`] fills many rows of numbers at once, without a detour through cells
//! for npy and Parquet: this is how scores and evidence are read.
//!
//! Every format is checked before it is trusted: the sizes that an npy header or a Parquet footer
//! claims, each page of a Parquet file, and the length of each record of text.

mod arff;
#[cfg(feature = "parquet")]
mod arrow;
mod cell;
mod csv;
mod npy;
mod npy_columns;
mod npy_header;
mod npy_item;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_claims;
mod parquet_file;
#[cfg(feature = "parquet")]
mod parquet_pages;

use std::path::Path;

pub(crate) use arff::ArffHeader;
pub(super) use arff::Hierarchy;
pub(super) use cell::{
    BlockColumn, BlockColumns, BlockValue, ColumnNeed, ColumnType, NumberType, Probability,
    RecordCell,
};
pub(super) use npy::NpyCursor;

use self::csv::CsvCursor;
use super::input::{TableInput, open_lines};
use super::{DatasetFormat, TableFormat};
use crate::error::{CellLocation, RecordNumber};
use crate::files::text::shown;
use crate::{Error, Limits};
use arff::ArffCursor;
#[cfg(feature = "parquet")]
use parquet::ParquetCursor;

/// An open table of any format.
pub(super) enum RecordCursor {
    Csv(CsvCursor),
    Arff(ArffCursor),
    Npy(NpyCursor),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetCursor>),
}

macro_rules! each {
    ($cursor:expr, $inner:ident => $value:expr) => {
        match $cursor {
            RecordCursor::Csv($inner) => $value,
            RecordCursor::Arff($inner) => $value,
            RecordCursor::Npy($inner) => $value,
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet($inner) => $value,
        }
    };
}

impl RecordCursor {
    /// Starts reading a table.
    pub(super) fn new(input: TableInput, limits: &Limits) -> Result<RecordCursor, Error> {
        Ok(match input.format {
            TableFormat::Csv => RecordCursor::Csv(CsvCursor::open(input, b',', limits)?),
            TableFormat::Tsv => RecordCursor::Csv(CsvCursor::open(input, b'\t', limits)?),
            TableFormat::Npy => RecordCursor::Npy(NpyCursor::open(input)?),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                RecordCursor::Parquet(Box::new(ParquetCursor::open(input, limits)?))
            }
            #[cfg(not(feature = "parquet"))]
            TableFormat::Parquet => return Err(super::without_parquet(input.name)),
        })
    }

    /// Opens a file of data, or standard input for `-`. The columns of an npy file get names.
    pub(super) fn open(
        path: &Path,
        format: Option<DatasetFormat>,
        limits: &Limits,
    ) -> Result<RecordCursor, Error> {
        let format = match format {
            Some(format) => Some(format),
            None => DatasetFormat::of_file(path)?,
        };
        let format = match format {
            Some(DatasetFormat::Arff) => {
                return Ok(RecordCursor::Arff(ArffCursor::open(open_lines(path, limits)?)?));
            }
            Some(DatasetFormat::Table(format)) => Some(format),
            None => None,
        };
        let mut cursor = RecordCursor::new(TableInput::open(path, format, limits)?, limits)?;
        if let RecordCursor::Npy(npy) = &mut cursor {
            npy.name_columns()?;
        }
        Ok(cursor)
    }

    /// The name of the file.
    pub(super) fn path(&self) -> &str {
        each!(self, cursor => cursor.path())
    }

    /// The names of the columns; npy files have none unless they were opened as data.
    pub(super) fn names(&self) -> &[String] {
        each!(self, cursor => cursor.names())
    }

    /// The type of a column.
    pub(super) fn column_type(&self, column: usize) -> ColumnType<'_> {
        each!(self, cursor => cursor.column_type(column))
    }

    /// The name of the type of a column, for messages.
    pub(super) fn type_name(&self, column: usize) -> &str {
        match self {
            RecordCursor::Csv(_) => "text",
            RecordCursor::Npy(_) => "number",
            RecordCursor::Arff(cursor) => cursor.type_name(column),
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet(cursor) => cursor.type_name(column),
        }
    }

    /// How many rows the file claims to have, if it does.
    pub(super) fn rows(&self) -> Option<u64> {
        match self {
            RecordCursor::Csv(_) | RecordCursor::Arff(_) => None,
            RecordCursor::Npy(cursor) => Some(cursor.rows()),
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet(cursor) => Some(cursor.rows()),
        }
    }

    /// Declares which cells are needed, one entry per column. Must be called once, before the first
    /// record.
    pub(super) fn select(&mut self, needs: &[ColumnNeed]) -> Result<(), Error> {
        match self {
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet(cursor) => cursor.select(needs),
            _ => {
                let _ = needs;
                Ok(())
            }
        }
    }

    /// Goes to the next record; false at the end.
    pub(super) fn next(&mut self) -> Result<bool, Error> {
        each!(self, cursor => cursor.next())
    }

    /// A cell of the record.
    pub(super) fn cell(&self, column: usize) -> RecordCell<'_> {
        each!(self, cursor => cursor.cell(column))
    }

    /// Where a cell of the record is.
    pub(super) fn location(&self, column: usize) -> CellLocation {
        let record = each!(self, cursor => cursor.record());
        CellLocation { path: self.path().to_owned(), record, column: self.names()[column].clone() }
    }

    /// An error at a cell of the record.
    pub(super) fn error(&self, column: usize, message: impl Into<String>) -> Error {
        Error::Cell { location: self.location(column), message: message.into() }
    }

    /// Prepares for blocks of these columns. Must be called once, before the first block.
    pub(super) fn start_blocks(&mut self, columns: &BlockColumns) -> Result<(), Error> {
        match self {
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet(cursor) => {
                cursor.select_all(columns.columns.len().max(columns.labels.len()))
            }
            _ => {
                let _ = columns;
                Ok(())
            }
        }
    }

    /// Adds at most `max` rows, and returns how many: one value per row and label to `values`, one
    /// text per row to each of `kept`.
    pub(super) fn read_block<T: BlockValue>(
        &mut self,
        max: usize,
        columns: &BlockColumns,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<usize, Error> {
        match self {
            RecordCursor::Npy(cursor) => cursor.read_block(max, &columns.labels, values),
            #[cfg(feature = "parquet")]
            RecordCursor::Parquet(cursor) => cursor.read_block(max, columns, values, kept),
            RecordCursor::Csv(_) | RecordCursor::Arff(_) => {
                self.read_texts(max, columns, values, kept)
            }
        }
    }

    /// Reads a block from records of text.
    fn read_texts<T: BlockValue>(
        &mut self,
        max: usize,
        columns: &BlockColumns,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<usize, Error> {
        let mut count = 0;
        while count < max && self.next()? {
            let start = values.len();
            values.resize(start + columns.labels.len(), T::MISSING);
            for (index, column) in columns.columns.iter().enumerate() {
                let text = match self.cell(index) {
                    RecordCell::Text(text) => text,
                    _ => "",
                };
                match *column {
                    BlockColumn::Kept(column) => kept[column].push(text.to_owned()),
                    BlockColumn::Label(label) => match T::from_text(text) {
                        Some(value) => values[start + label] = value,
                        None => return Err(self.bad_cell::<T>(index, text)),
                    },
                    // Only Parquet has lists.
                    BlockColumn::AllLabels | BlockColumn::Ignored => {}
                }
            }
            count += 1;
        }
        Ok(count)
    }

    fn bad_cell<T: BlockValue>(&self, column: usize, text: &str) -> Error {
        let what = match text.trim() {
            "" => String::from("the cell is empty"),
            text => format!("the cell is {}", shown(text)),
        };
        self.error(column, format!("{what}; {}", T::EXPECTED))
    }
}

/// An error at a number of a table without lines; `row` counts from 1.
fn bad_number<T: BlockValue>(path: &str, row: u64, column: &str, value: f64) -> Error {
    let (path, column) = (path.to_owned(), column.to_owned());
    let location = CellLocation { path, record: RecordNumber::Row(row), column };
    Error::Cell { location, message: format!("the cell is {value}; {}", T::EXPECTED) }
}
