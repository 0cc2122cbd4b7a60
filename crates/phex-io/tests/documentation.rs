//! The examples of `docs/formats.md` are read as what they claim to be.

use phex_io::{Format, ReadOptions, parse_graph};

#[test]
fn examples_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut read = 0;
    // Between fences, every other piece is an example that starts with the name of its format.
    for example in text.split("```").skip(1).step_by(2) {
        let (name, example) = example.split_once('\n').unwrap();
        if name == "sh" {
            continue;
        }
        let format: Format = name.parse().unwrap();
        let options = ReadOptions::default();
        let builder = parse_graph(example.as_bytes(), "formats.md", format, &options);
        let builder = builder.unwrap_or_else(|error| panic!("{error}\n{example}"));
        let graph = builder.build().unwrap_or_else(|error| panic!("{error}\n{example}"));
        assert!(graph.len() >= 3, "{example}");
        read += 1;
    }
    assert!(read >= 9, "{read} examples were found");
}

#[test]
fn every_format_is_described() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    for format in Format::ALL {
        assert!(text.contains(&format!("`{format}`")), "{format}");
    }
}
