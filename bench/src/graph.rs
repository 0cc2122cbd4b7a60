//! How checks, `sparsify` and conversion grow with the number of labels.
//!
//! Each measurement runs in a process of its own, so that its peak memory is its own. Times include
//! reading the file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use phex_io::{Format, ReadOptions};
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, peak_mib};

#[derive(Debug, Args)]
pub(crate) struct GraphCommand {
    /// Where the results go
    #[arg(long, default_value = "bench/results/graph.json")]
    out: PathBuf,
    /// Numbers of labels
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    labels: Vec<usize>,
    /// Measure one operation on one file and print it (used by the benchmark itself)
    #[arg(long, hide = true, num_args = 2)]
    one: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    /// Ten children each.
    TenFold,
    /// The parent is any earlier label: deep and uneven.
    Random,
    /// Families of about √n.
    Wide,
}

const SHAPES: [Shape; 3] = [Shape::TenFold, Shape::Random, Shape::Wide];
const OPERATIONS: [&str; 3] = ["check", "sparsify", "convert"];

#[derive(Debug, Serialize, Deserialize)]
struct Measurement {
    seconds: f64,
    peak_mib: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    shape: Shape,
    labels: usize,
    operation: &'static str,
    #[serde(flatten)]
    measured: Measurement,
}

#[derive(Serialize)]
struct Results {
    command: &'static str,
    machine: Machine,
    rows: Vec<Row>,
}

pub(crate) fn run(command: &GraphCommand) -> anyhow::Result<()> {
    if let [operation, path] = command.one.as_slice() {
        println!("{}", serde_json::to_string(&measure(operation, Path::new(path))?)?);
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("phex-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    println!("| shape | labels | operation | seconds | peak MiB |\n|---|---:|---|---:|---:|");
    for shape in SHAPES {
        for &labels in &command.labels {
            let path = folder.join("hierarchy.csv");
            std::fs::write(&path, hierarchy(shape, labels))?;
            for operation in OPERATIONS {
                let measured = in_a_process(operation, &path)?;
                println!(
                    "| {} | {labels} | {operation} | {:.3} | {:.0} |",
                    serde_json::to_value(shape)?.as_str().unwrap_or_default(),
                    measured.seconds,
                    measured.peak_mib
                );
                rows.push(Row { shape, labels, operation, measured });
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    let results = Results { command: "make bench ARGS=graph", machine: Machine::here(), rows };
    std::fs::write(&command.out, serde_json::to_string_pretty(&results)? + "\n")
        .with_context(|| command.out.display().to_string())
}

/// A hierarchy as an edge list, with the rule that siblings exclude each other.
fn hierarchy(shape: Shape, labels: usize) -> String {
    let mut text = String::from("relation,a,b\nexclude,siblings,\n");
    let mut random = 88_172_645_463_325_252u64;
    let root = (labels as f64).sqrt() as usize;
    for label in 1..labels {
        // xorshift: a benchmark needs no better.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let parent = match shape {
            Shape::TenFold => (label - 1) / 10,
            Shape::Random => (random % label as u64) as usize,
            Shape::Wide => (label - 1) / root.max(1),
        };
        let _ = writeln!(text, "hierarchy,label {parent},label {label}");
    }
    text
}

fn in_a_process(operation: &str, path: &Path) -> anyhow::Result<Measurement> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args(["graph", "--one", operation]).arg(path).output()?;
    if !output.status.success() {
        bail!("{operation}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measure(operation: &str, path: &Path) -> anyhow::Result<Measurement> {
    let start = Instant::now();
    let builder = phex_io::read_graph(path, &ReadOptions::default())?;
    match operation {
        "check" => drop(builder.check()),
        "sparsify" => drop(builder.build()?.sparsify()?),
        "convert" => {
            phex_io::write_graph(
                &builder.build()?,
                &path.with_extension("json"),
                Some(Format::Json),
            )?;
        }
        other => bail!("`{other}` is not an operation"),
    }
    Ok(Measurement { seconds: start.elapsed().as_secs_f64(), peak_mib: peak_mib() })
}
