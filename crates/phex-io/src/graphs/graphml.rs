//! GraphML, as `networkx.write_graphml` and drawing programs write it.
//!
//! ```xml
//! <graphml><graph edgedefault="directed">
//!   <node id="animal"/><node id="dog"/>
//!   <edge source="animal" target="dog"/>
//! </graph></graphml>
//! ```
//!
//! The id of a node is its label; a value named `title`, `name` or `label` is the title. Values of
//! edges named `relation`, `type` or `key` are their kinds; [`super::links`] says what they mean.

use std::collections::HashMap;
use std::fmt::Write as _;

use phex::graph::RelationGraph;

use super::hard_edges_only;
use super::links::{Link, Node, declare};
use super::sink::GraphSink;
use super::xml::{XmlReader, XmlToken, escaped};
use crate::files::text::SourceText;
use crate::{Error, Format};

/// What a `data` element is about.
enum Item {
    Node(Node),
    Link(Link),
}

pub(super) fn read(
    source: &SourceText<'_>,
    relations: Option<&[String]>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let mut xml = XmlReader::new(source)?;
    let mut keys: HashMap<String, String> = HashMap::new();
    let (mut nodes, mut links, mut directed) = (Vec::new(), Vec::new(), true);
    let mut item: Option<Item> = None;
    let mut data: Option<(String, String)> = None;
    while let Some(token) = xml.next()? {
        match token {
            XmlToken::Start(tag) => {
                let needed = |name: &str| {
                    tag.attribute(name).map(str::to_owned).ok_or_else(|| {
                        let message = format!("`{}` has no attribute `{name}`", tag.name);
                        source.error(tag.line, message)
                    })
                };
                match tag.name.as_str() {
                    "key" => {
                        let name = tag.attribute("attr.name").unwrap_or_default().to_owned();
                        keys.insert(needed("id")?, name);
                    }
                    "graph" => directed = tag.attribute("edgedefault") != Some("undirected"),
                    "node" => {
                        // A node may be a graph of its own, whose nodes stand inside it.
                        store(item.take(), &mut nodes, &mut links);
                        let (line, id) = (tag.line, needed("id")?);
                        item = Some(Item::Node(Node { line, id, title: None }));
                    }
                    "edge" => {
                        store(item.take(), &mut nodes, &mut links);
                        let (line, kind) = (tag.line, None);
                        let (source, target) = (needed("source")?, needed("target")?);
                        item = Some(Item::Link(Link { line, source, target, kind }));
                    }
                    "data" => {
                        let key = tag.attribute("key").unwrap_or_default();
                        let name = keys.get(key).map_or(key, String::as_str);
                        data = Some((name.to_lowercase(), String::new()));
                    }
                    _ => {}
                }
            }
            XmlToken::Text(text) => {
                if let Some((_, value)) = &mut data {
                    value.push_str(&text);
                }
            }
            XmlToken::End(name) if name == "data" => {
                if let Some((name, value)) = data.take() {
                    describe(item.as_mut(), &name, value.trim());
                }
            }
            XmlToken::End(name) if name == "node" || name == "edge" => {
                store(item.take(), &mut nodes, &mut links);
            }
            XmlToken::End(_) => {}
        }
    }
    if nodes.is_empty() {
        return Err(source.error(1, "the file has no `node`: it is not GraphML"));
    }
    declare(source, &nodes, &links, directed, relations, sink)
}

fn store(item: Option<Item>, nodes: &mut Vec<Node>, links: &mut Vec<Link>) {
    match item {
        Some(Item::Node(node)) => nodes.push(node),
        Some(Item::Link(link)) => links.push(link),
        None => {}
    }
}

fn describe(item: Option<&mut Item>, name: &str, value: &str) {
    match (item, name) {
        (Some(Item::Node(node)), "title" | "name" | "label")
            if !value.is_empty() && value != node.id =>
        {
            node.title.get_or_insert_with(|| value.to_owned());
        }
        (Some(Item::Link(link)), "relation" | "type" | "key") if !value.is_empty() => {
            link.kind.get_or_insert_with(|| value.to_owned());
        }
        _ => {}
    }
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let format = Format::GraphMl;
    hard_edges_only(graph, format)?;
    if !graph.exclusions().is_empty() {
        return Err(Error::NotExpressible { format, what: String::from("exclusions") });
    }
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
         <key id=\"title\" for=\"node\" attr.name=\"title\" attr.type=\"string\"/>\n\
         <key id=\"relation\" for=\"edge\" attr.name=\"relation\" attr.type=\"string\"/>\n\
         <graph edgedefault=\"directed\">\n",
    );
    // Writing to a string cannot fail.
    for label in graph.labels() {
        let id = escaped(&label.name);
        let _ = match &label.title {
            Some(title) => {
                let title = escaped(title);
                writeln!(out, "<node id=\"{id}\"><data key=\"title\">{title}</data></node>")
            }
            None => writeln!(out, "<node id=\"{id}\"/>"),
        };
    }
    for edge in graph.hierarchy() {
        let (parent, child) = (escaped(graph.name(edge.parent)), escaped(graph.name(edge.child)));
        let _ = writeln!(
            out,
            "<edge source=\"{parent}\" target=\"{child}\"><data key=\"relation\">parent</data></edge>"
        );
    }
    out.push_str("</graph>\n</graphml>\n");
    Ok(out)
}
