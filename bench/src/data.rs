//! Where the data is, and the ImageNet hierarchy from it.

use std::path::PathBuf;

use phex::graph::{ExclusionRule, GraphBuilder, RelationGraph, Strength};

/// A folder or file of the data: under `PHEX_DATA`, else beside the repository.
pub(crate) fn path(inside: &str) -> PathBuf {
    std::env::var_os("PHEX_DATA")
        .map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from)
        .join(inside)
}

/// Parents and children of the ImageNet hierarchy; `None` where the data is not there.
pub(crate) fn imagenet_edges() -> Option<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path("imagenet/ilsvrc2012_hierarchy_edges.tsv")).ok()?;
    let pairs = text.lines().skip(1).filter_map(|line| line.split_once('\t'));
    Some(pairs.map(|(parent, child)| (parent.to_owned(), child.to_owned())).collect())
}

/// A hierarchy with a rule for exclusions, and one of its leaves on where asked for.
pub(crate) fn graph(
    edges: &[(String, String)],
    rule: ExclusionRule,
    hierarchy: Strength,
    exclusion: Strength,
    leaves: bool,
) -> anyhow::Result<RelationGraph> {
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
