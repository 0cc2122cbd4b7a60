//! Random graphs, random numbers, a brute-force oracle and real data, for tests.
//!
//! [`RandomGraph`] draws graphs of a given shape. [`Oracle`] applies the definitions literally to
//! all 2ⁿ states. It shares no code with what it checks, and is not fast. [`TruthTable`] answers rows
//! whose large scores nearly cancel without rounding.

mod data;
mod numbers;
mod oracle;
mod random;
mod truth;

pub use data::{data, edges_of, imagenet_edges, skip};
pub use numbers::Random;
pub use oracle::{MAX_LABELS, Oracle};
pub use random::{HierarchyShape, RandomGraph, RandomStrengths};
pub use truth::{AimedRow, RowKind, Truth, TruthTable, aimed_graph, aimed_row};
