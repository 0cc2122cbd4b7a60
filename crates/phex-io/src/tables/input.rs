//! An open table that is not read yet: a file, or a stream that can be read once.
//!
//! Packed tables (gzip, Zstandard, and NumPy's archives) are unpacked here, whatever their names, so that readers
//! see the table that they hold.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use super::TableFormat;
use super::npz::{CheckedBytes, NpzFault, NpzMember};
use super::packed::{Packing, UnpackedBytes};
use crate::Error;
use crate::files::input::{SNIFFED, display_name, is_standard};
use crate::files::limits::Limits;
use crate::files::lines::LineReader;

/// How many bytes are read at a time.
const BUFFER: usize = 256 * 1024;

enum TableBytes {
    File {
        file: File,
        size: u64,
    },
    /// A part of a file, with its checksum.
    Part {
        file: File,
        start: u64,
        size: u64,
        checksum: u32,
    },
    Stream(Box<dyn Read + Send>),
}

/// The first bytes of a Parquet file.
#[cfg(feature = "parquet")]
const PARQUET: &[u8] = b"PAR1";
/// Bytes of a stream that is copied to the disk.
const STREAM_BYTES: u64 = 64 << 30;

/// An open table and its format.
pub(super) struct TableInput {
    pub(super) name: String,
    pub(super) format: TableFormat,
    bytes: TableBytes,
    /// The first bytes, which were read to find the format; of text, the first line or its start.
    start: Vec<u8>,
}

impl TableInput {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(
        path: &Path,
        format: Option<TableFormat>,
        limits: &Limits,
    ) -> Result<TableInput, Error> {
        let name = display_name(path);
        if is_standard(path) {
            return TableInput::from_reader(Box::new(io::stdin()), &name, format, limits);
        }
        let failed = |source| Error::Read { path: name.clone(), source };
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let named = || format.or_else(|| TableFormat::from_path(path));
        if !metadata.is_file() {
            return TableInput::from_reader(Box::new(file), &name, named(), limits);
        }
        let start = read_start(&mut file).map_err(failed)?;
        file.rewind().map_err(failed)?;
        match Packing::of(&start) {
            None => {
                let format = named().map_or_else(|| recognise(&start, &name), Ok)?;
                let bytes = TableBytes::File { file, size: metadata.len() };
                Ok(TableInput { name, format, bytes, start })
            }
            Some(Packing::Zip) => TableInput::of_archive(file, name, limits),
            Some(packing) => {
                // `scores.csv.gz` is named after the table in it.
                let inner = || path.file_stem().map(Path::new).and_then(TableFormat::from_path);
                let file = BufReader::with_capacity(BUFFER, file);
                let stream = UnpackedBytes::new(packing, file, limits).map_err(failed)?;
                TableInput::of_stream(Box::new(stream), &name, format.or_else(inner), Vec::new())
            }
        }
    }

    /// Wraps a stream.
    pub(super) fn from_reader(
        mut reader: Box<dyn Read + Send>,
        name: &str,
        format: Option<TableFormat>,
        limits: &Limits,
    ) -> Result<TableInput, Error> {
        let failed = |source| Error::Read { path: name.to_owned(), source };
        let start = read_start(&mut reader).map_err(failed)?;
        match Packing::of(&start) {
            None => TableInput::of_stream(reader, name, format, start),
            Some(Packing::Zip) => {
                let file = spool(&mut Cursor::new(start).chain(reader), name)?;
                TableInput::of_archive(file, name.to_owned(), limits)
            }
            Some(packing) => {
                let all = BufReader::with_capacity(BUFFER, Cursor::new(start).chain(reader));
                let stream = UnpackedBytes::new(packing, all, limits).map_err(failed)?;
                TableInput::of_stream(Box::new(stream), name, format, Vec::new())
            }
        }
    }

    /// A stream that is not packed, of which these bytes were read.
    fn of_stream(
        mut reader: Box<dyn Read + Send>,
        name: &str,
        format: Option<TableFormat>,
        mut start: Vec<u8>,
    ) -> Result<TableInput, Error> {
        if start.is_empty() {
            let failed = |source| Error::Read { path: name.to_owned(), source };
            start = read_start(&mut reader).map_err(failed)?;
        }
        let format = format.map_or_else(|| recognise(&start, name), Ok)?;
        Ok(TableInput { name: name.to_owned(), format, bytes: TableBytes::Stream(reader), start })
    }

    /// The only array of an archive.
    fn of_archive(mut file: File, name: String, limits: &Limits) -> Result<TableInput, Error> {
        let member = NpzMember::find(&mut file).map_err(|fault| match fault {
            NpzFault::Read(source) => Error::Read { path: name.clone(), source },
            NpzFault::Message(message) => Error::Table { path: name.clone(), message },
        })?;
        let NpzMember { deflated, start, size, checksum } = member;
        if !deflated {
            let bytes = TableBytes::Part { file, start, size, checksum };
            return Ok(TableInput { name, format: TableFormat::Npy, bytes, start: Vec::new() });
        }
        let failed = |source| Error::Read { path: name.clone(), source };
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let packed = BufReader::with_capacity(BUFFER, file.take(size));
        let stream = CheckedBytes::new(UnpackedBytes::deflated(packed, limits), checksum);
        TableInput::of_stream(Box::new(stream), &name, Some(TableFormat::Npy), Vec::new())
    }

    /// The first bytes; of text, the first line or its start.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// The file that the bytes stand in, and where they start in it; `None` for a stream.
    pub(super) fn file(&self) -> io::Result<Option<(File, u64)>> {
        Ok(match &self.bytes {
            TableBytes::File { file, .. } => Some((file.try_clone()?, 0)),
            TableBytes::Part { file, start, .. } => Some((file.try_clone()?, *start)),
            TableBytes::Stream(_) => None,
        })
    }

    /// The number of bytes; `None` for a stream.
    pub(super) fn size(&self) -> Option<u64> {
        match self.bytes {
            TableBytes::File { size, .. } | TableBytes::Part { size, .. } => Some(size),
            TableBytes::Stream(_) => None,
        }
    }

    /// The bytes in order.
    pub(super) fn into_stream(self) -> Result<Box<dyn BufRead + Send>, Error> {
        Ok(match self.bytes {
            TableBytes::File { file, .. } => Box::new(BufReader::with_capacity(BUFFER, file)),
            TableBytes::Part { mut file, start, size, checksum } => {
                let failed = |source| Error::Read { path: self.name.clone(), source };
                file.seek(SeekFrom::Start(start)).map_err(failed)?;
                let part = CheckedBytes::new(file.take(size), checksum);
                Box::new(BufReader::with_capacity(BUFFER, part))
            }
            TableBytes::Stream(stream) => {
                let all = Cursor::new(self.start).chain(stream);
                Box::new(BufReader::with_capacity(BUFFER, all))
            }
        })
    }

    /// The bytes as a file; a stream is copied to a temporary file without a name.
    #[cfg(feature = "parquet")]
    pub(super) fn into_file(self) -> Result<File, Error> {
        if let TableBytes::File { file, .. } = self.bytes {
            return Ok(file);
        }
        let name = self.name.clone();
        let mut all = self.into_stream()?;
        // A device that never ends has no mark at its start, or more bytes than are allowed.
        let mut mark = Vec::new();
        let read = all.by_ref().take(PARQUET.len() as u64).read_to_end(&mut mark);
        read.map_err(|source| Error::Read { path: name.clone(), source })?;
        if mark != PARQUET {
            let message = String::from("this is not a Parquet file");
            return Err(Error::Table { path: name, message });
        }
        spool(&mut Cursor::new(mark).chain(all), &name)
    }
}

/// Copies a stream to a temporary file without a name, from whose start on it can be read.
pub(super) fn spool(stream: &mut impl Read, name: &str) -> Result<File, Error> {
    let failed = |source| Error::Read { path: name.to_owned(), source };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let copied = io::copy(&mut stream.take(STREAM_BYTES + 1), &mut file).map_err(failed)?;
    if copied > STREAM_BYTES {
        return Err(Error::TooLarge { path: name.to_owned(), limit: STREAM_BYTES });
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Opens a text file, or standard input for `-`, to be read line by line.
pub(crate) fn open_lines(path: &Path, limits: &Limits) -> Result<LineReader, Error> {
    // Any format of text will do, because only the lines matter.
    let input = TableInput::open(path, Some(TableFormat::Csv), limits)?;
    Ok(LineReader::new(input.name.clone(), input.into_stream()?, limits.record_bytes))
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
