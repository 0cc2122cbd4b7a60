//! Tree-reweighted message passing, which bounds log Z from above. The bounds are convex in the
//! scores. [`trw`] and [`forests`] are two derivations of it that share no step; the header of each
//! says why.

#[allow(clippy::needless_range_loop)] // Loops over lanes index several arrays at once.
pub(crate) mod forests;
pub(crate) mod trw;
