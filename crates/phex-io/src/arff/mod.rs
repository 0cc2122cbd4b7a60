//! ARFF files, as Weka and Clus write them: a header of typed attributes, then rows.
//!
//! ```text
//! % a comment
//! @relation animals
//! @attribute weight numeric
//! @attribute fur {no,yes}
//! @attribute class hierarchical animal,animal/dog,animal/cat
//! @data
//! 7.5,yes,animal/dog
//! {0 4.2, 1 yes, 2 animal/cat}
//! ```
//!
//! Names and values may be in single or double quotes, with backslashes before quotes. `?` is a
//! missing value. Rows in braces are sparse: attributes that are not named are 0, or the first
//! value of a nominal one. Read line by line.

mod header;
mod hierarchy;
mod rows;
mod words;

pub(crate) use header::{Header, Kind};
pub(crate) use hierarchy::Hierarchy;
pub(crate) use rows::{ArffRows, Value};
