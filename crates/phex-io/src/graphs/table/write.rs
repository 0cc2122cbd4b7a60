//! Writes tables with one row per label and its parent, or with one column per level.

use phex::graph::RelationGraph;

use super::levels::is_empty;
use crate::graphs::hard_edges_only;
use crate::{Error, Format};

fn text(format: Format, rows: Vec<Vec<&str>>) -> Result<String, Error> {
    let encode = |message: String| Error::Encode { format, message };
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(|error| encode(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| encode(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| encode(error.to_string()))
}

fn refuse(format: Format, what: String) -> Result<String, Error> {
    Err(Error::NotExpressible { format, what })
}

fn hierarchy_only(graph: &RelationGraph, format: Format) -> Result<(), Error> {
    hard_edges_only(graph, format)?;
    match graph.exclusions().is_empty() {
        true => Ok(()),
        false => Err(Error::NotExpressible { format, what: String::from("exclusions") }),
    }
}

/// `id,parent_id,name`: a row per label and parent.
pub(in crate::graphs) fn write_parents(graph: &RelationGraph) -> Result<String, Error> {
    let format = Format::Parents;
    hierarchy_only(graph, format)?;
    let mut rows = vec![vec!["id", "parent_id", "name"]];
    for id in graph.ids() {
        let label = graph.label(id);
        if label.name.trim() != label.name || label.name.is_empty() {
            return refuse(format, format!("the name {:?}", label.name));
        }
        let title = label.title.as_deref().unwrap_or_default();
        let parents = graph.topology().parents(id);
        if parents.is_empty() {
            rows.push(vec![&label.name, "", title]);
        }
        for &parent in parents {
            rows.push(vec![&label.name, graph.name(parent), title]);
        }
    }
    text(format, rows)
}

/// `level1,level2,…`: a row per leaf.
pub(in crate::graphs) fn write_levels(graph: &RelationGraph) -> Result<String, Error> {
    let format = Format::Levels;
    hierarchy_only(graph, format)?;
    let topology = graph.topology();
    let mut paths: Vec<Vec<&str>> = Vec::new();
    for id in graph.ids() {
        let name = graph.name(id);
        if topology.parents(id).len() > 1 {
            return refuse(format, format!("labels with several parents, such as `{name}`"));
        }
        if name.trim() != name || is_empty(name) {
            return refuse(format, format!("the name {name:?}"));
        }
        if !topology.children(id).is_empty() {
            continue;
        }
        let mut path = vec![name];
        let mut at = id;
        while let Some(&parent) = topology.parents(at).first() {
            path.push(graph.name(parent));
            at = parent;
        }
        path.reverse();
        paths.push(path);
    }
    let depth = paths.iter().map(Vec::len).max().unwrap_or(1).max(2);
    let header: Vec<String> = (1..=depth).map(|level| format!("level{level}")).collect();
    let mut rows = vec![header.iter().map(String::as_str).collect()];
    for mut path in paths {
        path.resize(depth, "");
        rows.push(path);
    }
    text(format, rows)
}
