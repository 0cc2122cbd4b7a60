//! Records of CSV and TSV text, with the lines on which they start.
//!
//! The `csv` crate cuts the text into cells. This adapter adds what files from untrusted sources need: line
//! numbers, a limit on the length of a record, and, for tables of data, an error where a quote is
//! never closed or is followed by more text; the crate would accept both.
//!
//! Empty lines are skipped. A cell in quotes may hold separators, line breaks and doubled quotes.
//! Time and memory per record are O(its length).

use std::io::{self, Chain, Cursor, Read};

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use super::lines::NOT_UTF8;
use super::text::SourceText;
use crate::Error;

/// How many bytes the parser asks for at a time.
const BUFFER: usize = 64 * 1024;

/// A byte order mark in front of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A table of text that is being read record by record.
pub(crate) struct CsvRecords<R> {
    path: String,
    reader: Reader<RecordBytes<Chain<Cursor<Vec<u8>>, R>>>,
    delimiter: u8,
    limit: usize,
    /// Whether this is a table of data. Tables that people write by hand are read more leniently:
    /// quotes are not checked, and records of empty cells are skipped.
    strict: bool,
    record: StringRecord,
    /// The line on which the record starts.
    line: usize,
}

impl<'t> CsvRecords<&'t [u8]> {
    /// Reads decoded text leniently.
    pub(crate) fn of_text(source: &SourceText<'t>, delimiter: u8) -> Result<Self, Error> {
        let (path, text) = (source.name.to_owned(), source.text.as_bytes());
        Ok(CsvRecords { strict: false, ..CsvRecords::new(path, text, delimiter, usize::MAX)? })
    }
}

impl<R: Read> CsvRecords<R> {
    /// Reads a stream of data strictly; `limit` is the number of bytes that a record may have.
    pub(crate) fn new(
        path: String,
        mut reader: R,
        delimiter: u8,
        limit: usize,
    ) -> Result<CsvRecords<R>, Error> {
        let mut start = Vec::new();
        let read = reader.by_ref().take(MARK.len() as u64).read_to_end(&mut start);
        read.map_err(|source| Error::Read { path: path.clone(), source })?;
        if start == MARK {
            start.clear();
        }
        let mut builder = ReaderBuilder::new();
        builder.delimiter(delimiter).flexible(true).has_headers(false).buffer_capacity(BUFFER);
        let bytes = RecordBytes::new(Cursor::new(start).chain(reader), limit);
        let reader = builder.from_reader(bytes);
        let record = StringRecord::new();
        Ok(CsvRecords { path, reader, delimiter, limit, strict: true, record, line: 1 })
    }

    /// Reads the next record; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        loop {
            let line = self.reader.position().line() as usize;
            let read = self.reader.read_record(&mut self.record);
            let end = self.reader.position().byte();
            let (skipped, bytes) = self.reader.get_mut().end_record(end);
            self.line = line + skipped;
            match read.map_err(csv::Error::into_kind) {
                Ok(false) => return Ok(false),
                Ok(true) if trimmed(bytes).len() > self.limit => return Err(self.too_long()),
                Ok(true) if self.strict && bytes.contains(&b'"') => {
                    return match quote_fault(bytes, self.delimiter) {
                        Some(fault) => Err(self.error(fault)),
                        None => Ok(true),
                    };
                }
                Ok(true) if self.strict => return Ok(true),
                Ok(true) if self.record.iter().all(|cell| cell.trim().is_empty()) => {}
                Ok(true) => return Ok(true),
                Err(ErrorKind::Io(error)) if is_too_long(&error) => return Err(self.too_long()),
                Err(ErrorKind::Io(source)) => {
                    return Err(Error::Read { path: self.path.clone(), source });
                }
                Err(ErrorKind::Utf8 { .. }) => return Err(self.error(NOT_UTF8)),
                Err(other) => return Err(self.error(format!("{other:?}"))),
            }
        }
    }

    /// The name of the file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The line on which the record starts.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The cells of the record.
    pub(crate) fn cells(&self) -> &StringRecord {
        &self.record
    }

    /// An error in the record.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::Syntax { path: self.path.clone(), line: self.line, message: message.into() }
    }

    fn too_long(&self) -> Error {
        Error::LineTooLong { path: self.path.clone(), line: self.line, limit: self.limit }
    }
}

/// Hands bytes to the parser and keeps those of the current record.
struct RecordBytes<R> {
    reader: R,
    limit: usize,
    /// The bytes from the start of the current record on, as far as they were handed out.
    bytes: Vec<u8>,
    /// The offset in the stream of the first of these bytes.
    offset: u64,
    /// How many of these bytes belong to the record before the current one.
    done: usize,
    /// Empty lines before the current record whose bytes are forgotten.
    empty_lines: usize,
}

impl<R> RecordBytes<R> {
    fn new(reader: R, limit: usize) -> RecordBytes<R> {
        RecordBytes { reader, limit, bytes: Vec::new(), offset: 0, done: 0, empty_lines: 0 }
    }

    /// Ends the current record at an offset: how many empty lines came before it, and its bytes.
    fn end_record(&mut self, end: u64) -> (usize, &[u8]) {
        let from = self.done;
        self.done = (end.saturating_sub(self.offset) as usize).clamp(from, self.bytes.len());
        let bytes = &self.bytes[from..self.done];
        let (lines, breaks) = leading_breaks(bytes);
        (std::mem::take(&mut self.empty_lines) + lines, &bytes[breaks..])
    }
}

impl<R: Read> Read for RecordBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The parser has used up all that it got. Empty lines are forgotten at once, because there
        // may be any number of them.
        let (lines, breaks) = leading_breaks(&self.bytes[self.done..]);
        self.empty_lines += lines;
        self.offset += (self.done + breaks) as u64;
        self.bytes.drain(..self.done + breaks);
        self.done = 0;
        // Two more bytes for the end of the line.
        if self.bytes.len() > self.limit.saturating_add(2) {
            return Err(io::Error::other(RecordTooLong));
        }
        let count = loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.bytes.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

/// How [`RecordBytes`] tells [`CsvRecords`] through the parser that the limit is broken.
#[derive(Debug, thiserror::Error)]
#[error("the record is too long")]
struct RecordTooLong;

fn is_too_long(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<RecordTooLong>())
}

/// How many lines and how many bytes of line breaks a text starts with.
fn leading_breaks(bytes: &[u8]) -> (usize, usize) {
    let breaks = bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
    (bytes[..breaks].iter().filter(|&&byte| byte == b'\n').count(), breaks)
}

/// A record without the end of its line.
fn trimmed(bytes: &[u8]) -> &[u8] {
    match bytes {
        [content @ .., b'\r', b'\n'] | [content @ .., b'\n' | b'\r'] => content,
        content => content,
    }
}

/// What is wrong with the quotes of a record, if anything.
fn quote_fault(mut bytes: &[u8], delimiter: u8) -> Option<&'static str> {
    loop {
        let after = match bytes.strip_prefix(b"\"") {
            None => &bytes[bytes.iter().position(|&byte| byte == delimiter)?..],
            Some(quoted) => match after_quote(quoted) {
                None => return Some("a quote opens a cell and nothing closes it"),
                Some(after) => after,
            },
        };
        match after {
            [] | [b'\r' | b'\n', ..] => return None,
            [first, rest @ ..] if *first == delimiter => bytes = rest,
            _ => {
                return Some(
                    "there is text after the quote that ends a cell; a quote inside quotes is \
                     doubled",
                );
            }
        }
    }
}

/// The character after the quote that ends a cell, if there is one.
fn after_quote(mut quoted: &[u8]) -> Option<&[u8]> {
    loop {
        let rest = &quoted[quoted.iter().position(|&byte| byte == b'"')? + 1..];
        match rest.strip_prefix(b"\"") {
            Some(more) => quoted = more,
            None => return Some(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines and cells of all records, whatever the size of the pieces that are read.
    fn records(text: &str, limit: usize) -> Result<Vec<(usize, Vec<String>)>, Error> {
        let read = |piece: usize| {
            let pieces = OneAtATime { text: text.as_bytes(), piece };
            let mut records = CsvRecords::new(String::from("t.csv"), pieces, b',', limit)?;
            let mut all = Vec::new();
            while records.next()? {
                all.push((records.line(), records.cells().iter().map(str::to_owned).collect()));
            }
            Ok(all)
        };
        let shown = |result: &Result<Vec<(usize, Vec<String>)>, Error>| format!("{result:?}");
        let whole = read(usize::MAX);
        for piece in [1, 2, 5] {
            assert_eq!(shown(&read(piece)), shown(&whole), "{text:?} in pieces of {piece}");
        }
        whole
    }

    struct OneAtATime<'t> {
        text: &'t [u8],
        piece: usize,
    }

    impl Read for OneAtATime<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.piece);
            self.text.read(&mut buffer[..count])
        }
    }

    #[test]
    fn records_know_their_lines() {
        let text = "\u{feff}\r\na,\"b\r\n\"\"c\"\"\"\r\n\n\r\n,d\n\"\"\ne\"f";
        let expected =
            [(2, vec!["a", "b\r\n\"c\""]), (6, vec!["", "d"]), (7, vec![""]), (8, vec!["e\"f"])];
        let found = records(text, 20).unwrap();
        assert_eq!(found.len(), expected.len());
        for ((line, cells), (expected_line, expected)) in found.iter().zip(&expected) {
            assert_eq!(
                (line, cells),
                (expected_line, &expected.iter().map(|&c| c.to_owned()).collect())
            );
        }
        assert!(records("", 20).unwrap().is_empty());
        assert!(records("\n\r\n\n", 1).unwrap().is_empty());
    }

    #[test]
    fn faults_have_the_line_of_their_record() {
        let cases = [
            ("a\n\n\"b\nc", 20, "t.csv:3: a quote opens a cell"),
            ("a\n\"b\"c,d\n", 20, "t.csv:2: there is text after the quote"),
            ("a,\"b\" \n", 20, "t.csv:1: there is text after the quote"),
            ("a\n\nabcdef\n", 5, "t.csv:3: the line has more than the 5 bytes"),
            ("a\n\"\n\n\n\n\n\"\n", 5, "t.csv:2: the line has more than the 5 bytes"),
        ];
        for (text, limit, start) in cases {
            let error = records(text, limit).unwrap_err().to_string();
            assert!(error.starts_with(start), "{text:?}: {error}");
        }
        assert_eq!(records("abcde\r\n\n\n\n\n\n\n\n\n\nabcde", 5).unwrap().len(), 2);
        let mut records = CsvRecords::new(String::from("t"), &b"a\n\xff\n"[..], b',', 9).unwrap();
        assert!(records.next().unwrap());
        assert_eq!(records.next().unwrap_err().to_string(), format!("t:2: {NOT_UTF8}"));
    }

    #[test]
    fn handwritten_tables_are_read_leniently() {
        let source = SourceText { name: "t.csv", text: "a,b\n\n , \n\"c\"d,e\n\"f" };
        let mut records = CsvRecords::of_text(&source, b',').unwrap();
        let mut found = Vec::new();
        while records.next().unwrap() {
            found.push((records.line(), records.cells().get(0).unwrap().to_owned()));
        }
        let expected = [(1, "a"), (4, "cd"), (5, "f")];
        assert_eq!(found, expected.map(|(line, cell)| (line, cell.to_owned())));
    }
}
