//! Reading tables: scores, or what is known of labels.

use std::fmt;
use std::io::Read;
use std::path::Path;

use super::cell::Cell;
use super::columns::Wanted;
use super::csv::CsvRows;
use super::npy::NpyRows;
#[cfg(feature = "parquet")]
use super::parquet::ParquetRows;
use super::source::Source;
use super::{EvidenceRows, Number, Rows, TableFormat, TableLimits, Values};
use crate::Error;

/// A table of either kind.
enum Table {
    Csv(CsvRows),
    Npy(NpyRows),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetRows>),
}

impl Table {
    fn open(source: Source, wanted: &Wanted<'_>, limits: &TableLimits) -> Result<Table, Error> {
        if wanted.labels.is_empty() {
            let message = String::from("the model has no labels");
            return Err(Error::Table { path: source.name, message });
        }
        Ok(match source.format {
            TableFormat::Csv => Table::Csv(CsvRows::open(source, b',', wanted, limits)?),
            TableFormat::Tsv => Table::Csv(CsvRows::open(source, b'\t', wanted, limits)?),
            TableFormat::Npy => Table::Npy(NpyRows::open(source, wanted)?),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => {
                Table::Parquet(Box::new(ParquetRows::open(source, wanted, limits)?))
            }
            #[cfg(not(feature = "parquet"))]
            TableFormat::Parquet => return Err(super::writer::without_parquet(source.name)),
        })
    }

    fn number(&self) -> Number {
        match self {
            Table::Csv(_) => Number::F64,
            Table::Npy(table) => table.number(),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.number(),
        }
    }

    fn rows(&self) -> Option<u64> {
        match self {
            Table::Csv(_) => None,
            Table::Npy(table) => Some(table.rows()),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => Some(table.rows()),
        }
    }

    fn read<T: Cell>(
        &mut self,
        max: usize,
        kept: &mut [Vec<String>],
    ) -> Result<Option<(usize, Vec<T>)>, Error> {
        let mut values = Vec::new();
        let max = max.max(1);
        let count = match self {
            Table::Csv(table) => table.read(max, &mut values, kept),
            Table::Npy(table) => table.read(max, &mut values),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.read(max, &mut values, kept),
        }?;
        Ok((count > 0).then_some((count, values)))
    }
}

/// Reads a table of scores in pieces.
///
/// ```
/// use phex_io::{TableLimits, TableReader, Values};
///
/// let labels = ["dog", "cat"].map(String::from);
/// let keep = [String::from("id")];
/// let csv = b"id,cat,dog\nx1,-0.5,2\n".as_slice();
/// let limits = TableLimits::default();
/// let mut reader = TableReader::from_reader(csv, "scores", None, &labels, &keep, &limits)?;
/// let rows = reader.next_rows(1000)?.expect("a row");
/// assert_eq!(rows.values, Values::F64(vec![2.0, -0.5]));
/// assert_eq!(rows.kept, [["x1"]]);
/// assert!(reader.next_rows(1000)?.is_none());
/// # Ok::<(), phex_io::Error>(())
/// ```
pub struct TableReader {
    format: TableFormat,
    kept: usize,
    table: Table,
}

impl TableReader {
    /// Opens a file, or standard input for `-`. Without a format, the name of the file or its
    /// first bytes say it.
    ///
    /// `labels` are the labels of the model, in order; each needs a column. `keep` names the
    /// columns that are passed through as text; no others may be there.
    ///
    /// # Errors
    /// When the file cannot be read, is no table of scores, or its columns are not the labels.
    pub fn open(
        path: &Path,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<TableReader, Error> {
        TableReader::new(Source::open(path, format)?, labels, keep, limits)
    }

    /// Takes a stream, which has `name` in messages. Parquet goes through a temporary file.
    ///
    /// # Errors
    /// As for [`TableReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<TableReader, Error> {
        let source = Source::from_reader(Box::new(reader), name, format)?;
        TableReader::new(source, labels, keep, limits)
    }

    fn new(
        source: Source,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<TableReader, Error> {
        let format = source.format;
        let wanted = Wanted { labels, keep, evidence: false };
        let table = Table::open(source, &wanted, limits)?;
        Ok(TableReader { format, kept: keep.len(), table })
    }

    /// The form of the table.
    pub fn format(&self) -> TableFormat {
        self.format
    }

    /// The type of its numbers: all rows have the same.
    pub fn number(&self) -> Number {
        self.table.number()
    }

    /// How many rows the table says that it has, where it does.
    pub fn rows(&self) -> Option<u64> {
        self.table.rows()
    }

    /// The next rows: `max_rows` of them, fewer only at the end, `None` after it.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or a cell is no number. The reader is of no more
    /// use then.
    pub fn next_rows(&mut self, max_rows: usize) -> Result<Option<Rows>, Error> {
        let mut kept = vec![Vec::new(); self.kept];
        let rows = match self.number() {
            Number::F32 => {
                let rows = self.table.read(max_rows, &mut kept)?;
                rows.map(|(count, values)| (count, Values::F32(values)))
            }
            Number::F64 => {
                let rows = self.table.read(max_rows, &mut kept)?;
                rows.map(|(count, values)| (count, Values::F64(values)))
            }
        };
        Ok(rows.map(|(count, values)| Rows { count, values, kept }))
    }
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableReader").field("format", &self.format).finish_non_exhaustive()
    }
}

/// Reads a table of evidence, or of true labels, in pieces: cells are on, off or unknown.
///
/// ```
/// use phex::infer::Evidence;
/// use phex_io::{EvidenceReader, TableLimits};
///
/// let labels = ["animal", "dog", "cat"].map(String::from);
/// let csv = b"cat,dog\n1,0\n?,on\n".as_slice();
/// let limits = TableLimits::default();
/// let mut reader = EvidenceReader::from_reader(csv, "evidence", None, &labels, &[], &limits)?;
/// let rows = reader.next_rows(1000)?.expect("two rows");
/// assert_eq!(rows.values[..3], [Evidence::Unknown, Evidence::Off, Evidence::On]);
/// assert_eq!(rows.values[3..], [Evidence::Unknown, Evidence::On, Evidence::Unknown]);
/// # Ok::<(), phex_io::Error>(())
/// ```
pub struct EvidenceReader {
    format: TableFormat,
    kept: usize,
    table: Table,
}

impl EvidenceReader {
    /// Opens a file, or standard input for `-`, as [`TableReader::open`] does. Labels without a
    /// column are unknown in every row.
    ///
    /// # Errors
    /// When the file cannot be read, is no table of evidence, or has a column that is no label.
    pub fn open(
        path: &Path,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<EvidenceReader, Error> {
        EvidenceReader::new(Source::open(path, format)?, labels, keep, limits)
    }

    /// Takes a stream, which has `name` in messages.
    ///
    /// # Errors
    /// As for [`EvidenceReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<EvidenceReader, Error> {
        let source = Source::from_reader(Box::new(reader), name, format)?;
        EvidenceReader::new(source, labels, keep, limits)
    }

    fn new(
        source: Source,
        labels: &[String],
        keep: &[String],
        limits: &TableLimits,
    ) -> Result<EvidenceReader, Error> {
        let format = source.format;
        let wanted = Wanted { labels, keep, evidence: true };
        let table = Table::open(source, &wanted, limits)?;
        Ok(EvidenceReader { format, kept: keep.len(), table })
    }

    /// The form of the table.
    pub fn format(&self) -> TableFormat {
        self.format
    }

    /// How many rows the table says that it has, where it does.
    pub fn rows(&self) -> Option<u64> {
        self.table.rows()
    }

    /// The next rows: `max_rows` of them, fewer only at the end, `None` after it.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or a cell is none of on, off and unknown.
    pub fn next_rows(&mut self, max_rows: usize) -> Result<Option<EvidenceRows>, Error> {
        let mut kept = vec![Vec::new(); self.kept];
        let rows = self.table.read(max_rows, &mut kept)?;
        Ok(rows.map(|(count, values)| EvidenceRows { count, values, kept }))
    }
}

impl fmt::Debug for EvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvidenceReader").field("format", &self.format).finish_non_exhaustive()
    }
}
