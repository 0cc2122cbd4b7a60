//! Model bundles: a folder that holds a complete trained model.
//!
//! ```text
//! model/
//!   config.json         format, version and the configuration of the model
//!   graph.json          the labels and their relations
//!   model.safetensors   the parameters
//!   README.md           the model card, for people
//! ```
//!
//! [`write_bundle`] writes all of it or nothing, and [`read_bundle`] checks all of it. The content of
//! the configuration, apart from its format and version, is up to the crate that trains models.
//! [`write_tensors`] and [`read_tensors`] handle the parameters alone, for checkpoints.

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
pub use write::{BundleExtra, bundle_files, prepare_bundle, write_bundle, write_bundle_with};

/// The bundle version that this crate writes, and the newest that it can read.
pub const BUNDLE_VERSION: u64 = 1;

/// The value of `format` in the configuration.
const FORMAT: &str = "phex-bundle";
/// The keys of the configuration that the bundle itself needs.
const RESERVED: [&str; 3] = ["format", "version", "phex"];

const CONFIG: &str = "config.json";
const GRAPH: &str = "graph.json";
const MODEL: &str = "model.safetensors";
const CARD: &str = "README.md";
/// All parts, in the order in which they are written.
const PARTS: [&str; 4] = [GRAPH, MODEL, CARD, CONFIG];

/// The content of a bundle: a trained model.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The configuration of the model, without the keys `format`, `version` and `phex`.
    pub config: Map<String, Value>,
    /// The labels and their relations.
    pub graph: RelationGraph,
    /// The parameters, by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// The text of `README.md`; [`ModelCard`] creates it.
    pub card: String,
}
