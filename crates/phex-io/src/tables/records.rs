//! Rows of text, cut into cells at commas or tabs.
//!
//! A cell in quotes may hold the separator, line breaks and doubled quotes. Empty lines are
//! skipped. Read line by line: a row costs its own length.

use std::ops::Range;

use super::source::Source;
use crate::Error;
use crate::lines::Lines;

/// The rows of a text, cut into cells.
pub(crate) struct Records {
    lines: Lines,
    delimiter: u8,
    /// The line where the row starts.
    start: usize,
    /// The text of the cells of the row.
    text: Vec<u8>,
    /// Where in the text each cell is.
    pub(crate) cells: Vec<Range<usize>>,
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
    pub(crate) fn new(source: Source, delimiter: u8, limit: usize) -> Records {
        let name = source.name.clone();
        let lines = Lines::new(name, source.into_stream(), limit);
        Records { lines, delimiter, start: 0, text: Vec::new(), cells: Vec::new() }
    }

    /// Reads the next row that is not empty.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        loop {
            self.start = self.lines.line() + 1;
            if !self.lines.next()? {
                return Ok(false);
            }
            let content = self.lines.content().len();
            if content == 0 {
                continue;
            }
            self.text.clear();
            self.cells.clear();
            if self.lines.content().contains(&b'"') {
                self.split_quoted()?;
            } else {
                self.lines.bytes().truncate(content);
                std::mem::swap(self.lines.bytes(), &mut self.text);
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

    /// Cuts a row with quotes, which may go on for more lines.
    fn split_quoted(&mut self) -> Result<(), Error> {
        let mut state = State::Start;
        let mut from = 0;
        loop {
            let content = self.lines.content().len();
            for &byte in self.lines.content() {
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
            self.text.extend_from_slice(&self.lines.bytes()[content..]);
            if !self.lines.read(self.start, self.text.len())? {
                return Err(self.error("a quote opens a cell and nothing closes it"));
            }
        }
    }

    /// The text of the cells.
    pub(crate) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.text)
            .map_err(|_| self.error("the text is not UTF-8; save the file as UTF-8"))
    }

    /// The bytes of a cell.
    pub(crate) fn bytes(&self, cell: usize) -> &[u8] {
        &self.text[self.cells[cell].clone()]
    }

    /// An error in this row.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        let path = self.lines.path().to_owned();
        Error::Syntax { path, line: self.start, message: message.into() }
    }
}
