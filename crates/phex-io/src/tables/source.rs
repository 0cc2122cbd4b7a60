//! Where tables come from: a file, or a stream that can be read once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use super::TableFormat;
use crate::Error;
use crate::format::SNIFFED;
use crate::input::{display_name, is_standard};

/// How many bytes are read at a time.
const BUFFER: usize = 256 * 1024;

enum Bytes {
    File { file: File, size: u64 },
    Stream(Box<dyn Read + Send>),
}

/// A table that is open and not yet read, and its form.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) format: TableFormat,
    bytes: Bytes,
    /// What was read from a stream to find the form.
    start: Vec<u8>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, format: Option<TableFormat>) -> Result<Source, Error> {
        let name = display_name(path);
        if is_standard(path) {
            return Source::from_reader(Box::new(io::stdin()), &name, format);
        }
        let failed = |source| Error::Read { path: name.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let format = format.or_else(|| TableFormat::from_path(path));
        if !metadata.is_file() {
            return Source::from_reader(Box::new(file), &name, format);
        }
        let format = match format {
            Some(format) => format,
            None => {
                let start = read_start(&mut file).map_err(failed)?;
                file.rewind().map_err(failed)?;
                guess(&start, &name)?
            }
        };
        let bytes = Bytes::File { file, size: metadata.len() };
        Ok(Source { name, format, bytes, start: Vec::new() })
    }

    /// Takes a stream.
    pub(crate) fn from_reader(
        mut reader: Box<dyn Read + Send>,
        name: &str,
        format: Option<TableFormat>,
    ) -> Result<Source, Error> {
        let (format, start) = match format {
            Some(format) => (format, Vec::new()),
            None => {
                let failed = |source| Error::Read { path: name.to_owned(), source };
                let start = read_start(&mut reader).map_err(failed)?;
                (guess(&start, name)?, start)
            }
        };
        Ok(Source { name: name.to_owned(), format, bytes: Bytes::Stream(reader), start })
    }

    /// How many bytes there are, where that can be known before they are read.
    pub(crate) fn size(&self) -> Option<u64> {
        match self.bytes {
            Bytes::File { size, .. } => Some(size),
            Bytes::Stream(_) => None,
        }
    }

    /// The bytes in order.
    pub(crate) fn into_stream(self) -> Box<dyn BufRead + Send> {
        match self.bytes {
            Bytes::File { file, .. } => Box::new(BufReader::with_capacity(BUFFER, file)),
            Bytes::Stream(stream) => {
                let all = Cursor::new(self.start).chain(stream);
                Box::new(BufReader::with_capacity(BUFFER, all))
            }
        }
    }

    /// The bytes as a file: a stream goes to a temporary one that has no name.
    #[cfg(feature = "parquet")]
    pub(crate) fn into_file(self) -> Result<File, Error> {
        let failed = |source| Error::Read { path: self.name.clone(), source };
        match self.bytes {
            Bytes::File { file, .. } => Ok(file),
            Bytes::Stream(stream) => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                let mut all = Cursor::new(self.start).chain(stream);
                io::copy(&mut all, &mut file).map_err(failed)?;
                file.rewind().map_err(failed)?;
                Ok(file)
            }
        }
    }
}

/// Reads until the first bytes can show the form: a line, where it is text.
fn read_start(mut reader: impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut chunk = vec![0; 4096];
    while start.len() < SNIFFED {
        match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => start.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let binary =
            !matches!(TableFormat::from_content(&start), Some(TableFormat::Csv | TableFormat::Tsv));
        if start.len() >= 8 && (binary || start.contains(&b'\n')) {
            break;
        }
    }
    Ok(start)
}

fn guess(start: &[u8], name: &str) -> Result<TableFormat, Error> {
    if start.is_empty() {
        let message = String::from("the file is empty");
        return Err(Error::Table { path: name.to_owned(), message });
    }
    let unknown = || Error::UnknownFormat { path: name.to_owned(), known: TableFormat::names() };
    TableFormat::from_content(start).ok_or_else(unknown)
}
