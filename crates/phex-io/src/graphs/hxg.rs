//! The format of the hexgraph program: labels, exclusions and hierarchy in three sections.
//!
//! ```text
//! #E#
//! animal dog cat puppy
//! #X#
//! dog cat
//! #H#
//! animal: dog cat
//! dog: puppy
//! ```
//!
//! Labels are separated by spaces or line breaks, so names cannot contain either. A line of `#X#`
//! lists labels that exclude each other; a line of `#H#` holds a parent, a colon and its children.
//! The sections may come in any order. If `#E#` lists any label, it must list them all.

use std::collections::HashMap;
use std::fmt::Write;

use phex::graph::RelationGraph;

use super::hard_edges_only;
use super::sink::GraphSink;
use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

#[derive(Clone, Copy, PartialEq)]
enum HxgSection {
    Labels,
    Exclusions,
    Hierarchy,
}

fn section(line: &str) -> Option<HxgSection> {
    match line {
        "#E#" => Some(HxgSection::Labels),
        "#X#" => Some(HxgSection::Exclusions),
        "#H#" => Some(HxgSection::Hierarchy),
        _ => None,
    }
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    // Labels are declared first, wherever their section is: their order is that of the score
    // columns.
    let mut any = false;
    for (line, section, text) in rows(source) {
        if section? == HxgSection::Labels {
            any = true;
            for name in text.split_whitespace() {
                sink.label(line, name, None)?;
            }
        }
    }
    if any {
        sink.at(1)?.close_labels();
    }
    for (line, section, text) in rows(source) {
        match section? {
            HxgSection::Labels => {}
            HxgSection::Exclusions => {
                let names: Vec<&str> = text.split_whitespace().collect();
                if names.len() < 2 {
                    let message = format!("{} excludes nothing: name two labels", shown(text));
                    return Err(source.error(line, message));
                }
                sink.at(line)?.exclusion_group(None, names, None);
            }
            HxgSection::Hierarchy => {
                let (parent, children) = parent_and_children(text).ok_or_else(|| {
                    let message =
                        format!("{} is not of the form `parent: child child`", shown(text));
                    source.error(line, message)
                })?;
                for child in children.split_whitespace() {
                    sink.at(line)?.hierarchy(parent, child, None);
                }
            }
        }
    }
    Ok(())
}

/// The lines that are not empty, with their sections.
fn rows<'a>(
    source: &'a SourceText<'a>,
) -> impl Iterator<Item = (usize, Result<HxgSection, Error>, &'a str)> {
    let mut current = None;
    source.lines().filter_map(move |(line, text)| {
        let text = text.trim();
        if let Some(next) = section(text) {
            current = Some(next);
            return None;
        }
        if text.is_empty() {
            return None;
        }
        let section = current.ok_or_else(|| {
            let message = "text before the first section: sections start with #E# (labels), #X# \
                           (exclusions) or #H# (hierarchy)";
            source.error(line, message)
        });
        Some((line, section, text))
    })
}

/// Splits `parent: child child`; the name of the parent may contain colons.
fn parent_and_children(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (parent, children) = match first.strip_suffix(':') {
        Some(parent) => (parent, rest),
        None => (first, rest.trim_start().strip_prefix(':')?),
    };
    (!parent.is_empty()).then_some((parent, children))
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    hard_edges_only(graph, Format::Hxg)?;
    for label in graph.labels() {
        let name = &label.name;
        if name.contains(char::is_whitespace) || name.starts_with(':') || section(name).is_some() {
            let what = format!("the name {name:?}");
            return Err(Error::NotExpressible { format: Format::Hxg, what });
        }
    }
    let mut out = String::from("#E#\n");
    for label in graph.labels() {
        out.extend([label.name.as_str(), "\n"]);
    }
    out.push_str("#X#\n");
    for exclusion in graph.exclusions() {
        let names: Vec<&str> = exclusion.labels.iter().map(|&id| graph.name(id)).collect();
        out.extend([names.join(" ").as_str(), "\n"]);
    }
    out.push_str("#H#\n");
    let mut order = Vec::new();
    let mut children: HashMap<_, Vec<&str>> = HashMap::new();
    for edge in graph.hierarchy() {
        let names = children.entry(edge.parent).or_insert_with(|| {
            order.push(edge.parent);
            Vec::new()
        });
        names.push(graph.name(edge.child));
    }
    for parent in order {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}: {}", graph.name(parent), children[&parent].join(" "));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, graph_to_string, parse_graph};
    use phex::graph::{GraphBuilder, Strength};

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.hxg", Format::Hxg, &ReadOptions::default())
    }

    #[test]
    fn sections_in_any_order() {
        let graph = read("#H#\nGO:1: GO:2 c\n\n#X#\nGO:2 c\n#E#\nc GO:1\nGO:2\n").unwrap();
        let graph = graph.build().unwrap();
        assert_eq!(graph.labels()[0].name, "c");
        assert_eq!(graph.hierarchy().len(), 2);
        assert_eq!(graph.hierarchy()[0].place.to_string(), "g.hxg:2");
        assert_eq!(graph.exclusions()[0].place.line, Some(5));
        let written = graph_to_string(&graph, Format::Hxg).unwrap();
        assert_eq!(written, "#E#\nc\nGO:1\nGO:2\n#X#\nc GO:2\n#H#\nGO:1: GO:2 c\n");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let cases = [
            ("\na b\n", "g.hxg:2: text before the first section"),
            ("#X#\na\n", "g.hxg:2: `a` excludes nothing"),
            ("#H#\n\na b\n", "g.hxg:3: `a b` is not of the form"),
        ];
        for (text, start) in cases {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
        // The builder reports a label that is not in `#E#`.
        assert!(read("#E#\na\n#H#\na: b\n").unwrap().build().is_err());
    }

    #[test]
    fn inexpressible_graphs_are_refused() {
        let mut builder = GraphBuilder::new();
        builder.hierarchy("a", "b", Some(Strength::U(1.0)));
        let error = graph_to_string(&builder.build().unwrap(), Format::Hxg).unwrap_err();
        assert!(error.to_string().contains("cannot hold soft relations"), "{error}");
        let mut builder = GraphBuilder::new();
        builder.label("two words");
        assert!(graph_to_string(&builder.build().unwrap(), Format::Hxg).is_err());
    }
}
