//! Tables separated by commas or tabs, with the line of each row.

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use crate::Error;
use crate::text::{LineCounter, Source};

/// The rows of a table that have any cell.
pub(super) struct Table<'a> {
    source: Source<'a>,
    reader: Reader<&'a [u8]>,
    lines: LineCounter<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn new(source: &Source<'a>, delimiter: u8) -> Table<'a> {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(delimiter).flexible(true).has_headers(false);
        let reader = builder.from_reader(source.text.as_bytes());
        Table { source: *source, reader, lines: source.line_counter() }
    }

    /// The line and the cells of the next row.
    pub(super) fn next_row(&mut self) -> Result<Option<(usize, StringRecord)>, Error> {
        loop {
            let mut row = StringRecord::new();
            match self.reader.read_record(&mut row) {
                Ok(false) => return Ok(None),
                Ok(true) => {}
                Err(error) => {
                    let line = error.position().map_or(1, |at| self.lines.line(at.byte() as usize));
                    let message = match error.kind() {
                        ErrorKind::Utf8 { err, .. } => err.to_string(),
                        _ => error.to_string(),
                    };
                    return Err(self.source.error(line, message));
                }
            }
            if row.iter().all(|cell| cell.trim().is_empty()) {
                continue;
            }
            // The reader's position is before the empty lines that it skipped.
            let start = row.position().map_or(0, |at| at.byte() as usize);
            let text = self.source.text.as_bytes();
            let blank = text[start..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
            let line = self.lines.line(start + blank.count());
            return Ok(Some((line, row)));
        }
    }
}
