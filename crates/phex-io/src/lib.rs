//! Files of label-relation graphs and tables of scores.
//!
//! Taxonomies come as spreadsheets, ontologies, outlines and matrices. [`read_graph`] finds the
//! [`Format`] of a file and fills a [`GraphBuilder`](phex::graph::GraphBuilder), in which every
//! declaration knows its file and line, so that what the builder reports points at the text.
//! [`ReadOptions`] names the other files that some formats need and sets limits: files from
//! strangers are refused with an [`Error`] before they fill the memory. [`write_graph`] writes a
//! [`RelationGraph`](phex::graph::RelationGraph) back.
//!
//! ```
//! use phex_io::{Format, ReadOptions, graph_to_string, parse_graph};
//!
//! let csv = b"relation,a,b,strength\n\
//!             hierarchy,animal,dog,u=0.5\n\
//!             hierarchy,animal,cat,\n\
//!             exclusion,dog,cat,\n";
//! let builder = parse_graph(csv, "animals.csv", Format::Csv, &ReadOptions::default())?;
//! let graph = builder.build()?;
//! assert_eq!(graph.hierarchy()[0].place.to_string(), "animals.csv:2");
//!
//! let toml = graph_to_string(&graph, Format::Toml)?;
//! assert!(toml.contains("strength = { u = 0.5 }"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`TableReader`] and [`TableWriter`] stream tables of scores and probabilities as CSV, npy or
//! Parquet, [`EvidenceReader`] what is known of labels; `docs/tables.md` describes them.
//! [`read_dataset`] reads features and targets to train on, and [`write_bundle`] and
//! [`read_bundle`] keep a trained model in a folder; `docs/datasets.md` describes both.
//! Models of other kinds come from UAI files ([`read_uai`]) and from the files of Ising solvers
//! ([`read_ising`]), whose samples come back by [`read_samples`].
//!
//! `docs/formats.md` has an example of each format and says what becomes of what.

mod arff;
mod bundle;
mod dataset;
mod error;
mod format;
mod formats;
mod input;
mod ising;
mod lines;
mod output;
mod read;
mod samples;
mod sink;
mod tables;
mod text;
mod uai;
mod write;

pub use bundle::{
    BUNDLE_VERSION, Bundle, Evaluation, ModelCard, Tensor, TensorData, read_bundle, read_tensors,
    write_bundle, write_tensors,
};
pub use dataset::{
    Dataset, DatasetFormat, DatasetOptions, FeatureColumn, FeatureKind, FeatureSchema, Features,
    LabelForm, Target, TargetOptions, TargetRow, TargetSource, Targets, Unlisted, Unseen,
    graph_of_arff, read_dataset, read_label_names,
};
pub use error::Error;
pub use format::Format;
pub use ising::{IsingFormat, ising_to_string, parse_ising, read_ising, write_ising};
pub use output::Output;
pub use read::{ReadOptions, parse_graph, read_graph, read_graph_from};
pub use samples::{Sample, parse_samples, read_samples};
pub use tables::{
    EvidenceReader, EvidenceRows, Number, Rows, TableFormat, TableLimits, TableReader, TableWriter,
    Values,
};
pub use uai::{
    UaiModel, UaiState, parse_uai, parse_uai_model, read_uai, read_uai_evidence,
    read_uai_marginals, read_uai_model, read_uai_partition, uai_to_string, write_uai,
};
pub use write::{graph_to_string, write_graph, write_text};
