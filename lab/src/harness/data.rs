//! Where the data sets are, and hierarchies from them.

use std::path::{Path, PathBuf};

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};

use crate::Error;

/// The folder of the data sets: `PHEX_DATA`, else a folder beside the repository.
pub(crate) const DEFAULT_FOLDER: &str = "../shared/data";

/// A folder or file of the data sets.
pub(crate) fn path(inside: &str) -> PathBuf {
    std::env::var_os("PHEX_DATA")
        .map_or_else(|| PathBuf::from(DEFAULT_FOLDER), PathBuf::from)
        .join(inside)
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// The file of the ImageNet hierarchy, in the folder of the data sets.
pub(crate) const IMAGENET: &str = "imagenet/ilsvrc2012_hierarchy_edges.tsv";

/// Parents and children of the ImageNet hierarchy; [`Error::NoData`] without its file.
pub(crate) fn imagenet_edges() -> Result<Vec<(String, String)>, Error> {
    let path = path(IMAGENET);
    if path.exists() { read_edges(&path) } else { Err(Error::NoData { path }) }
}

/// Parents and children of a tab-separated table, with or without a line of headings.
pub(crate) fn read_edges(path: &Path) -> Result<Vec<(String, String)>, Error> {
    let mut edges = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate() {
        match line.split_once('\t') {
            Some((parent, _)) if number == 0 && parent.starts_with("parent") => {}
            Some((parent, child)) => edges.push((parent.to_owned(), child.to_owned())),
            None => {
                let message = format!("line {}: not a parent and a child", number + 1);
                return Err(Error::WrongData { path: path.to_owned(), message });
            }
        }
    }
    Ok(edges)
}

/// A hierarchy with an exclusion rule, and a one-of group over its leaves if `leaves` is set.
pub(crate) fn graph(
    edges: &[(String, String)],
    rule: ExclusionRule,
    hierarchy: Strength,
    exclusion: Strength,
    leaves: bool,
) -> Result<RelationGraph, Error> {
    let mut builder = GraphBuilder::new();
    for (parent, child) in edges {
        builder.hierarchy(parent, child, Some(hierarchy));
    }
    builder.exclusion_rule(rule, Some(exclusion));
    if leaves {
        builder.one_of_leaves("leaf");
    }
    Ok(builder.build()?)
}
