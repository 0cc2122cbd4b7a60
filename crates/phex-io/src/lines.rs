//! Lines of a stream, none longer than allowed.

use std::io::{BufRead, Read};

use crate::Error;

/// A text that is being read line by line: memory follows the longest line.
pub(crate) struct Lines {
    path: String,
    reader: Box<dyn BufRead + Send>,
    limit: usize,
    /// How many lines were read.
    line: usize,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(path: String, reader: Box<dyn BufRead + Send>, limit: usize) -> Lines {
        Lines { path, reader, limit, line: 0, buffer: Vec::new() }
    }

    /// The name of the file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many lines were read: the number of the last one, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Reads a line that starts at line `start` and has `used` bytes already; false at the end.
    pub(crate) fn read(&mut self, start: usize, used: usize) -> Result<bool, Error> {
        self.buffer.clear();
        // Two bytes for the end of the line.
        let most = (self.limit.saturating_sub(used) as u64).saturating_add(2);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer);
        let failed = |source| Error::Read { path: self.path.clone(), source };
        if read.map_err(failed)? == 0 {
            return Ok(false);
        }
        if used + self.content().len() > self.limit {
            let (path, limit) = (self.path.clone(), self.limit);
            return Err(Error::LineTooLong { path, line: start, limit });
        }
        if self.line == 0 && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        self.line += 1;
        Ok(true)
    }

    /// Reads the next line; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, Error> {
        self.read(self.line + 1, 0)
    }

    /// The last line with its end.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The last line without its LF or CRLF.
    pub(crate) fn content(&self) -> &[u8] {
        match self.buffer.as_slice() {
            [content @ .., b'\r', b'\n'] | [content @ .., b'\n'] => content,
            content => content,
        }
    }

    /// The last line as text.
    pub(crate) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(self.content())
            .map_err(|_| self.error("the text is not UTF-8; save the file as UTF-8"))
    }

    /// An error in the last line.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        // Before the first line there is nothing but the first line to point at.
        let (path, line) = (self.path.clone(), self.line.max(1));
        Error::Syntax { path, line, message: message.into() }
    }
}
