//! What was typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use phex::graph::{ExclusionRule, Strength};
use phex::infer::Method;

/// Classifiers that respect what is known about their labels.
#[derive(Debug, Parser)]
#[command(name = "phex", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check, show and transform label-relation graphs
    #[command(subcommand)]
    Graph(Box<GraphCommand>),
    /// Turn scores into consistent probabilities
    Infer(Box<InferCommand>),
    /// The most probable consistent label sets of each row
    Map(Box<MapCommand>),
    /// Turn the samples of an annealer back into label sets
    Samples(Box<SamplesCommand>),
    /// Run the main job on built-in data
    Demo(DemoCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Explain everything that is wrong with a graph
    Check(CheckCommand),
    /// Print an outline with counts; draw as SVG or DOT
    Show(ShowCommand),
    /// Fewest relations with the same legal states
    Sparsify(TransformCommand),
    /// All relations that follow, with the same legal states
    Densify(TransformCommand),
    /// Read one form and write another
    Convert(ConvertCommand),
    /// Count or list the legal states
    States(StatesCommand),
    /// Say which engine takes the graph, why, and what it costs
    Plan(PlanCommand),
}

/// Which graph, and what its file leaves out.
#[derive(Debug, Args)]
pub(crate) struct GraphInput {
    /// The graph file; `-` reads standard input
    #[arg(value_name = "GRAPH")]
    pub(crate) path: PathBuf,
    /// Form of the file, where its name does not say it
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<String>,
    /// Table of all labels with their titles; other names are mistakes
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
    /// Strength of a matrix: `u=1` for continuous ones and `hard` for binary ones unless given
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) scale: Option<Strength>,
    /// Add a one-of group `class` over the classes of a matrix
    #[arg(long)]
    pub(crate) one_of_classes: bool,
    /// Exclusion rule, where the file gives none
    #[arg(long, value_name = "RULE")]
    pub(crate) exclude: Option<Rule>,
    /// Strength of relations that give none: `hard`, `q=0.1`, `u=0.5` or `w=2`
    #[arg(long, value_name = "STRENGTH")]
    pub(crate) strength: Option<Strength>,
    /// Add a one-of group of this name over the leaves of the hierarchy
    #[arg(long, value_name = "NAME")]
    pub(crate) one_of_leaves: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Rule {
    /// Labels exclude each other unless they have a common descendant
    NoCommonDescendant,
    /// Labels exclude each other unless one subsumes the other
    NotSubsumed,
    /// Labels with a common parent exclude each other unless they have a common descendant
    Siblings,
}

impl From<Rule> for ExclusionRule {
    fn from(rule: Rule) -> ExclusionRule {
        match rule {
            Rule::NoCommonDescendant => ExclusionRule::NoCommonDescendant,
            Rule::NotSubsumed => ExclusionRule::NotSubsumed,
            Rule::Siblings => ExclusionRule::Siblings,
        }
    }
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
    /// Exit with 1 on warnings too
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
pub(crate) struct TransformCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// Write the graph here; without it the graph goes to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Form to write, where the name of the file does not say it
    #[arg(long, value_name = "FORM")]
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
    /// Form to write, where the name of the file does not say it; coo, bqm, qubo and uai too
    #[arg(long, value_name = "FORM")]
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
    /// Table of scores (logits), a column a label, for an Ising model; zeros without it
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Row of that table, counted from 0
    #[arg(long, value_name = "N", requires = "scores")]
    pub(crate) row: Option<u64>,
    /// Form of the table of scores, where its name does not say it
    #[arg(long, value_name = "FORM")]
    pub(crate) table_format: Option<String>,
    /// Column of the table that is not a label; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// Finite cost that stands for a hard constraint in an Ising model
    #[arg(long, value_name = "COST", value_parser = finite)]
    pub(crate) hard: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct SamplesCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// The samples: CSV, or a sample set of dimod as JSON; `-` for standard input
    #[arg(value_name = "SAMPLES")]
    pub(crate) samples: PathBuf,
    #[command(flatten)]
    pub(crate) scores: ScoreArguments,
    /// Where the label sets go, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatesCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    /// List the states, one a line
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
pub(crate) struct DemoCommand {
    /// Write the pictures into this folder
    #[arg(long, value_name = "FOLDER", default_value = "phex-demo")]
    pub(crate) out: PathBuf,
}

/// How to compile a graph for inference.
#[derive(Debug, Args)]
pub(crate) struct EngineArguments {
    /// Engine: auto, brute, states, star, family, count, junction or subsets
    #[arg(long, value_name = "NAME", default_value = "auto", env = "PHEX_METHOD")]
    pub(crate) method: Method,
    /// Most operations a row that an engine may take
    #[arg(long, value_name = "OPERATIONS", env = "PHEX_BUDGET", value_parser = positive)]
    pub(crate) budget: Option<f64>,
    /// Most memory that an engine may take, in MiB
    #[arg(long, value_name = "MIB", env = "PHEX_MEMORY", value_parser = positive)]
    pub(crate) memory: Option<f64>,
    /// For family and count: count at most this many labels of a family; errors are certified
    #[arg(long, value_name = "COUNT")]
    pub(crate) cap: Option<usize>,
    /// Seed of random restarts
    #[arg(long, value_name = "SEED", default_value_t = 0, env = "PHEX_SEED")]
    pub(crate) seed: u64,
}

/// A graph, an engine and rows of scores.
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Table of scores (logits), a column a label: CSV, npy or Parquet; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: Option<PathBuf>,
    /// Table of what is known: 1 on, 0 off, empty unknown
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence: Option<PathBuf>,
    /// Form of the table of scores, where its name does not say it
    #[arg(long, value_name = "FORM")]
    pub(crate) table_format: Option<String>,
    /// Column that is not a label and is passed through; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub(crate) keep: Vec<String>,
    /// Number of threads
    #[arg(long, value_name = "N", env = "PHEX_THREADS")]
    pub(crate) threads: Option<usize>,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InferCommand {
    #[command(flatten)]
    pub(crate) rows: RowArguments,
    /// Where the probabilities go; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct MapCommand {
    #[command(flatten)]
    pub(crate) rows: RowArguments,
    /// Where the label sets go, as CSV or `.jsonl`; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
    /// How many label sets a row
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) top: usize,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 => Ok(number),
        _ => Err(String::from("a number above 0 is needed")),
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let number = positive(text)?;
    if number < f64::INFINITY { Ok(number) } else { Err(String::from("a finite number is needed")) }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(String::from("a number of 1 or more is needed")),
        Ok(number) => Ok(number),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    pub(crate) input: GraphInput,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
