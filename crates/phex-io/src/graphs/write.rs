//! Writing graphs: to text, and to files that appear only once they are complete.

use std::path::Path;

use phex::graph::RelationGraph;

use super::{
    dot, edges_write, graphml, hxg, json, node_link, outline, paths, table, toml_write, tree,
};
use crate::files::input::is_standard;
use crate::files::output::write_text;
use crate::{Error, Format};

/// Writes a graph to a file, or to standard output for `-`. Without a format, the name of the file
/// decides; standard output gets TOML.
///
/// The file is replaced only once the new one is complete: no reader sees half of it, and a full
/// disk leaves the old one untouched.
///
/// # Errors
/// When the format cannot hold the graph or can only be read, or when the file cannot be written.
pub fn write_graph(
    graph: &RelationGraph,
    path: &Path,
    format: Option<Format>,
) -> Result<(), Error> {
    let format = match format.or_else(|| Format::from_path(path)) {
        Some(format) => format,
        None if is_standard(path) => Format::Toml,
        None => {
            let known = Format::writable_names();
            return Err(Error::UnknownFormat { path: path.display().to_string(), known });
        }
    };
    write_text(path, &graph_to_string(graph, format)?)
}

/// The text of a graph.
///
/// ```
/// use phex::graph::GraphBuilder;
/// use phex_io::{Format, graph_to_string};
///
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None);
/// let text = graph_to_string(&builder.build()?, Format::Outline)?;
/// assert_eq!(text, "animal\n  dog\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the format cannot hold the graph or can only be read.
pub fn graph_to_string(graph: &RelationGraph, format: Format) -> Result<String, Error> {
    match format {
        Format::Toml => Ok(toml_write::write(graph)),
        Format::Json => json::write(graph),
        Format::Csv | Format::Tsv => edges_write::write(graph, format),
        Format::Hxg => hxg::write(graph),
        Format::Outline => outline::write(graph),
        Format::Dot => Ok(dot::write(graph)),
        Format::Parents => table::write_parents(graph),
        Format::Levels => table::write_levels(graph),
        Format::Paths => paths::write(graph),
        Format::Tree => tree::write(graph),
        Format::NodeLink => node_link::write(graph),
        Format::GraphMl => graphml::write(graph),
        Format::Obo
        | Format::Turtle
        | Format::RdfXml
        | Format::JsonLd
        | Format::WordNet
        | Format::Matrix
        | Format::Arff
        | Format::Yaml
        | Format::Categories
        | Format::Icd10 => {
            let path = String::from("the graph");
            Err(Error::OneWay { path, format, only: "read" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use phex::graph::GraphBuilder;

    #[test]
    fn files_are_replaced_whole() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "b", None);
        let graph = builder.build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.txt");
        fs::write(&path, "old").unwrap();
        write_graph(&graph, &path, Some(Format::Outline)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\n  b\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        let nowhere = folder.path().join("missing").join("g.toml");
        let error = write_graph(&graph, &nowhere, None).unwrap_err().to_string();
        assert!(error.contains("g.toml: cannot be written"), "{error}");
    }

    #[test]
    fn texts_are_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_text(&path, "all of it").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "all of it");
        let nowhere = folder.path().join("missing").join("report.html");
        let error = write_text(&nowhere, "").unwrap_err().to_string();
        assert!(error.contains("report.html: cannot be written"), "{error}");
    }

    #[test]
    fn some_formats_are_read_only() {
        let mut builder = GraphBuilder::new();
        builder.label("a");
        let graph = builder.build().unwrap();
        for format in Format::ALL {
            assert_eq!(graph_to_string(&graph, format).is_ok(), format.can_write(), "{format}");
        }
    }
}
