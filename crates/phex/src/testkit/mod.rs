//! Random graphs, random numbers and a brute-force oracle, for tests.
//!
//! [`RandomGraph`] draws graphs of a given shape. [`Oracle`] applies the definitions literally to
//! all 2ⁿ states. It shares no code with what it checks, and is not fast.

mod numbers;
mod oracle;
mod random;

pub use numbers::Random;
pub use oracle::{MAX_LABELS, Oracle};
pub use random::{HierarchyShape, RandomGraph, RandomStrengths};
