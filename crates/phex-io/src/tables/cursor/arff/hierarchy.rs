//! The classes of a hierarchical attribute.
//!
//! Clus has two notations. In a *tree*, a class is the path from the top: in `01,01/01,01/01/03` the
//! parent of `01/01/03` is `01/01`. In a *DAG*, the entries are edges `parent/child` between names,
//! and classes without a parent are children of `root`: `root/a,root/b,a/c,b/c`. `root` is always on
//! and is not a label. An attribute is a DAG if every entry has exactly one `/` and one of them
//! starts with `root/`.

use std::collections::HashMap;

use crate::files::text::shown;

/// The name of the class above all others in a DAG.
const ROOT: &str = "root";

/// The most levels of a path. Each class above a path is a separate text, so a deep path would be
/// expensive.
const MAX_DEPTH: usize = 100;

/// The classes, in the order of their first mention, and their edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Whether the entries are edges between names; otherwise they are paths.
    pub(crate) dag: bool,
    /// The classes; in a tree the declared ones come before those that only paths imply.
    pub(crate) classes: Vec<String>,
    /// The edges: positions of parent and child in the classes, in the order of declaration.
    pub(crate) edges: Vec<(u32, u32)>,
    index: HashMap<String, u32>,
}

impl Hierarchy {
    /// Reads the entries of the declaration.
    pub(super) fn new(entries: &[String]) -> Result<Hierarchy, String> {
        if entries.iter().all(String::is_empty) {
            return Err(String::from("the hierarchical attribute declares no classes"));
        }
        for entry in entries {
            if entry.split('/').any(|part| part.trim().is_empty()) {
                return Err(format!("the class {} has an empty part", shown(entry)));
            }
            if entry.split('/').count() > MAX_DEPTH {
                return Err(format!("the class {} has more than {MAX_DEPTH} levels", shown(entry)));
            }
        }
        let edges = entries.iter().all(|entry| entry.matches('/').count() == 1);
        let rooted = entries.iter().any(|entry| entry.split('/').next() == Some(ROOT));
        let dag = edges && rooted;
        let (classes, edges, index) = (Vec::new(), Vec::new(), HashMap::new());
        let mut hierarchy = Hierarchy { dag, classes, edges, index };
        if dag {
            hierarchy.add_edges(entries)
        } else {
            hierarchy.add_paths(entries)
        }
        Ok(hierarchy)
    }

    fn class(&mut self, name: &str) -> u32 {
        if let Some(&class) = self.index.get(name) {
            return class;
        }
        let class = self.classes.len() as u32;
        self.classes.push(name.to_owned());
        self.index.insert(name.to_owned(), class);
        class
    }

    fn add_edges(&mut self, entries: &[String]) {
        for entry in entries {
            let Some((parent, child)) = entry.split_once('/') else { continue };
            if parent == ROOT {
                self.class(child);
            } else {
                let edge = (self.class(parent), self.class(child));
                self.edges.push(edge);
            }
        }
    }

    fn add_paths(&mut self, entries: &[String]) {
        for entry in entries {
            self.class(entry);
        }
        // Classes that only paths imply are added at the end and get edges as well. Each path is
        // shorter than the one that implies it, so the loop ends.
        let mut next = 0;
        while next < self.classes.len() {
            if let Some((parent, _)) = self.classes[next].rsplit_once('/') {
                let parent = parent.to_owned();
                let parent = self.class(&parent);
                self.edges.push((parent, next as u32));
            }
            next += 1;
        }
    }

    /// The position of a class.
    pub(crate) fn position(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// Whether a value is the root of a DAG, which is always on.
    pub(crate) fn is_root(&self, name: &str) -> bool {
        self.dag && name == ROOT
    }

    /// For each class, its parents.
    pub(crate) fn parents(&self) -> Vec<Vec<u32>> {
        let mut parents = vec![Vec::new(); self.classes.len()];
        for &(parent, child) in &self.edges {
            parents[child as usize].push(parent);
        }
        parents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(text: &str) -> Hierarchy {
        let entries: Vec<String> = text.split(',').map(str::to_owned).collect();
        Hierarchy::new(&entries).unwrap()
    }

    #[test]
    fn a_tree_is_paths() {
        let tree = hierarchy("b/c,b,a/x/y");
        assert!(!tree.dag);
        assert_eq!(tree.classes, ["b/c", "b", "a/x/y", "a/x", "a"]);
        assert_eq!(tree.edges, [(1, 0), (3, 2), (4, 3)]);
        assert_eq!(tree.parents(), [vec![1], vec![], vec![3], vec![4], vec![]]);
    }

    #[test]
    fn a_dag_is_edges_without_its_root() {
        let dag = hierarchy("root/a,root/b,a/c,b/c,c/d");
        assert!(dag.dag && dag.is_root("root") && !dag.is_root("a"));
        assert_eq!(dag.classes, ["a", "b", "c", "d"]);
        assert_eq!(dag.edges, [(0, 2), (1, 2), (2, 3)]);
        // Nothing hangs under `root`, or a path is longer: these are paths.
        assert!(!hierarchy("a/b,b/c").dag);
        assert!(!hierarchy("root/a,a/b/c").dag);
        assert!(!hierarchy("root,root/a").dag);
    }

    #[test]
    fn empty_parts_are_refused() {
        for text in ["", "a//b", "/a", "a/,b"] {
            let entries: Vec<String> = text.split(',').map(str::to_owned).collect();
            assert!(Hierarchy::new(&entries).is_err(), "{text}");
        }
        assert!(Hierarchy::new(&["a/".repeat(100) + "a"]).is_err());
    }
}
