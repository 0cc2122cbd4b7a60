//! Files as a user of the crate sees them. One binary: what is generic is compiled once for all of them.

#![allow(clippy::unwrap_used)]

mod bundles;
mod common;
mod dataset_targets;
mod datasets;
mod datasets_hostile;
mod datasets_real;
mod dimod;
mod documentation;
mod graphs_hostile;
mod ising;
mod labels;
mod probabilities;
mod real_files;
mod round_trip;
mod schema;
mod tables;
mod tables_hostile;
mod tables_packed;
mod tables_parquet;
mod taxonomies;
mod uai;
