//! One file a format.

pub(crate) mod arff;
pub(crate) mod dot;
pub(crate) mod edges;
pub(crate) mod edges_write;
pub(crate) mod hxg;
pub(crate) mod json;
pub(crate) mod label_table;
pub(crate) mod matrix;
pub(crate) mod obo;
pub(crate) mod outline;
mod table;
pub(crate) mod toml;
pub(crate) mod toml_write;
pub(crate) mod turtle;
mod turtle_terms;
pub(crate) mod wordnet;
mod written;

use phex::graph::{RelationGraph, Semantics};

use crate::{Error, Format};

/// Refuses graphs that have more than hard hierarchy edges and hard exclusions.
fn hard_edges_only(graph: &RelationGraph, format: Format) -> Result<(), Error> {
    let fault = if !graph.is_hard() {
        "soft relations"
    } else if !graph.one_of().is_empty() {
        "one-of groups"
    } else if graph.rule().is_some() {
        "an exclusion rule"
    } else if graph.semantics() == Semantics::Dense {
        "dense semantics"
    } else {
        return Ok(());
    };
    Err(Error::NotExpressible { format, what: fault.to_owned() })
}
