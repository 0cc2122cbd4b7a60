//! Tables of text, separated by commas or tabs, with the labels in the first line.
//!
//! ```csv
//! dog,"cat, black"
//! 1.5,-0.25
//! ```
//!
//! A cell in quotes may hold the separator, line breaks and doubled quotes. Empty lines are
//! skipped. Read line by line: a row costs its own length.

use std::io::{BufRead, Read};
use std::ops::Range;

use super::TableLimits;
use super::cell::Cell;
use super::columns::{Use, Wanted};
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
        let mut records = Records {
            path: name.clone(),
            reader: source.into_stream(),
            delimiter,
            limit: limits.max_line,
            line: 0,
            start: 0,
            buffer: Vec::new(),
            text: Vec::new(),
            cells: Vec::new(),
        };
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

/// The rows of a text, cut into cells.
struct Records {
    path: String,
    reader: Box<dyn BufRead + Send>,
    delimiter: u8,
    limit: usize,
    /// How many lines were read.
    line: usize,
    /// The line where the row starts.
    start: usize,
    /// The last line, with its end.
    buffer: Vec<u8>,
    /// The text of the cells of the row.
    text: Vec<u8>,
    /// Where in the text each cell is.
    cells: Vec<Range<usize>>,
}

/// Where in a cell a row with quotes is.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end of the cell, or the first of a doubled one.
    Quote,
}

impl Records {
    /// Reads the next row that is not empty.
    fn next(&mut self) -> Result<bool, Error> {
        loop {
            self.start = self.line + 1;
            if !self.read_line(0)? {
                return Ok(false);
            }
            if self.line == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            let content = without_end(&self.buffer).len();
            if content == 0 {
                continue;
            }
            self.text.clear();
            self.cells.clear();
            if self.buffer.contains(&b'"') {
                self.split_quoted()?;
            } else {
                self.buffer.truncate(content);
                std::mem::swap(&mut self.buffer, &mut self.text);
                let mut from = 0;
                for (at, &byte) in self.text.iter().enumerate() {
                    if byte == self.delimiter {
                        self.cells.push(from..at);
                        from = at + 1;
                    }
                }
                self.cells.push(from..content);
            }
            return Ok(true);
        }
    }

    /// Reads a line after `used` bytes of the row; false at the end.
    fn read_line(&mut self, used: usize) -> Result<bool, Error> {
        self.buffer.clear();
        // Two bytes for the end of the line.
        let most = (self.limit.saturating_sub(used) as u64).saturating_add(2);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer);
        let failed = |source| Error::Read { path: self.path.clone(), source };
        if read.map_err(failed)? == 0 {
            return Ok(false);
        }
        if used + without_end(&self.buffer).len() > self.limit {
            let (path, line, limit) = (self.path.clone(), self.start, self.limit);
            return Err(Error::LineTooLong { path, line, limit });
        }
        self.line += 1;
        Ok(true)
    }

    /// Cuts a row with quotes, which may go on for more lines.
    fn split_quoted(&mut self) -> Result<(), Error> {
        let mut state = State::Start;
        let mut from = 0;
        loop {
            let content = without_end(&self.buffer).len();
            for &byte in &self.buffer[..content] {
                state = match (state, byte) {
                    (State::Start, b'"') => State::Quoted,
                    (State::Quoted, b'"') => State::Quote,
                    (State::Quoted, _) => {
                        self.text.push(byte);
                        State::Quoted
                    }
                    (State::Quote, b'"') => {
                        self.text.push(byte);
                        State::Quoted
                    }
                    (_, byte) if byte == self.delimiter => {
                        self.cells.push(from..self.text.len());
                        from = self.text.len();
                        State::Start
                    }
                    (State::Quote, _) => {
                        let message = "there is text after the quote that ends a cell; a quote \
                                       inside quotes is doubled";
                        return Err(self.error(message));
                    }
                    (State::Start | State::Plain, _) => {
                        self.text.push(byte);
                        State::Plain
                    }
                };
            }
            if state != State::Quoted {
                self.cells.push(from..self.text.len());
                return Ok(());
            }
            self.text.extend_from_slice(&self.buffer[content..]);
            if !self.read_line(self.text.len())? {
                return Err(self.error("a quote opens a cell and nothing closes it"));
            }
        }
    }

    /// The text of the cells.
    fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.text)
            .map_err(|_| self.error("the text is not UTF-8; save the file as UTF-8"))
    }

    /// An error in this row.
    fn error(&self, message: impl Into<String>) -> Error {
        Error::Syntax { path: self.path.clone(), line: self.start, message: message.into() }
    }
}

/// A line without its LF or CRLF.
fn without_end(line: &[u8]) -> &[u8] {
    match line {
        [content @ .., b'\r', b'\n'] | [content @ .., b'\n'] => content,
        content => content,
    }
}
