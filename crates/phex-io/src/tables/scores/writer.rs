//! Writing tables of scores.

use std::fmt;
use std::io;
use std::path::Path;

use super::csv_write::CsvWriter;
use super::npy_write::NpyWriter;
#[cfg(feature = "parquet")]
use super::parquet_write::ParquetWriter;
use super::{Precision, ScoreRows};
use crate::Error;
use crate::files::output::{Output, display_name};
use crate::tables::TableFormat;

/// A table of one of the formats.
enum ScoreFile {
    Csv(CsvWriter),
    Npy(NpyWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter>),
}

/// Writes a table in pieces. The file appears only with [`ScoreWriter::finish`]: a writer that is
/// dropped before that leaves an existing file as it was.
///
/// ```
/// use phex_io::{Precision, ScoreRows, TableFormat, ScoreWriter, ScoreValues};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("out.csv");
/// let labels = ["dog", "cat"].map(String::from);
/// let mut writer = ScoreWriter::create(&path, TableFormat::Csv, &labels, &[], Precision::F32)?;
/// writer.write_rows(&ScoreRows { count: 1, values: ScoreValues::F32(vec![0.1, 0.9]), kept: vec![] })?;
/// assert!(!path.exists());
/// writer.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "dog,cat\n0.1,0.9\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ScoreWriter {
    path: String,
    precision: Precision,
    labels: usize,
    kept: usize,
    file: ScoreFile,
}

impl ScoreWriter {
    /// Starts a table with the columns that are passed through and one column per label; `-` is
    /// standard output.
    ///
    /// # Errors
    /// When the file cannot be written, two columns have the same name, or there are kept columns
    /// and the format is npy, which has no text.
    pub fn create(
        path: &Path,
        format: TableFormat,
        labels: &[String],
        kept: &[String],
        precision: Precision,
    ) -> Result<ScoreWriter, Error> {
        let name = display_name(path);
        let mut names: Vec<&String> = kept.iter().chain(labels).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::DuplicateColumn { path: name, column: pair[0].clone() });
        }
        if format == TableFormat::Npy && !kept.is_empty() {
            let message = format!(
                "npy files hold numbers only and cannot hold the column `{}`; write csv or parquet",
                kept[0]
            );
            return Err(Error::Table { path: name, message });
        }
        #[cfg(not(feature = "parquet"))]
        if format == TableFormat::Parquet {
            return Err(crate::tables::without_parquet(name));
        }
        let failed = |source| Error::Write { path: name.clone(), source };
        let output = Output::create(path).map_err(failed)?;
        let start = || -> io::Result<ScoreFile> {
            let texts = kept.iter().map(String::as_str);
            Ok(match format {
                TableFormat::Csv => ScoreFile::Csv(CsvWriter::start(output, b',', texts, labels)?),
                TableFormat::Tsv => ScoreFile::Csv(CsvWriter::start(output, b'\t', texts, labels)?),
                TableFormat::Npy => {
                    ScoreFile::Npy(NpyWriter::start(output, labels.len(), precision)?)
                }
                #[cfg(feature = "parquet")]
                TableFormat::Parquet => ScoreFile::Parquet(Box::new(ParquetWriter::start(
                    output, labels, kept, precision,
                )?)),
                #[cfg(not(feature = "parquet"))]
                TableFormat::Parquet => return Err(io::ErrorKind::Unsupported.into()),
            })
        };
        let file = start().map_err(failed)?;
        Ok(ScoreWriter { path: name, precision, labels: labels.len(), kept: kept.len(), file })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the file cannot be written, or the rows do not have the shape and the precision that the
    /// table was started with.
    pub fn write_rows(&mut self, rows: &ScoreRows) -> Result<(), Error> {
        let fits = rows.values.precision() == self.precision
            && Some(rows.values.len()) == rows.count.checked_mul(self.labels)
            && rows.kept.len() == self.kept
            && rows.kept.iter().all(|column| column.len() == rows.count);
        if !fits {
            let message = format!(
                "{} rows with {} values of type {:?} and {} columns of text do not match a table of \
                 {} labels of type {:?} and {} columns of text",
                rows.count,
                rows.values.len(),
                rows.values.precision(),
                rows.kept.len(),
                self.labels,
                self.precision,
                self.kept
            );
            return Err(Error::Table { path: self.path.clone(), message });
        }
        let written = match &mut self.file {
            ScoreFile::Csv(file) => file.write(rows),
            ScoreFile::Npy(file) => file.write(rows),
            #[cfg(feature = "parquet")]
            ScoreFile::Parquet(file) => file.write(rows),
        };
        written.map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Completes the table and moves the file to its path.
    ///
    /// # Errors
    /// When the file cannot be written; an existing file is then left as it was.
    pub fn finish(self) -> Result<(), Error> {
        let finished = match self.file {
            ScoreFile::Csv(file) => file.finish(),
            ScoreFile::Npy(file) => file.finish(),
            #[cfg(feature = "parquet")]
            ScoreFile::Parquet(file) => file.finish(),
        };
        finished.map_err(|source| Error::Write { path: self.path, source })
    }
}

impl fmt::Debug for ScoreWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScoreWriter").field("path", &self.path).finish_non_exhaustive()
    }
}
