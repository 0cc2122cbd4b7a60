//! Tables of text, with the shortest digits from which the same numbers are read again.

use std::io::{self, BufWriter, Write};

use super::{ScoreRows, ScoreValues};
use crate::files::output::Output;

/// A table of text that is being written.
pub(super) struct CsvWriter {
    output: BufWriter<Output>,
    delimiter: u8,
    labels: usize,
}

impl CsvWriter {
    /// Starts a table with its header.
    pub(super) fn start<'n>(
        output: Output,
        delimiter: u8,
        kept: impl Iterator<Item = &'n str>,
        labels: &'n [String],
    ) -> io::Result<CsvWriter> {
        let mut writer =
            CsvWriter { output: BufWriter::new(output), delimiter, labels: labels.len() };
        let names = kept.chain(labels.iter().map(String::as_str));
        for (index, name) in names.enumerate() {
            if index > 0 {
                writer.output.write_all(&[delimiter])?;
            }
            writer.text(name, index == 0)?;
        }
        writer.output.write_all(b"\n")?;
        Ok(writer)
    }

    pub(super) fn write(&mut self, rows: &ScoreRows) -> io::Result<()> {
        for row in 0..rows.count {
            for column in &rows.kept {
                self.text(&column[row], false)?;
                self.output.write_all(&[self.delimiter])?;
            }
            let range = row * self.labels..(row + 1) * self.labels;
            match &rows.values {
                ScoreValues::F32(values) => self.numbers(&values[range])?,
                ScoreValues::F64(values) => self.numbers(&values[range])?,
            }
            self.output.write_all(b"\n")?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.output.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    }

    /// A cell of text, in quotes if it needs them; `first` says that the file starts with it. Readers may take
    /// semicolons for the separators of a table with one column, so they are quoted too.
    fn text(&mut self, text: &str, first: bool) -> io::Result<()> {
        let special = |byte: u8| byte == self.delimiter || b"\"\r\n;".contains(&byte);
        if !text.bytes().any(special)
            && !(first && (text.is_empty() || text.starts_with('\u{feff}')))
        {
            return self.output.write_all(text.as_bytes());
        }
        write!(self.output, "\"{}\"", text.replace('"', "\"\""))
    }

    fn numbers<T: Copy + Into<f64> + serde::Serialize>(&mut self, row: &[T]) -> io::Result<()> {
        for (index, &value) in row.iter().enumerate() {
            if index > 0 {
                self.output.write_all(&[self.delimiter])?;
            }
            let number: f64 = value.into();
            if number.is_finite() {
                // Of the crates in use, this finds the shortest digits fastest.
                serde_json::to_writer(&mut self.output, &value)?;
            } else if number.is_nan() {
                self.output.write_all(b"nan")?;
            } else {
                self.output.write_all(if number > 0.0 { b"inf" } else { b"-inf" })?;
            }
        }
        Ok(())
    }
}
