//! Files that are read as a whole, in pieces, so that one that breaks a limit is refused early.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::limits::Limits;
use super::text::SourceText;
use crate::{Error, Format};

/// How many bytes of a file are examined to find its format.
pub(crate) const SNIFFED: usize = 64 * 1024;

/// The name of an input path in messages.
pub(crate) fn display_name(path: &Path) -> String {
    if is_standard(path) { String::from("<stdin>") } else { path.display().to_string() }
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a graph file, or standard input for `-`. Without a format the first bytes decide whether
/// lines have a limit.
pub(crate) fn read_path(
    path: &Path,
    format: Option<Format>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let name = display_name(path);
    if is_standard(path) {
        return read_all(io::stdin().lock(), &name, format, limits);
    }
    let failed = |source| Error::Read { path: name.clone(), source };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > limits.file_bytes {
        return Err(Error::TooLarge { path: name, limit: limits.file_bytes });
    }
    read_all(file, &name, format, limits)
}

/// How many bytes a text that is neither a graph nor a table may have: settings, records of runs, model cards.
const TEXT_BYTES: u64 = 64 << 20;

/// Reads a file of at most `limit` bytes. A device that never ends is refused after as many.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let name = || path.display().to_string();
    let failed = |source| Error::Read { path: name(), source };
    let file = File::open(path).map_err(failed)?;
    let too_large = || Error::TooLarge { path: name(), limit };
    if file.metadata().map_err(failed)?.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a text such as settings or the record of a run, of at most 64 MiB.
///
/// # Errors
/// When the file cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = read_bytes(path, TEXT_BYTES)?;
    let name = path.display().to_string();
    Ok(SourceText::decode(&bytes, &name)?.text.to_owned())
}

/// Reads a file of a model or of samples, whose lines may have any length, and its name.
pub(crate) fn read_model(path: &Path) -> Result<(Vec<u8>, String), Error> {
    let limits = Limits { line_bytes: usize::MAX, ..Limits::default() };
    Ok((read_path(path, None, &limits)?, display_name(path)))
}

/// Reads everything, unless a limit is broken: then it stops there.
pub(crate) fn read_all(
    mut reader: impl Read,
    name: &str,
    format: Option<Format>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; SNIFFED];
    let mut guard: Option<LineGuard<'_>> = None;
    loop {
        let count = match reader.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::Read { path: name.to_owned(), source }),
        };
        if bytes.len() as u64 + count as u64 > limits.file_bytes {
            return Err(Error::TooLarge { path: name.to_owned(), limit: limits.file_bytes });
        }
        let guard = guard.get_or_insert_with(|| {
            let format = format.or_else(|| Format::from_content(&chunk[..count]));
            LineGuard::new(name, format, limits)
        });
        guard.feed(&chunk[..count])?;
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// Refuses lines that are too long, in whatever pieces they come.
pub(crate) struct LineGuard<'n> {
    name: &'n str,
    limit: usize,
    line: usize,
    length: usize,
}

impl<'n> LineGuard<'n> {
    /// JSON and XML are exempt: programs write them without line breaks.
    pub(crate) fn new(name: &'n str, format: Option<Format>, limits: &Limits) -> LineGuard<'n> {
        let exempt = format.is_some_and(Format::has_long_lines);
        let limit = if exempt { usize::MAX } else { limits.line_bytes };
        LineGuard { name, limit, line: 1, length: 0 }
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), Error> {
        if self.limit == usize::MAX {
            return Ok(());
        }
        for (index, part) in piece.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                self.line += 1;
                self.length = 0;
            }
            self.length += part.len();
            if self.length > self.limit {
                let (path, limit) = (self.name.to_owned(), self.limit);
                return Err(Error::LineTooLong { path, line: self.line, limit });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_found_across_pieces() {
        let limits = Limits { line_bytes: 4, ..Limits::default() };
        let mut guard = LineGuard::new("x", None, &limits);
        guard.feed(b"abcd\nab").unwrap();
        guard.feed(b"cd").unwrap();
        let error = guard.feed(b"e\n").unwrap_err();
        assert_eq!(error.line(), Some(2));
        assert!(LineGuard::new("x", None, &limits).feed(b"\n\n\nabcde").is_err());
        assert!(LineGuard::new("x", Some(Format::Json), &limits).feed(b"abcdefgh").is_ok());
    }
}
