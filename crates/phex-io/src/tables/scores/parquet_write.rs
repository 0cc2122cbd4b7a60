//! Parquet files, written one row group at a time.

use std::io;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::{Precision, ScoreRows, ScoreValues};
use crate::files::output::Output;

/// The largest number of rows of a row group.
const GROUP_ROWS: usize = 64 * 1024;
/// About the largest number of bytes of a row group, which is held in memory while it grows.
const GROUP_BYTES: usize = 128 << 20;

/// A Parquet file that is being written.
pub(super) struct ParquetWriter {
    writer: ArrowWriter<Output>,
    schema: SchemaRef,
    labels: usize,
}

impl ParquetWriter {
    pub(super) fn start(
        output: Output,
        labels: &[String],
        kept: &[String],
        precision: Precision,
    ) -> io::Result<ParquetWriter> {
        let kind = match precision {
            Precision::F32 => DataType::Float32,
            Precision::F64 => DataType::Float64,
        };
        let texts = kept.iter().map(|name| Field::new(name, DataType::Utf8, false));
        let numbers = labels.iter().map(|name| Field::new(name, kind.clone(), false));
        let schema = Arc::new(Schema::new(texts.chain(numbers).collect::<Vec<_>>()));
        let level = ZstdLevel::try_new(1).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            // Probabilities rarely repeat.
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .build();
        let writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties));
        Ok(ParquetWriter { writer: writer.map_err(failed)?, schema, labels: labels.len() })
    }

    pub(super) fn write(&mut self, rows: &ScoreRows) -> io::Result<()> {
        if rows.count == 0 {
            return Ok(());
        }
        let width = self.labels;
        let long = |column: &Vec<String>| {
            column.iter().map(String::len).sum::<usize>() > i32::MAX as usize
        };
        if rows.kept.iter().any(long) {
            return Err(io::Error::other("a column of text has more than 2 GiB in one batch"));
        }
        let texts = rows
            .kept
            .iter()
            .map(|column| -> ArrayRef { Arc::new(StringArray::from_iter_values(column)) });
        let numbers = (0..width).map(|label| -> ArrayRef {
            match &rows.values {
                ScoreValues::F32(values) => {
                    let column = values[label..].iter().step_by(width).copied();
                    Arc::new(Float32Array::from_iter_values(column))
                }
                ScoreValues::F64(values) => {
                    let column = values[label..].iter().step_by(width).copied();
                    Arc::new(Float64Array::from_iter_values(column))
                }
            }
        });
        let columns = texts.chain(numbers).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.writer.write(&batch.map_err(io::Error::other)?).map_err(failed)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.into_inner().map_err(failed)?.finish()
    }
}

/// The error of the operating system, if it was one.
fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
