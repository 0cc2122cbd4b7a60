//! The arguments of `phex graph`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use phex::graph::{ExclusionRule, Strength};
use phex_io::PathNames;

use super::EngineArguments;
use super::names::explained;
use super::numbers::finite;

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Explain everything that is wrong with a graph
    Check(CheckCommand),
    /// Print an outline with counts; draw as SVG or DOT
    Show(ShowCommand),
    /// List the labels, one per line, in the order of the graph
    Labels(LabelsCommand),
    /// Fewest relations with the same legal states
    Sparsify(TransformCommand),
    /// All relations that follow, with the same legal states
    Densify(TransformCommand),
    /// Read one format and write another
    Convert(ConvertCommand),
    /// Count or list the legal states
    States(StatesCommand),
    /// Print which engine is chosen for the graph, why, and what it costs
    Plan(PlanCommand),
}

/// A graph, and what its file leaves out.
#[derive(Debug, Args)]
pub(crate) struct GraphInput {
    #[command(flatten)]
    pub(crate) file: GraphFile,
    /// Strength of relations without one: `hard`, `q=0.1`, `u=0.5` or `w=2`
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) strength: Option<Strength>,
}

impl std::ops::Deref for GraphInput {
    type Target = GraphFile;

    fn deref(&self) -> &GraphFile {
        &self.file
    }
}

/// A graph, and what its file leaves out except strengths.
#[derive(Debug, Args)]
pub(crate) struct GraphFile {
    /// The graph file; `-` reads standard input
    #[arg(value_name = "GRAPH")]
    pub(crate) path: PathBuf,
    /// Format of the file, if its name does not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Table of all labels with their titles; any other name is an error
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// List of synset ids, for a WordNet `data.noun`
    #[arg(long, value_name = "FILE")]
    pub(crate) synsets: Option<PathBuf>,
    /// Names of the classes, for a bare class × attribute matrix
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
    /// Names of the attributes, for a bare class × attribute matrix
    #[arg(long, value_name = "FILE")]
    pub(crate) columns: Option<PathBuf>,
    /// Strength of a matrix [default: `u=1` for continuous matrices, `hard` for binary ones]
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) scale: Option<Strength>,
    /// Add a one-of group `class` over the classes of a matrix
    #[arg(long)]
    pub(crate) one_of_classes: bool,
    /// Kinds of relations to read as hierarchy, in OBO, OWL and graphs: `is_a,part_of` [default: `is_a`]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) relations: Vec<String>,
    /// Language of titles where a file has several, such as `de` [default: English]
    #[arg(long, value_name = "TAG")]
    pub(crate) language: Option<String>,
    /// Names of labels that stand in a tree: `short` (the whole path where names repeat), `whole` or
    /// `merged` (one label with several parents) [default: `merged` for outlines, else `short`]
    #[arg(long, value_name = "WAY")]
    pub(crate) path_names: Option<PathNames>,
    /// Exclusion rule, if the file has none
    #[arg(long, value_name = "RULE", value_parser = explained::<ExclusionRule>(&[
        "Labels exclude each other unless they have a common descendant",
        "Labels exclude each other unless one subsumes the other",
        "Labels with a common parent exclude each other unless they have a common descendant",
    ]))]
    pub(crate) exclude: Option<ExclusionRule>,
    /// Each thing is exactly one kind: labels without a common descendant exclude each other, and
    /// exactly one leaf is on
    #[arg(long, conflicts_with_all = ["one_of_leaves"])]
    pub(crate) single_label: bool,
    /// Add a one-of group of this name over the leaves of the hierarchy
    #[arg(long, value_name = "NAME")]
    pub(crate) one_of_leaves: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Show every finding, not a few of each kind
    #[arg(long)]
    pub(crate) all: bool,
    /// Exit with 1 on warnings as well
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Write a picture; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a Graphviz file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Show this many levels of the outline
    #[arg(long, value_name = "LEVELS")]
    pub(crate) depth: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabelsCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransformCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Write the graph here; without it the graph goes to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Format to write, if the file name does not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Print the counts as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// The file to write; `-` for standard output
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// Format to write, if the file name does not show it; coo, bqm, qubo and uai are also available
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) scores: ScoreArguments,
    /// Print what was written as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The scores that an Ising model holds, and its hard constraints.
#[derive(Debug, Args)]
pub(crate) struct ScoreArguments {
    /// Table of scores (logits) for an Ising model, one column per label [default: zeros]
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Row of that table, counted from 0
    #[arg(long, value_name = "N", requires = "scores")]
    pub(crate) row: Option<u64>,
    /// Format of the table of scores, if its name does not show it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) table_format: Option<String>,
    /// Column of the table that is not a label; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// Finite cost that stands for a hard constraint in an Ising model
    #[arg(long, value_name = "COST", value_parser = finite)]
    pub(crate) hard: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct StatesCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// List the states, one per line
    #[arg(long)]
    pub(crate) list: bool,
    /// List at most this many
    #[arg(long, value_name = "N", requires = "list")]
    pub(crate) limit: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    // Last, because what follows would come under its headings.
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}
