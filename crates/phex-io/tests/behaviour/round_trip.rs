//! What is written reads back as the same graph.

use std::collections::{BTreeMap, BTreeSet};

use phex::graph::document::Document;
use phex::graph::{Defaults, ExclusionRule, GraphBuilder, RelationGraph, Semantics, Strength};
use phex_io::{Error, Format, ReadOptions, graph_to_string, parse_graph};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Names that are trouble for one format or another.
const ODD_NAMES: [&str; 14] = [
    "#1",
    "#1 birds",
    "#E#",
    "- a",
    "* b",
    "1 | [1-2] | x",
    "leaves",
    "hard",
    "relation",
    "GO:1:",
    "a\\\"b",
    "'",
    "\u{1F408} 猫",
    ",",
];

fn name() -> impl Strategy<Value = String> {
    let text = "[a-zA-Z0-9 ,;:'\"|#*é猫={}.\\\\\\[\\]/-]{1,12}";
    prop_oneof![
        3 => text.prop_map(|name| name.trim().to_owned()).prop_filter("empty", |n| !n.is_empty()),
        1 => prop::sample::select(&ODD_NAMES[..]).prop_map(str::to_owned),
    ]
}

fn title() -> impl Strategy<Value = String> {
    "[a-z ,\"\t\n\r\\\\]{0,8}[a-z]"
}

fn strength() -> impl Strategy<Value = Strength> {
    prop_oneof![
        Just(Strength::Hard),
        (0.0..=1.0f64).prop_map(Strength::Q),
        (0.0..1e6f64).prop_map(Strength::U),
        (0.0..1e-6f64).prop_map(Strength::W),
    ]
}

fn rule() -> impl Strategy<Value = (ExclusionRule, Option<Strength>)> {
    (prop::sample::select(&ExclusionRule::ALL[..]), option::of(strength()))
}

fn defaults() -> impl Strategy<Value = Defaults> {
    let kind = || option::weighted(0.3, strength());
    (kind(), kind(), kind()).prop_map(|(strength, hierarchy, exclusion)| Defaults {
        strength,
        hierarchy,
        exclusion,
    })
}

prop_compose! {
    fn graph()(
        names in btree_set(name(), 2..10).prop_map(Vec::from_iter).prop_shuffle(),
        titles in vec(option::of(title()), 10),
        edges in btree_map((0..10usize, 0..10usize), option::of(strength()), 0..12),
        exclusions in btree_map(btree_set(0..10usize, 2..5), (option::of(name()), option::of(strength())), 0..5),
        groups in vec((name(), 0..10usize), 0..6),
        rule in option::of(rule()),
        defaults in defaults(),
        dense in any::<bool>(),
    ) -> RelationGraph {
        let count = names.len();
        let mut builder = GraphBuilder::new();
        builder.defaults(defaults);
        builder.semantics(if dense { Semantics::Dense } else { Semantics::Sparse });
        for (name, title) in names.iter().zip(&titles) {
            builder.titled_label(name, title.as_deref());
        }
        // Edges from lower to higher numbers make no cycle.
        for (&(parent, child), &strength) in &edges {
            if parent < child && child < count {
                builder.hierarchy(&names[parent], &names[child], strength);
            }
        }
        for (labels, (name, strength)) in &exclusions {
            if labels.iter().all(|&label| label < count) {
                let labels = labels.iter().map(|&label| names[label].as_str());
                builder.exclusion_group(name.as_deref(), labels, *strength);
            }
        }
        // A label is in one group at most.
        let mut one_of: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for (group, label) in &groups {
            if *label < count && taken.insert(*label) {
                one_of.entry(group).or_default().insert(*label);
            }
        }
        for (group, labels) in &one_of {
            builder.one_of(group, labels.iter().map(|&label| names[label].as_str()), None);
        }
        if let Some((rule, strength)) = rule {
            builder.exclusion_rule(rule, strength);
        }
        builder.build().expect("the strategy makes usable graphs")
    }
}

fn again(text: &str, format: Format) -> RelationGraph {
    let builder = parse_graph(text.as_bytes(), "again", format, &ReadOptions::default());
    builder.unwrap_or_else(|error| panic!("{error}\n{text}")).build().expect("a usable graph")
}

/// The relations with names, whatever the order of the labels.
fn relations(graph: &RelationGraph) -> BTreeSet<(String, String)> {
    let name = |id| graph.name(id).to_owned();
    let edges = graph.hierarchy().iter();
    let labels = graph.labels().iter().map(|label| (String::new(), label.name.clone()));
    edges.map(|edge| (name(edge.parent), name(edge.child))).chain(labels).collect()
}

/// The graph with nothing but hard edges, and without titles.
fn plain(graph: &RelationGraph, exclusions: bool) -> RelationGraph {
    let mut document = Document::from(graph);
    document.semantics = Semantics::Sparse;
    document.defaults = Defaults::default();
    document.exclude = None;
    document.one_of.clear();
    let labels = graph.labels().iter();
    let bare = |name: &String| phex::graph::document::LabelItem::Name(name.clone());
    document.labels = Some(labels.map(|label| bare(&label.name)).collect());
    document.hierarchy.iter_mut().for_each(|item| item.strength = None);
    for item in &mut document.exclusion {
        (item.name, item.strength) = (None, None);
    }
    if !exclusions {
        document.exclusion.clear();
    }
    document.builder().build().expect("a part of a usable graph")
}

proptest! {
    #[test]
    fn whole_graphs(graph in graph()) {
        for format in [Format::Toml, Format::Json, Format::Csv, Format::Tsv] {
            let text = graph_to_string(&graph, format).unwrap();
            let read = again(&text, format);
            prop_assert_eq!(Document::from(&graph), Document::from(&read), "{}:\n{}", format, text);
        }
    }

    #[test]
    fn hard_graphs_as_hxg(graph in graph()) {
        let graph = plain(&graph, true);
        match graph_to_string(&graph, Format::Hxg) {
            Ok(text) => {
                let read = again(&text, Format::Hxg);
                prop_assert_eq!(Document::from(&graph), Document::from(&read), "{}", text);
            }
            Err(error) => assert!(matches!(error, Error::NotExpressible { .. }), "{error}"),
        }
    }

    #[test]
    fn forests_as_outlines(graph in graph()) {
        let graph = plain(&graph, false);
        match graph_to_string(&graph, Format::Outline) {
            Ok(text) => {
                let read = again(&text, Format::Outline);
                prop_assert_eq!(relations(&graph), relations(&read), "{}", text);
            }
            Err(error) => assert!(matches!(error, Error::NotExpressible { .. }), "{error}"),
        }
    }

    #[test]
    fn every_graph_can_be_drawn(graph in graph()) {
        let text = graph_to_string(&graph, Format::Dot).unwrap();
        assert!(text.starts_with("digraph") && text.ends_with("}\n"));
    }
}
