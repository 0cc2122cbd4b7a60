//! `phex graph sparsify` and `phex graph densify`.

use phex::graph::RelationGraph;
use phex::graph::closure::Logic;
use phex_io::Format;
use serde::Serialize;

use super::Counts;
use crate::args::TransformCommand;
use crate::{input, output};

#[derive(Serialize)]
struct Transformed {
    /// Hierarchy edges afterwards.
    hierarchy: u64,
    /// Exclusion pairs afterwards, those of groups included.
    exclusion: u64,
    before: Counts,
}

pub(super) fn sparsify(command: &TransformCommand) -> anyhow::Result<()> {
    let graph = command.input.graph()?;
    let sparse = graph.sparsify()?;
    note_soft(&graph);
    finish(command, &graph, &sparse)
}

pub(super) fn densify(command: &TransformCommand) -> anyhow::Result<()> {
    let graph = command.input.graph()?;
    note_soft(&graph);
    if command.json && command.out.is_none() && graph.is_hard() {
        // Counting needs no pair to be written out.
        let (hierarchy, exclusion) = Logic::hard(&graph).implied_counts();
        return output::json(&Transformed { hierarchy, exclusion, before: Counts::of(&graph) });
    }
    finish(command, &graph, &graph.densify()?)
}

/// Soft relations are part of the model, not of the legal states: they stay.
fn note_soft(graph: &RelationGraph) {
    let soft = graph.strengths().filter(|strength| !strength.is_hard()).count();
    if soft > 0 {
        let are = if soft == 1 { "relation is" } else { "relations are" };
        eprintln!("phex: {soft} soft {are} kept; only hard ones change");
    }
}

fn finish(
    command: &TransformCommand,
    before: &RelationGraph,
    after: &RelationGraph,
) -> anyhow::Result<()> {
    let to = input::format(command.to.as_deref())?;
    if let Some(path) = &command.out {
        phex_io::write_graph(after, path, to)?;
    }
    if command.json {
        let counts = Counts::of(after);
        output::json(&Transformed {
            hierarchy: counts.hierarchy as u64,
            exclusion: counts.exclusion,
            before: Counts::of(before),
        })?;
    } else if command.out.is_none() {
        output::text(&phex_io::graph_to_string(after, to.unwrap_or(Format::Toml))?)?;
    }
    Ok(())
}
