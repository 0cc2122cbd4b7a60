//! Tables of text, separated by commas or tabs, with the labels in the first line.
//!
//! ```csv
//! dog,"cat, black"
//! 1.5,-0.25
//! ```
//!
//! Read line by line: a row costs its own length.

use super::TableLimits;
use super::cell::Cell;
use super::columns::{Use, Wanted};
use super::records::Records;
use super::source::Source;
use crate::Error;
use crate::text::shown;

/// A table of text that is being read.
pub(super) struct CsvRows {
    records: Records,
    header: Vec<String>,
    uses: Vec<Use>,
    labels: usize,
}

impl CsvRows {
    pub(super) fn open(
        source: Source,
        delimiter: u8,
        wanted: &Wanted<'_>,
        limits: &TableLimits,
    ) -> Result<CsvRows, Error> {
        let name = source.name.clone();
        let mut records = Records::new(source, delimiter, limits.max_line);
        if !records.next()? {
            let message = String::from("the table has no header: the names of the labels");
            return Err(Error::Table { path: name, message });
        }
        let text = records.text()?;
        let header: Vec<String> =
            records.cells.iter().map(|cell| text[cell.clone()].to_owned()).collect();
        let uses = wanted.uses(&name, header.iter().map(String::as_str))?;
        Ok(CsvRows { records, header, uses, labels: wanted.labels.len() })
    }

    /// Adds at most `max` rows and says how many there were.
    pub(super) fn read<T: Cell>(
        &mut self,
        max: usize,
        values: &mut Vec<T>,
        kept: &mut [Vec<String>],
    ) -> Result<usize, Error> {
        let mut count = 0;
        while count < max && self.records.next()? {
            let text = self.records.text()?;
            let cells = &self.records.cells;
            if cells.len() != self.uses.len() {
                let (found, expected) = (cells.len(), self.uses.len());
                let message = format!("the row has {found} cells and the header has {expected}");
                return Err(self.records.error(message));
            }
            let start = values.len();
            values.resize(start + self.labels, T::MISSING);
            let row = &mut values[start..];
            for (index, (cell, use_)) in cells.iter().zip(&self.uses).enumerate() {
                let cell = &text[cell.clone()];
                match *use_ {
                    Use::Kept(column) => kept[column].push(cell.to_owned()),
                    Use::Label(label) => match T::from_text(cell) {
                        Some(value) => row[label] = value,
                        None => return Err(self.bad_cell::<T>(index, cell)),
                    },
                }
            }
            count += 1;
        }
        Ok(count)
    }

    fn bad_cell<T: Cell>(&self, index: usize, cell: &str) -> Error {
        let what = match cell.trim() {
            "" => String::from("the cell is empty"),
            cell => format!("the cell is {}", shown(cell)),
        };
        let column = &self.header[index];
        self.records.error(format!("column `{column}`: {what}; {}", T::EXPECTED))
    }
}
