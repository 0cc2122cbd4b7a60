//! The graphs of the experiments, all relations hard.

use std::path::{Path, PathBuf};

use phex::graph::{ExclusionRule, GraphBuilder, LabelId, RelationGraph};
use serde::{Deserialize, Serialize};

use super::relabelled::{HierarchyData, RelabelledData, cifar_graph};
use super::zero_shot::{AttributeData, hard_graph};
use crate::Error;
use crate::harness::data::{IMAGENET, read_edges};

/// A graph of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GraphName {
    Generated,
    Cifar100,
    TinyImagenet,
    /// The 1860 labels of ILSVRC2012.
    Imagenet,
    /// Classes × attributes.
    Awa,
    Cub,
    Apy,
}

impl GraphName {
    /// Its name in tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            GraphName::Generated => "generated",
            GraphName::Cifar100 => "CIFAR-100",
            GraphName::TinyImagenet => "Tiny-ImageNet",
            GraphName::Imagenet => "ImageNet",
            GraphName::Awa => "AwA",
            GraphName::Cub => "CUB",
            GraphName::Apy => "aPY",
        }
    }

    /// The folder of its data, if that is missing.
    pub(crate) fn missing(self, folder: &Path) -> Option<PathBuf> {
        let inside = match self {
            GraphName::Generated => return None,
            GraphName::Cifar100 => "cifar100",
            GraphName::TinyImagenet => "tiny_imagenet",
            GraphName::Imagenet => "imagenet",
            GraphName::Awa => "awa",
            GraphName::Cub => "cub",
            GraphName::Apy => "apy",
        };
        Some(folder.join(inside)).filter(|path| !path.is_dir())
    }

    pub(crate) fn load(self, folder: &Path) -> Result<RelationGraph, Error> {
        match self {
            GraphName::Generated => {
                Ok(RelabelledData::load(HierarchyData::Generated, folder, false)?.1.graph)
            }
            GraphName::Cifar100 => cifar_graph(&folder.join("cifar100")),
            GraphName::TinyImagenet => hierarchy(&folder.join("tiny_imagenet/hierarchy_edges.tsv")),
            GraphName::Awa => hard_graph(AttributeData::Awa, folder),
            GraphName::Cub => hard_graph(AttributeData::Cub, folder),
            GraphName::Apy => hard_graph(AttributeData::Apy, folder),
            GraphName::Imagenet => hierarchy(&folder.join(IMAGENET)),
        }
    }
}

/// The graph of a table of parents and children; see [`finish`].
pub(crate) fn hierarchy(path: &Path) -> Result<RelationGraph, Error> {
    let mut builder = GraphBuilder::new();
    for (parent, child) in read_edges(path)? {
        builder.hierarchy(&parent, &child, None);
    }
    finish(builder)
}

/// Adds what all hierarchies here have: labels without a common descendant exclude each other, and one leaf is on.
pub(crate) fn finish(mut builder: GraphBuilder) -> Result<RelationGraph, Error> {
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None).one_of_leaves("class");
    Ok(builder.build()?)
}

/// The graphs of a list; a miniature leaves out those whose data are missing.
pub(crate) fn present(
    names: &[GraphName],
    folder: &Path,
    quick: bool,
) -> Result<Vec<GraphName>, Error> {
    let mut present = Vec::new();
    for &name in names {
        match name.missing(folder) {
            None => present.push(name),
            Some(path) if !quick => return Err(Error::NoData { path }),
            Some(_) => {}
        }
    }
    if present.is_empty() {
        present.push(GraphName::Generated);
    }
    Ok(present)
}

/// The labels of which exactly one is on.
pub(crate) fn classes(graph: &RelationGraph) -> Vec<LabelId> {
    match graph.one_of().first() {
        Some(classes) => classes.labels.clone(),
        None => graph.leaves().collect(),
    }
}
