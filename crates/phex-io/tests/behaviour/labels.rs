//! A table of labels beside a file of relations, and formats found by name and content.

use std::fs;
use std::path::Path;

use phex::graph::RelationGraph;
use phex_io::{Error, Format, ReadOptions, parse_graph, read_graph};

fn with_table(folder: &Path, table: &str) -> ReadOptions {
    let path = folder.join("labels.csv");
    fs::write(&path, table).expect("a temporary file");
    ReadOptions { labels: Some(path), ..ReadOptions::default() }
}

fn names(graph: &RelationGraph) -> Vec<&str> {
    graph.labels().iter().map(|label| label.name.as_str()).collect()
}

#[test]
fn the_table_gives_order_and_titles() {
    let folder = tempfile::tempdir().unwrap();
    let options = with_table(folder.path(), "label,title\ncat,the cat\ndog,\nanimal,\n");
    let files = [
        (Format::Csv, "parent,child\nanimal,dog\nanimal,cat\n"),
        (Format::Csv, "relation,a,b\nlabel,animal,\nlabel,dog,\nhierarchy,animal,dog\n"),
        (Format::Toml, "labels = [\"animal\", \"dog\", \"cat\"]\n"),
        (Format::Hxg, "#E#\nanimal dog\n#H#\nanimal: dog\n"),
        (Format::Outline, "animal\n  dog\n  cat\n"),
        (Format::Obo, "[Term]\nid: dog\nis_a: animal\n"),
    ];
    for (format, text) in files {
        let builder = parse_graph(text.as_bytes(), "x", format, &options).unwrap();
        let graph = builder.build().unwrap_or_else(|error| panic!("{format}: {error}"));
        assert_eq!(names(&graph), ["cat", "dog", "animal"], "{format}");
        assert_eq!(graph.labels()[0].title.as_deref(), Some("the cat"));
        assert!(graph.labels()[0].place.to_string().ends_with("labels.csv:2"));
    }
}

#[test]
fn titles_of_the_file_fill_gaps_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let options = with_table(folder.path(), "label,title\na,first\nb,\n");
    let text = b"[Term]\nid: a\nname: not this\n[Term]\nid: b\nname: second\nis_a: a\n";
    let graph = parse_graph(text, "x", Format::Obo, &options).unwrap().build().unwrap();
    let titles: Vec<_> = graph.labels().iter().map(|label| label.title.as_deref()).collect();
    assert_eq!(titles, [Some("first"), Some("second")]);
}

#[test]
fn names_outside_the_table_are_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let options = with_table(folder.path(), "label\nanimal\ndog\n");
    // In a relation it is for the builder to report, with the nearest name.
    let builder = parse_graph(b"parent,child\nanimal,dgo\n", "x", Format::Csv, &options).unwrap();
    let error = builder.build().unwrap_err().to_string();
    assert!(error.contains("did you mean `dog`"), "{error}");
    // A label without relations would be lost unseen.
    let error = parse_graph(b"animal\ncat\n", "x.txt", Format::Outline, &options).unwrap_err();
    assert_eq!(error.to_string(), "x.txt:2: `cat` is not in the label table");
    // Twice in the table is for the builder, too.
    let twice = with_table(folder.path(), "label\nanimal\nanimal\n");
    let builder = parse_graph(b"parent,child\n", "x", Format::Csv, &twice).unwrap();
    assert!(builder.build().unwrap_err().to_string().contains("declared again"));
}

#[test]
fn formats_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("a.toml", "[[hierarchy]]\nparent = \"a\"\nchildren = [\"b\"]\n"),
        ("a.JSON", "{\"labels\": [\"a\", \"b\"]}"),
        ("hex.txt", "#H#\na: b\n"),
        ("outline.txt", "a\n  b\n"),
        ("without_extension", "parent\tchild\na\tb\n"),
        ("edges.txt", "relation,a,b\nhierarchy,a,b\n"),
    ];
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let graph = read_graph(&path, &ReadOptions::default()).unwrap().build().unwrap();
        assert_eq!(names(&graph), ["a", "b"], "{name}");
    }
    let path = folder.path().join("notes.md");
    fs::write(&path, "a\n  b\n").unwrap();
    let error = read_graph(&path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::UnknownFormat { .. }), "{error}");
    let options = ReadOptions { format: Some(Format::Outline), ..ReadOptions::default() };
    assert!(read_graph(&path, &options).is_ok());
    let options = ReadOptions { format: Some(Format::Dot), ..ReadOptions::default() };
    let error = read_graph(&path, &options).unwrap_err().to_string();
    assert!(error.ends_with("dot files can be written only"), "{error}");
}
