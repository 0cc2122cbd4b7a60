//! Tables of text, separated by commas or tabs, with the names of the columns in the first record.
//!
//! ```csv
//! dog,"cat, black"
//! 1.5,-0.25
//! ```

use std::io::BufRead;

use super::{ColumnType, RecordCell};
use crate::error::RecordNumber;
use crate::files::csv::CsvRecords;
use crate::tables::input::TableInput;
use crate::{Error, Limits};

/// A CSV or TSV file that is being read.
pub(in crate::tables) struct CsvCursor {
    names: Vec<String>,
    records: CsvRecords<Box<dyn BufRead + Send>>,
}

impl CsvCursor {
    pub(super) fn open(
        input: TableInput,
        delimiter: u8,
        limits: &Limits,
    ) -> Result<CsvCursor, Error> {
        let path = input.name.clone();
        let mut records =
            CsvRecords::new(path, input.into_stream(), delimiter, limits.record_bytes)?;
        if !records.next()? {
            let message = String::from("the table has no header with the names of its columns");
            return Err(Error::Table { path: records.path().to_owned(), message });
        }
        let names = records.cells().iter().map(str::to_owned).collect();
        Ok(CsvCursor { names, records })
    }

    pub(super) fn path(&self) -> &str {
        self.records.path()
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn column_type(&self, _: usize) -> ColumnType<'_> {
        ColumnType::Untyped
    }

    pub(super) fn next(&mut self) -> Result<bool, Error> {
        if !self.records.next()? {
            return Ok(false);
        }
        let (found, expected) = (self.records.cells().len(), self.names.len());
        if found != expected {
            let message = format!("the row has {found} cells and the header has {expected}");
            return Err(self.records.error(message));
        }
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> RecordCell<'_> {
        RecordCell::Text(&self.records.cells()[column])
    }

    pub(super) fn record(&self) -> RecordNumber {
        RecordNumber::Line(self.records.line())
    }
}
