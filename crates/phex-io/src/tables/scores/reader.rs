//! Reading tables of scores or evidence in pieces.

use std::fmt;
use std::io::Read;
use std::path::Path;

use super::columns::WantedColumns;
use super::{EvidenceRows, Precision, ScoreRows, ScoreValues};
use crate::tables::TableFormat;
use crate::tables::cursor::{BlockColumns, BlockValue, Probability, RecordCursor};
use crate::tables::input::TableInput;
use crate::{CellLocation, Error, Limits, RecordNumber};

/// A table that is read in blocks.
struct BlockReader {
    format: TableFormat,
    kept: usize,
    precision: Precision,
    columns: BlockColumns,
    cursor: RecordCursor,
}

/// The values of the rows of a block, how many rows there are, and their kept columns.
type Block<T> = (usize, Vec<T>, Vec<Vec<String>>);

impl BlockReader {
    fn new(
        input: TableInput,
        wanted: WantedColumns<'_>,
        limits: &Limits,
    ) -> Result<BlockReader, Error> {
        if wanted.labels.is_empty() {
            let message = String::from("the model has no labels");
            return Err(Error::Table { path: input.name, message });
        }
        let format = input.format;
        let mut cursor = RecordCursor::new(input, limits)?;
        let (columns, precision) = wanted.find(&cursor)?;
        cursor.start_blocks(&columns)?;
        Ok(BlockReader { format, kept: wanted.keep.len(), precision, columns, cursor })
    }

    fn next_block<T: BlockValue>(&mut self, max: usize) -> Result<Option<Block<T>>, Error> {
        let (mut values, mut kept) = (Vec::new(), vec![Vec::new(); self.kept]);
        let max = max.max(1);
        let count = self.cursor.read_block(max, &self.columns, &mut values, &mut kept)?;
        Ok((count > 0).then_some((count, values, kept)))
    }
}

/// Reads a table of scores in pieces.
///
/// ```
/// use phex_io::{Limits, ScoreReader, ScoreValues};
///
/// let labels = ["dog", "cat"].map(String::from);
/// let keep = [String::from("id")];
/// let csv = b"id,cat,dog\nx1,-0.5,2\n".as_slice();
/// let limits = Limits::default();
/// let mut reader = ScoreReader::from_reader(csv, "scores", None, &labels, &keep, &limits)?;
/// let rows = reader.next_rows(1000)?.expect("a row");
/// assert_eq!(rows.values, ScoreValues::F64(vec![2.0, -0.5]));
/// assert_eq!(rows.kept, [["x1"]]);
/// assert!(reader.next_rows(1000)?.is_none());
/// # Ok::<(), phex_io::Error>(())
/// ```
pub struct ScoreReader {
    table: BlockReader,
    /// Whether the values are finished probabilities.
    finished: bool,
    /// How many rows were read.
    done: u64,
}

impl ScoreReader {
    /// Opens a file, or standard input for `-`. Without a format, the name of the file decides, then
    /// its first bytes.
    ///
    /// `labels` are the labels of the model, in order; each needs a column. `keep` names the columns
    /// that are passed through as text; no other columns are allowed.
    ///
    /// # Errors
    /// When the file cannot be read, is not a table of scores, or its columns do not match the
    /// labels.
    pub fn open(
        path: &Path,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<ScoreReader, Error> {
        ScoreReader::new(TableInput::open(path, format)?, labels, keep, limits, false)
    }

    /// Opens a table of finished probabilities, as [`ScoreReader::open`] does. Every cell must hold a
    /// number from 0 to 1.
    ///
    /// # Errors
    /// As for [`ScoreReader::open`].
    pub fn open_probabilities(
        path: &Path,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<ScoreReader, Error> {
        ScoreReader::new(TableInput::open(path, format)?, labels, keep, limits, true)
    }

    /// Reads a stream, which messages call `name`. Parquet goes through a temporary file.
    ///
    /// # Errors
    /// As for [`ScoreReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<ScoreReader, Error> {
        let input = TableInput::from_reader(Box::new(reader), name, format)?;
        ScoreReader::new(input, labels, keep, limits, false)
    }

    fn new(
        input: TableInput,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
        finished: bool,
    ) -> Result<ScoreReader, Error> {
        let wanted = WantedColumns { labels, keep, evidence: false };
        Ok(ScoreReader { table: BlockReader::new(input, wanted, limits)?, finished, done: 0 })
    }

    /// The format of the table.
    pub fn format(&self) -> TableFormat {
        self.table.format
    }

    /// The precision of the scores, which is the same for all rows.
    pub fn precision(&self) -> Precision {
        self.table.precision
    }

    /// How many rows the table claims to have, if it does.
    pub fn rows(&self) -> Option<u64> {
        self.table.cursor.rows()
    }

    /// The next `max_rows` rows, fewer only at the end, and `None` after it.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or a cell is not a number (a probability, if the
    /// table holds probabilities). The reader must not be
    /// used after that.
    pub fn next_rows(&mut self, max_rows: usize) -> Result<Option<ScoreRows>, Error> {
        let rows = match (self.table.precision, self.finished) {
            (Precision::F32, false) => rows(self.table.next_block(max_rows)?, ScoreValues::F32),
            (Precision::F64, false) => rows(self.table.next_block(max_rows)?, ScoreValues::F64),
            (Precision::F32, true) => rows(self.table.next_block(max_rows)?, |values| {
                ScoreValues::F32(values.into_iter().map(|Probability(p)| p).collect())
            }),
            (Precision::F64, true) => rows(self.table.next_block(max_rows)?, |values| {
                ScoreValues::F64(values.into_iter().map(|Probability(p)| p).collect())
            }),
        };
        if let (Some(rows), true) = (&rows, self.finished) {
            self.check_complete(rows)?;
        }
        self.done += rows.as_ref().map_or(0, |rows| rows.count as u64);
        Ok(rows)
    }

    /// Refuses rows in which a probability is missing, as it may be in Parquet.
    fn check_complete(&self, rows: &ScoreRows) -> Result<(), Error> {
        let missing = match &rows.values {
            ScoreValues::F32(values) => values.iter().position(|p| p.is_nan()),
            ScoreValues::F64(values) => values.iter().position(|p| p.is_nan()),
        };
        let Some(at) = missing else { return Ok(()) };
        let labels = &self.table.columns.labels;
        let location = CellLocation {
            path: self.table.cursor.path().to_owned(),
            record: RecordNumber::Row(self.done + (at / labels.len()) as u64 + 1),
            column: labels[at % labels.len()].clone(),
        };
        let message = format!("the cell is empty; {}", Probability::<f64>::EXPECTED);
        Err(Error::Cell { location, message })
    }
}

/// A block as rows of a table.
fn rows<T>(
    block: Option<Block<T>>,
    values: impl FnOnce(Vec<T>) -> ScoreValues,
) -> Option<ScoreRows> {
    block.map(|(count, block, kept)| ScoreRows { count, values: values(block), kept })
}

impl fmt::Debug for ScoreReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScoreReader").field("format", &self.table.format).finish_non_exhaustive()
    }
}

/// Reads a table of evidence, or of true labels, in pieces: cells are on, off or unknown.
///
/// ```
/// use phex::infer::Evidence;
/// use phex_io::{EvidenceReader, Limits};
///
/// let labels = ["animal", "dog", "cat"].map(String::from);
/// let csv = b"cat,dog\n1,0\n?,on\n".as_slice();
/// let limits = Limits::default();
/// let mut reader = EvidenceReader::from_reader(csv, "evidence", None, &labels, &[], &limits)?;
/// let rows = reader.next_rows(1000)?.expect("two rows");
/// assert_eq!(rows.values[..3], [Evidence::Unknown, Evidence::Off, Evidence::On]);
/// assert_eq!(rows.values[3..], [Evidence::Unknown, Evidence::On, Evidence::Unknown]);
/// # Ok::<(), phex_io::Error>(())
/// ```
pub struct EvidenceReader(BlockReader);

impl EvidenceReader {
    /// Opens a file, or standard input for `-`, as [`ScoreReader::open`] does. A label without a
    /// column is unknown in every row.
    ///
    /// # Errors
    /// When the file cannot be read, is not a table of evidence, or has a column that is not a
    /// label.
    pub fn open(
        path: &Path,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<EvidenceReader, Error> {
        EvidenceReader::new(TableInput::open(path, format)?, labels, keep, limits)
    }

    /// Reads a stream, which messages call `name`.
    ///
    /// # Errors
    /// As for [`EvidenceReader::open`].
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        format: Option<TableFormat>,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<EvidenceReader, Error> {
        let input = TableInput::from_reader(Box::new(reader), name, format)?;
        EvidenceReader::new(input, labels, keep, limits)
    }

    fn new(
        input: TableInput,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<EvidenceReader, Error> {
        let wanted = WantedColumns { labels, keep, evidence: true };
        Ok(EvidenceReader(BlockReader::new(input, wanted, limits)?))
    }

    /// The format of the table.
    pub fn format(&self) -> TableFormat {
        self.0.format
    }

    /// How many rows the table claims to have, if it does.
    pub fn rows(&self) -> Option<u64> {
        self.0.cursor.rows()
    }

    /// The next `max_rows` rows, fewer only at the end, and `None` after it.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged, or a cell is not on, off or unknown.
    pub fn next_rows(&mut self, max_rows: usize) -> Result<Option<EvidenceRows>, Error> {
        let block = self.0.next_block(max_rows)?;
        Ok(block.map(|(count, values, kept)| EvidenceRows { count, values, kept }))
    }
}

impl fmt::Debug for EvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvidenceReader").field("format", &self.0.format).finish_non_exhaustive()
    }
}
