//! Reading tables of scores or evidence in pieces.

use std::fmt;
use std::io::Read;
use std::path::Path;

use phex::infer::ScoreForm;

use super::columns::{FoundColumns, WantedColumns};
use super::{EvidenceRows, Precision, ScoreOptions, ScoreRows, ScoreValues};
use crate::tables::TableFormat;
use crate::tables::cursor::{BlockValue, Probability, RecordCursor};
use crate::tables::input::TableInput;
use crate::{CellLocation, Error, Limits, RecordNumber};

/// A table that is read in blocks.
struct BlockReader {
    format: TableFormat,
    kept: usize,
    /// How many labels the model has.
    labels: usize,
    columns: FoundColumns,
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
        let columns = wanted.find(&cursor)?;
        cursor.start_blocks(&columns.block)?;
        let (kept, labels) = (wanted.keep.len(), wanted.labels.len());
        Ok(BlockReader { format, kept, labels, columns, cursor })
    }

    fn next_block<T: BlockValue>(&mut self, max: usize) -> Result<Option<Block<T>>, Error> {
        let (mut values, mut kept) = (Vec::new(), vec![Vec::new(); self.kept]);
        let max = max.max(1);
        let count = self.cursor.read_block(max, &self.columns.block, &mut values, &mut kept)?;
        Ok((count > 0).then_some((count, values, kept)))
    }

    /// Puts values in the order of the labels, and adds the scores of labels without a column.
    fn arrange<T: Copy>(&self, values: Vec<T>, score: impl Fn(f64) -> T) -> Vec<T> {
        let columns = &self.columns;
        let mut all = match &columns.order {
            None => values,
            Some(order) => {
                let rows = values.len() / order.len().max(1);
                let mut all = vec![score(0.0); rows * self.labels];
                let rows = all.chunks_exact_mut(self.labels);
                for (row, values) in rows.zip(values.chunks_exact(order.len().max(1))) {
                    order.iter().zip(values).for_each(|(&label, &value)| row[label] = value);
                }
                all
            }
        };
        if !columns.missing.is_empty() {
            for row in all.chunks_exact_mut(self.labels) {
                columns.missing.iter().for_each(|&(label, fill)| row[label] = score(fill));
            }
        }
        all
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
    /// The labels of the model.
    labels: Vec<String>,
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
        let options = ScoreOptions {
            format,
            keep: keep.to_vec(),
            limits: *limits,
            ..ScoreOptions::default()
        };
        ScoreReader::open_with(path, labels, &options)
    }

    /// Opens a file, or standard input for `-`, as the options say.
    ///
    /// # Errors
    /// As for [`ScoreReader::open`], and when the list of names does not fit the columns.
    pub fn open_with(
        path: &Path,
        labels: &[String],
        options: &ScoreOptions,
    ) -> Result<ScoreReader, Error> {
        ScoreReader::new(TableInput::open(path, options.format, &options.limits)?, labels, options)
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
        let input = TableInput::from_reader(Box::new(reader), name, format, limits)?;
        let options = ScoreOptions {
            format,
            keep: keep.to_vec(),
            limits: *limits,
            ..ScoreOptions::default()
        };
        ScoreReader::new(input, labels, &options)
    }

    fn new(
        input: TableInput,
        labels: &[String],
        options: &ScoreOptions,
    ) -> Result<ScoreReader, Error> {
        let wanted = WantedColumns::of_scores(labels, options);
        let table = BlockReader::new(input, wanted, &options.limits)?;
        let finished = options.form == ScoreForm::Probabilities;
        Ok(ScoreReader { table, labels: labels.to_vec(), finished, done: 0 })
    }

    /// The labels without a column, by their places in the model.
    pub fn missing(&self) -> impl Iterator<Item = usize> + '_ {
        self.table.columns.missing.iter().map(|(label, _)| *label)
    }

    /// The columns that were left out because they number the rows.
    pub fn ignored(&self) -> &[String] {
        &self.table.columns.ignored
    }

    /// Whether nothing names the columns, so that they are taken to be the labels of the model in order.
    pub fn is_by_position(&self) -> bool {
        self.table.columns.by_position
    }

    /// The format of the table.
    pub fn format(&self) -> TableFormat {
        self.table.format
    }

    /// The precision of the scores, which is the same for all rows.
    pub fn precision(&self) -> Precision {
        self.table.columns.precision
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
        let (table, finished) = (&mut self.table, self.finished);
        let rows = match (table.columns.precision, finished) {
            (Precision::F32, false) => {
                let block = table.next_block(max_rows)?;
                rows(block, |values| ScoreValues::F32(table.arrange(values, |x| x as f32)))
            }
            (Precision::F64, false) => {
                let block = table.next_block(max_rows)?;
                rows(block, |values| ScoreValues::F64(table.arrange(values, |x| x)))
            }
            (Precision::F32, true) => {
                let block = table.next_block(max_rows)?;
                rows(block, |values| {
                    let values = values.into_iter().map(|Probability(p)| p).collect();
                    ScoreValues::F32(table.arrange(values, |x| x as f32))
                })
            }
            (Precision::F64, true) => {
                let block = table.next_block(max_rows)?;
                rows(block, |values| {
                    let values = values.into_iter().map(|Probability(p)| p).collect();
                    ScoreValues::F64(table.arrange(values, |x| x))
                })
            }
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
        let labels = &self.labels;
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
        EvidenceReader::new(TableInput::open(path, format, limits)?, labels, keep, limits)
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
        let input = TableInput::from_reader(Box::new(reader), name, format, limits)?;
        EvidenceReader::new(input, labels, keep, limits)
    }

    fn new(
        input: TableInput,
        labels: &[String],
        keep: &[String],
        limits: &Limits,
    ) -> Result<EvidenceReader, Error> {
        let wanted = WantedColumns::of_evidence(labels, keep);
        Ok(EvidenceReader(BlockReader::new(input, wanted, limits)?))
    }

    /// The format of the table.
    pub fn format(&self) -> TableFormat {
        self.0.format
    }

    /// The columns that were left out because they number the rows.
    pub fn ignored(&self) -> &[String] {
        &self.0.columns.ignored
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
