//! `phex graph`.

mod convert;
mod outline;
mod transform;

use std::cell::RefCell;
use std::path::Path;

use anyhow::Context as _;
use phex::graph::closure::Logic;
use phex::graph::{Exclusion, RelationGraph};
use phex_report::{graph_picture, wants_picture};
use serde::Serialize;

use crate::args::{CheckCommand, GraphCommand, LabelsCommand, ShowCommand, StatesCommand};
use crate::files::CommandFiles;
use crate::{Outcome, input, output};

pub(crate) use outline::outline;

pub(crate) fn run(command: &GraphCommand) -> anyhow::Result<Outcome> {
    match command {
        GraphCommand::Check(command) => return check(command),
        GraphCommand::Show(command) => show(command)?,
        GraphCommand::Labels(command) => labels(command)?,
        GraphCommand::Sparsify(command) => transform::sparsify(command)?,
        GraphCommand::Densify(command) => transform::densify(command)?,
        GraphCommand::Convert(command) => convert::run(command)?,
        GraphCommand::States(command) => states(command)?,
        GraphCommand::Plan(command) => return crate::infer::plan(command),
    }
    Ok(Outcome::Fine)
}

/// Writes a graph in the named format, or else in the format that the file name shows.
fn write(graph: &RelationGraph, path: &Path, form: Option<&str>) -> anyhow::Result<()> {
    if wants_picture(form, path) {
        phex_io::write_text(path, &graph_picture(graph, None))?;
    } else {
        phex_io::write_graph(graph, path, input::format(form)?)?;
    }
    Ok(())
}

fn check(command: &CheckCommand) -> anyhow::Result<Outcome> {
    let report = command.input.builder()?.check();
    if command.json {
        output::json(&report)?;
    } else if command.markdown {
        output::text(&report.to_markdown())?;
    } else {
        let text = report.to_text(command.all);
        output::text(&text)?;
        if text != report.to_text(true) {
            output::text("--all shows every finding\n")?;
        }
    }
    let failed = report.has_errors() || (command.strict && !report.is_clean());
    Ok(if failed { Outcome::Findings } else { Outcome::Fine })
}

/// Sizes of a graph.
#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    labels: usize,
    roots: usize,
    leaves: usize,
    hierarchy: usize,
    /// Exclusion pairs, including those of groups.
    exclusion: u64,
    exclusion_groups: usize,
    one_of: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    hard: bool,
}

impl Counts {
    pub(crate) fn of(graph: &RelationGraph) -> Counts {
        Counts {
            labels: graph.len(),
            roots: graph.roots().count(),
            leaves: graph.leaves().count(),
            hierarchy: graph.hierarchy().len(),
            exclusion: graph.exclusions().iter().map(Exclusion::pairs).sum(),
            exclusion_groups: graph.exclusions().iter().filter(|e| e.labels.len() > 2).count(),
            one_of: graph.one_of().len(),
            rule: graph.rule().map(|declared| declared.rule.name()),
            hard: graph.is_hard(),
        }
    }
}

fn show(command: &ShowCommand) -> anyhow::Result<()> {
    let files = CommandFiles::default().reads(command.input.files());
    files.writes(command.svg.iter().chain(&command.dot)).check()?;
    let graph = command.input.graph()?;
    for (path, form) in [(&command.svg, "svg"), (&command.dot, "dot")] {
        if let Some(path) = path {
            write(&graph, path, Some(form))?;
        }
    }
    let picture_on_stdout =
        [&command.svg, &command.dot].into_iter().flatten().any(|path| path.as_os_str() == "-");
    if picture_on_stdout {
        return Ok(());
    }
    if command.json {
        return output::json(&Counts::of(&graph));
    }
    output::text(&outline(&graph, command.depth))
}

/// The labels in order, for programs.
#[derive(Serialize)]
struct LabelNames<'g> {
    version: &'static str,
    labels: Vec<&'g str>,
}

fn labels(command: &LabelsCommand) -> anyhow::Result<()> {
    let graph = command.input.graph()?;
    let labels: Vec<&str> = graph.labels().iter().map(|label| label.name.as_str()).collect();
    if command.json {
        return output::json(&LabelNames { version: env!("CARGO_PKG_VERSION"), labels });
    }
    labels.iter().try_for_each(|label| output::text(&format!("{label}\n")))
}

/// A list that is written while it is computed, because the states may not fit into memory.
struct Streamed<I>(RefCell<I>);

impl<I: Iterator<Item = Vec<String>>> Serialize for Streamed<I> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

#[derive(Serialize)]
#[serde(bound = "I: Iterator<Item = Vec<String>>")]
struct States<I: Iterator<Item = Vec<String>>> {
    labels: usize,
    /// Digits, because the number may be larger than any machine word.
    count: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Streamed<I>>,
}

fn states(command: &StatesCommand) -> anyhow::Result<()> {
    let graph = command.input.graph()?;
    let logic = Logic::hard(&graph);
    let limit = command.limit.unwrap_or(usize::MAX);
    let names = |on: Vec<phex::graph::LabelId>| -> Vec<String> {
        on.into_iter().map(|id| graph.name(id).to_owned()).collect()
    };
    if command.list && !command.json {
        use std::io::Write as _;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for state in logic.legal_states().take(limit) {
            let state = names(state);
            let line = if state.is_empty() { String::from("(none)") } else { state.join(", ") };
            writeln!(out, "{line}")?;
        }
        return Ok(out.flush()?);
    }
    let count = logic.count_states().with_context(|| command.input.path.display().to_string())?;
    if !command.json {
        return output::text(&format!("{count}\n"));
    }
    let states =
        command.list.then(|| Streamed(RefCell::new(logic.legal_states().take(limit).map(names))));
    output::json(&States { labels: graph.len(), count: count.to_string(), states })
}
