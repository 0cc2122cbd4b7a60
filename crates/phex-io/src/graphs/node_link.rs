//! Node-link JSON, as `networkx.node_link_data` and D3 write it.
//!
//! ```json
//! {"directed": true, "nodes": [{"id": "animal"}, {"id": "dog"}],
//!  "links": [{"source": "animal", "target": "dog"}]}
//! ```
//!
//! The list of links is called `links` or `edges`. [`super::links`] says what links mean.

use phex::graph::RelationGraph;
use serde_json::json;

use super::hard_edges_only;
use super::links::{Link, Node, declare};
use super::sink::GraphSink;
use super::tree::value::{Located, Value, read_json};
use crate::files::text::SourceText;
use crate::{Error, Format};

pub(super) fn read(
    source: &SourceText<'_>,
    relations: Option<&[String]>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let top = read_json(source, source.text)?;
    let list = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| top.get(key));
        found.ok_or_else(|| source.error(top.line, format!("there is no list `{}`", keys[0])))
    };
    let field = |item: &Located<'_>, key: &str| {
        let value = item.get(key).and_then(Located::scalar);
        value.map(str::to_owned).ok_or_else(|| {
            let message = format!("an object with the key `{key}` is expected");
            source.error(item.line, message)
        })
    };
    let mut nodes = Vec::new();
    for item in list(&["nodes"])?.items() {
        let id = field(item, "id")?;
        let title = ["title", "name", "label"].iter().find_map(|key| item.get(key)?.scalar());
        let title = title.filter(|title| *title != id).map(str::to_owned);
        let line = item.get("id").map_or(item.line, |id| id.line);
        nodes.push(Node { line, id, title });
    }
    let mut links = Vec::new();
    for item in list(&["links", "edges"])?.items() {
        let kind = ["relation", "type", "key"].iter().find_map(|key| match &item.get(key)?.value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        });
        let line = item.get("source").map_or(item.line, |end| end.line);
        let ends = (field(item, "source")?, field(item, "target")?);
        links.push(Link { line, source: ends.0, target: ends.1, kind });
    }
    let directed = top.get("directed").and_then(Located::scalar) != Some("false");
    declare(source, &nodes, &links, directed, relations, sink)
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let format = Format::NodeLink;
    hard_edges_only(graph, format)?;
    if !graph.exclusions().is_empty() {
        return Err(Error::NotExpressible { format, what: String::from("exclusions") });
    }
    let nodes: Vec<_> = graph
        .labels()
        .iter()
        .map(|label| match &label.title {
            Some(title) => json!({ "id": label.name, "title": title }),
            None => json!({ "id": label.name }),
        })
        .collect();
    let edges: Vec<_> = graph
        .hierarchy()
        .iter()
        .map(|edge| {
            json!({ "source": graph.name(edge.parent), "target": graph.name(edge.child), "relation": "parent" })
        })
        .collect();
    let graph = json!({ "directed": true, "multigraph": false, "graph": {}, "nodes": nodes, "edges": edges });
    let encode = |error: serde_json::Error| Error::Encode { format, message: error.to_string() };
    Ok(serde_json::to_string_pretty(&graph).map_err(encode)? + "\n")
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::FindingKind;

    fn read(text: &str, relations: Option<&[&str]>) -> (Vec<String>, Vec<String>) {
        let relations = relations.map(|list| list.iter().map(|&name| name.to_owned()).collect());
        let options = ReadOptions { relations, ..ReadOptions::default() };
        let builder = parse_graph(text.as_bytes(), "g.json", Format::Json, &options).unwrap();
        let (report, graph) = builder.check_and_build();
        let graph = graph.unwrap();
        let edges = graph.hierarchy().iter();
        let edges = edges.map(|e| format!("{}>{}", graph.name(e.parent), graph.name(e.child)));
        let notes = report.of_kind(FindingKind::SourceNote);
        (edges.collect(), notes.map(|note| note.message.clone()).collect())
    }

    #[test]
    fn links_go_down_or_up() {
        let nodes = r#""nodes": [{"id": 1, "name": "animal"}, {"id": 2}, {"id": 3}]"#;
        let down = r#""links": [{"source": 1, "target": 2}, {"source": 1, "target": 3}]"#;
        let up = r#""edges": [{"source": 2, "target": 1, "key": 0}, {"source": 3, "target": 1, "key": 0}]"#;
        let (edges, notes) = read(&format!("{{\"directed\": true, {nodes}, {down}}}"), None);
        assert_eq!((edges, notes.len()), (vec!["1>2".to_owned(), "1>3".to_owned()], 0));
        let (edges, notes) = read(&format!("{{\"directed\": true, {nodes}, {up}}}"), None);
        assert_eq!((edges, notes.len()), (vec!["1>2".to_owned(), "1>3".to_owned()], 1));
    }

    #[test]
    fn kinds_of_links() {
        let text = r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "edges": [
            {"source": "b", "target": "a", "key": "is_a"}, {"source": "c", "target": "a", "key": "part_of"}]}"#;
        let (edges, notes) = read(text, None);
        assert_eq!(edges, ["a>b"]);
        assert_eq!(notes, ["1 links of the kind `part_of` were skipped"]);
        assert_eq!(read(text, Some(&["is_a", "part_of"])).0, ["a>b", "a>c"]);
    }
}
