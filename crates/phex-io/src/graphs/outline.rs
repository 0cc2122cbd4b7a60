//! Indented outlines: a line is the child of the line above that is indented less.
//!
//! ```text
//! # comments and empty lines are skipped
//! animal
//!   - dog
//!     - puppy
//!   - cat
//! ```
//!
//! Lines are indented by spaces or tabs, the same within a branch; bullets (`- `, `* `) are dropped.
//! A name that occurs in two places is one label with two parents, unless [`PathNames`] says
//! otherwise.
//!
//! In a listing `id | [left-right] | name`, as product taxonomies are published, the id is the name
//! of the label and the name its title. The numbers define the nesting, not the indentation, because
//! ids are aligned to the right.

use std::fmt::Write;

use phex::graph::{LabelId, RelationGraph};

use super::hard_edges_only;
use super::path_tree::{NodeIndex, PathNames, PathTree, SEPARATOR};
use super::sink::GraphSink;
use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

/// The most levels of an outline: the builder would refuse a deeper graph.
const MAX_DEPTH: usize = 10_000;

pub(super) fn read(
    source: &SourceText<'_>,
    names: Option<PathNames>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    if is_listing(source.text) {
        return read_listing(source, sink);
    }
    let mut tree = PathTree::new(source, SEPARATOR);
    read_indented(source, &mut tree)?;
    tree.declare(names.unwrap_or(PathNames::Merged), sink)
}

/// Whether the first line is one of a listing.
pub(super) fn is_listing(text: &str) -> bool {
    let source = SourceText { name: "", text };
    rows(&source).next().is_some_and(|(_, text)| ListingLine::parse(text.trim()).is_some())
}

/// The lines that are neither empty nor comments.
fn rows<'a>(source: &SourceText<'a>) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    source.lines().filter(|(_, text)| !text.trim().is_empty() && !text.trim().starts_with('#'))
}

fn read_indented(source: &SourceText<'_>, tree: &mut PathTree<'_>) -> Result<(), Error> {
    // The indentation and place of each line that the current one is nested in.
    let mut above: Vec<(&str, NodeIndex)> = Vec::new();
    for (line, text) in rows(source) {
        let name = text.trim_start();
        let indent = &text[..text.len() - name.len()];
        let name = ["- ", "* "].iter().find_map(|bullet| name.strip_prefix(bullet)).unwrap_or(name);
        let name = name.trim();
        let mut deepest = None;
        while let Some(&(other, _)) = above.last() {
            if indent.len() > other.len() {
                break;
            }
            deepest.get_or_insert(other);
            above.pop();
            if indent == other {
                deepest = None;
                break;
            }
        }
        let parent = above.last();
        // The line returns to a level that no line above has, or mixes tabs and spaces.
        let stray = deepest.is_some() && !(above.is_empty() && indent.is_empty());
        if stray || parent.is_some_and(|(other, _)| !indent.starts_with(other)) {
            let message = format!(
                "the indentation of {} matches no line above; indent with the same spaces or tabs",
                shown(name)
            );
            return Err(source.error(line, message));
        }
        if above.len() >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} levels of indentation");
            return Err(source.error(line, message));
        }
        let node = tree.node(parent.map(|&(_, parent)| parent), name, line)?;
        above.push((indent, node));
    }
    Ok(())
}

/// A line of a listing.
struct ListingLine<'a> {
    id: &'a str,
    left: u64,
    right: u64,
    name: &'a str,
}

impl<'a> ListingLine<'a> {
    fn parse(text: &'a str) -> Option<ListingLine<'a>> {
        let (id, rest) = text.split_once('|')?;
        let (range, name) = rest.split_once('|')?;
        let (left, right) = range.trim().strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
        let (left, right) = (left.trim().parse().ok()?, right.trim().parse().ok()?);
        let (id, name) = (id.trim(), name.trim());
        (!id.is_empty() && left < right).then_some(ListingLine { id, left, right, name })
    }
}

fn read_listing(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    let mut entries = Vec::new();
    for (line, text) in rows(source) {
        let entry = ListingLine::parse(text.trim()).ok_or_else(|| {
            let message = format!("{} is not of the form `id | [left-right] | name`", shown(text));
            source.error(line, message)
        })?;
        let title = (!entry.name.is_empty()).then_some(entry.name);
        sink.label(line, entry.id, title)?;
        entries.push((line, entry));
    }
    // Listings need not be sorted by their numbers.
    entries.sort_by_key(|(_, entry)| entry.left);
    let mut open: Vec<&ListingLine<'_>> = Vec::new();
    for (line, entry) in &entries {
        while open.last().is_some_and(|last| last.right < entry.left) {
            open.pop();
        }
        if let Some(parent) = open.last() {
            if entry.left == parent.left || entry.right >= parent.right {
                let message = format!(
                    "the numbers of {} and {} overlap, so neither is under the other",
                    shown(entry.id),
                    shown(parent.id)
                );
                return Err(source.error(*line, message));
            }
            sink.at(*line)?.hierarchy(parent.id, entry.id, None);
        }
        open.push(entry);
    }
    Ok(())
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let refuse = |what: String| Err(Error::NotExpressible { format: Format::Outline, what });
    hard_edges_only(graph, Format::Outline)?;
    if !graph.exclusions().is_empty() {
        return refuse(String::from("exclusions"));
    }
    let topology = graph.topology();
    if let Some(label) = graph.ids().find(|&id| topology.parents(id).len() > 1) {
        return refuse(format!("labels with several parents, such as `{}`", graph.name(label)));
    }
    for label in graph.labels() {
        let name = &label.name;
        let marked = ["#", "- ", "* "].iter().any(|mark| name.starts_with(mark));
        if marked || name.trim() != name || ListingLine::parse(name).is_some() {
            return refuse(format!("the name {name:?}"));
        }
    }
    let mut out = String::new();
    let mut next: Vec<(LabelId, usize)> = graph.roots().map(|root| (root, 0)).collect();
    next.reverse();
    while let Some((label, depth)) = next.pop() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:indent$}{}", "", graph.name(label), indent = 2 * depth);
        let children = topology.children(label).iter().rev();
        next.extend(children.map(|&child| (child, depth + 1)));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, graph_to_string, parse_graph};
    use phex::graph::GraphBuilder;

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.txt", Format::Outline, &ReadOptions::default())
    }

    fn edges(text: &str) -> Vec<String> {
        let graph = read(text).unwrap().build().unwrap();
        let edges = graph.hierarchy().iter();
        edges
            .map(|edge| format!("{}>{}", graph.name(edge.parent), graph.name(edge.child)))
            .collect()
    }

    #[test]
    fn indentation_nests() {
        let text =
            "# x\nanimal\n\t- dog\n\t\t* puppy\n\n\t- cat\nplant\n    tree\n      oak\n    dog\n";
        let expected =
            ["animal>dog", "dog>puppy", "animal>cat", "plant>tree", "tree>oak", "plant>dog"];
        assert_eq!(edges(text), expected);
        assert_eq!(read(text).unwrap().build().unwrap().hierarchy()[1].place.line, Some(4));
        // An outline that is indented as a whole.
        assert_eq!(edges("  a\n    b\n  c\n    d\n"), ["a>b", "c>d"]);
    }

    #[test]
    fn stray_indentation_has_its_line() {
        for (text, line) in [
            ("a\n    b\n  c\n", 3),
            ("a\n  b\n\tc\n    d\n", 3),
            ("a\n  b\n\t\t\tc\n", 3),
            ("a\n  b\n\t\tc\n", 3),
            ("  a\n b\n", 2),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line(), Some(line), "{text:?}: {error}");
            assert!(error.to_string().contains("indentation"), "{error}");
        }
    }

    #[test]
    fn listings_have_ids_and_titles() {
        let text =
            "  1 | [ 1- 6] | Animals & Pets\n    2 | [ 2- 3] | Live\n   10 | [ 4- 5] | Toys\n";
        assert_eq!(edges(text), ["1>2", "1>10"]);
        let graph = read(text).unwrap().build().unwrap();
        assert_eq!(graph.labels()[0].title.as_deref(), Some("Animals & Pets"));
        assert_eq!(read("1 | [1-4] | a\nb\n").unwrap_err().line(), Some(2));
        assert_eq!(read("1 | [1-4] | a\n2 | [2-7] | b\n").unwrap_err().line(), Some(2));
    }

    #[test]
    fn forests_are_written() {
        let graph = read("a\n b\n  c\n d\ne\n").unwrap().build().unwrap();
        let text = graph_to_string(&graph, Format::Outline).unwrap();
        assert_eq!(text, "a\n  b\n    c\n  d\ne\n");
        let graph = read("a\n c\nb\n c\n").unwrap().build().unwrap();
        let error = graph_to_string(&graph, Format::Outline).unwrap_err().to_string();
        assert!(error.contains("several parents, such as `c`"), "{error}");
    }
}
