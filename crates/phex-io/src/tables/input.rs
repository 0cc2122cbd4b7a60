//! An open table that is not read yet: a file, or a stream that can be read once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use super::TableFormat;
use crate::Error;
use crate::files::input::{SNIFFED, display_name, is_standard};
use crate::files::limits::Limits;
use crate::files::lines::LineReader;

/// How many bytes are read at a time.
const BUFFER: usize = 256 * 1024;

enum TableBytes {
    File { file: File, size: u64 },
    Stream(Box<dyn Read + Send>),
}

/// The first bytes of a Parquet file.
#[cfg(feature = "parquet")]
const PARQUET: &[u8] = b"PAR1";
/// Bytes of a stream that is copied to the disk.
#[cfg(feature = "parquet")]
const STREAM_BYTES: u64 = 64 << 30;

/// An open table and its format.
pub(super) struct TableInput {
    pub(super) name: String,
    pub(super) format: TableFormat,
    bytes: TableBytes,
    /// The bytes of a stream that were read to find the format.
    start: Vec<u8>,
}

impl TableInput {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path, format: Option<TableFormat>) -> Result<TableInput, Error> {
        let name = display_name(path);
        if is_standard(path) {
            return TableInput::from_reader(Box::new(io::stdin()), &name, format);
        }
        let failed = |source| Error::Read { path: name.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let format = format.or_else(|| TableFormat::from_path(path));
        if !metadata.is_file() {
            return TableInput::from_reader(Box::new(file), &name, format);
        }
        let format = match format {
            Some(format) => format,
            None => {
                let start = read_start(&mut file).map_err(failed)?;
                file.rewind().map_err(failed)?;
                recognise(&start, &name)?
            }
        };
        let bytes = TableBytes::File { file, size: metadata.len() };
        Ok(TableInput { name, format, bytes, start: Vec::new() })
    }

    /// Wraps a stream.
    pub(super) fn from_reader(
        mut reader: Box<dyn Read + Send>,
        name: &str,
        format: Option<TableFormat>,
    ) -> Result<TableInput, Error> {
        let (format, start) = match format {
            Some(format) => (format, Vec::new()),
            None => {
                let failed = |source| Error::Read { path: name.to_owned(), source };
                let start = read_start(&mut reader).map_err(failed)?;
                (recognise(&start, name)?, start)
            }
        };
        Ok(TableInput { name: name.to_owned(), format, bytes: TableBytes::Stream(reader), start })
    }

    /// The number of bytes; `None` for a stream.
    pub(super) fn size(&self) -> Option<u64> {
        match self.bytes {
            TableBytes::File { size, .. } => Some(size),
            TableBytes::Stream(_) => None,
        }
    }

    /// The bytes in order.
    pub(super) fn into_stream(self) -> Box<dyn BufRead + Send> {
        match self.bytes {
            TableBytes::File { file, .. } => Box::new(BufReader::with_capacity(BUFFER, file)),
            TableBytes::Stream(stream) => {
                let all = Cursor::new(self.start).chain(stream);
                Box::new(BufReader::with_capacity(BUFFER, all))
            }
        }
    }

    /// The bytes as a file; a stream is copied to a temporary file without a name.
    #[cfg(feature = "parquet")]
    pub(super) fn into_file(self) -> Result<File, Error> {
        let failed = |source| Error::Read { path: self.name.clone(), source };
        match self.bytes {
            TableBytes::File { file, .. } => Ok(file),
            TableBytes::Stream(stream) => {
                let mut file = tempfile::tempfile().map_err(failed)?;
                let mut all = Cursor::new(self.start).chain(stream);
                // A device that never ends has no mark at its start, or more bytes than are allowed.
                let mut mark = Vec::new();
                all.by_ref().take(PARQUET.len() as u64).read_to_end(&mut mark).map_err(failed)?;
                if mark != PARQUET {
                    let message = String::from("this is not a Parquet file");
                    return Err(Error::Table { path: self.name, message });
                }
                let mut all = Cursor::new(mark).chain(all).take(STREAM_BYTES + 1);
                if io::copy(&mut all, &mut file).map_err(failed)? > STREAM_BYTES {
                    return Err(Error::TooLarge { path: self.name, limit: STREAM_BYTES });
                }
                file.rewind().map_err(failed)?;
                Ok(file)
            }
        }
    }
}

/// Opens a text file, or standard input for `-`, to be read line by line.
pub(crate) fn open_lines(path: &Path, limits: &Limits) -> Result<LineReader, Error> {
    // Any format of text will do, because only the lines matter.
    let input = TableInput::open(path, Some(TableFormat::Csv))?;
    Ok(LineReader::new(input.name.clone(), input.into_stream(), limits.record_bytes))
}

/// Reads until the first bytes imply the format: one line, in the case of text.
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

fn recognise(start: &[u8], name: &str) -> Result<TableFormat, Error> {
    if start.is_empty() {
        let message = String::from("the file is empty");
        return Err(Error::Table { path: name.to_owned(), message });
    }
    let unknown = || Error::UnknownFormat { path: name.to_owned(), known: TableFormat::names() };
    TableFormat::from_content(start).ok_or_else(unknown)
}
