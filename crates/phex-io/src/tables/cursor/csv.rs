//! Tables of text, separated by commas, semicolons or tabs, with the names of the columns in the first record.
//!
//! Semicolons separate the cells of a CSV file if its header has some and no comma, except in quotes. Programs write
//! such files where numbers have decimal commas, so these are read as points.
//!
//! ```csv
//! dog,"cat, black"
//! 1.5,-0.25
//! ```

use std::io::BufRead;

use csv::StringRecord;

use super::{ColumnType, RecordCell};
use crate::error::RecordNumber;
use crate::files::csv::CsvRecords;
use crate::tables::input::TableInput;
use crate::{Error, Limits};

/// A CSV or TSV file that is being read.
pub(in crate::tables) struct CsvCursor {
    names: Vec<String>,
    records: CsvRecords<Box<dyn BufRead + Send>>,
    /// Whether numbers may have decimal commas.
    commas: bool,
    /// The cells of the record, if some of them have decimal commas.
    pointed: Option<StringRecord>,
}

impl CsvCursor {
    pub(super) fn open(
        input: TableInput,
        delimiter: u8,
        limits: &Limits,
    ) -> Result<CsvCursor, Error> {
        let path = input.name.clone();
        let commas = delimiter == b',' && has_semicolons(input.start());
        let delimiter = if commas { b';' } else { delimiter };
        let stream = input.into_stream()?;
        let mut records = CsvRecords::new(path, stream, delimiter, limits.record_bytes)?;
        if !records.next()? {
            let message = String::from("the table has no header with the names of its columns");
            return Err(Error::Table { path: records.path().to_owned(), message });
        }
        let names = records.cells().iter().map(str::to_owned).collect();
        Ok(CsvCursor { names, records, commas, pointed: None })
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
        self.pointed = self.commas.then(|| with_points(self.records.cells())).flatten();
        Ok(true)
    }

    pub(super) fn cell(&self, column: usize) -> RecordCell<'_> {
        RecordCell::Text(&self.pointed.as_ref().unwrap_or(self.records.cells())[column])
    }

    pub(super) fn record(&self) -> RecordNumber {
        RecordNumber::Line(self.records.line())
    }
}

/// Whether the first line has semicolons and no commas, except in quotes.
fn has_semicolons(start: &[u8]) -> bool {
    let (mut quoted, mut semicolons) = (false, false);
    let lines = start.iter().skip_while(|byte| matches!(byte, b'\n' | b'\r'));
    for byte in lines {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            b',' if !quoted => return false,
            b';' if !quoted => semicolons = true,
            _ => {}
        }
    }
    semicolons
}

/// The cells with decimal points, if some have decimal commas.
fn with_points(cells: &StringRecord) -> Option<StringRecord> {
    let pointed = |cell: &str| {
        let (whole, fraction) = cell.split_once(',')?;
        let number = format!("{whole}.{fraction}");
        let plain = !whole.contains('.') && !fraction.contains([',', '.']);
        (plain && number.trim().parse::<f64>().is_ok()).then_some(number)
    };
    let found: Vec<Option<String>> = cells.iter().map(pointed).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let new = cells.iter().zip(found);
    Some(new.map(|(cell, number)| number.unwrap_or_else(|| cell.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_separate_where_there_is_no_comma() {
        for start in ["dog;cat\n1,5;2", "\r\n\"a,b\";c\n", "a;b"] {
            assert!(has_semicolons(start.as_bytes()), "{start}");
        }
        for start in ["dog\n1;5", "a;b,c\n", "\"a;b\"\n", ""] {
            assert!(!has_semicolons(start.as_bytes()), "{start}");
        }
    }

    #[test]
    fn decimal_commas_become_points() {
        let cells = StringRecord::from(vec!["1,5", "a,b", "-2,5e3", "1.000,5", "7"]);
        let expected = StringRecord::from(vec!["1.5", "a,b", "-2.5e3", "1.000,5", "7"]);
        assert_eq!(with_points(&cells), Some(expected));
        assert_eq!(with_points(&StringRecord::from(vec!["a,b", "1.5"])), None);
    }
}
