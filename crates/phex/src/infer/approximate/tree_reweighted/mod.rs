//! Tree-reweighted message passing: bounds on log Z from above, convex in the scores.

#[allow(clippy::needless_range_loop)] // Lanes of several arrays go together.
pub(crate) mod forests;
pub(crate) mod trw;
