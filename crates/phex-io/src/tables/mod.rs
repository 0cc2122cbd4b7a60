//! Tables: scores, evidence, features and targets.
//!
//! [`cursor`] opens a table in any format and walks through its records, or reads blocks of columns
//! straight into numbers. All readers use it:
//!
//! - [`scores`] reads and writes tables with one row per example and one column per label, in
//!   pieces, so that memory does not grow with the length of a table. `docs/reference/tables.md` describes
//!   them.
//! - [`label_weights`] reads how much each label counts.
//! - [`dataset`] reads features and targets for training into memory. `docs/reference/datasets.md` describes
//!   them.

mod cursor;
mod dataset;
mod format;
mod index_column;
mod input;
mod label_weights;
mod npz;
mod packed;
mod scores;

pub use dataset::{
    Dataset, DatasetFormat, DatasetOptions, FeatureColumn, FeatureKind, FeatureReader,
    FeatureSchema, Features, LabelForm, Target, TargetOptions, TargetRow, TargetSource, Targets,
    Unlisted, Unseen, read_dataset, read_label_names,
};
pub use format::TableFormat;
pub use label_weights::read_label_weights;
pub use scores::{
    EvidenceReader, EvidenceRows, Precision, ScoreOptions, ScoreReader, ScoreRows, ScoreValues,
    ScoreWriter,
};

pub(crate) use cursor::ArffHeader;
pub(crate) use input::open_lines;

#[cfg(not(feature = "parquet"))]
fn without_parquet(path: String) -> crate::Error {
    let message = String::from("this phex was built without Parquet; use csv or npy");
    crate::Error::Table { path, message }
}
