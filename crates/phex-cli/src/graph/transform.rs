//! `phex graph sparsify` and `phex graph densify`.

use std::path::Path;

use phex::graph::RelationGraph;
use phex::graph::closure::Logic;
use serde::Serialize;

use super::Counts;
use crate::args::TransformCommand;
use crate::files::CommandFiles;
use crate::say::say;
use crate::{input, output};

#[derive(Serialize)]
struct Transformed {
    /// Hierarchy edges afterwards.
    hierarchy: u64,
    /// Exclusion pairs afterwards, including those of groups.
    exclusion: u64,
    before: Counts,
}

pub(super) fn sparsify(command: &TransformCommand) -> anyhow::Result<()> {
    check_files(command)?;
    let graph = command.input.graph()?;
    let sparse = graph.sparsify()?;
    note_soft(&graph);
    finish(command, &graph, &sparse)
}

pub(super) fn densify(command: &TransformCommand) -> anyhow::Result<()> {
    check_files(command)?;
    let graph = command.input.graph()?;
    note_soft(&graph);
    if command.json && command.out.is_none() && graph.is_hard() {
        // Counting does not list the pairs.
        let (hierarchy, exclusion) = Logic::hard(&graph).implied_counts();
        return output::json(&Transformed { hierarchy, exclusion, before: Counts::of(&graph) });
    }
    finish(command, &graph, &graph.densify()?)
}

fn check_files(command: &TransformCommand) -> anyhow::Result<()> {
    CommandFiles::default().reads(command.input.files()).writes(&command.out).check()
}

/// Soft relations stay, because they are part of the model and not of the legal states.
fn note_soft(graph: &RelationGraph) {
    let soft = graph.strengths().filter(|strength| !strength.is_hard()).count();
    if soft > 0 {
        let are = if soft == 1 { "relation is" } else { "relations are" };
        say(format_args!("phex: {soft} soft {are} kept; only hard ones change"));
    }
}

fn finish(
    command: &TransformCommand,
    before: &RelationGraph,
    after: &RelationGraph,
) -> anyhow::Result<()> {
    let form = command.to.as_deref();
    if form != Some("svg") {
        input::format(form)?;
    }
    if let Some(path) = &command.out {
        super::write(after, path, form)?;
    }
    if command.json {
        let counts = Counts::of(after);
        output::json(&Transformed {
            hierarchy: counts.hierarchy as u64,
            exclusion: counts.exclusion,
            before: Counts::of(before),
        })?;
    } else if command.out.is_none() {
        super::write(after, Path::new("-"), form)?;
    }
    Ok(())
}
