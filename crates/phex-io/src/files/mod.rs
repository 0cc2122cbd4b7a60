//! The parts that every reader and writer of this crate uses.
//!
//! - [`input`]: bytes from a file or a stream, refused early when they break a limit.
//! - [`limits`]: all limits, in one struct.
//! - [`text`]: decoded text with its name, line numbers and the wording of messages.
//! - [`lines`] and [`csv`]: streams, read one line or one record at a time.
//! - [`output`]: files that appear only once they are complete.

pub(crate) mod csv;
pub(crate) mod input;
pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod text;
