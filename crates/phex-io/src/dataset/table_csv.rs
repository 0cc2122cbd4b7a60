//! Rows of CSV and TSV files. The header has the names.

use super::table::{Cell, Declared};
use crate::tables::records::Records;
use crate::tables::source::Source;
use crate::{Error, TableLimits};

pub(super) struct CsvTable {
    path: String,
    names: Vec<String>,
    records: Records,
}

impl CsvTable {
    pub(super) fn open(
        source: Source,
        delimiter: u8,
        limits: &TableLimits,
    ) -> Result<CsvTable, Error> {
        let path = source.name.clone();
        let mut records = Records::new(source, delimiter, limits.max_line);
        if !records.next()? {
            let message = String::from("the table has no header: the names of the columns");
            return Err(Error::Table { path, message });
        }
        let text = records.text()?;
        let names = records.cells.iter().map(|cell| text[cell.clone()].to_owned()).collect();
        Ok(CsvTable { path, names, records })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn declared(&self, _: usize) -> Declared<'_> {
        Declared::Unknown
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if !self.records.next()? {
            return Ok(false);
        }
        // The cells are cut at bytes of ASCII: once the whole row is text, each of them is.
        self.records.text()?;
        let (found, expected) = (self.records.cells.len(), self.names.len());
        if found != expected {
            let message = format!("the row has {found} cells and the header has {expected}");
            return Err(self.records.error(message));
        }
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> Result<Cell<'_>, Error> {
        let bytes = self.records.bytes(column);
        let text = std::str::from_utf8(bytes).map_err(|_| self.error("the text is not UTF-8"))?;
        Ok(Cell::Text(text))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        self.records.error(message)
    }
}
