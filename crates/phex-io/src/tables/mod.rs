//! Tables of scores, evidence and probabilities: a row an example, a column a label.
//!
//! [`TableReader`] reads scores in pieces, whatever the [`TableFormat`] and however the columns
//! are ordered, as [`Rows`] in the order of the model's labels; [`EvidenceReader`] reads what is
//! known of labels in the same way. [`TableWriter`] writes rows in the same forms. Nothing holds
//! more than a piece of a table, so memory does not grow with its length, and an output file
//! appears only once it is complete. `docs/tables.md` says what each form may hold.

pub(crate) mod cell;
mod columns;
mod csv;
mod csv_write;
mod format;
mod npy;
pub(crate) mod npy_header;
mod npy_write;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_cells;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_file;
#[cfg(feature = "parquet")]
mod parquet_pages;
#[cfg(feature = "parquet")]
mod parquet_write;
mod reader;
pub(crate) mod records;
mod rows;
pub(crate) mod source;
mod writer;

pub use format::TableFormat;
pub use reader::{EvidenceReader, TableReader};
pub use rows::{EvidenceRows, Number, Rows, Values};
pub use writer::TableWriter;
#[cfg(not(feature = "parquet"))]
pub(crate) use writer::without_parquet;

/// What a table may hold before it is refused.
#[derive(Debug, Clone, Copy)]
pub struct TableLimits {
    /// How many bytes a row of text may have. Default: 16 MiB.
    pub max_line: usize,
    /// How many bytes a row group of a Parquet file may unpack to. Default: 8 GiB. (What is held
    /// in memory is a page of each column, not a group.)
    pub max_row_group: u64,
}

impl Default for TableLimits {
    fn default() -> TableLimits {
        TableLimits { max_line: 16 << 20, max_row_group: 8 << 30 }
    }
}
