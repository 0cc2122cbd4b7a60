//! Engines for models that no exact engine can handle, and bounds on their log-partitions. Most of
//! them work on one factor graph, which `network` builds.

pub(crate) mod bounds;
pub(crate) mod forest_bp;
pub(crate) mod gibbs;
#[allow(clippy::needless_range_loop)] // Loops over lanes index several arrays at once.
pub(crate) mod lbp;
pub(crate) mod mean_field;
pub(crate) mod network;
pub(crate) mod tree_reweighted;
