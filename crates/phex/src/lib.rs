//! Label-relation graphs for classifiers: HEX (Deng et al. 2014) and pHEX (Ding et al. 2015).
//!
//! Data flows in one direction:
//!
//! - A [`graph::GraphBuilder`] collects labels and relations by name.
//!   [`graph::GraphBuilder::check`] explains everything that is wrong with them.
//!   [`graph::GraphBuilder::build`] freezes them into a [`graph::RelationGraph`], which can be
//!   sparsified, densified, compared, counted and enumerated.
//! - A [`model::Model`] turns the graph into a distribution over label sets: every relation gets a
//!   cost, and a rule becomes its minimal exclusive sets.
//! - An [`infer::Engine`] is compiled once from a model and turns rows of scores into an
//!   [`infer::Posterior`].
//! - [`decide`] picks labels from marginals, [`metrics`] compares them with the truth, [`learn`]
//!   computes losses and gradients, and [`anneal`] searches for the best label sets of models that
//!   no exact engine can handle.
//!
//! The crate reads and writes no files.
//!
//! ```
//! use phex::graph::GraphBuilder;
//!
//! let mut builder = GraphBuilder::new();
//! builder.hierarchy("pet", "dog", None);
//! builder.hierarchy("dog", "husky", None);
//! builder.hierarchy("wild animal", "husky", None);
//! builder.exclusion("pet", "wild animal", None);
//! let report = builder.check();
//! assert_eq!(
//!     report.findings()[0].message,
//!     "husky can never be on: husky is a dog, dog is a pet, pet excludes wild animal, \
//!      husky is a wild animal"
//! );
//! ```

pub mod anneal;
pub mod decide;
mod error;
pub mod graph;
pub mod infer;
pub mod learn;
mod lists;
pub mod metrics;
pub mod model;
mod named;
pub mod numeric;
pub mod reconcile;
#[cfg(feature = "testkit")]
pub mod testkit;

pub use error::Error;
pub use named::Named;
