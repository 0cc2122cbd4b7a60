//! Nodes that are named by their path from the root, as in path lines, level columns and nested
//! lists, and the labels that they become.
//!
//! `Dogs > Toys` and `Cats > Toys` are two nodes. [`PathNames`] determines the names of their labels.
//! If a node has an id, the id is its label and its name is the title. A node costs its name and an
//! entry of a hash map. Whole paths are built only if they become names, and their total length is
//! bounded.

use std::collections::HashMap;
use std::str::FromStr;

use super::sink::GraphSink;
use crate::Error;
use crate::files::text::{SourceText, shown};

/// The most levels of a path: the builder would refuse a deeper graph.
const MAX_DEPTH: usize = 10_000;
/// What stands between the names of a path, unless the file has its own separator.
pub(super) const SEPARATOR: &str = " > ";

/// How labels are named that a file gives by their place in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathNames {
    /// By their own name; by the whole path where several places have the same name.
    Short,
    /// By the whole path.
    Whole,
    /// By their own name; places with the same name are one label with several parents.
    Merged,
}

impl PathNames {
    /// Every way, in the order of the documentation.
    pub const ALL: [PathNames; 3] = [PathNames::Short, PathNames::Whole, PathNames::Merged];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PathNames::Short => "short",
            PathNames::Whole => "whole",
            PathNames::Merged => "merged",
        }
    }
}

impl FromStr for PathNames {
    type Err = String;

    fn from_str(name: &str) -> Result<PathNames, String> {
        let found = PathNames::ALL.into_iter().find(|way| way.name() == name);
        found.ok_or_else(|| format!("`{name}` is not one of short, whole, merged"))
    }
}

/// The index of a node.
pub(super) type NodeIndex = u32;

#[derive(Debug)]
struct PathNode {
    parent: Option<NodeIndex>,
    depth: usize,
    name: String,
    id: Option<String>,
    title: Option<String>,
    line: usize,
}

/// A forest of nodes.
#[derive(Debug)]
pub(super) struct PathTree<'s> {
    source: &'s SourceText<'s>,
    separator: String,
    nodes: Vec<PathNode>,
    index: HashMap<(Option<NodeIndex>, String), NodeIndex>,
}

impl<'s> PathTree<'s> {
    pub(super) fn new(source: &'s SourceText<'s>, separator: &str) -> PathTree<'s> {
        PathTree {
            source,
            separator: separator.to_owned(),
            nodes: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// The node of this name under a parent; it is added at its first mention.
    pub(super) fn node(
        &mut self,
        parent: Option<NodeIndex>,
        name: &str,
        line: usize,
    ) -> Result<NodeIndex, Error> {
        let key = (parent, name.to_owned());
        if let Some(&known) = self.index.get(&key) {
            return Ok(known);
        }
        let depth = parent.map_or(0, |parent| self.nodes[parent as usize].depth + 1);
        if depth >= MAX_DEPTH {
            return Err(self.source.error(line, format!("more than {MAX_DEPTH} levels")));
        }
        let new = NodeIndex::try_from(self.nodes.len())
            .map_err(|_| self.source.error(line, "more places than can be counted"))?;
        let (name, id, title) = (name.to_owned(), None, None);
        self.nodes.push(PathNode { parent, depth, name, id, title, line });
        self.index.insert(key, new);
        Ok(new)
    }

    /// Gives a node its id; false if it has another one.
    pub(super) fn identify(&mut self, node: NodeIndex, id: &str) -> bool {
        let known = self.nodes[node as usize].id.get_or_insert_with(|| id.to_owned());
        known == id
    }

    /// Forgets all ids.
    pub(super) fn forget_ids(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.id = None);
    }

    /// Gives a node a title unless it has one.
    pub(super) fn entitle(&mut self, node: NodeIndex, title: &str) {
        self.nodes[node as usize].title.get_or_insert_with(|| title.to_owned());
    }

    /// Declares all labels in the order of their first mention, then all edges.
    pub(super) fn declare(self, names: PathNames, sink: &mut GraphSink) -> Result<(), Error> {
        let labels = self.labels(names, sink.name_bytes())?;
        for (node, label) in self.nodes.iter().zip(&labels) {
            // What the label's name does not show is its title.
            let own = (*label != node.name).then_some(node.name.as_str());
            sink.label_once(node.line, label, node.title.as_deref().or(own))?;
        }
        let mut known = std::collections::HashSet::new();
        for (node, label) in self.nodes.iter().zip(&labels) {
            let Some(parent) = node.parent else { continue };
            let parent = &labels[parent as usize];
            if known.insert((parent, label)) {
                sink.at(node.line)?.hierarchy(parent, label, None);
            }
        }
        Ok(())
    }

    fn labels(&self, names: PathNames, most: u64) -> Result<Vec<String>, Error> {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for node in self.nodes.iter().filter(|node| node.id.is_none()) {
            *uses.entry(&node.name).or_default() += 1;
        }
        let mut bytes = 0;
        let mut paths: HashMap<String, NodeIndex> = HashMap::new();
        let mut labels = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let short = match names {
                PathNames::Merged => true,
                PathNames::Short => node.id.is_some() || uses[node.name.as_str()] == 1,
                PathNames::Whole => node.id.is_some() || node.parent.is_none(),
            };
            if short || node.parent.is_none() {
                labels.push(node.id.clone().unwrap_or_else(|| node.name.clone()));
                continue;
            }
            let path = self.path(at);
            bytes += path.len() as u64;
            if bytes > most {
                let message = format!(
                    "the paths of labels whose names repeat take more than {most} bytes; merge \
                     labels with the same name"
                );
                return Err(self.source.error(node.line, message));
            }
            if uses.contains_key(path.as_str()) || paths.contains_key(&path) {
                let message = format!("{} is also the path of another label", shown(&path));
                return Err(self.source.error(node.line, message));
            }
            paths.insert(path.clone(), at as NodeIndex);
            labels.push(path);
        }
        Ok(labels)
    }

    fn path(&self, node: usize) -> String {
        let mut parts = vec![self.nodes[node].name.as_str()];
        let mut parent = self.nodes[node].parent;
        while let Some(at) = parent {
            parts.push(&self.nodes[at as usize].name);
            parent = self.nodes[at as usize].parent;
        }
        parts.reverse();
        parts.join(&self.separator)
    }
}
