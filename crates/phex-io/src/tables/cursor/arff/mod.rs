//! ARFF files, as Weka and Clus write them: a header with typed attributes, then the data.
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
//! Names and values may be in single or double quotes; backslashes escape quotes. `?` is a missing
//! value. Rows in braces are sparse: an attribute that they leave out is 0, or the first value if it
//! is nominal. Files are read line by line.

mod header;
mod hierarchy;
mod rows;
mod words;

pub(crate) use header::ArffHeader;
pub(crate) use hierarchy::Hierarchy;
pub(super) use rows::ArffCursor;
