//! Taxonomies as other programs write them, and what is done where a file is not what it seems.

use std::process::Command;

use phex::graph::{FindingKind, RelationGraph};
use phex_io::{Error, Format, PathNames, ReadOptions, graph_to_string, parse_graph, read_graph};
use phex_io::{read_graph_from, write_graph};
use serde_json::Value;

fn from_stream(text: &str, name: &str) -> Result<RelationGraph, Error> {
    let builder = read_graph_from(text.as_bytes(), name, &ReadOptions::default())?;
    Ok(builder.build().unwrap())
}

#[test]
fn counts_are_those_of_pandas_networkx_and_rdflib() {
    let Some(python) = std::env::var_os("PHEX_PYTHON") else {
        phex::testkit::skip("PHEX_PYTHON names no interpreter with rdflib; `make unit` makes one");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/taxonomies.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = std::fs::read_to_string(folder.path().join("counts.json")).unwrap();
    let counts: serde_json::Map<String, Value> = serde_json::from_str(&counts).unwrap();
    assert!(counts.len() >= 26, "{} files were written", counts.len());
    for (name, expected) in &counts {
        let path = folder.path().join(name);
        let read = |path: &std::path::Path| {
            let builder = read_graph(path, &ReadOptions::default());
            let builder = builder.unwrap_or_else(|error| panic!("{error}"));
            builder.build().unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let graph = read(&path);
        let found = [graph.len(), graph.hierarchy().len()];
        assert_eq!(serde_json::json!(found), *expected, "{name}");
        let lines = graph.hierarchy().iter().filter(|edge| edge.place.line.is_some()).count();
        assert_eq!(lines, graph.hierarchy().len(), "{name}: every relation has its line");
        // The content alone shows the form, too, except for outlines and YAML.
        let bare = folder.path().join("no_ending");
        std::fs::copy(&path, &bare).unwrap();
        assert_eq!(read(&bare).len(), graph.len(), "{name} without its ending");
    }
}

#[test]
fn titles_in_the_language_that_was_asked_for() {
    let text = "<x:a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"dog\"@en, \"Hund\"@de, \"chien\"@fr .\n\
                <x:b> <http://www.w3.org/2004/02/skos/core#narrower> <x:a> .\n";
    for (language, title) in
        [(None, "dog"), (Some("de"), "Hund"), (Some("fr"), "chien"), (Some("it"), "dog")]
    {
        let options =
            ReadOptions { language: language.map(str::to_owned), ..ReadOptions::default() };
        let builder = parse_graph(text.as_bytes(), "g.ttl", Format::Turtle, &options).unwrap();
        let graph = builder.build().unwrap();
        let label = graph.labels().iter().find(|label| label.name.ends_with('a')).unwrap();
        assert_eq!(label.title.as_deref(), Some(title), "{language:?}");
    }
}

#[test]
fn endings_are_hints_and_content_decides() {
    let cases = [
        ("tree.json", r#"{"name": "a", "children": [{"name": "b"}, {"name": "c"}]}"#),
        (
            "coco.json",
            r#"{"categories": [{"supercategory": "a", "id": 1, "name": "b"}, {"supercategory": "a", "id": 2, "name": "c"}]}"#,
        ),
        ("graph.json", r#"{"hierarchy": [{"parent": "a", "children": ["b", "c"]}]}"#),
        (
            "links.json",
            r#"{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "links": [{"source": "a", "target": "b"}, {"source": "a", "target": "c"}]}"#,
        ),
        ("table.csv", "id,parent_id,name\na,,A\nb,a,B\nc,a,C\n"),
        ("levels.csv", "level1,level2\na,b\na,c\n"),
        ("edges.csv", "parent,child\na,b\na,c\n"),
        ("paths.csv", "id,path\n1,a > b\n2,a > c\n"),
        ("paths.txt", "a > b\na > c\n"),
        ("outline.txt", "a\n  b\n  c\n"),
        ("table.txt", "name\tparent\nb\ta\nc\ta\n"),
        ("codes.txt", "A000 Cholera\nA001 More\n"),
        ("tree.yaml", "a: [b, c]\n"),
        ("-", "a/b\na/c\n"),
        ("-", "name;parent\nb;a\nc;a\n"),
        (
            "graph.xml",
            "<graphml><graph><node id='a'/><node id='b'/><node id='c'/><edge source='a' target='b'/><edge source='a' target='c'/></graph></graphml>",
        ),
    ];
    for (name, text) in cases {
        let graph = from_stream(text, name).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((graph.len(), graph.hierarchy().len()), (3, 2), "{name}: {text}");
    }
}

#[test]
fn files_that_are_something_else_are_refused() {
    let lines: String = (0..100).map(|at| format!("some line number {at}\n")).collect();
    let error = from_stream(&lines, "strange.txt").unwrap_err();
    assert!(matches!(&error, Error::MostlyIsolated { isolated: 100, labels: 100, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("line 1: `some line number 0` was read as the label"), "{text}");
    assert!(text.contains("`id,parent_id,name`"), "{text}");
    // Whoever says what it is gets it.
    let graph = parse_graph(lines.as_bytes(), "x.txt", Format::Outline, &ReadOptions::default());
    assert_eq!(graph.unwrap().len(), 100);
    // Few labels, and those of a document, are taken as they are.
    assert_eq!(from_stream("dog\ncat\n", "labels.txt").unwrap().len(), 2);
    let labels: Vec<String> = (0..100).map(|at| format!("\"l{at}\"")).collect();
    let document = format!("labels = [{}]\n", labels.join(", "));
    assert_eq!(from_stream(&document, "labels.toml").unwrap().len(), 100);
}

/// A forest with titles and names that some formats cannot hold without care.
fn forest() -> RelationGraph {
    let text = "labels = [{ name = \"a & <b>\", title = \"A \\\"b\\\", c\" }, \"c, d\", \"e\", \"f;g\", \"h\"]\n\
                [[hierarchy]]\nparent = \"a & <b>\"\nchildren = [\"c, d\", \"e\"]\n[[hierarchy]]\n\
                parent = \"e\"\nchildren = [\"f;g\"]\n";
    let builder = parse_graph(text.as_bytes(), "g", Format::Toml, &ReadOptions::default());
    builder.unwrap().build().unwrap()
}

#[test]
fn what_is_written_is_read_again() {
    let graph = forest();
    let edges = |graph: &RelationGraph| {
        let mut edges: Vec<(String, String)> = graph
            .hierarchy()
            .iter()
            .map(|e| (graph.name(e.parent).to_owned(), graph.name(e.child).to_owned()))
            .collect();
        edges.sort();
        edges
    };
    let titled = [Format::Parents, Format::Tree, Format::NodeLink, Format::GraphMl];
    let folder = tempfile::tempdir().unwrap();
    let forms = [Format::Levels, Format::Outline];
    for format in titled.into_iter().chain(forms) {
        let path = folder.path().join("written");
        write_graph(&graph, &path, Some(format)).unwrap();
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let again = read_graph(&path, &options).unwrap_or_else(|error| panic!("{error}"));
        let again = again.build().unwrap();
        assert_eq!(edges(&again), edges(&graph), "{format}");
        assert_eq!(again.len(), graph.len(), "{format}");
        if titled.contains(&format) {
            let label = again.label(again.id("a & <b>").unwrap());
            assert_eq!(label.title.as_deref(), Some("A \"b\", c"), "{format}");
        }
    }
    let text = graph_to_string(&graph, Format::Paths).unwrap_err().to_string();
    assert!(text.contains("the name \"a & <b>\""), "{text}");
    let dag = from_stream("parent,child\na,c\nb,c\n", "g.csv").unwrap();
    for format in [Format::Levels, Format::Paths, Format::Tree] {
        let error = graph_to_string(&dag, format).unwrap_err().to_string();
        assert!(error.contains("several parents, such as `c`"), "{format}: {error}");
    }
    for format in [Format::Parents, Format::NodeLink, Format::GraphMl] {
        let text = graph_to_string(&dag, format).unwrap();
        let again = parse_graph(text.as_bytes(), "g", format, &ReadOptions::default()).unwrap();
        assert_eq!(again.build().unwrap().hierarchy().len(), 2, "{format}");
    }
}

#[test]
fn names_that_are_nearly_the_same_are_findings() {
    let text =
        "parent,child\nanimal,mammal\nanimal,bird\nmamal,dog\nmammal,Dog\nbird,owls\nbird,owl\n";
    let options = ReadOptions::default();
    let builder = parse_graph(text.as_bytes(), "g.csv", Format::Csv, &options).unwrap();
    let report = builder.check();
    let found: Vec<_> = report
        .of_kind(FindingKind::SimilarNames)
        .map(|finding| (finding.labels.join(" "), finding.place.line))
        .collect();
    let expected = [("mammal mamal", 4), ("dog Dog", 5), ("owls owl", 7)];
    assert_eq!(found, expected.map(|(labels, line)| (labels.to_owned(), Some(line))));
}

#[test]
fn google_taxonomy_as_it_is_published() {
    // The same words at different places, as `Accessories` is in the real one.
    let mut with_ids = String::from("# Google_Product_Taxonomy_Version: 2021-09-21\n");
    let mut plain = with_ids.clone();
    for (at, path) in ["A", "A > Accessories", "B", "B > Accessories", "B > C"].iter().enumerate() {
        with_ids.push_str(&format!("{} - {path}\n", 3 * at + 1));
        plain.push_str(&format!("{path}\n"));
    }
    let graph = from_stream(&with_ids, "taxonomy-with-ids.en-US.txt").unwrap();
    assert_eq!((graph.len(), graph.labels()[3].name.as_str()), (5, "10"));
    assert_eq!(graph.labels()[3].title.as_deref(), Some("Accessories"));
    let graph = from_stream(&plain, "taxonomy.en-US.txt").unwrap();
    assert_eq!(graph.labels()[3].name, "B > Accessories");
    let options = ReadOptions { path_names: Some(PathNames::Merged), ..ReadOptions::default() };
    let merged = read_graph_from(plain.as_bytes(), "t.txt", &options).unwrap().build().unwrap();
    assert_eq!((merged.len(), merged.hierarchy().len()), (4, 3));
}
