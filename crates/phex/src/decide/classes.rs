//! The labels that a multi-class question is about.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::graph::{LabelId, RelationGraph};

/// A list of labels of which each row should have one.
///
/// ```
/// use phex::{decide::Classes, graph::GraphBuilder};
/// let mut builder = GraphBuilder::new();
/// builder.hierarchy("animal", "dog", None).hierarchy("animal", "cat", None);
/// let graph = builder.build()?;
/// let leaves: Vec<&str> =
///     Classes::Leaves.resolve(&graph)?.into_iter().map(|id| graph.name(id)).collect();
/// assert_eq!(leaves, ["dog", "cat"]);
/// # Ok::<(), phex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// The labels without children in the hierarchy.
    #[default]
    Leaves,
    /// Every label.
    All,
    /// The labels of a one-of group, by its name.
    Group(String),
    /// These labels, by their names.
    Labels(Vec<String>),
}

impl Classes {
    /// The labels in ascending order, each once.
    ///
    /// # Errors
    /// [`Error::UnknownName`] when the graph does not have this group or label.
    pub fn resolve(&self, graph: &RelationGraph) -> Result<Vec<LabelId>, Error> {
        match self {
            Classes::Leaves => Ok(graph.leaves().collect()),
            Classes::All => Ok(graph.ids().collect()),
            Classes::Group(name) => {
                let group = graph.one_of().iter().find(|group| group.name == *name);
                let unknown = || Error::UnknownName { kind: "one-of group", name: name.clone() };
                Ok(group.ok_or_else(unknown)?.labels.clone())
            }
            Classes::Labels(names) => named(graph, names),
        }
    }
}

/// The labels with these names in ascending order, each once.
pub(crate) fn named(graph: &RelationGraph, names: &[String]) -> Result<Vec<LabelId>, Error> {
    let id = |name: &String| {
        graph.id(name).ok_or_else(|| Error::UnknownName { kind: "label", name: name.clone() })
    };
    let mut labels = names.iter().map(id).collect::<Result<Vec<LabelId>, Error>>()?;
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}
