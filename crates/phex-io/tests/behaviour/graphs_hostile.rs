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
const PARENTS: &str = "taxonID;parentNameUsageID;acceptedNameUsageID;scientificName\n1;;;a\n2;1.0;;\"b \
    c\"\n3;1|2;;c\n4;9;;d\n5;;1;e\n";
const RECORDS: &str = "[{\"id\": 1, \"parent\": null, \"name\": \"a\"},\n {\"id\": 2, \"parent\": [1], \
    \"name\": \"b\"}]";
const LEVELS: &str =
    "level1_id,level1_name,level2_id,level2_name,common_name\n1,a,11,b,B\n,,12,c,\n2,d,,\n";
const RANKS: &str = "kingdom,phylum,class,count\nA,B,C,1\nA,,D,2\nA,E,E,3\n";
const PATHS: &str = "# x\n1 - a\n2 - a > b\n3 - c > b > d\n";
const PATH_TABLE: &str = "id,path\n1,a/b\n2,\"a/b, c\"\n";
const TREE: &str = "{\"name\": \"a\", \"id\": 3, \"children\": [\n{\"LabelName\": \"b\", \"Part\": [1]},\n \
    {\"x\": [\"y\", {\"z\": null}]}, \"caf\\u00e9\"]}";
const LISTS: &str = "{\"a\": [\"b\", \"c\"],\n \"b\": [\"d\"]}";
const YAML: &str = "# x\na:\n  - b: [c, 'd']\n  - e:\n      f: ~\n      \"g\": {h: 1}\n";
const COCO: &str = "{\"images\": [{\"id\": 1}],\n\"categories\": [{\"supercategory\": \"a\", \"id\": 1, \
    \"name\": \"b\"},\n {\"name\": \"c\", \"supercategory\": \"none\"}]}";
const INAT: &str = "[{\"name\": \"Puma concolor\", \"supercategory\": \"M\", \"kingdom\": \"A\", \"genus\": \
    \"Puma\", \"common_name\": \"cougar\"}]";
const NODE_LINK: &str = "{\"directed\": true, \"nodes\": [{\"id\": \"a\", \"name\": \"A\"},\n {\"id\": 2}], \
    \"links\": [{\"source\": 2, \"target\": \"a\", \"key\": \"is_a\"},\n {\"source\": \"a\", \"target\": \"a\"}]}";
const GRAPHML: &str = "<?xml version='1.0'?>\n<graphml><key id='d0' attr.name='name'/>\n<graph edgedefault='directed'>\
    <node id='a'><data key='d0'>A &amp; &#66;</data></node>\n<node id='b'/><edge source='a' target='b'/>\
    </graph></graphml>\n";
const RDF_XML: &str = "<?xml version='1.0'?>\n<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
    xmlns:s='http://www.w3.org/2000/01/rdf-schema#'>\n<rdf:Description rdf:about='#a'>\n<s:subClassOf \
    rdf:resource='#b'/><s:label xml:lang='en'>A</s:label>\n</rdf:Description></rdf:RDF>\n";
const JSON_LD: &str = "{\"@context\": {\"s\": \"http://www.w3.org/2004/02/skos/core#\"},\n\"@id\": \"x:a\", \
    \"s:broader\": {\"@id\": \"x:b\"},\n\"s:prefLabel\": \"A\"}";
const TRIG: &str = "<x:g> { <x:a> <http://www.w3.org/2004/02/skos/core#broader> <x:b> . }\n";
const ICD: &str = "A000    Cholera due to Vibrio\nA001    Cholera\nB99 Other\n";
const ICD_ORDER: &str = "00001 A00     0 Cholera                                                      Cholera x\n\
    00002 A000    1 Cholera                                                      Cholera y\n";
const ICD_XML: &str = "<?xml version='1.0'?>\n<ICD10CM.tabular><chapter><name>1</name><desc>a</desc>\n<section \
    id='A00-A09'><desc>b</desc>\n<diag><name>A00</name><desc>c</desc><sevenChrDef><extension char='A'>x\
    </extension></sevenChrDef></diag></section></chapter></ICD10CM.tabular>\n";
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
        (Format::Parents, PARENTS, plain()),
        (Format::Parents, RECORDS, plain()),
        (Format::Levels, LEVELS, plain()),
        (Format::Levels, RANKS, plain()),
        (Format::Paths, PATHS, plain()),
        (Format::Paths, PATH_TABLE, plain()),
        (Format::Tree, TREE, plain()),
        (Format::Tree, LISTS, plain()),
        (Format::Yaml, YAML, plain()),
        (Format::Categories, COCO, plain()),
        (Format::Categories, INAT, plain()),
        (Format::NodeLink, NODE_LINK, plain()),
        (Format::GraphMl, GRAPHML, plain()),
        (Format::RdfXml, RDF_XML, plain()),
        (Format::JsonLd, JSON_LD, plain()),
        (Format::Turtle, TRIG, plain()),
        (Format::Icd10, ICD, plain()),
        (Format::Icd10, ICD_ORDER, plain()),
        (Format::Icd10, ICD_XML, plain()),
    ]
}

fn parse(bytes: &[u8], format: Format) -> Result<GraphBuilder, Error> {
    parse_graph(bytes, "hostile", format, &ReadOptions::default())
}

#[test]
fn every_format_that_can_be_read_has_a_sample() {
    for format in Format::ALL.into_iter().filter(|format| format.can_read()) {
        assert!(samples().iter().any(|sample| sample.0 == format), "{format}");
    }
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

/// Every sample of taxonomies as they are, a million levels deep.
#[test]
fn a_million_levels_of_other_forms() {
    let deep = 1_000_000;
    let json = [
        "{\"name\":\"a\",\"children\":[".repeat(deep),
        "{\"a\":".repeat(deep),
        "[".repeat(deep) + &"]".repeat(deep),
        format!("{{\"categories\": {}", "[".repeat(deep)),
        format!("{{\"@context\": {}", "[".repeat(deep)),
        format!("{{\"@graph\": {}", "{\"@graph\":[".repeat(deep)),
        format!("{{\"nodes\": [], \"links\": {}", "[".repeat(deep)),
    ];
    for text in json {
        for format in
            [Format::Json, Format::Tree, Format::Categories, Format::NodeLink, Format::JsonLd]
        {
            assert!(parse(text.as_bytes(), format).is_err(), "{format}: {}", &text[..20]);
        }
    }
    for (text, format) in [
        ("[".repeat(deep / 2), Format::Yaml),
        ("- ".repeat(deep / 4), Format::Yaml),
        ("{a: ".repeat(deep / 8), Format::Yaml),
        ("? ".repeat(deep / 8), Format::Yaml),
        ("<a>\n".repeat(deep), Format::GraphMl),
        ("<chapter>\n".repeat(deep), Format::Icd10),
        ("a/".repeat(deep / 4), Format::Paths),
        (format!("id,path\n1,{}", "a/".repeat(deep / 4)), Format::Paths),
    ] {
        let error = parse(text.as_bytes(), format).err().map(|error| error.to_string());
        assert!(error.is_some(), "{format}: {}", &text[..20]);
    }
    let rdf =
        format!("{}<rdf:x>", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>");
    let nested = "<rdf:Description><rdf:value>\n".repeat(deep / 10);
    assert!(parse(format!("{rdf}{nested}").as_bytes(), Format::RdfXml).is_err());
    // A chain of parents is read, and the builder refuses its depth.
    let chain: String = (1..deep / 10).map(|at| format!("{at},{}\n", at - 1)).collect();
    let builder = parse(format!("id,parent\n0,\n{chain}").as_bytes(), Format::Parents).unwrap();
    assert!(builder.build().is_err());
}

#[test]
fn entities_are_never_expanded() {
    let lol: String = (1..30)
        .map(|at| format!("<!ENTITY l{at} \"{}\">\n", format!("&l{};", at - 1).repeat(10)))
        .collect();
    let bomb = format!("<!DOCTYPE x [\n<!ENTITY l0 \"lol\">\n{lol}]>\n");
    let file = "<!DOCTYPE x [ <!ENTITY f SYSTEM \"file:///etc/hostname\"> ]>\n";
    for (declared, entity) in [(bomb.as_str(), "&l29;"), (file, "&f;"), ("", "&l0;")] {
        for (format, body) in [
            (Format::GraphMl, format!("<graphml><graph><node id='{entity}'/></graph></graphml>")),
            (Format::GraphMl, format!("<graphml><graph><node id='a'/>{entity}</graph></graphml>")),
            (
                Format::Icd10,
                format!("<x><chapter><name>{entity}</name><desc>a</desc></chapter></x>"),
            ),
            (
                Format::RdfXml,
                format!(
                    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\
                     <rdf:Description rdf:about='#{entity}'/></rdf:RDF>"
                ),
            ),
        ] {
            let error = parse(format!("{declared}{body}").as_bytes(), format).unwrap_err();
            assert!(error.line().is_some_and(|line| line <= 2), "{format}: {error}");
        }
    }
    // Anchors of YAML are the same bomb.
    let aliases: String = (1..30)
        .map(|at| format!("a{at}: &a{at} [{}]\n", format!("*a{},", at - 1).repeat(10)))
        .collect();
    let error = parse(format!("a0: &a0 [lol]\n{aliases}").as_bytes(), Format::Yaml).unwrap_err();
    assert_eq!(error.line(), Some(2), "{error}");
}

#[test]
fn cycles_are_findings() {
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
               xmlns:s='http://www.w3.org/2000/01/rdf-schema#'><rdf:Description rdf:about='#a'><s:subClassOf \
               rdf:resource='#b'/></rdf:Description><rdf:Description rdf:about='#b'><s:subClassOf \
               rdf:resource='#a'/></rdf:Description></rdf:RDF>";
    for (format, text) in [
        (Format::Parents, "id,parent\na,b\nb,a\n"),
        (Format::Tree, "{\"a\": [\"b\"], \"b\": [\"a\"]}"),
        (
            Format::Tree,
            "{\"id\": \"a\", \"name\": \"x\", \"children\": [{\"id\": \"b\", \"name\": \"y\", \
            \"children\": [{\"id\": \"a\", \"name\": \"x\"}]}]}",
        ),
        (Format::Yaml, "a: b\nb: a\n"),
        (
            Format::NodeLink,
            "{\"nodes\": [{\"id\": \"a\"}, {\"id\": \"b\"}], \"links\": [{\"source\": \"a\", \
            \"target\": \"b\"}, {\"source\": \"b\", \"target\": \"a\"}]}",
        ),
        (
            Format::GraphMl,
            "<graphml><graph><node id='a'/><node id='b'/><edge source='a' target='b'/><edge \
            source='b' target='a'/></graph></graphml>",
        ),
        (Format::RdfXml, rdf),
        (
            Format::Categories,
            "[{\"name\": \"a\", \"supercategory\": \"b\"}, {\"name\": \"b\", \
            \"supercategory\": \"a\"}]",
        ),
    ] {
        let report = parse(text.as_bytes(), format).unwrap().check();
        let cycles = report.of_kind(phex::graph::FindingKind::HierarchyCycle).count();
        assert_eq!(cycles, 1, "{format}: {}", report.to_text(true));
    }
    let merged =
        ReadOptions { path_names: Some(phex_io::PathNames::Merged), ..ReadOptions::default() };
    let builder = parse_graph(b"a > b\nb > a\n", "x", Format::Paths, &merged).unwrap();
    assert!(builder.build().is_err());
}

#[test]
fn paths_of_one_name_do_not_fill_the_memory() {
    // Each place of a line is a label whose whole path would be its name.
    let line = format!("{}\n", "a/".repeat(9_000));
    let text: String = (0..40).map(|at| format!("{at}/{line}")).collect();
    let options = ReadOptions {
        limits: Limits { file_bytes: 16 << 20, ..Limits::default() },
        ..ReadOptions::default()
    };
    let error = parse_graph(text.as_bytes(), "x", Format::Paths, &options).unwrap_err();
    assert!(error.to_string().contains("take more than 16777216 bytes"), "{error}");
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
    for name in ["x.toml", "x.csv", "x.txt", "x.obo", "x.ttl", "data.noun", "x.yaml", "x", "-"] {
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
