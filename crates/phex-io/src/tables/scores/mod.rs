//! Tables of scores, evidence and probabilities: one row per example, one column per label.
//!
//! [`ScoreReader`] reads scores in pieces, whatever the format and the order of the columns, as
//! [`ScoreRows`] in the order of the labels of the model. [`EvidenceReader`] reads evidence in the
//! same way. [`ScoreWriter`] writes rows in the same formats. None of them holds more than a piece of
//! a table, and an output file appears only once it is complete.

mod columns;
mod csv_write;
mod npy_write;
mod options;
#[cfg(feature = "parquet")]
mod parquet_write;
mod reader;
mod rows;
mod writer;

pub use options::ScoreOptions;
pub use reader::{EvidenceReader, ScoreReader};
pub use rows::{EvidenceRows, Precision, ScoreRows, ScoreValues};
pub use writer::ScoreWriter;
