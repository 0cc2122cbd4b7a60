//! NumPy arrays: numbers only, with one row per record.
//!
//! The claims of the header are compared with the length of the file before anything is read, and
//! memory grows with what was read, not with what was claimed.

use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};

use super::npy_columns::ColumnMajor;
use super::npy_header::NpyHeader;
use super::{BlockValue, ColumnType, NumberType, RecordCell, bad_number};
use crate::Error;
use crate::error::RecordNumber;
use crate::tables::input::{TableInput, spool};

/// How many bytes of a block are decoded at a time.
const CHUNK: usize = 64 * 1024;

/// How many named columns there may be at most.
const MAX_COLUMNS: u64 = 1 << 20;

/// An array that is being read.
pub(in crate::tables) struct NpyCursor {
    path: String,
    reader: Box<dyn BufRead + Send>,
    /// The length of the file, if it is known.
    size: Option<u64>,
    header: NpyHeader,
    names: Vec<String>,
    /// How many rows were read.
    done: u64,
    /// The bytes of the current row, or of a piece of a block.
    buffer: Vec<u8>,
}

impl NpyCursor {
    pub(super) fn open(input: TableInput) -> Result<NpyCursor, Error> {
        let (path, mut size) = (input.name.clone(), input.size());
        let wrong = |message| Error::Table { path: path.clone(), message };
        let failed = |source| Error::Read { path: path.clone(), source };
        let file = input.file().map_err(failed)?;
        let mut reader = input.into_stream()?;
        let header = NpyHeader::read(&mut reader).map_err(wrong)?;
        header.check(size).map_err(wrong)?;
        if header.fortran {
            let (file, start) = match file {
                Some((file, start)) => (file, start + header.length),
                None => {
                    let file = spool(&mut reader, &path)?;
                    size = Some(header.length + file.metadata().map_err(failed)?.len());
                    header.check(size).map_err(wrong)?;
                    (file, 0)
                }
            };
            let (rows, columns) = (header.rows, header.columns);
            let items = ColumnMajor::new(file, start, rows, columns, header.item.size());
            reader = Box::new(BufReader::new(items));
        }
        let (names, buffer) = (Vec::new(), Vec::new());
        Ok(NpyCursor { path, reader, size, header, names, done: 0, buffer })
    }

    /// Names the columns `f0`, `f1` and so on.
    pub(super) fn name_columns(&mut self) -> Result<(), Error> {
        let (columns, rows) = (self.header.columns, self.header.rows);
        if columns == 0 || columns > MAX_COLUMNS {
            return Err(self.wrong(format!("the array has {columns} columns")));
        }
        let bytes = columns * self.header.item.size() as u64;
        // A stream has no length to compare with: only a first row proves that there are that many
        // columns.
        if self.size.is_none() && rows > 0 {
            let mut row = Vec::new();
            let read = self.reader.by_ref().take(bytes).read_to_end(&mut row);
            read.map_err(|source| Error::Read { path: self.path.clone(), source })?;
            if row.len() as u64 != bytes {
                return Err(self.wrong(String::from("the file ends in the first row")));
            }
            let rest = std::mem::replace(&mut self.reader, Box::new(std::io::empty()));
            self.reader = Box::new(Cursor::new(row).chain(rest));
        }
        self.names = (0..columns).map(|column| format!("f{column}")).collect();
        self.buffer = vec![0; bytes as usize];
        Ok(())
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn column_type(&self, _: usize) -> ColumnType<'_> {
        ColumnType::Number(self.number())
    }

    pub(super) fn rows(&self) -> u64 {
        self.header.rows
    }

    /// The type of all numbers.
    pub(in crate::tables) fn number(&self) -> NumberType {
        self.header.item.number()
    }

    /// Whether the array has one dimension.
    pub(in crate::tables) fn is_flat(&self) -> bool {
        self.header.flat
    }

    /// Refuses an array that does not have two dimensions and one column per label.
    pub(in crate::tables) fn check_shape(&self, labels: usize) -> Result<(), Error> {
        self.header.check_dimensions().map_err(|message| self.wrong(message))?;
        match self.header.columns {
            found if found == labels as u64 => Ok(()),
            found => Err(Error::ColumnCount { path: self.path.clone(), found, expected: labels }),
        }
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if self.done == self.header.rows {
            return self.check_end().map(|()| false);
        }
        if let Err(source) = self.reader.read_exact(&mut self.buffer) {
            return Err(self.cut(source, self.done + 1));
        }
        self.done += 1;
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> RecordCell<'_> {
        let size = self.header.item.size();
        let value = self.header.item.value(&self.buffer[column * size..(column + 1) * size]);
        if value.is_nan() { RecordCell::Missing } else { RecordCell::Number(value) }
    }

    pub(super) fn record(&self) -> RecordNumber {
        RecordNumber::Row(self.done)
    }

    /// Adds at most `max` rows and returns how many; the columns are the labels in order.
    pub(super) fn read_block<T: BlockValue>(
        &mut self,
        max: usize,
        labels: &[String],
        values: &mut Vec<T>,
    ) -> Result<usize, Error> {
        let count = (self.header.rows - self.done).min(max as u64);
        let (width, size) = (labels.len() as u64, self.header.item.size());
        // This cannot overflow: the header was checked with all rows.
        let mut left = count * width * size as u64;
        while left > 0 {
            let length = left.min(CHUNK as u64) as usize;
            self.buffer.resize(length, 0);
            if let Err(source) = self.reader.read_exact(&mut self.buffer) {
                return Err(self.cut(source, self.done + values.len() as u64 / width + 1));
            }
            for bytes in self.buffer.chunks_exact(size) {
                let value = self.header.item.value(bytes);
                let Some(value) = T::from_number(value) else {
                    let (row, column) = (values.len() as u64 / width, values.len() % labels.len());
                    let row = self.done + row + 1;
                    return Err(bad_number::<T>(&self.path, row, &labels[column], value));
                };
                values.push(value);
            }
            left -= length as u64;
        }
        self.done += count;
        if self.done == self.header.rows {
            self.check_end()?;
        }
        Ok(count as usize)
    }

    /// Refuses bytes after the last row.
    fn check_end(&mut self) -> Result<(), Error> {
        match self.reader.read_exact(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            Err(source) => Err(Error::Read { path: self.path.clone(), source }),
            Ok(()) => {
                let rows = self.header.rows;
                Err(self.wrong(format!("more bytes follow the {rows} rows of the header")))
            }
        }
    }

    /// The error of a file that cannot be read further.
    fn cut(&self, source: std::io::Error, row: u64) -> Error {
        if source.kind() != ErrorKind::UnexpectedEof {
            return Error::Read { path: self.path.clone(), source };
        }
        let rows = self.header.rows;
        self.wrong(format!("the header claims {rows} rows and the file ends near row {row}"))
    }

    fn wrong(&self, message: String) -> Error {
        Error::Table { path: self.path.clone(), message }
    }
}
