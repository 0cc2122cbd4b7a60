//! Bytes from outside, read in pieces so that a file that breaks a limit is refused early.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::format::SNIFFED;
use crate::{Error, Format, ReadOptions};

/// What a file may hold before it is looked at any further.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) bytes: u64,
    /// `None`: lines of any length.
    pub(crate) line: Option<usize>,
}

impl Limits {
    /// The limits for a format: programs write JSON without line breaks.
    pub(crate) fn of(options: &ReadOptions, format: Option<Format>) -> Limits {
        let line = (format != Some(Format::Json)).then_some(options.max_line);
        Limits { bytes: options.max_bytes, line }
    }
}

/// The name of a path in messages.
pub(crate) fn display_name(path: &Path) -> String {
    if is_standard(path) { String::from("<stdin>") } else { path.display().to_string() }
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a file, or standard input.
pub(crate) fn read_path(
    path: &Path,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Vec<u8>, Error> {
    let name = display_name(path);
    if is_standard(path) {
        return read_all(io::stdin().lock(), &name, format, options);
    }
    let failed = |source| Error::Read { path: name.clone(), source };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > options.max_bytes {
        return Err(Error::TooLarge { path: name, limit: options.max_bytes });
    }
    read_all(file, &name, format, options)
}

/// Reads everything, unless a limit is broken: then nothing is read beyond that.
pub(crate) fn read_all(
    mut reader: impl Read,
    name: &str,
    format: Option<Format>,
    options: &ReadOptions,
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
        if bytes.len() as u64 + count as u64 > options.max_bytes {
            return Err(Error::TooLarge { path: name.to_owned(), limit: options.max_bytes });
        }
        let guard = guard.get_or_insert_with(|| {
            let format = format.or_else(|| Format::from_content(&chunk[..count]));
            LineGuard::new(name, Limits::of(options, format))
        });
        guard.feed(&chunk[..count])?;
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// Refuses lines that are too long, in whatever pieces they come.
pub(crate) struct LineGuard<'n> {
    name: &'n str,
    limit: Option<usize>,
    line: usize,
    length: usize,
}

impl<'n> LineGuard<'n> {
    pub(crate) fn new(name: &'n str, limits: Limits) -> LineGuard<'n> {
        LineGuard { name, limit: limits.line, line: 1, length: 0 }
    }

    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), Error> {
        let Some(limit) = self.limit else { return Ok(()) };
        for (index, part) in piece.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                self.line += 1;
                self.length = 0;
            }
            self.length += part.len();
            if self.length > limit {
                let path = self.name.to_owned();
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
        let limits = Limits { bytes: 100, line: Some(4) };
        let mut guard = LineGuard::new("x", limits);
        guard.feed(b"abcd\nab").unwrap();
        guard.feed(b"cd").unwrap();
        let error = guard.feed(b"e\n").unwrap_err();
        assert_eq!(error.line(), Some(2));
        assert!(LineGuard::new("x", limits).feed(b"\n\n\nabcde").is_err());
        assert!(LineGuard::new("x", Limits { line: None, ..limits }).feed(b"abcdefgh").is_ok());
    }
}
