//! Arrays in Fortran order: column after column, read row after row.
//!
//! A block of rows is collected from all columns at a time, so a file of R rows is read in R / block times as many
//! pieces as it has columns. Memory: one block, and at least a row, which the file was found to hold.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a block.
const BLOCK: u64 = 8 << 20;

/// The items of an array in Fortran order, in C order.
pub(super) struct ColumnMajor {
    file: File,
    /// Where the items start.
    start: u64,
    rows: u64,
    columns: u64,
    /// Bytes of an item.
    item: usize,
    /// Rows that were collected.
    done: u64,
    block: Vec<u8>,
    /// How many bytes of the block were handed out.
    used: usize,
}

impl ColumnMajor {
    /// The file must hold all items.
    pub(super) fn new(file: File, start: u64, rows: u64, columns: u64, item: usize) -> ColumnMajor {
        ColumnMajor { file, start, rows, columns, item, done: 0, block: Vec::new(), used: 0 }
    }

    /// Collects the next rows.
    fn collect(&mut self) -> io::Result<()> {
        let (item, columns) = (self.item, self.columns as usize);
        let width = columns * item;
        let count = (BLOCK / width as u64).max(1).min(self.rows - self.done) as usize;
        self.block.resize(count * width, 0);
        let mut column = vec![0; count * item];
        for at in 0..self.columns {
            let place = self.start + (at * self.rows + self.done) * item as u64;
            self.file.seek(SeekFrom::Start(place))?;
            self.file.read_exact(&mut column)?;
            let cells = self.block.chunks_exact_mut(width);
            for (row, value) in cells.zip(column.chunks_exact(item)) {
                row[at as usize * item..][..item].copy_from_slice(value);
            }
        }
        self.done += count as u64;
        self.used = 0;
        Ok(())
    }
}

impl Read for ColumnMajor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == self.block.len() && self.done < self.rows {
            self.collect()?;
        }
        let rest = &self.block[self.used..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn rows_come_out_of_columns() {
        let mut file = tempfile::tempfile().unwrap();
        // Two bytes of something else, then the columns 0 1 2 and 3 4 5.
        file.write_all(&[9, 9, 0, 1, 2, 3, 4, 5]).unwrap();
        let mut all = Vec::new();
        ColumnMajor::new(file, 2, 3, 2, 1).read_to_end(&mut all).unwrap();
        assert_eq!(all, [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn blocks_of_rows_are_joined() {
        let (rows, columns) = (3_000_000_u64, 3_u64);
        let mut file = tempfile::tempfile().unwrap();
        let item = |row: u64, column: u64| (row * columns + column) as u32;
        let items = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
        let bytes: Vec<u8> = items.flat_map(|(r, c)| item(r, c).to_le_bytes()).collect();
        file.write_all(&bytes).unwrap();
        let mut all = Vec::new();
        ColumnMajor::new(file, 0, rows, columns, 4).read_to_end(&mut all).unwrap();
        let found = all.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        assert!(found.eq(0..(rows * columns) as u32));
    }
}
