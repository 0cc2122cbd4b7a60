//! Files as users have them. The data is found by `PHEX_DATA`, else beside the repository; without
//! it these tests say so and pass.

use std::collections::BTreeSet;

use phex::graph::{RelationGraph, Strength};
use phex::testkit::data;
use phex_io::{Format, ReadOptions, graph_to_string, parse_graph, read_graph};

fn read(name: &str, options: &ReadOptions) -> Option<RelationGraph> {
    let path = data(name)?;
    let builder = read_graph(&path, options).unwrap_or_else(|error| panic!("{error}"));
    Some(builder.build().unwrap_or_else(|error| panic!("{error}")))
}

fn names(graph: &RelationGraph) -> BTreeSet<&str> {
    graph.labels().iter().map(|label| label.name.as_str()).collect()
}

#[test]
fn imagenet_as_edges_and_as_wordnet() {
    let plain = ReadOptions::default();
    let nodes = data("imagenet/ilsvrc2012_hierarchy_nodes.tsv");
    let with_labels = ReadOptions { labels: nodes, ..plain.clone() };
    let Some(edges) = read("imagenet/ilsvrc2012_hierarchy_edges.tsv", &with_labels) else { return };
    assert_eq!(edges.len(), 1860);
    assert_eq!(edges.hierarchy().len(), 1937);
    assert_eq!(edges.labels()[0].name, "n02119789");
    assert_eq!(edges.labels()[0].title.as_deref(), Some("kit fox, Vulpes macrotis"));

    let synsets = data("imagenet/imagenet_synsets.txt");
    let with_synsets = ReadOptions { synsets, ..plain };
    let Some(nouns) = read("imagenet/wordnet3.0/data.noun", &with_synsets) else { return };
    assert_eq!(nouns.len(), 1860);
    assert_eq!(nouns.leaves().count(), 1000);
    assert_eq!(names(&edges), names(&nouns));
    assert_eq!(nouns.labels()[0].name, "n01440764");
    assert_eq!(nouns.labels()[0].title.as_deref(), Some("tench, Tinca tinca"));

    for format in [Format::Toml, Format::Json, Format::Csv] {
        let text = graph_to_string(&edges, format).unwrap();
        let options = ReadOptions::default();
        let again = parse_graph(text.as_bytes(), "again", format, &options).unwrap();
        assert_eq!(again.build().unwrap().hierarchy().len(), 1937, "{format}");
    }
}

#[test]
fn gene_ontology_slim() {
    let Some(graph) = read("taxonomies/goslim_generic.obo", &ReadOptions::default()) else {
        return;
    };
    assert_eq!(graph.len(), 149);
    assert!(graph.labels().iter().all(|label| label.title.is_some()));
}

#[test]
fn product_taxonomy() {
    let name = "taxonomies/google_product_taxonomy_with_ids.en-US.txt";
    let Some(graph) = read(name, &ReadOptions::default()) else { return };
    assert_eq!(graph.len(), 5595);
    assert_eq!(graph.roots().count(), 21);
    assert_eq!(graph.hierarchy().len(), 5595 - 21);
    assert!(graph_to_string(&graph, Format::Outline).is_ok());
    // Casserole dishes are cookware. By indentation alone they would be under the line above.
    let dishes = graph.id("3485").unwrap();
    let parents = graph.topology().parents(dishes);
    assert_eq!(graph.label(parents[0]).title.as_deref(), Some("Cookware"));
}

#[test]
fn animals_with_attributes() {
    let (rows, columns) = (data("awa/classes.txt"), data("awa/predicates.txt"));
    let options = ReadOptions { rows, columns, ..ReadOptions::default() };
    let Some(binary) = read("awa/predicate-matrix-binary.txt", &options) else { return };
    assert_eq!(binary.len(), 135);
    assert_eq!((binary.hierarchy().len(), binary.exclusions().len()), (1562, 4250 - 1562));
    assert!(binary.is_hard());

    let options = ReadOptions { one_of_classes: true, ..options };
    let Some(graded) = read("awa/predicate-matrix-continuous.txt", &options) else { return };
    assert_eq!(graded.len(), 135);
    assert!(graded.strengths().all(|strength| matches!(strength, Strength::U(u) if u <= 1.0)));
    assert_eq!(graded.one_of()[0].labels.len(), 50);
}
