//! A stream of text, read one line at a time. Memory grows with the longest line only.

use std::io::{BufRead, Read};

use crate::Error;

/// The message of text in another encoding.
pub(crate) const NOT_UTF8: &str = "the text is not UTF-8; save the file as UTF-8";

/// Reads lines, none longer than allowed.
pub(crate) struct LineReader {
    path: String,
    reader: Box<dyn BufRead + Send>,
    limit: usize,
    /// How many lines were read.
    line: usize,
    buffer: Vec<u8>,
}

impl LineReader {
    pub(crate) fn new(path: String, reader: Box<dyn BufRead + Send>, limit: usize) -> LineReader {
        LineReader { path, reader, limit, line: 0, buffer: Vec::new() }
    }

    /// The name of the file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The number of the last line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Reads the next line; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        self.buffer.clear();
        // Two more bytes for the end of the line.
        let most = (self.limit as u64).saturating_add(2);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer);
        let failed = |source| Error::Read { path: self.path.clone(), source };
        if read.map_err(failed)? == 0 {
            return Ok(false);
        }
        if self.content().len() > self.limit {
            let (path, line, limit) = (self.path.clone(), self.line + 1, self.limit);
            return Err(Error::LineTooLong { path, line, limit });
        }
        if self.line == 0 && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        self.line += 1;
        Ok(true)
    }

    /// The last line without its LF or CRLF.
    fn content(&self) -> &[u8] {
        match self.buffer.as_slice() {
            [content @ .., b'\r', b'\n'] | [content @ .., b'\n'] => content,
            content => content,
        }
    }

    /// The last line as text.
    pub(crate) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(self.content()).map_err(|_| self.error(NOT_UTF8))
    }

    /// An error in the last line.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        // Before anything was read, the first line is all there is to point at.
        let (path, line) = (self.path.clone(), self.line.max(1));
        Error::Syntax { path, line, message: message.into() }
    }
}
