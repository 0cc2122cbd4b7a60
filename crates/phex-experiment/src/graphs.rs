//! The graphs of the experiments, all relations hard.

use std::path::{Path, PathBuf};

use phex::graph::{ExclusionRule, GraphBuilder, LabelId, RelationGraph};
use serde::{Deserialize, Serialize};

use crate::error::{Error, read_text};
use crate::relabelled::{Data, DataName};
use crate::zero_shot;

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
    /// What it is called in tables.
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

    /// What is missing in a folder.
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
            GraphName::Generated => Ok(Data::load(DataName::Generated, folder, false)?.1.graph),
            GraphName::Cifar100 => crate::relabelled::cifar_graph(&folder.join("cifar100")),
            GraphName::TinyImagenet => hierarchy(&folder.join("tiny_imagenet/hierarchy_edges.tsv")),
            GraphName::Awa => zero_shot::hard_graph(zero_shot::DataName::Awa, folder),
            GraphName::Cub => zero_shot::hard_graph(zero_shot::DataName::Cub, folder),
            GraphName::Apy => zero_shot::hard_graph(zero_shot::DataName::Apy, folder),
            GraphName::Imagenet => {
                hierarchy(&folder.join("imagenet/ilsvrc2012_hierarchy_edges.tsv"))
            }
        }
    }
}

/// A table of parents and children; labels exclude each other unless they have a common descendant, and one
/// leaf is on.
pub(crate) fn hierarchy(path: &Path) -> Result<RelationGraph, Error> {
    let text = read_text(path)?;
    let mut builder = GraphBuilder::new();
    for (number, line) in text.lines().enumerate() {
        match line.split_once('\t') {
            // The names of the columns.
            Some((parent, _)) if number == 0 && parent.starts_with("parent") => {}
            Some((parent, child)) => {
                builder.hierarchy(parent, child, None);
            }
            None => {
                let message = format!("line {}: not a parent and a child", number + 1);
                return Err(Error::WrongData { path: path.to_owned(), message });
            }
        }
    }
    finish(builder)
}

/// The rule of exclusions and the one-of group that all hierarchies here have.
pub(crate) fn finish(mut builder: GraphBuilder) -> Result<RelationGraph, Error> {
    builder.exclusion_rule(ExclusionRule::NoCommonDescendant, None).one_of_leaves("class");
    Ok(builder.build()?)
}

/// The graphs of a list; a miniature leaves those out whose data are not there.
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

/// The labels of which one is on.
pub(crate) fn classes(graph: &RelationGraph) -> Vec<LabelId> {
    match graph.one_of().first() {
        Some(classes) => classes.labels.clone(),
        None => graph.leaves().collect(),
    }
}
