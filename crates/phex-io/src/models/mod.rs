//! Models that are not label graphs, and samples of them.
//!
//! - [`uai`]: factor graphs of the UAI competitions, and their reference answers.
//! - [`ising`]: Ising models and QUBOs of annealers and their solvers.
//! - [`samples`]: states that a solver found.
//! - [`notes`]: names and offsets, in comments of formats that have no other place for them.

pub(crate) mod ising;
mod notes;
pub(crate) mod samples;
pub(crate) mod uai;
