//! Nodes and links, as programs for networks store them: node-link JSON of networkx, GraphML.
//!
//! A link goes from the parent to the child, with two exceptions. If links have kinds (`key`,
//! `relation`, `type`) and some of them are `is_a`, only the requested kinds are read (by default
//! `is_a`), and they go from the child to the parent, as in ontologies. If no node has two targets
//! and some node has several sources, the links form a tree that is drawn towards its root, so they
//! also go from the child to the parent, unless their kind says otherwise (`parent`).

use std::collections::{HashMap, HashSet};

use super::sink::GraphSink;
use crate::Error;
use crate::files::text::{SourceText, shown};

/// Kinds of links that say "is a kind of".
const IS_A: [&str; 5] = ["is_a", "isa", "is-a", "subclassof", "rdfs:subclassof"];

/// Kinds of links that go from parent to child.
const DOWN: [&str; 6] = ["parent", "parent_of", "parentof", "narrower", "has_child", "subsumes"];

/// A node with its line.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) id: String,
    pub(super) title: Option<String>,
}

/// A link with its line.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) source: String,
    pub(super) target: String,
    pub(super) kind: Option<String>,
}

/// Declares the labels and the hierarchy.
pub(super) fn declare(
    source: &SourceText<'_>,
    nodes: &[Node],
    links: &[Link],
    directed: bool,
    relations: Option<&[String]>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    for node in nodes {
        sink.label_once(node.line, &node.id, node.title.as_deref())?;
    }
    let known: HashSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    for link in links {
        for end in [&link.source, &link.target] {
            if !known.contains(end.as_str()) {
                let message = format!("the link names {}, which is not a node", shown(end));
                return Err(source.error(link.line, message));
            }
        }
    }
    let has = |link: &Link, kinds: &[&str]| {
        link.kind.as_deref().is_some_and(|kind| kinds.contains(&kind.to_lowercase().as_str()))
    };
    let is_a = |link: &Link| has(link, &IS_A);
    let by_kind = relations.is_some() || links.iter().any(is_a);
    let wanted = |link: &Link| match relations {
        _ if !by_kind => true,
        Some(wanted) => link.kind.as_ref().is_some_and(|kind| wanted.contains(kind)),
        None => is_a(link),
    };
    let read: Vec<&Link> = links.iter().filter(|link| wanted(link)).collect();
    let line = links.first().map_or(1, |link| link.line);
    skipped(links, &read, sink)?;
    let down = read.iter().any(|link| has(link, &DOWN));
    let upwards = !down && (by_kind || to_the_root(&read));
    if upwards && !by_kind {
        sink.note(line, "links go from child to parent: no node has two targets")?;
    }
    if !directed && !upwards && !read.is_empty() {
        let message = "the graph is undirected; links are read as going from parent to child";
        sink.note(line, message)?;
    }
    let mut edges = HashSet::new();
    for link in read {
        let (parent, child) =
            if upwards { (&link.target, &link.source) } else { (&link.source, &link.target) };
        if parent != child && edges.insert((parent, child)) {
            sink.at(link.line)?.hierarchy(parent, child, None);
        }
    }
    Ok(())
}

/// Says which kinds of links are left out.
fn skipped(links: &[Link], read: &[&Link], sink: &mut GraphSink) -> Result<(), Error> {
    if read.len() == links.len() {
        return Ok(());
    }
    let read: HashSet<Option<&str>> = read.iter().map(|link| link.kind.as_deref()).collect();
    let mut kinds: HashMap<&str, (usize, usize)> = HashMap::new();
    for link in links.iter().filter(|link| !read.contains(&link.kind.as_deref())) {
        let kind = link.kind.as_deref().unwrap_or("(no kind)");
        kinds.entry(kind).or_insert((link.line, 0)).1 += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_unstable();
    for (kind, (line, count)) in kinds.into_iter().take(20) {
        let message = format!("{count} links of the kind {} were skipped", shown(kind));
        sink.note(line, message)?;
    }
    Ok(())
}

/// Whether links can only be meant to go from child to parent.
fn to_the_root(links: &[&Link]) -> bool {
    let most = |end: fn(&Link) -> &str| {
        let mut uses: HashMap<&str, HashSet<&str>> = HashMap::new();
        for link in links {
            uses.entry(end(link)).or_default().extend([link.source.as_str(), link.target.as_str()]);
        }
        // A node is in its own set.
        uses.values().map(|others| others.len() - 1).max().unwrap_or(0)
    };
    most(|link| &link.source) == 1 && most(|link| &link.target) > 1
}
