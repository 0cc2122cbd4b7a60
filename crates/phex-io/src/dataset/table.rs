//! A file of data as a cursor over rows of cells, whatever its form.

use std::path::Path;

use super::table_arff::ArffTable;
use super::table_csv::CsvTable;
use super::table_npy::NpyTable;
#[cfg(feature = "parquet")]
use super::table_parquet::ParquetTable;
use super::{DatasetFormat, DatasetOptions};
use crate::arff::Hierarchy;
use crate::tables::source::Source;
use crate::{Error, TableFormat};

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Missing,
    Number(f64),
    Text(&'a str),
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    List(&'a [String]),
}

/// What a file says of the type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared<'a> {
    /// Nothing: its cells show it.
    Unknown,
    Number,
    /// Categories that the cells show.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    Text,
    /// These categories and no others.
    Nominal(&'a [String]),
    /// The classes of a hierarchy: no feature.
    Hierarchical(&'a Hierarchy),
    /// No feature, of this type.
    Other(&'a str),
}

/// How the cells of a column are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// As numbers, where they are.
    Values,
    /// As text, or as lists of text.
    Texts,
}

/// A file that is being read.
pub(super) enum Table {
    Csv(CsvTable),
    Arff(ArffTable),
    Npy(NpyTable),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetTable>),
}

macro_rules! each {
    ($table:expr, $inner:ident => $value:expr) => {
        match $table {
            Table::Csv($inner) => $value,
            Table::Arff($inner) => $value,
            Table::Npy($inner) => $value,
            #[cfg(feature = "parquet")]
            Table::Parquet($inner) => $value,
        }
    };
}

impl Table {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path, options: &DatasetOptions) -> Result<Table, Error> {
        let format = match options.format {
            Some(format) => Some(format),
            None => DatasetFormat::of_file(path)?,
        };
        let limits = &options.limits;
        let format = match format {
            Some(DatasetFormat::Arff) => {
                let lines = super::open_lines(path, limits)?;
                return Ok(Table::Arff(ArffTable::open(lines)?));
            }
            Some(DatasetFormat::Table(format)) => Some(format),
            None => None,
        };
        let source = Source::open(path, format)?;
        Ok(match source.format {
            TableFormat::Csv => Table::Csv(CsvTable::open(source, b',', limits)?),
            TableFormat::Tsv => Table::Csv(CsvTable::open(source, b'\t', limits)?),
            TableFormat::Npy => Table::Npy(NpyTable::open(source)?),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Table::Parquet(Box::new(ParquetTable::open(source, limits)?)),
            #[cfg(not(feature = "parquet"))]
            TableFormat::Parquet => return Err(crate::tables::without_parquet(source.name)),
        })
    }

    /// The name of the file.
    pub(super) fn path(&self) -> &str {
        each!(self, table => table.path())
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> &[String] {
        each!(self, table => table.names())
    }

    /// What the file says of a column.
    pub(super) fn declared(&self, column: usize) -> Declared<'_> {
        each!(self, table => table.declared(column))
    }

    /// Says which cells are wanted, a word for each column. To be called once, before the rows.
    pub(super) fn want(&mut self, wanted: &[Wanted]) -> Result<(), Error> {
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.want(wanted),
            _ => {
                let _ = wanted;
                Ok(())
            }
        }
    }

    /// Goes to the next row; false at the end.
    pub(super) fn next(&mut self) -> Result<bool, Error> {
        each!(self, table => table.next())
    }

    /// A cell of the row.
    pub(super) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        each!(self, table => table.cell(column))
    }

    /// An error at a cell of the row.
    pub(super) fn error(&self, column: usize, message: impl Into<String>) -> Error {
        let (name, message) = (&self.names()[column], message.into());
        match self {
            Table::Csv(table) => table.error(format!("column `{name}`: {message}")),
            Table::Arff(table) => table.error(format!("attribute `{name}`: {message}")),
            Table::Npy(table) => table.error(name, message),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.error(name, message),
        }
    }

    /// Whether the file is an ARFF file.
    pub(super) fn is_arff(&self) -> bool {
        matches!(self, Table::Arff(_))
    }
}
