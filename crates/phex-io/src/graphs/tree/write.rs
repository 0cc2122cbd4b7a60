//! Writing forests as nested JSON.

use phex::graph::{LabelId, RelationGraph};
use serde_json::{Map, Value, json};

use crate::graphs::hard_edges_only;
use crate::{Error, Format};

/// Deeper trees could not be read again: `serde_json` reads 128 levels, and a label takes two.
const MAX_DEPTH: usize = 60;

pub(in crate::graphs) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let format = Format::Tree;
    let refuse = |what: String| Err(Error::NotExpressible { format, what });
    hard_edges_only(graph, format)?;
    if !graph.exclusions().is_empty() {
        return refuse(String::from("exclusions"));
    }
    let topology = graph.topology();
    if let Some(label) = graph.ids().find(|&id| topology.parents(id).len() > 1) {
        return refuse(format!("labels with several parents, such as `{}`", graph.name(label)));
    }
    if let Some(label) = graph.labels().iter().find(|label| label.name.trim() != label.name) {
        return refuse(format!("the name {:?}", label.name));
    }
    // Children come after their parents, so that the last ones are finished first.
    let mut order: Vec<(LabelId, usize)> = graph.roots().map(|root| (root, 1)).collect();
    let mut at = 0;
    while let Some(&(label, depth)) = order.get(at) {
        if depth > MAX_DEPTH {
            return refuse(format!("more than {MAX_DEPTH} levels"));
        }
        order.extend(topology.children(label).iter().map(|&child| (child, depth + 1)));
        at += 1;
    }
    let mut done: Vec<Option<Value>> = vec![None; graph.len()];
    for &(id, _) in order.iter().rev() {
        let label = graph.label(id);
        let mut node = Map::new();
        node.insert(String::from("name"), json!(label.name));
        if let Some(title) = &label.title {
            node.insert(String::from("title"), json!(title));
        }
        let children: Vec<Value> =
            topology.children(id).iter().filter_map(|child| done[child.index()].take()).collect();
        if !children.is_empty() {
            node.insert(String::from("children"), Value::Array(children));
        }
        done[id.index()] = Some(Value::Object(node));
    }
    let mut roots: Vec<Value> =
        graph.roots().filter_map(|root| done[root.index()].take()).collect();
    let top = if roots.len() == 1 { roots.remove(0) } else { Value::Array(roots) };
    let encode = |error: serde_json::Error| Error::Encode { format, message: error.to_string() };
    Ok(serde_json::to_string_pretty(&top).map_err(encode)? + "\n")
}
