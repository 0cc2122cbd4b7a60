//! An open Parquet file: its checked footer and its batches of rows.
//!
//! The sizes and offsets in the footer are checked before anything is read. The Arrow schema in the
//! footer is not used, so there are fewer types and less that can be damaged.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::parquet_claims::{FOOTER_BYTES, check_footer};
use super::parquet_pages::CheckedGroups;
use crate::tables::input::TableInput;
use crate::{Error, Limits};

/// The largest number of numbers in a batch of more than one row.
const BATCH_NUMBERS: usize = 4 << 20;
/// The largest number of rows of a batch.
pub(super) const BATCH_ROWS: usize = 8192;
/// Bytes after the footer: its length and a mark.
const TAIL: u64 = 8;
/// A file of more rows than this has at least a byte for so many of them.
const MANY_ROWS: u64 = 1 << 24;
const ROWS_PER_BYTE: u64 = 4096;

/// A file whose footer was read and checked.
pub(super) struct ParquetFile {
    path: String,
    file: File,
    metadata: Arc<ParquetMetaData>,
    /// The columns.
    pub(super) schema: SchemaRef,
    /// How many rows the footer claims.
    pub(super) rows: u64,
}

impl ParquetFile {
    pub(super) fn open(input: TableInput, limits: &Limits) -> Result<ParquetFile, Error> {
        let path = input.name.clone();
        let file = input.into_file()?;
        let size = length(&file).map_err(|source| Error::Read { path: path.clone(), source })?;
        check_footer_of(&file, size, &path)?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let footer = ArrowReaderMetadata::load(&file, options);
        let footer = footer.map_err(|error| parquet_error(&path, error))?;
        let metadata = Arc::clone(footer.metadata());
        let rows = check(&metadata, size, limits)
            .map_err(|message| Error::Table { path: path.clone(), message })?;
        let schema = Arc::clone(footer.schema());
        Ok(ParquetFile { path, file, metadata, schema, rows })
    }

    /// The rows in batches of a few million numbers, given that a row has `width` of them. Only
    /// `columns` are decoded, or all without a choice.
    pub(super) fn batches(
        self,
        columns: Option<Vec<usize>>,
        width: usize,
    ) -> Result<ParquetRecordBatchReader, Error> {
        let damaged = |error| parquet_error(&self.path, error);
        let batch = (BATCH_NUMBERS / width.max(1)).clamp(1, BATCH_ROWS);
        let schema = self.metadata.file_metadata().schema_descr();
        let mask = match columns {
            None => ProjectionMask::all(),
            Some(columns) => ProjectionMask::roots(schema, columns),
        };
        let levels = parquet_to_arrow_field_levels(schema, mask, None).map_err(damaged)?;
        let groups = CheckedGroups {
            file: Arc::new(self.file),
            metadata: Arc::clone(&self.metadata),
            rows: self.rows as usize,
        };
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch, None)
            .map_err(damaged)
    }
}

/// Checks the claims of the footer before the library reads it.
fn check_footer_of(mut file: &File, size: u64, path: &str) -> Result<(), Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let Some(end) = size.checked_sub(TAIL) else { return Err(damaged(path, "it is too short")) };
    let mut tail = [0; TAIL as usize];
    file.seek(SeekFrom::Start(end)).and_then(|_| file.read_exact(&mut tail)).map_err(failed)?;
    let length = tail.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
    if tail[4..] != *b"PAR1" {
        return Err(damaged(path, "it does not end as one"));
    }
    if length > FOOTER_BYTES {
        return Err(damaged(
            path,
            format!("its footer claims {length} bytes, but at most 64 MiB are allowed"),
        ));
    }
    let Some(start) = end.checked_sub(length) else {
        return Err(damaged(path, "its footer is longer than the file"));
    };
    let mut footer = vec![0; length as usize];
    file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut footer)).map_err(failed)?;
    file.rewind().map_err(failed)?;
    check_footer(&footer).map_err(|what| damaged(path, format!("its footer has {what}")))
}

/// Checks the claims of the footer and counts the rows.
fn check(metadata: &ParquetMetaData, size: u64, limits: &Limits) -> Result<u64, String> {
    let mut rows = 0u64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let broken = |what: &str| format!("the file is damaged: row group {index} has {what}");
        let count = u64::try_from(group.num_rows()).ok();
        let count = count.and_then(|count| rows.checked_add(count));
        rows = count.ok_or_else(|| broken("an impossible number of rows"))?;
        let mut unpacked = 0u64;
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let start = u64::try_from(start.min(column.data_page_offset())).ok();
            let end = u64::try_from(column.compressed_size()).ok().zip(start);
            let end = end.and_then(|(length, start)| start.checked_add(length));
            if end.is_none_or(|end| end > size) || column.num_values() < 0 {
                return Err(broken("a column that is not inside the file"));
            }
            let bytes = u64::try_from(column.uncompressed_size()).ok();
            let bytes = bytes.and_then(|bytes| unpacked.checked_add(bytes));
            unpacked = bytes.ok_or_else(|| broken("a column of an impossible size"))?;
        }
        if unpacked > limits.row_group_bytes {
            return Err(format!(
                "row group {index} unpacks to {unpacked} bytes, and {} are allowed; write smaller \
                 row groups or raise the limit",
                limits.row_group_bytes
            ));
        }
    }
    if rows > MANY_ROWS && rows / ROWS_PER_BYTE > size {
        return Err(format!("the file is damaged: it claims {rows} rows in {size} bytes"));
    }
    Ok(rows)
}

fn length(file: &File) -> std::io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// An error of the Parquet library.
fn parquet_error(path: &str, error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(source) => Error::Read { path: path.to_owned(), source: *source },
            Err(error) => damaged(path, error.to_string()),
        },
        error => damaged(path, error.to_string()),
    }
}

pub(super) fn damaged(path: &str, message: impl AsRef<str>) -> Error {
    let message = format!("this is not a Parquet file or it is damaged: {}", message.as_ref());
    Error::Table { path: path.to_owned(), message }
}
