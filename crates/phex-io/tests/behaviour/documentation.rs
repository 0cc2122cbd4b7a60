//! The examples of `docs/reference/formats.md` are read as what they claim to be.

use phex_io::{
    Format, IsingFormat, ReadOptions, parse_graph, parse_ising, parse_samples, parse_uai,
};

#[test]
fn examples_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut read = 0;
    // Between fences, every other piece is an example that starts with the name of its format.
    for example in text.split("```").skip(1).step_by(2) {
        let (name, example) = example.split_once('\n').unwrap();
        if name == "sh" {
            continue;
        }
        if read_elsewhere(name, example.as_bytes()) {
            read += 1;
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
    assert!(read >= 15, "{read} examples were found");
}

/// Whether an example is a model or samples, and not a graph: it is then read as that.
fn read_elsewhere(name: &str, example: &[u8]) -> bool {
    let labels = ["animal", "dog", "cat"].map(String::from);
    if name == "uai" {
        assert_eq!(parse_uai(example, "formats.md").unwrap().names(), labels);
    } else if name == "samples" {
        assert_eq!(parse_samples(example, "formats.md", &labels).unwrap().len(), 2);
    } else if let Ok(format) = name.parse::<IsingFormat>() {
        assert_eq!(parse_ising(example, "formats.md", format).unwrap().names.len(), 3);
    } else {
        return false;
    }
    true
}

#[test]
fn every_format_is_described() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/formats.md");
    let text = std::fs::read_to_string(path).unwrap();
    for format in Format::ALL {
        assert!(text.contains(&format!("`{format}`")), "{format}");
    }
    for format in IsingFormat::ALL {
        assert!(text.contains(&format!("`{format}`")), "{format}");
    }
}
