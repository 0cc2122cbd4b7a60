//! Files of label-relation graphs, one module per format.
//!
//! [`read`] finds the [`Format`] of a file and calls its module, which declares labels and
//! relations in a [`sink::GraphSink`]. [`write`] turns a finished graph into text. CONTRIBUTING says
//! what a new format needs.

mod arff;
mod categories;
mod document_items;
mod dot;
mod edges;
mod edges_write;
mod format;
mod graphml;
mod hxg;
mod icd;
mod isolated;
mod json;
mod json_form;
mod label_table;
mod links;
mod matrix;
mod node_link;
mod obo;
mod outline;
mod path_tree;
mod paths;
mod rdf;
mod read;
mod recognise;
mod sink;
mod table;
mod toml;
mod toml_write;
mod tree;
mod wordnet;
mod write;
mod xml;

pub use arff::graph_of_arff;
pub use format::Format;
pub use matrix::{ClassMatrix, cell_strengths};
pub use path_tree::PathNames;
pub use read::{ReadOptions, parse_graph, read_graph, read_graph_from};
pub use write::{graph_to_string, write_graph};

use phex::graph::{RelationGraph, Semantics};

use crate::Error;

/// Refuses graphs that hold more than hard hierarchy edges and hard exclusions.
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
