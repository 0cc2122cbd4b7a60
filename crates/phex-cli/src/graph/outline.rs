//! A graph as an outline with counts.

use std::fmt::Write as _;

use phex::graph::closure::Logic;
use phex::graph::{LabelId, RelationGraph, Strength};

/// The outline: every label below its first parent, with the number of labels below it. Below its
/// other parents, a label is only named.
pub(crate) fn outline(graph: &RelationGraph, depth: Option<usize>) -> String {
    let mut out = format!("{}\n", summary(graph));
    let below = labels_below(graph);
    let depth = depth.unwrap_or(usize::MAX);
    for root in graph.roots() {
        // Each entry: the label, its parent, the prefix of its line, whether it is the last child.
        let mut stack = vec![(root, None, String::new(), None)];
        while let Some((id, parent, prefix, last)) = stack.pop() {
            let (mark, indent) = match last {
                None => ("", ""),
                Some(true) => ("└─ ", "   "),
                Some(false) => ("├─ ", "│  "),
            };
            let parents = graph.topology().parents(id);
            let elsewhere = parent.is_some_and(|parent| parents.first() != Some(&parent));
            let _ = writeln!(
                out,
                "{prefix}{mark}{}",
                line(graph, id, parent, below[id.index()], elsewhere)
            );
            let children = graph.topology().children(id);
            let level = prefix.chars().count() / 3 + usize::from(last.is_some());
            if elsewhere || level + 1 >= depth {
                continue;
            }
            let prefix = format!("{prefix}{indent}");
            for (at, &child) in children.iter().enumerate().rev() {
                stack.push((child, Some(id), prefix.clone(), Some(at + 1 == children.len())));
            }
        }
    }
    relations(graph, &mut out);
    out
}

/// "12 labels (2 roots, 7 leaves), 14 hierarchy edges, 3 exclusion pairs, 1 one-of group".
fn summary(graph: &RelationGraph) -> String {
    let plural = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let counts = super::Counts::of(graph);
    let mut parts = vec![format!(
        "{} ({}, {})",
        plural(counts.labels as u64, "label", "labels"),
        plural(counts.roots as u64, "root", "roots"),
        plural(counts.leaves as u64, "leaf", "leaves")
    )];
    parts.push(plural(counts.hierarchy as u64, "hierarchy edge", "hierarchy edges"));
    parts.push(plural(counts.exclusion, "exclusion pair", "exclusion pairs"));
    if counts.one_of > 0 {
        parts.push(plural(counts.one_of as u64, "one-of group", "one-of groups"));
    }
    if let Some(declared) = graph.rule() {
        parts.push(format!("exclusion rule {}{}", declared.rule, note(declared.strength)));
    }
    parts.join(", ")
}

fn line(
    graph: &RelationGraph,
    id: LabelId,
    parent: Option<LabelId>,
    below: usize,
    elsewhere: bool,
) -> String {
    let mut line = graph.label(id).to_string();
    let edge = parent.and_then(|parent| graph.topology().edge(parent, id));
    if let Some(edge) = edge {
        line.push_str(&note(graph.hierarchy()[edge].strength));
    }
    if elsewhere {
        line.push_str(" (see above)");
    } else if below > 0 {
        let _ = write!(line, " · {below}");
    }
    line
}

fn note(strength: Strength) -> String {
    if strength.is_hard() { String::new() } else { format!(" [{strength}]") }
}

/// Exclusions and one-of groups as lines, at most a screenful of each.
fn relations(graph: &RelationGraph, out: &mut String) {
    const SHOWN: usize = 20;
    const MEMBERS: usize = 12;
    let names = |labels: &[LabelId], glue: &str| {
        let shown: Vec<&str> = labels.iter().take(MEMBERS).map(|&id| graph.name(id)).collect();
        let more = labels.len().saturating_sub(MEMBERS);
        let rest = if more > 0 { format!("{glue}… {more} more") } else { String::new() };
        format!("{}{rest}", shown.join(glue))
    };
    for exclusion in graph.exclusions().iter().take(SHOWN) {
        let name = exclusion.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let _ = writeln!(
            out,
            "excludes: {name}{}{}",
            names(&exclusion.labels, " ✕ "),
            note(exclusion.strength)
        );
    }
    let more = graph.exclusions().len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(out, "excludes: … {more} more");
    }
    for group in graph.one_of() {
        let _ = writeln!(out, "one of {}: {}", group.name, names(&group.labels, " | "));
    }
    if let Some(declared) = graph.rule() {
        let sets = Logic::all(graph);
        let from_rule = sets
            .sets()
            .iter()
            .filter(|set| set.source == phex::graph::closure::SetSource::Rule)
            .map(|set| set.labels.len() as u64 * (set.labels.len() as u64 - 1) / 2)
            .sum::<u64>();
        let _ = writeln!(out, "rule {}: {from_rule} minimal exclusion pairs", declared.rule);
    }
}

/// How many labels each label subsumes, not counting itself.
fn labels_below(graph: &RelationGraph) -> Vec<usize> {
    let topology = graph.topology();
    if topology.is_forest() {
        let mut below = vec![0; graph.len()];
        for &id in topology.order().iter().rev() {
            if let Some(parent) = topology.parents(id).first() {
                below[parent.index()] += below[id.index()] + 1;
            }
        }
        return below;
    }
    // A label below two children counts once: walk down from each label that needs it.
    let mut seen = vec![usize::MAX; graph.len()];
    let count = |id: LabelId, seen: &mut Vec<usize>| {
        let mut stack = vec![id];
        let mut count = 0;
        while let Some(at) = stack.pop() {
            for &child in topology.children(at) {
                if std::mem::replace(&mut seen[child.index()], id.index()) != id.index() {
                    count += 1;
                    stack.push(child);
                }
            }
        }
        count
    };
    graph.ids().map(|id| count(id, &mut seen)).collect()
}
