//! Path lines: one label per line, written as its path from the root.
//!
//! ```text
//! # Google_Product_Taxonomy_Version: 2021-09-21
//! 1 - Animals & Pet Supplies
//! 3237 - Animals & Pet Supplies > Live Animals
//! ```
//!
//! Lines may start with an id and ` - `, or with an id and a tab. The separator is found in the
//! lines. Labels above a path that have no line of their own are added. An id is the name of its
//! label and the last part of the path the title; without ids [`PathNames`] decides.

use phex::graph::{LabelId, RelationGraph};

use super::hard_edges_only;
use super::path_tree::{PathNames, PathTree, SEPARATOR};
use super::sink::GraphSink;
use crate::files::text::{SourceText, shown};
use crate::{Error, Format};

/// The separators, the most telling first.
const SEPARATORS: [&str; 11] =
    [" > ", " » ", " → ", " -> ", " | ", "::", ">", "; ", "|", " / ", "/"];
/// How many lines are examined.
const EXAMINED: usize = 1000;

/// The lines that are neither empty nor comments.
fn rows<'a>(source: &SourceText<'a>) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    source.lines().filter(|(_, text)| !text.trim().is_empty() && !text.starts_with('#'))
}

/// The separator of path lines, if this is what the text has: no line is indented, and at least
/// half of the lines have a separator and share their first part with others.
pub(super) fn separator<'a>(text: &'a str) -> Option<&'static str> {
    let source = SourceText { name: "", text };
    let lines: Vec<&str> = rows(&source).take(EXAMINED).map(|(_, text)| text).collect();
    if lines.is_empty() || lines.iter().any(|line| line.starts_with([' ', '\t'])) {
        return None;
    }
    SEPARATORS.into_iter().find(|separator| {
        let path = |line: &&'a str| split_id(line).1.trim_start_matches('/');
        let several = lines.iter().filter(|line| path(line).contains(separator)).count();
        let mut tops: Vec<&str> =
            lines.iter().filter_map(|line| path(line).split(separator.trim()).next()).collect();
        tops.iter_mut().for_each(|top| *top = top.trim());
        tops.sort_unstable();
        tops.dedup();
        2 * several >= lines.len() && (tops.len() < lines.len() || lines.len() == 1)
    })
}

/// The separator of lines that are known to be paths.
pub(super) fn separator_of_paths(text: &str) -> &'static str {
    let lines = || text.lines().take(EXAMINED);
    let uses = |separator: &str| lines().filter(|line| line.contains(separator)).count();
    separator(text).unwrap_or_else(|| {
        // The first of the most frequent ones.
        let best = SEPARATORS.into_iter().rev().max_by_key(|separator| uses(separator));
        best.unwrap_or(SEPARATOR)
    })
}

/// `3237 - a > b` → `3237`, `a > b`.
fn split_id(line: &str) -> (Option<&str>, &str) {
    let code = |id: &str| {
        !id.is_empty()
            && id.chars().any(|char| char.is_ascii_digit())
            && id.chars().all(|char| char.is_ascii_alphanumeric() || "._:-".contains(char))
    };
    for mark in [" - ", "\t"] {
        if let Some((id, path)) = line.split_once(mark)
            && code(id.trim())
        {
            return (Some(id.trim()), path.trim());
        }
    }
    (None, line.trim())
}

pub(super) fn read(
    source: &SourceText<'_>,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let separator = separator_of_paths(source.text);
    let mut tree = PathTree::new(source, separator);
    let mut with_ids = None;
    for (line, text) in rows(source) {
        let (id, path) = split_id(text);
        // Ids are those of all lines or of none: `3 - 5 years > toys` is a name in other files.
        let (id, path) = match (*with_ids.get_or_insert(id.is_some()), id) {
            (true, None) => {
                let message =
                    format!("{} has no id, and the lines above have one", shown(text.trim()));
                return Err(source.error(line, message));
            }
            (true, id) => (id, path),
            (false, _) => (None, text.trim()),
        };
        let Some(node) = add(&mut tree, path, separator, line)? else {
            return Err(source.error(line, format!("the path {} is empty", shown(text))));
        };
        if let Some(id) = id
            && !tree.identify(node, id)
        {
            let message = format!("the path {} has another id above", shown(path));
            return Err(source.error(line, message));
        }
    }
    tree.declare(names, sink)
}

/// Adds the places of a path; the last one, unless the path is empty. Empty parts are skipped.
pub(super) fn add(
    tree: &mut PathTree<'_>,
    path: &str,
    separator: &str,
    line: usize,
) -> Result<Option<u32>, Error> {
    let mut node = None;
    for part in path.split(separator.trim()).map(str::trim).filter(|part| !part.is_empty()) {
        node = Some(tree.node(node, part, line)?);
    }
    Ok(node)
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let refuse = |what: String| Err(Error::NotExpressible { format: Format::Paths, what });
    hard_edges_only(graph, Format::Paths)?;
    if !graph.exclusions().is_empty() {
        return refuse(String::from("exclusions"));
    }
    let topology = graph.topology();
    if let Some(label) = graph.ids().find(|&id| topology.parents(id).len() > 1) {
        return refuse(format!("labels with several parents, such as `{}`", graph.name(label)));
    }
    let odd = |name: &str| {
        name.trim() != name
            || name.starts_with(['#', '/'])
            || name.contains('>')
            || split_id(name).0.is_some()
    };
    if let Some(label) = graph.labels().iter().find(|label| odd(&label.name)) {
        return refuse(format!("the name {:?}", label.name));
    }
    let mut out = String::new();
    let mut next: Vec<(LabelId, String)> = Vec::new();
    next.extend(graph.roots().map(|root| (root, graph.name(root).to_owned())));
    next.reverse();
    while let Some((label, path)) = next.pop() {
        out.push_str(&path);
        out.push('\n');
        let children = topology.children(label).iter().rev();
        next.extend(children.map(|&child| (child, format!("{path} > {}", graph.name(child)))));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, parse_graph};
    use phex::graph::RelationGraph;

    fn read(text: &str, names: PathNames) -> RelationGraph {
        let options = ReadOptions { path_names: Some(names), ..ReadOptions::default() };
        parse_graph(text.as_bytes(), "g.txt", Format::Paths, &options).unwrap().build().unwrap()
    }

    fn names(graph: &RelationGraph) -> Vec<&str> {
        graph.labels().iter().map(|label| label.name.as_str()).collect()
    }

    #[test]
    fn repeated_names_are_told_apart_or_merged() {
        let text = "Dogs\nDogs > Toys\nCats > Toys\nCats > Food\n";
        let short = read(text, PathNames::Short);
        assert_eq!(names(&short), ["Dogs", "Dogs > Toys", "Cats", "Cats > Toys", "Food"]);
        assert_eq!(short.labels()[1].title.as_deref(), Some("Toys"));
        assert_eq!(short.hierarchy()[1].place.line, Some(3));
        let merged = read(text, PathNames::Merged);
        assert_eq!(names(&merged), ["Dogs", "Toys", "Cats", "Food"]);
        assert_eq!(merged.hierarchy().len(), 3);
        let whole = read(text, PathNames::Whole);
        assert_eq!(names(&whole)[4], "Cats > Food");
    }

    #[test]
    fn separators_are_found() {
        for (text, expected) in [
            ("a > b\na > c\n", Some(" > ")),
            ("/a/b\n/a/c\n", Some("/")),
            ("a / b\na / c\n", Some(" / ")),
            ("a|b|c\na|d\n", Some("|")),
            ("d__B; p__F\nd__B; p__G\n", Some("; ")),
            ("1 - a\n2 - a > b\n", Some(" > ")),
            ("a\n  b/c\n  d/e\n", None),
            ("cats/dogs\nowls\nkites\n", None),
            ("", None),
        ] {
            assert_eq!(separator(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ids_name_the_labels() {
        let graph =
            read("# x\n1 - Animals\n3 - Animals > Live\n5 - Toys > Live\n", PathNames::Short);
        assert_eq!(names(&graph), ["1", "3", "Toys", "5"]);
        assert_eq!(graph.labels()[1].title.as_deref(), Some("Live"));
        let text = b"1 - a\na > b\n";
        let options = ReadOptions::default();
        let error = parse_graph(text, "g.txt", Format::Paths, &options).unwrap_err();
        assert_eq!(error.line(), Some(2));
    }
}
