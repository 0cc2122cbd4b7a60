//! Nested labels in JSON and YAML.
//!
//! ```yaml
//! animal:
//!   - dog: [puppy]
//!   - cat
//! ```
//!
//! | value                                        | meaning                                        |
//! |----------------------------------------------|------------------------------------------------|
//! | a map with a name (`name`, `label`, `id`, …) | a label; its children are in `children`, …     |
//! | any other map                                | a label per key, with its children as the value |
//! | a list                                       | labels                                         |
//! | a string or a number                         | a label                                        |
//! | null, an empty list or map                   | nothing                                        |
//!
//! A map of lists of names is a list of edges: a key may be a name of another list. A map of names
//! to names gives each label its parent. `id` (or `LabelName`, as in Open Images) beside a name is
//! the label, and the name its title. Without ids, [`PathNames`] says how labels are named.

pub(super) mod value;
mod write;
mod yaml;

use std::collections::HashSet;

use value::{Located, Value};

use super::path_tree::{NodeIndex, PathNames, PathTree, SEPARATOR};
use super::sink::GraphSink;
use crate::Error;
use crate::files::text::{SourceText, shown};

pub(super) use write::write;

/// Keys of names, best first.
const NAMES: [&str; 9] =
    ["name", "label", "title", "text", "LabelName", "Name", "Label", "Title", "prefLabel"];
/// Keys of ids, best first.
const IDS: [&str; 8] = ["id", "LabelName", "Id", "ID", "_id", "key", "code", "wnid"];
/// Keys of children.
const CHILDREN: [&str; 16] = [
    "children",
    "_children",
    "Children",
    "child",
    "subcategories",
    "subcategory",
    "Subcategory",
    "subclasses",
    "narrower",
    "nodes",
    "items",
    "values",
    "sub",
    "kids",
    "branches",
    "hyponyms",
];
/// Keys of parts: a wheel is not a car.
const PARTS: [&str; 3] = ["Part", "part", "parts"];
/// Keys of titles beside a name.
const TITLES: [&str; 4] = ["title", "description", "display_name", "common_name"];

pub(super) fn read_json(
    source: &SourceText<'_>,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    read(source, &value::read_json(source, source.text)?, names, sink)
}

pub(super) fn read_yaml(
    source: &SourceText<'_>,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    read(source, &yaml::read(source)?, names, sink)
}

fn read(
    source: &SourceText<'_>,
    top: &Located<'_>,
    names: PathNames,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    if let Some(edges) = parents_of_names(top).or_else(|| lists_of_names(top)) {
        return declare_edges(&edges, sink);
    }
    let mut reader =
        TreeReader { source, tree: PathTree::new(source, SEPARATOR), parts: None, skipped: 0 };
    reader.labels(top, None)?;
    if let Some(line) = reader.parts {
        let count = reader.skipped;
        sink.note(line, format!("{count} lists of parts were skipped: a part is not a kind"))?;
    }
    reader.tree.declare(names, sink)
}

/// An edge with its line; without a child, a label.
struct TreeEdge<'v> {
    line: usize,
    parent: Option<&'v str>,
    label: &'v str,
}

/// `{"dog": "animal", "animal": null}`: the parent of each label.
fn parents_of_names<'v>(top: &'v Located<'_>) -> Option<Vec<TreeEdge<'v>>> {
    let entries = top.entries();
    if node_name(top).is_some() || !entries.iter().any(|(_, value)| value.scalar().is_some()) {
        return None;
    }
    let edge = |(key, value): &'v (Located<'_>, Located<'_>)| {
        let parent = match &value.value {
            Value::Null => None,
            _ => Some(value.scalar()?),
        };
        Some(TreeEdge { line: key.line, parent, label: key.scalar()? })
    };
    entries.iter().map(edge).collect()
}

/// `{"animal": ["dog", "cat"], "dog": ["puppy"]}`: the children of each label.
fn lists_of_names<'v>(top: &'v Located<'_>) -> Option<Vec<TreeEdge<'v>>> {
    if node_name(top).is_some() || top.entries().is_empty() {
        return None;
    }
    let mut edges = Vec::new();
    for (key, value) in top.entries() {
        let parent = key.scalar()?;
        edges.push(TreeEdge { line: key.line, parent: None, label: parent });
        if !matches!(value.value, Value::List(_) | Value::Null) {
            return None;
        }
        for item in value.items() {
            edges.push(TreeEdge { line: item.line, parent: Some(parent), label: item.scalar()? });
        }
    }
    // Lists whose names are keys of others refer to these. Elsewhere places are told apart.
    let keys: HashSet<&str> = top.entries().iter().filter_map(|(key, _)| key.scalar()).collect();
    edges.iter().any(|edge| edge.parent.is_some() && keys.contains(edge.label)).then_some(edges)
}

fn declare_edges(edges: &[TreeEdge<'_>], sink: &mut GraphSink) -> Result<(), Error> {
    for edge in edges {
        sink.label_once(edge.line, edge.label, None)?;
    }
    let mut known = HashSet::new();
    for edge in edges {
        let Some(parent) = edge.parent else { continue };
        if parent != edge.label && known.insert((parent, edge.label)) {
            sink.at(edge.line)?.hierarchy(parent, edge.label, None);
        }
    }
    Ok(())
}

/// The key and the text of the name of a map that is a label.
fn node_name<'v>(value: &'v Located<'_>) -> Option<(&'static str, &'v str)> {
    let text = |key: &'static str| Some((key, value.get(key)?.scalar()?));
    let found = NAMES.into_iter().find_map(text);
    // An id alone is a name where there are children beside it or it is all there is.
    found.or_else(|| {
        let (key, id) = IDS.into_iter().find_map(text)?;
        let others = value.entries().len() > 1;
        let children = CHILDREN.iter().any(|key| value.get(key).is_some());
        (children || !others).then_some((key, id))
    })
}

struct TreeReader<'s> {
    source: &'s SourceText<'s>,
    tree: PathTree<'s>,
    /// The line of the first list of parts.
    parts: Option<usize>,
    skipped: usize,
}

impl TreeReader<'_> {
    /// Adds the labels of a value. The depth is that of the value, which is bounded.
    fn labels(&mut self, value: &Located<'_>, parent: Option<NodeIndex>) -> Result<(), Error> {
        match &value.value {
            Value::Null => Ok(()),
            Value::Plain(text) => self.named(text, value.line, parent).map(drop),
            Value::Text(text) => self.named(text, value.line, parent).map(drop),
            Value::List(items) => items.iter().try_for_each(|item| self.labels(item, parent)),
            Value::Map(_) => match node_name(value) {
                Some((key, name)) => self.node(value, key, name, parent),
                None => self.keys(value, parent),
            },
        }
    }

    fn named(
        &mut self,
        name: &str,
        line: usize,
        parent: Option<NodeIndex>,
    ) -> Result<NodeIndex, Error> {
        self.tree.node(parent, name.trim(), line)
    }

    /// A map with a name and children.
    fn node(
        &mut self,
        value: &Located<'_>,
        key: &str,
        name: &str,
        parent: Option<NodeIndex>,
    ) -> Result<(), Error> {
        let line = value.get(key).map_or(value.line, |name| name.line);
        let node = self.named(name, line, parent)?;
        let id = IDS.iter().find_map(|key| value.get(key)?.scalar());
        if let Some(id) = id
            && !self.tree.identify(node, id)
        {
            let message = format!("{} is here with another id than above", shown(name));
            return Err(self.source.error(line, message));
        }
        let titles = TITLES.iter().filter(|&&other| other != key);
        let title = titles.filter_map(|key| value.get(key)?.scalar()).next();
        let title = title.or_else(|| id.filter(|&id| id != name).map(|_| name));
        if let Some(title) = title {
            self.tree.entitle(node, title);
        }
        for (key, children) in value.entries() {
            let Some(key) = key.scalar() else { continue };
            if CHILDREN.contains(&key) {
                self.labels(children, Some(node))?;
            } else if PARTS.contains(&key) {
                self.parts.get_or_insert(children.line);
                self.skipped += 1;
            }
        }
        Ok(())
    }

    /// A map from labels to their children.
    fn keys(&mut self, value: &Located<'_>, parent: Option<NodeIndex>) -> Result<(), Error> {
        for (key, children) in value.entries() {
            let Some(name) = key.scalar() else {
                let message =
                    format!("the name of a label is a string, and this is {}", key.what());
                return Err(self.source.error(key.line, message));
            };
            let node = self.named(name, key.line, parent)?;
            self.labels(children, Some(node))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::RelationGraph;

    fn read(text: &str, format: Format) -> RelationGraph {
        let builder = parse_graph(text.as_bytes(), "g", format, &ReadOptions::default());
        builder.unwrap_or_else(|error| panic!("{error}\n{text}")).build().unwrap()
    }

    fn edges(text: &str, format: Format) -> Vec<String> {
        let graph = read(text, format);
        let edges = graph.hierarchy().iter();
        edges.map(|e| format!("{}>{}", graph.name(e.parent), graph.name(e.child))).collect()
    }

    #[test]
    fn trees_of_many_shapes() {
        let expected = ["animal>dog", "dog>puppy", "animal>cat"];
        for text in [
            r#"{"name": "animal", "children": [{"name": "dog", "children": [{"name": "puppy", "value": 3}]},
                {"name": "cat", "size": 1}]}"#,
            r#"{"animal": {"dog": {"puppy": null}, "cat": {}}}"#,
            r#"{"animal": [{"dog": ["puppy"]}, "cat"]}"#,
            r#"[{"label": "animal", "subcategories": [{"label": "dog", "subcategories": ["puppy"]},
                {"label": "cat"}]}]"#,
            r#"{"id": "animal", "children": [{"id": "dog", "children": [{"id": "puppy"}]}, {"id": "cat"}]}"#,
        ] {
            assert_eq!(edges(text, Format::Tree), expected, "{text}");
        }
        for text in [
            "animal:\n  - dog:\n      - puppy\n  - cat\n",
            "---\nanimal:\n  dog:\n    puppy:\n  cat: ~\n",
            "name: animal\nchildren:\n- name: dog\n  children: [puppy]\n- {name: cat}\n",
            "{animal: [{dog: [puppy]}, cat]}",
        ] {
            assert_eq!(edges(text, Format::Yaml), expected, "{text}");
        }
    }

    #[test]
    fn lists_of_names_are_edges() {
        let lists = r#"{"animal": ["dog", "cat"], "dog": ["puppy"]}"#;
        assert_eq!(edges(lists, Format::Tree), ["animal>dog", "animal>cat", "dog>puppy"]);
        let parents = r#"{"dog": "animal", "cat": "animal", "animal": null}"#;
        assert_eq!(edges(parents, Format::Tree), ["animal>dog", "animal>cat"]);
    }

    #[test]
    fn repeated_names_are_told_apart() {
        let text = "Dogs:\n  - Toys\nCats:\n  - Toys\n";
        assert_eq!(edges(text, Format::Yaml), ["Dogs>Dogs > Toys", "Cats>Cats > Toys"]);
        let graph = read(text, Format::Yaml);
        assert_eq!(graph.labels()[3].place.to_string(), "g:4");
    }

    #[test]
    fn open_images_has_ids() {
        let text = r#"{"LabelName": "/m/0bl9f", "Subcategory": [
            {"LabelName": "/m/0jbk", "Subcategory": [{"LabelName": "/m/0bt9lr"}]},
            {"LabelName": "/m/0k4j", "Part": [{"LabelName": "/m/083wq"}]},
            {"LabelName": "/m/0bt9lr"}]}"#;
        let graph = read(text, Format::Tree);
        assert_eq!((graph.len(), graph.hierarchy().len()), (4, 4));
        assert!(graph.labels()[0].title.is_none());
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, format, line) in [
            ("a:\n  - b\n  c\n", Format::Yaml, 3),
            ("a: &x [b]\nc: *x\n", Format::Yaml, 2),
            ("a: 1\n---\nb: 2\n", Format::Yaml, 2),
            ("? [a, b]\n: c\n", Format::Yaml, 1),
            ("{\"a\":\n[}", Format::Tree, 2),
        ] {
            let options = ReadOptions::default();
            let error = parse_graph(text.as_bytes(), "g", format, &options).unwrap_err();
            assert_eq!(error.line(), Some(line), "{text:?}: {error}");
        }
    }
}
