//! Arrays of NumPy: numbers alone, a row an example and a column a label.
//!
//! What the header claims is checked against the length of a file before anything is read, and
//! memory grows with what was read and not with what was claimed.

use std::io::{BufRead, ErrorKind, Read};

use super::Number;
use super::cell::Cell;
use super::columns::Wanted;
use super::npy_header::{Header, Item};
use super::source::Source;
use crate::Error;

/// How many bytes are decoded at a time.
const CHUNK: usize = 64 * 1024;

/// An array that is being read.
pub(super) struct NpyRows {
    path: String,
    reader: Box<dyn BufRead + Send>,
    labels: Vec<String>,
    item: Item,
    rows: u64,
    /// How many rows were read.
    done: u64,
    chunk: Vec<u8>,
}

impl NpyRows {
    pub(super) fn open(source: Source, wanted: &Wanted<'_>) -> Result<NpyRows, Error> {
        let (path, size) = (source.name.clone(), source.size());
        let wrong = |message| Error::Table { path: path.clone(), message };
        if let Some(name) = wanted.keep.first() {
            let message = format!("npy files have no names, so no column `{name}` can be kept");
            return Err(wrong(message));
        }
        let mut reader = source.into_stream();
        let header = Header::read(&mut reader).and_then(Header::table).map_err(wrong)?;
        let Header { item, rows, columns, .. } = header;
        if !wanted.evidence && item.number().is_none() {
            let message = "scores are numbers of floating point; save array.astype('float32')";
            return Err(wrong(message.to_owned()));
        }
        let labels = wanted.labels.to_vec();
        if columns != labels.len() as u64 {
            return Err(Error::ColumnCount { path, found: columns, expected: labels.len() });
        }
        header.check(size).map_err(wrong)?;
        let chunk = Vec::new();
        let mut table = NpyRows { path, reader, labels, item, rows, done: 0, chunk };
        if rows == 0 {
            table.check_end()?;
        }
        Ok(table)
    }

    /// The type of its numbers.
    pub(super) fn number(&self) -> Number {
        self.item.number().unwrap_or(Number::F32)
    }

    /// How many rows the header claims.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds at most `max` rows and says how many there were.
    pub(super) fn read<T: Cell>(
        &mut self,
        max: usize,
        values: &mut Vec<T>,
    ) -> Result<usize, Error> {
        if self.done == self.rows {
            return Ok(0);
        }
        let count = (self.rows - self.done).min(max as u64);
        let (labels, size) = (self.labels.len() as u64, self.item.size());
        // No overflow: all rows were counted in bytes when the header was read.
        let mut left = count * labels * size as u64;
        while left > 0 {
            let length = left.min(CHUNK as u64) as usize;
            self.chunk.resize(length, 0);
            if let Err(source) = self.reader.read_exact(&mut self.chunk) {
                return Err(self.failed(source, values.len() as u64 / labels));
            }
            for bytes in self.chunk.chunks_exact(size) {
                match T::from_number(self.item.value(bytes)) {
                    Some(value) => values.push(value),
                    None => {
                        let (at, value) = (values.len(), self.item.value(bytes));
                        return Err(self.bad_cell::<T>(at, value));
                    }
                }
            }
            left -= length as u64;
        }
        self.done += count;
        if self.done == self.rows {
            self.check_end()?;
        }
        Ok(count as usize)
    }

    /// Nothing may follow the last row.
    fn check_end(&mut self) -> Result<(), Error> {
        match self.reader.read_exact(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
            Err(source) => Err(Error::Read { path: self.path.clone(), source }),
            Ok(()) => {
                let rows = self.rows;
                let message = format!("more bytes follow the {rows} rows of the header");
                Err(Error::Table { path: self.path.clone(), message })
            }
        }
    }

    fn failed(&self, source: std::io::Error, read: u64) -> Error {
        let path = self.path.clone();
        if source.kind() != ErrorKind::UnexpectedEof {
            return Error::Read { path, source };
        }
        let (rows, row) = (self.rows, self.done + read + 1);
        let message = format!("the header claims {rows} rows and the file ends near row {row}");
        Error::Table { path, message }
    }

    fn bad_cell<T: Cell>(&self, at: usize, value: f64) -> Error {
        let column = self.labels[at % self.labels.len()].clone();
        let row = self.done + (at / self.labels.len()) as u64 + 1;
        let message = format!("the cell is {value}; {}", T::EXPECTED);
        Error::Cell { path: self.path.clone(), row, column, message }
    }
}
