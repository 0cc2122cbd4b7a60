//! Files of label-relation graphs, of scores and training data, of models and of trained bundles.
//!
//! Taxonomies come as spreadsheets, ontologies, outlines and matrices. [`read_graph`] finds the
//! [`Format`] of a file and fills a [`GraphBuilder`](phex::graph::GraphBuilder) that knows the file
//! and line of each declaration, so that its reports point at the text. [`ReadOptions`] names the
//! other files that some formats need. [`write_graph`] writes a
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
//! - [`ScoreReader`], [`EvidenceReader`] and [`ScoreWriter`] stream tables of scores, evidence and
//!   probabilities as CSV, npy or Parquet; `docs/reference/tables.md` describes them.
//! - [`read_dataset`] reads features and targets for training, and [`write_bundle`] and
//!   [`read_bundle`] store a trained model in a folder; `docs/reference/datasets.md` describes both.
//! - [`read_uai`] and [`read_ising`] read models of other programs, and [`read_samples`] the samples
//!   of their solvers; `docs/reference/formats.md` describes them and the graph formats.
//!
//! Files from untrusted sources are safe to read: [`Limits`] keep them from filling the memory, and a
//! damaged file gives an [`Error`], never a panic.

mod bundle;
mod error;
mod files;
mod graphs;
mod models;
mod tables;

pub use bundle::{
    BUNDLE_VERSION, Bundle, BundleExtra, Evaluation, ModelCard, Tensor, TensorData, bundle_files,
    prepare_bundle, read_bundle, read_tensors, write_bundle, write_bundle_with, write_tensors,
};
pub use error::{CellLocation, Error, RecordNumber};
pub use files::input::read_text;
pub use files::limits::Limits;
pub use files::output::{Output, is_unfinished, write_text};
pub use graphs::{
    ClassMatrix, Format, PathNames, ReadOptions, cell_strengths, graph_of_arff, graph_to_string,
    parse_graph, read_graph, read_graph_from, write_graph,
};
pub use models::ising::{IsingFormat, ising_to_string, parse_ising, read_ising, write_ising};
pub use models::samples::{SolverSample, parse_samples, read_samples};
pub use models::uai::{
    UaiModel, UaiState, parse_uai, parse_uai_model, read_uai, read_uai_evidence,
    read_uai_marginals, read_uai_model, read_uai_partition, uai_to_string, write_uai,
};
pub use tables::{
    Dataset, DatasetFormat, DatasetOptions, EvidenceReader, EvidenceRows, FeatureColumn,
    FeatureKind, FeatureReader, FeatureSchema, Features, LabelForm, Precision, ScoreOptions,
    ScoreReader, ScoreRows, ScoreValues, ScoreWriter, TableFormat, Target, TargetOptions,
    TargetRow, TargetSource, Targets, Unlisted, Unseen, read_dataset, read_label_names,
    read_label_weights,
};
