//! Model bundles: a folder with all that a trained model is.
//!
//! ```text
//! model/
//!   config.json         format, version, and what the model says of itself
//!   graph.json          the labels and their relations
//!   model.safetensors   the numbers
//!   README.md           the model card, for people
//! ```
//!
//! [`write_bundle`] writes all of it or nothing, [`read_bundle`] checks all of it. What the
//! configuration says beside its format and version is the business of those who train.
//! [`write_tensors`] and [`read_tensors`] do the same for numbers alone, as checkpoints need.

mod card;
mod folder;
mod read;
mod tensors;
mod write;

use std::collections::BTreeMap;

use phex::graph::RelationGraph;
use serde_json::{Map, Value};

pub use card::{Evaluation, ModelCard};
pub use read::read_bundle;
pub use tensors::{Tensor, TensorData, read_tensors, write_tensors};
pub use write::write_bundle;

/// The version of bundles that this crate writes, and the newest that it reads.
pub const BUNDLE_VERSION: u64 = 1;

/// What `format` says in the configuration.
const FORMAT: &str = "phex-bundle";
/// The keys of the configuration that are not its own content.
const RESERVED: [&str; 3] = ["format", "version", "phex"];

const CONFIG: &str = "config.json";
const GRAPH: &str = "graph.json";
const MODEL: &str = "model.safetensors";
const CARD: &str = "README.md";
/// All parts, in the order in which they are written.
const PARTS: [&str; 4] = [GRAPH, MODEL, CARD, CONFIG];

/// A trained model: what a bundle holds.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// What the model says of itself, without the keys `format`, `version` and `phex`.
    pub config: Map<String, Value>,
    /// The labels and their relations.
    pub graph: RelationGraph,
    /// The numbers, by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// The text of `README.md`; [`ModelCard`] makes one.
    pub card: String,
}
