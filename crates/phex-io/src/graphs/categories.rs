//! The categories of a data set of images: COCO and iNaturalist.
//!
//! ```json
//! {"images": [], "annotations": [], "categories": [
//!   {"supercategory": "animal", "id": 17, "name": "cat"}]}
//! ```
//!
//! The name of a category is its label, and its supercategory is its parent. Categories with the
//! same name are told apart in the same way as paths ([`PathNames`]). Categories with `kingdom`, …,
//! `genus`, as in iNaturalist, are placed under these ranks, and `common_name` is the title. A
//! supercategory that is missing, empty, `none` or the category itself makes a root.

use std::collections::{HashMap, HashSet};

use super::json_form::{JsonTop, top};
use super::path_tree::{PathNames, PathTree, SEPARATOR};
use super::sink::GraphSink;
use super::tree::value::{Located, read_json};
use crate::Error;
use crate::files::text::{SourceText, shown};

/// The ranks of iNaturalist, from the top.
const RANKS: [&str; 6] = ["kingdom", "phylum", "class", "order", "family", "genus"];

pub(super) fn read(
    source: &SourceText<'_>,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    // Only the categories are read: annotations may be gigabytes.
    let piece = match top(source.text) {
        Some(JsonTop::List(_)) => source.text,
        Some(map @ JsonTop::Map(_)) => map
            .get("categories")
            .map(|raw| raw.get())
            .ok_or_else(|| source.error(1, "there is no key `categories`"))?,
        // The error of the whole text has a line.
        _ => source.text,
    };
    let list = read_json(source, piece)?;
    let categories = list.items();
    if categories.iter().any(|item| RANKS.iter().filter(|r| item.get(r).is_some()).count() >= 2) {
        return read_ranks(source, categories, names, sink);
    }
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for item in categories {
        *uses.entry(name(source, item)?).or_default() += 1;
    }
    let label = |item: &Located<'_>, name: &str| match (names, above(item, name)) {
        (PathNames::Short, Some(above)) if uses[name] > 1 => format!("{above}{SEPARATOR}{name}"),
        (PathNames::Whole, Some(above)) => format!("{above}{SEPARATOR}{name}"),
        _ => name.to_owned(),
    };
    let mut edges = Vec::new();
    for item in categories {
        let name = name(source, item)?;
        let label = label(item, name);
        let title = if label == name { title(item) } else { title(item).or(Some(name)) };
        let line = item.get("name").map_or(item.line, |name| name.line);
        sink.label_once(line, &label, title)?;
        if let Some(above) = above(item, name) {
            edges.push((line, above, label));
        }
    }
    // Categories come first, in their order; supercategories after them.
    let mut known = HashSet::new();
    for (line, above, label) in &edges {
        if known.insert((above, label)) {
            sink.at(*line)?.hierarchy(above, label, None);
        }
    }
    Ok(())
}

fn name<'v>(source: &SourceText<'_>, item: &'v Located<'_>) -> Result<&'v str, Error> {
    let name = item.get("name").and_then(Located::scalar).map(str::trim);
    name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let message = format!("a category is an object with a `name`, and this is {}", item.what());
        source.error(item.line, message)
    })
}

fn title<'v>(item: &'v Located<'_>) -> Option<&'v str> {
    ["common_name", "display_name", "title"].iter().find_map(|key| item.get(key)?.scalar())
}

/// The supercategory, unless it says nothing.
fn above<'v>(item: &'v Located<'_>, name: &str) -> Option<&'v str> {
    let above = item.get("supercategory")?.scalar()?.trim();
    let none = above.is_empty() || above == name || above.eq_ignore_ascii_case("none");
    (!none).then_some(above)
}

fn read_ranks(
    source: &SourceText<'_>,
    categories: &[Located<'_>],
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let mut tree = PathTree::new(source, SEPARATOR);
    let mut places = HashSet::new();
    for item in categories {
        let name = name(source, item)?;
        let line = item.get("name").map_or(item.line, |name| name.line);
        let mut node = None;
        for rank in RANKS {
            if let Some(part) = item.get(rank).and_then(Located::scalar).map(str::trim)
                && !part.is_empty()
            {
                node = Some(tree.node(node, part, line)?);
            }
        }
        let node = tree.node(node, name, line)?;
        if !places.insert(node) {
            let message = format!("the category {} is here twice", shown(name));
            return Err(source.error(line, message));
        }
        if let Some(title) = title(item) {
            tree.entitle(node, title);
        }
    }
    tree.declare(names, sink)
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::RelationGraph;

    fn read(text: &str) -> RelationGraph {
        let options = ReadOptions::default();
        parse_graph(text.as_bytes(), "g.json", Format::Json, &options).unwrap().build().unwrap()
    }

    fn edges(graph: &RelationGraph) -> Vec<String> {
        let edges = graph.hierarchy().iter();
        edges.map(|e| format!("{}>{}", graph.name(e.parent), graph.name(e.child))).collect()
    }

    #[test]
    fn coco() {
        let graph = read(
            "{\"annotations\": [{\"x\": [[1.5]]}],\n\"categories\": [\n\
             {\"supercategory\": \"person\", \"id\": 1, \"name\": \"person\"},\n\
             {\"supercategory\": \"animal\", \"id\": 17, \"name\": \"cat\"},\n\
             {\"supercategory\": \"none\", \"id\": 18, \"name\": \"mouse\"},\n\
             {\"supercategory\": \"animal\", \"id\": 19, \"name\": \"mouse\"}]}",
        );
        let names: Vec<_> = graph.labels().iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["person", "cat", "mouse", "animal > mouse", "animal"]);
        assert_eq!(edges(&graph), ["animal>cat", "animal>animal > mouse"]);
        assert_eq!(graph.labels()[1].place.to_string(), "g.json:4");
    }

    #[test]
    fn inaturalist() {
        let graph = read(
            r#"{"categories": [{"id": 0, "name": "Puma concolor", "common_name": "Cougar", "supercategory":
            "Mammals", "kingdom": "Animalia", "family": "Felidae", "genus": "Puma"}]}"#,
        );
        assert_eq!(edges(&graph), ["Animalia>Felidae", "Felidae>Puma", "Puma>Puma concolor"]);
        assert_eq!(graph.labels()[3].title.as_deref(), Some("Cougar"));
    }
}
