//! Files from strangers: nothing panics, and limits hold before the memory is full.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;

use phex::graph::GraphBuilder;
use phex::graph::document::Document;
use phex_io::{Error, Format, Limits, ReadOptions, parse_graph, read_graph, read_graph_from};
use proptest::prelude::*;

const TOML: &str = "exclude = \"siblings\"\nlabels = [\"a\", \"b\", { name = \"c\", title = \"C\" }]\n\
    [defaults]\nstrength = { u = 0.5 }\n[[hierarchy]]\nparent = \"a\"\nchildren = [\"b\", \"c\"]\n\
    [[exclusion]]\nlabels = [\"b\", \"c\"]\nstrength = { q = 0.1 }\n[[one_of]]\nname = \"g\"\n\
    labels = \"leaves\"\n";
const JSON: &str = "{\"exclude\": {\"rule\": \"siblings\", \"strength\": {\"w\": 2}}, \"labels\": [\"a\", \
    {\"name\": \"b\", \"title\": \"B\"}],\n\"hierarchy\": [{\"parent\": \"a\", \"children\": [\"b\"]}],\
    \"one_of\": [{\"name\": \"g\", \"labels\": [\"b\"]}]}";
const CSV: &str = "relation,a,b,strength\nlabel,a,\nlabel,\"b, c\",B\nhierarchy,a,\"b, c\",u=0.5\n\
    exclusion_group,#1,a,\nexclusion_group,#1,\"b, c\",\none_of,g,a,hard\ndefault,all,,w=2\n";
const HXG: &str = "#E#\na b c\n#X#\na b\n#H#\na: b c\n";
const OUTLINE: &str = "# x\na\n  - b\n    c\n  - d\n";
const LISTING: &str = " 1 | [ 1- 4] | Animals\n   2 | [ 2- 3] | Dogs\n";
const OBO: &str = "format-version: 1.2\n[Term]\nid: a\nname: A \\n {x}\nis_a: b {s=\"1\"} ! c\n\
    disjoint_from: d\n[Typedef]\nid: p\n";
const TURTLE: &str = "@prefix o: <http://www.w3.org/2002/07/owl#> .\n@prefix r: \
    <http://www.w3.org/2000/01/rdf-schema#> .\n<x:a> r:subClassOf <x:b>, [ a o:Restriction ] ; r:label \
    \"A\"@en .\n[] a o:AllDisjointClasses ; o:members ( <x:a> <x:b> ) .\n";
const WORDNET: &str = "  1 licence\n00000001 03 n 01 entity 0 001 ~ 00000002 n 0000 | all  \n\
    00000002 05 n 02 dog 0 domestic_dog 0 001 @ 00000001 n 0000 | woof  \n";
const MATRIX: &str = "class,furry,swims\ndolphin,0,1\notter,0.5,-1\n";
const ARFF: &str = "% c\n@relation r\n@attribute 'a b' {x,'y z'}\n@attribute class hierarchical \
    a,a/b,c/d/e\n@data\n?,a/b@c\n";
const ARFF_DAG: &str = "@attribute class hierarchical root/a,root/b,a/c,b/c\n@data\n";
const NUMBERS: &str = "0 1\n1 0.5\n";

/// Every reader with a file that it can read.
fn samples() -> Vec<(Format, &'static str, ReadOptions)> {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = [("synsets", "n00000002\n"), ("names", "1 x\n2 y\n"), ("other", "p\nq\n")];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("a temporary file");
        }
        folder
    });
    let file = |name: &str| Some(folder.path().join(name));
    let plain = ReadOptions::default;
    let wordnet = ReadOptions { synsets: file("synsets"), ..plain() };
    let numbers = ReadOptions { rows: file("names"), columns: file("other"), ..plain() };
    vec![
        (Format::Toml, TOML, plain()),
        (Format::Json, JSON, plain()),
        (Format::Csv, CSV, plain()),
        (Format::Tsv, "parent\tchild\na\tb\n", plain()),
        (Format::Hxg, HXG, plain()),
        (Format::Outline, OUTLINE, plain()),
        (Format::Outline, LISTING, plain()),
        (Format::Obo, OBO, plain()),
        (Format::Turtle, TURTLE, plain()),
        (Format::WordNet, WORDNET, wordnet),
        (Format::Matrix, MATRIX, plain()),
        (Format::Arff, ARFF, plain()),
        (Format::Arff, ARFF_DAG, plain()),
        (Format::Matrix, NUMBERS, numbers),
    ]
}

fn parse(bytes: &[u8], format: Format) -> Result<GraphBuilder, Error> {
    parse_graph(bytes, "hostile", format, &ReadOptions::default())
}

#[test]
fn samples_are_good() {
    for (format, text, options) in samples() {
        let builder = parse_graph(text.as_bytes(), "good", format, &options).unwrap();
        let graph = builder.build().unwrap_or_else(|error| panic!("{format}: {error}"));
        assert!(graph.len() >= 2, "{format}");
    }
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    for (format, text, options) in samples() {
        let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let read = |text: &str| {
            let builder = parse_graph(text.as_bytes(), "x", format, &options).expect("a good file");
            let graph = builder.build().expect("a good graph");
            let lines: Vec<_> = graph.labels().iter().map(|label| label.place.line).collect();
            (Document::from(&graph), lines)
        };
        assert_eq!(read(text), read(&windows), "{format}");
    }
}

fn mutation() -> impl Strategy<Value = (usize, usize, usize, u8)> {
    (0..4usize, any::<usize>(), any::<usize>(), any::<u8>())
}

/// A flipped byte, a cut, a slice twice, or a slice left out.
fn mutate(bytes: &mut Vec<u8>, (kind, from, to, byte): (usize, usize, usize, u8)) {
    if bytes.is_empty() {
        return;
    }
    let (from, to) = (from % bytes.len(), to % bytes.len());
    let (from, to) = (from.min(to), from.max(to));
    match kind {
        0 => bytes[from] ^= byte,
        1 => bytes.truncate(to),
        2 => {
            let slice = bytes[from..to].to_vec();
            bytes.splice(to..to, slice);
        }
        _ => drop(bytes.drain(from..to)),
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (format, _, options) in samples() {
            if let Ok(builder) = parse_graph(&bytes, "x", format, &options) {
                let _ = builder.check_and_build();
            }
        }
        let _ = read_graph_from(bytes.as_slice(), "x.txt", &ReadOptions::default());
    }

    #[test]
    fn arbitrary_text(text in "[\\[\\]{}\"'=:,.|<>@#a-c0-9 \\\\\t\n-]{0,200}") {
        for (format, _, options) in samples() {
            if let Ok(builder) = parse_graph(text.as_bytes(), "x", format, &options) {
                let _ = builder.check_and_build();
            }
        }
    }

    #[test]
    fn mutated_files(mutations in prop::collection::vec(mutation(), 1..4)) {
        for (format, text, options) in samples() {
            let mut bytes = text.as_bytes().to_vec();
            mutations.iter().for_each(|&mutation| mutate(&mut bytes, mutation));
            if let Ok(builder) = parse_graph(&bytes, "x", format, &options) {
                let _ = builder.check_and_build();
            }
        }
    }
}

#[test]
fn a_million_levels() {
    let deep = 1_000_000;
    let (open, close) = ("[".repeat(deep), "]".repeat(deep));
    let json = [
        open.clone(),
        format!("{open}{close}"),
        format!("{{\"labels\": {open}{close}}}"),
        format!("{{\"exclude\": {open}{close}}}"),
        "{\"a\":".repeat(deep),
        format!("{{\"hierarchy\": [{}", "{\"parent\":".repeat(deep)),
    ];
    for text in json {
        assert!(parse(text.as_bytes(), Format::Json).is_err());
    }
    let toml = [
        format!("labels = {open}"),
        format!("labels = {open}\n{close}"),
        format!("labels = {}", "{a=".repeat(deep / 3)),
        format!("{}a = 1", "a.".repeat(deep / 2)),
        format!("[{}a]\n", "a.".repeat(deep / 2)),
    ];
    for text in toml {
        let error = parse(text.as_bytes(), Format::Toml).unwrap_err();
        assert!(matches!(error, Error::Syntax { line: 1, .. }), "{error}");
    }
    for start in ["<x:a> <x:b> ", ""] {
        for bracket in ["[ <x:b> ", "( "] {
            let text = format!("{start}{}", format!("{bracket}\n").repeat(deep / 10));
            assert!(parse(text.as_bytes(), Format::Turtle).is_err());
        }
    }
}

#[test]
fn a_deep_outline() {
    // A million levels are half a terabyte of spaces: the limit of the file is met first.
    struct Outline {
        level: usize,
        line: Vec<u8>,
    }
    impl Read for Outline {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.line.is_empty() && self.level < 1_000_000 {
                self.line = format!("{:1$}x{1}\n", "", self.level).into_bytes();
                self.level += 1;
            }
            let count = self.line.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.line[..count]);
            self.line.drain(..count);
            Ok(count)
        }
    }
    let options = ReadOptions {
        limits: Limits { file_bytes: 16 << 20, ..Limits::default() },
        ..ReadOptions::default()
    };
    let outline = Outline { level: 0, line: Vec::new() };
    let error = read_graph_from(outline, "deep.outline", &options).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit, .. } if limit == 16 << 20), "{error}");

    let levels: String = (0..10_010).map(|level| format!("{:1$}x{1}\n", "", level)).collect();
    let error = parse(levels.as_bytes(), Format::Outline).unwrap_err();
    assert_eq!(error.to_string(), "hostile:10001: more than 10000 levels of indentation");
}

#[test]
fn huge_numbers() {
    for number in ["1e999999", "99999999999999999999", "-1e999", "1e-999999", "NaN", "inf"] {
        let files = [
            (
                Format::Json,
                format!(
                    "{{\"exclusion\": [{{\"labels\": [\"a\", \"b\"], \"strength\": {{\"u\": {number}}}}}]}}"
                ),
            ),
            (
                Format::Toml,
                format!("[[exclusion]]\nlabels = [\"a\", \"b\"]\nstrength = {{ u = {number} }}\n"),
            ),
            (Format::Csv, format!("relation,a,b,u\nexclusion,a,b,{number}\n")),
            (Format::Matrix, format!("class,x\ny,{number}\nz,0.5\n")),
        ];
        for (format, text) in files {
            // Refused by the reader or the builder, or read as a number: never a panic.
            if let Ok(graph) = parse(text.as_bytes(), format).map(|builder| builder.build()) {
                let strengths = graph.iter().flat_map(|graph| graph.strengths());
                strengths.for_each(|strength| assert!(strength.cost() >= 0.0, "{text}"));
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text() {
    for format in Format::ALL.into_iter().filter(|format| format.can_read()) {
        let error = parse(b"a\n\xc3\x28\n", format).unwrap_err().to_string();
        assert!(error.starts_with("hostile:2: the text is not UTF-8"), "{format}: {error}");
        let _ = parse(b"\0\0\0\n\0", format);
    }
    let with_nul = parse(b"parent,child\na\0,b\n", Format::Csv).unwrap();
    assert!(with_nul.build().is_err(), "names have visible characters only");
}

/// A gigabyte of one byte that counts what is taken from it.
struct Endless {
    left: u64,
    byte: u8,
    taken: Rc<Cell<u64>>,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        buffer[..count].fill(self.byte);
        self.left -= count as u64;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

#[test]
fn an_endless_line_is_refused_early() {
    for name in ["x.toml", "x.csv", "x.txt", "x.obo", "x.ttl", "data.noun", "-"] {
        let taken = Rc::new(Cell::new(0));
        let endless = Endless { left: 1 << 30, byte: b'x', taken: Rc::clone(&taken) };
        let error = read_graph_from(endless, name, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, Error::LineTooLong { line: 1, .. }), "{name}: {error}");
        assert!(taken.get() <= 2 << 20, "{name}: {} bytes were read", taken.get());
    }
    // JSON has no limit on lines, but all have one on the file.
    let taken = Rc::new(Cell::new(0));
    let endless = Endless { left: 1 << 30, byte: b' ', taken: Rc::clone(&taken) };
    let options = ReadOptions {
        limits: Limits { file_bytes: 4 << 20, ..Limits::default() },
        ..ReadOptions::default()
    };
    let error = read_graph_from(endless, "x.json", &options).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert!(taken.get() <= 5 << 20, "{} bytes were read", taken.get());
}

#[test]
fn files_and_labels_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.csv");
    // A sparse file: it takes no room on the disk.
    std::fs::File::create(&path).unwrap().set_len(2 << 30).unwrap();
    let error = read_graph(&path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");

    let options =
        ReadOptions { limits: Limits { labels: 3, ..Limits::default() }, ..ReadOptions::default() };
    let text = b"parent,child\na,b\na,c\na,d\na,e\n";
    let error = parse_graph(text, "x.csv", Format::Csv, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x.csv:5: more than the 3 labels allowed; raise the limit to read it"
    );

    let missing = PathBuf::from("no such file.toml");
    let error = read_graph(&missing, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with("no such file.toml: cannot be read"), "{error}");
    let error = parse(b"x", Format::WordNet).unwrap_err().to_string();
    assert!(error.contains("need a list of synset ids"), "{error}");
    let error = read_graph_from(&b"?"[..], "x.xyz", &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("give one of toml, json"), "{error}");
}
