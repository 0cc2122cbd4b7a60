//! Writing tables.

use std::fmt;
use std::io;
use std::path::Path;

use super::csv_write::CsvWriter;
use super::npy_write::NpyWriter;
#[cfg(feature = "parquet")]
use super::parquet_write::ParquetWriter;
use super::{Number, Rows, TableFormat};
use crate::Error;
use crate::input::is_standard;
use crate::output::Output;

/// A table of either kind.
enum Table {
    Csv(CsvWriter),
    Npy(NpyWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter>),
}

/// Writes a table in pieces. A file is there only after [`TableWriter::finish`]: a writer that is
/// dropped before leaves what was there.
///
/// ```
/// use phex_io::{Number, Rows, TableFormat, TableWriter, Values};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("out.csv");
/// let labels = ["dog", "cat"].map(String::from);
/// let mut writer = TableWriter::create(&path, TableFormat::Csv, &labels, &[], Number::F32)?;
/// writer.write_rows(&Rows { count: 1, values: Values::F32(vec![0.1, 0.9]), kept: vec![] })?;
/// assert!(!path.exists());
/// writer.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "dog,cat\n0.1,0.9\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableWriter {
    path: String,
    number: Number,
    labels: usize,
    kept: usize,
    table: Table,
}

impl TableWriter {
    /// Starts a table with a column for each label, after those that are passed through; `-` is
    /// standard output.
    ///
    /// # Errors
    /// When the file cannot be written, a name is there twice, or the form cannot hold what is
    /// asked: npy has no columns of text.
    pub fn create(
        path: &Path,
        format: TableFormat,
        labels: &[String],
        kept: &[String],
        number: Number,
    ) -> Result<TableWriter, Error> {
        let name = if is_standard(path) { "<stdout>".into() } else { path.display().to_string() };
        let mut names: Vec<&String> = kept.iter().chain(labels).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::DuplicateColumn { path: name, column: pair[0].clone() });
        }
        if format == TableFormat::Npy && !kept.is_empty() {
            let message = format!(
                "npy files hold numbers only and not the column `{}`; write csv or parquet",
                kept[0]
            );
            return Err(Error::Table { path: name, message });
        }
        #[cfg(not(feature = "parquet"))]
        if format == TableFormat::Parquet {
            return Err(without_parquet(name));
        }
        let failed = |source| Error::Write { path: name.clone(), source };
        let output = Output::create(path).map_err(failed)?;
        let start = || -> io::Result<Table> {
            let texts = kept.iter().map(String::as_str);
            Ok(match format {
                TableFormat::Csv => Table::Csv(CsvWriter::start(output, b',', texts, labels)?),
                TableFormat::Tsv => Table::Csv(CsvWriter::start(output, b'\t', texts, labels)?),
                TableFormat::Npy => Table::Npy(NpyWriter::start(output, labels.len(), number)?),
                #[cfg(feature = "parquet")]
                TableFormat::Parquet => {
                    Table::Parquet(Box::new(ParquetWriter::start(output, labels, kept, number)?))
                }
                #[cfg(not(feature = "parquet"))]
                TableFormat::Parquet => return Err(io::ErrorKind::Unsupported.into()),
            })
        };
        let table = start().map_err(failed)?;
        Ok(TableWriter { path: name, number, labels: labels.len(), kept: kept.len(), table })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the file cannot be written, or the rows are not of the shape and the type of numbers
    /// that the table was started with.
    pub fn write_rows(&mut self, rows: &Rows) -> Result<(), Error> {
        let fits = rows.values.number() == self.number
            && Some(rows.values.len()) == rows.count.checked_mul(self.labels)
            && rows.kept.len() == self.kept
            && rows.kept.iter().all(|column| column.len() == rows.count);
        if !fits {
            let message = format!(
                "{} rows with {} values of type {:?} and {} columns of text do not fit a table of \
                 {} labels of type {:?} and {} columns of text",
                rows.count,
                rows.values.len(),
                rows.values.number(),
                rows.kept.len(),
                self.labels,
                self.number,
                self.kept
            );
            return Err(Error::Table { path: self.path.clone(), message });
        }
        let written = match &mut self.table {
            Table::Csv(table) => table.write(rows),
            Table::Npy(table) => table.write(rows),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.write(rows),
        };
        written.map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Ends the table and puts the file in its place.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing is left of it.
    pub fn finish(self) -> Result<(), Error> {
        let finished = match self.table {
            Table::Csv(table) => table.finish(),
            Table::Npy(table) => table.finish(),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.finish(),
        };
        finished.map_err(|source| Error::Write { path: self.path, source })
    }
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(not(feature = "parquet"))]
pub(crate) fn without_parquet(path: String) -> Error {
    let message = String::from("this phex was built without Parquet; use csv or npy");
    Error::Table { path, message }
}
