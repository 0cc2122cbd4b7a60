//! Files as users have them. The data is found by `PHEX_DATA`, else beside the repository; without
//! it these tests say so and pass.

use std::collections::BTreeSet;

use phex::graph::{RelationGraph, Strength};
use phex::testkit::data;
use phex_io::{Format, ReadOptions, graph_to_string, parse_graph, read_graph, read_graph_from};

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
    // What is left out is counted, and can be asked for.
    let path = data("taxonomies/goslim_generic.obo").unwrap();
    let skipped = read_graph(&path, &ReadOptions::default()).unwrap();
    let counts =
        skipped.notes().filter_map(|(_, note)| note.split(' ').next()?.parse::<usize>().ok());
    let relations = Some(vec![String::from("is_a"), String::from("part_of")]);
    let options = ReadOptions { relations, ..ReadOptions::default() };
    let more = read("taxonomies/goslim_generic.obo", &options).unwrap();
    assert_eq!(
        counts.sum::<usize>(),
        std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("relationship:"))
            .count()
    );
    assert!(more.hierarchy().len() > graph.hierarchy().len());
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

    // The same labels as path lines, as Google publishes them, and as the other forms that are written.
    let mut paths: Vec<String> = Vec::new();
    let mut rows = String::from("parent_id,name,id\n");
    for id in graph.ids() {
        let mut path = vec![graph.label(id).title.clone().unwrap()];
        let mut at = id;
        while let Some(&parent) = graph.topology().parents(at).first() {
            path.push(graph.label(parent).title.clone().unwrap());
            at = parent;
        }
        path.reverse();
        let parent = graph.topology().parents(id).first().map_or("", |&parent| graph.name(parent));
        rows.push_str(&format!("{parent},\"{}\",{}\n", path.last().unwrap(), graph.name(id)));
        paths.push(path.join(" > "));
    }
    let plain = ReadOptions::default();
    let table = read_graph_from(rows.as_bytes(), "table.csv", &plain).unwrap().build().unwrap();
    let edges = |graph: &RelationGraph| graph.hierarchy().len();
    assert_eq!((table.len(), edges(&table)), (graph.len(), edges(&graph)));
    assert_eq!(table.label(table.id("3485").unwrap()).title, graph.label(dishes).title);
    let text = paths.join("\n");
    let lines = read_graph_from(text.as_bytes(), "paths.txt", &plain).unwrap().build().unwrap();
    assert_eq!((lines.len(), edges(&lines)), (graph.len(), edges(&graph)));
    let repeated = lines.labels().iter().filter(|label| label.name.contains(" > ")).count();
    let mut titles: Vec<_> = graph.labels().iter().map(|label| label.title.clone()).collect();
    titles.sort();
    let same =
        |title| titles.partition_point(|t| t <= title) - titles.partition_point(|t| t < title) > 1;
    let below = |id| !graph.topology().parents(id).is_empty();
    let expected = graph.ids().filter(|&id| below(id) && same(&graph.label(id).title)).count();
    assert_eq!(repeated, expected);
    for format in [
        Format::Parents,
        Format::Levels,
        Format::Paths,
        Format::Tree,
        Format::NodeLink,
        Format::GraphMl,
    ] {
        let text = graph_to_string(&graph, format).unwrap();
        let again = parse_graph(text.as_bytes(), "again", format, &plain).unwrap().build().unwrap();
        assert_eq!((again.len(), edges(&again)), (graph.len(), edges(&graph)), "{format}");
    }
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
