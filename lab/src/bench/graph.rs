//! How the cost of checks, `sparsify` and conversion grows with the number of labels.
//!
//! Each measurement runs in a process of its own, so that its peak memory is its own. Times include reading the file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, ValueEnum};
use phex_io::{Format, ReadOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::harness::timing::peak_mib;
use crate::harness::{MarkdownTable, RandomStream, ResultFolder, ResultPage};

#[derive(Debug, Args)]
pub(crate) struct GraphCommand {
    /// Where the results go [default: target/lab/graph]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Numbers of labels
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    labels: Vec<usize>,
    /// Measure one operation on one file and print it (for the benchmark itself)
    #[arg(long, hide = true, num_args = 2)]
    one: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum TreeShape {
    /// Ten children each.
    TenFold,
    /// Any earlier label is the parent: deep and uneven.
    Random,
    /// Families of about √n.
    Wide,
}

const SHAPES: [TreeShape; 3] = [TreeShape::TenFold, TreeShape::Random, TreeShape::Wide];
const OPERATIONS: [&str; 3] = ["check", "sparsify", "convert"];

#[derive(Debug, Serialize, Deserialize)]
struct GraphCost {
    seconds: f64,
    peak_mib: f64,
}

#[derive(Debug, Serialize)]
struct GraphRow {
    shape: TreeShape,
    labels: usize,
    operation: &'static str,
    #[serde(flatten)]
    measured: GraphCost,
}

pub(crate) fn run(command: &GraphCommand) -> anyhow::Result<()> {
    if let [operation, path] = command.one.as_slice() {
        println!("{}", serde_json::to_string(&measure(operation, Path::new(path))?)?);
        return Ok(());
    }
    let folder = ResultFolder::create(command.out.as_deref(), "graph")?;
    let columns = "shape | labels | operation | seconds | peak MiB";
    let (mut rows, mut table) = (Vec::new(), MarkdownTable::new("", columns));
    for shape in SHAPES {
        for &labels in &command.labels {
            let path = folder.path().join("hierarchy.csv");
            std::fs::write(&path, hierarchy(shape, labels))?;
            for operation in OPERATIONS {
                let measured = in_a_process(operation, &path)?;
                let shape_name = serde_json::to_value(shape)?;
                table.row([
                    String::from(shape_name.as_str().unwrap_or_default()),
                    labels.to_string(),
                    String::from(operation),
                    format!("{:.3}", measured.seconds),
                    format!("{:.0}", measured.peak_mib),
                ]);
                rows.push(GraphRow { shape, labels, operation, measured });
            }
        }
    }
    let about = "Trees whose siblings exclude each other, read from CSV; times include reading.";
    let mut page = ResultPage::of_bench("graph", "Checks, `sparsify` and conversion", about);
    page.tables.push(table);
    Ok(folder.write_bench(&page, &json!({ "rows": rows }))?)
}

/// A hierarchy as an edge list, with the rule that siblings exclude each other.
fn hierarchy(shape: TreeShape, labels: usize) -> String {
    let mut text = String::from("relation,a,b\nexclude,siblings,\n");
    let mut random = RandomStream::new(0, "hierarchy");
    let root = (labels as f64).sqrt() as usize;
    for label in 1..labels {
        let parent = match shape {
            TreeShape::TenFold => (label - 1) / 10,
            TreeShape::Random => random.below(label),
            TreeShape::Wide => (label - 1) / root.max(1),
        };
        let _ = writeln!(text, "hierarchy,label {parent},label {label}");
    }
    text
}

fn in_a_process(operation: &str, path: &Path) -> anyhow::Result<GraphCost> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args(["bench", "graph", "--one", operation]).arg(path).output()?;
    if !output.status.success() {
        bail!("{operation}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measure(operation: &str, path: &Path) -> anyhow::Result<GraphCost> {
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
    Ok(GraphCost { seconds: start.elapsed().as_secs_f64(), peak_mib: peak_mib() })
}
