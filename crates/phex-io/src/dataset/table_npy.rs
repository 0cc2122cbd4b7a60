//! Rows of npy files: numbers alone, with the names `f0`, `f1` and so on.
//!
//! What the header claims is checked against the length of the file before anything is read.

use std::io::{BufRead, ErrorKind, Read};

use super::table::{Cell, Declared};
use crate::Error;
use crate::tables::npy_header::Header;
use crate::tables::source::Source;

/// How many columns there may be: each has a name.
const MAX_COLUMNS: u64 = 1 << 20;

pub(super) struct NpyTable {
    path: String,
    reader: Box<dyn BufRead + Send>,
    header: Header,
    names: Vec<String>,
    /// How many rows were read.
    done: u64,
    row: Vec<u8>,
}

impl NpyTable {
    pub(super) fn open(source: Source) -> Result<NpyTable, Error> {
        let (path, size) = (source.name.clone(), source.size());
        let wrong = |message| Error::Table { path: path.clone(), message };
        let mut reader = source.into_stream();
        let header = Header::read(&mut reader).map_err(wrong)?;
        header.check(size).map_err(wrong)?;
        if header.columns == 0 || header.columns > MAX_COLUMNS {
            return Err(wrong(format!("the array has {} columns", header.columns)));
        }
        // A stream has no size to check against: its columns are counted by a first row.
        let mut row = Vec::new();
        let bytes = header.columns * header.item.size() as u64;
        if size.is_none() && header.rows > 0 {
            reader
                .by_ref()
                .take(bytes)
                .read_to_end(&mut row)
                .map_err(|source| Error::Read { path: path.clone(), source })?;
            if row.len() as u64 != bytes {
                return Err(wrong(String::from("the file ends in the first row")));
            }
            reader = Box::new(std::io::Cursor::new(std::mem::take(&mut row)).chain(reader));
        }
        let names = (0..header.columns).map(|column| format!("f{column}")).collect();
        Ok(NpyTable { path, reader, header, names, done: 0, row: vec![0; bytes as usize] })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Whether the array has one dimension.
    pub(super) fn is_flat(&self) -> bool {
        self.header.flat
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn declared(&self, _: usize) -> Declared<'_> {
        Declared::Number
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if self.done == self.header.rows {
            let wrong = |message| Error::Table { path: self.path.clone(), message };
            return match self.reader.read_exact(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
                Err(source) => Err(Error::Read { path: self.path.clone(), source }),
                Ok(()) => Err(wrong(format!("more bytes follow the {} rows", self.done))),
            };
        }
        if let Err(source) = self.reader.read_exact(&mut self.row) {
            if source.kind() != ErrorKind::UnexpectedEof {
                return Err(Error::Read { path: self.path.clone(), source });
            }
            let (rows, row) = (self.header.rows, self.done + 1);
            let message = format!("the header claims {rows} rows and the file ends in row {row}");
            return Err(Error::Table { path: self.path.clone(), message });
        }
        self.done += 1;
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        let size = self.header.item.size();
        let value = self.header.item.value(&self.row[column * size..(column + 1) * size]);
        Ok(if value.is_nan() { Cell::Missing } else { Cell::Number(value) })
    }

    pub(super) fn error(&self, column: &str, message: String) -> Error {
        let (path, column) = (self.path.clone(), column.to_owned());
        Error::Cell { path, row: self.done, column, message }
    }
}
