//! NumPy arrays, whose header gets the number of rows at the end.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::{Precision, ScoreRows, ScoreValues};
use crate::files::output::Output;

/// The size of the header: enough for the longest numbers, and a multiple of 64.
const HEADER: usize = 128;

/// An array that is being written.
pub(super) struct NpyWriter {
    output: BufWriter<NpyDestination>,
    columns: usize,
    precision: Precision,
    rows: u64,
}

/// A file whose header can be written again; the array of a stream is collected in a temporary
/// file first.
enum NpyDestination {
    File(Output),
    Spool { file: File, stream: Output },
}

impl NpyWriter {
    pub(super) fn start(
        mut output: Output,
        columns: usize,
        precision: Precision,
    ) -> io::Result<NpyWriter> {
        let destination = match output.seekable() {
            Some(_) => NpyDestination::File(output),
            None => NpyDestination::Spool { file: tempfile::tempfile()?, stream: output },
        };
        let output = BufWriter::with_capacity(64 * 1024, destination);
        let mut writer = NpyWriter { output, columns, precision, rows: 0 };
        let header = writer.header();
        writer.output.write_all(&header)?;
        Ok(writer)
    }

    fn header(&self) -> Vec<u8> {
        let descr = match self.precision {
            Precision::F32 => "<f4",
            Precision::F64 => "<f8",
        };
        let (rows, columns) = (self.rows, self.columns);
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend_from_slice(&(HEADER as u16 - 10).to_le_bytes());
        let text = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
        );
        header.extend_from_slice(text.as_bytes());
        header.resize(HEADER - 1, b' ');
        header.push(b'\n');
        header
    }

    pub(super) fn write(&mut self, rows: &ScoreRows) -> io::Result<()> {
        match &rows.values {
            ScoreValues::F32(values) => {
                values.iter().try_for_each(|value| self.output.write_all(&value.to_le_bytes()))?;
            }
            ScoreValues::F64(values) => {
                values.iter().try_for_each(|value| self.output.write_all(&value.to_le_bytes()))?;
            }
        }
        self.rows += rows.count as u64;
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let header = self.header();
        self.output.flush()?;
        let destination = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        match destination {
            NpyDestination::File(mut output) => {
                if let Some(file) = output.seekable() {
                    file.rewind()?;
                    file.write_all(&header)?;
                }
                output.finish()
            }
            NpyDestination::Spool { mut file, mut stream } => {
                stream.write_all(&header)?;
                file.seek(SeekFrom::Start(HEADER as u64))?;
                io::copy(&mut file, &mut stream)?;
                stream.finish()
            }
        }
    }
}

impl Write for NpyDestination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            NpyDestination::File(output) => output.write(bytes),
            NpyDestination::Spool { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            NpyDestination::File(output) => output.flush(),
            NpyDestination::Spool { file, .. } => file.flush(),
        }
    }
}
