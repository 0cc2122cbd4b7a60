//! The graph formats: their names, how to recognise them, and whether they can be read and written.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::files::input::SNIFFED;

/// A file format of label-relation graphs. `docs/reference/formats.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The main format, for people. It holds every relation, strength and default.
    Toml,
    /// The same document as JSON, for programs.
    Json,
    /// Edge lists separated by commas.
    Csv,
    /// Edge lists separated by tabs.
    Tsv,
    /// The format of the hexgraph program, with the sections `#E#`, `#X#` and `#H#`.
    Hxg,
    /// Indented outlines.
    Outline,
    /// Open Biomedical Ontologies.
    Obo,
    /// RDF Turtle with SKOS or OWL.
    Turtle,
    /// The noun file of WordNet 3.0 with a list of synsets.
    WordNet,
    /// Class × attribute matrices.
    Matrix,
    /// The hierarchical class attribute of an ARFF file.
    Arff,
    /// Graphviz; it can only be written.
    Dot,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Format; 12] = [
        Format::Toml,
        Format::Json,
        Format::Csv,
        Format::Tsv,
        Format::Hxg,
        Format::Outline,
        Format::Obo,
        Format::Turtle,
        Format::WordNet,
        Format::Matrix,
        Format::Arff,
        Format::Dot,
    ];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Toml => "toml",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Hxg => "hxg",
            Format::Outline => "outline",
            Format::Obo => "obo",
            Format::Turtle => "turtle",
            Format::WordNet => "wordnet",
            Format::Matrix => "matrix",
            Format::Arff => "arff",
            Format::Dot => "dot",
        }
    }

    /// Whether graphs can be read from it.
    pub fn can_read(self) -> bool {
        self != Format::Dot
    }

    /// Whether graphs can be written to it.
    pub fn can_write(self) -> bool {
        use Format::{Csv, Dot, Hxg, Json, Outline, Toml, Tsv};
        matches!(self, Toml | Json | Csv | Tsv | Hxg | Outline | Dot)
    }

    /// The names of the formats that can be read, separated by commas.
    pub fn readable_names() -> String {
        let names = Format::ALL.iter().filter(|format| format.can_read()).map(|f| f.name());
        names.collect::<Vec<_>>().join(", ")
    }

    /// The names of the formats that can be written, separated by commas.
    pub fn writable_names() -> String {
        let names = Format::ALL.iter().filter(|format| format.can_write()).map(|f| f.name());
        names.collect::<Vec<_>>().join(", ")
    }

    /// The format that the name of a file implies. `.txt` implies none: see
    /// [`Format::from_content`].
    ///
    /// ```
    /// use phex_io::Format;
    /// assert_eq!(Format::from_path("animals.toml".as_ref()), Some(Format::Toml));
    /// assert_eq!(Format::from_path("dict/data.noun".as_ref()), Some(Format::WordNet));
    /// assert_eq!(Format::from_path("animals.txt".as_ref()), None);
    /// ```
    pub fn from_path(path: &Path) -> Option<Format> {
        if path.file_name().is_some_and(|name| name == "data.noun") {
            return Some(Format::WordNet);
        }
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "toml" => Format::Toml,
            "json" => Format::Json,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "hxg" => Format::Hxg,
            "outline" => Format::Outline,
            "obo" => Format::Obo,
            // N-Triples are Turtle.
            "ttl" | "turtle" | "nt" => Format::Turtle,
            "arff" => Format::Arff,
            "dot" | "gv" => Format::Dot,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file imply, if any.
    ///
    /// Outlines have no distinguishing mark and are never recognised; a `.txt` file of no other
    /// format is read as an outline.
    ///
    /// ```
    /// use phex_io::Format;
    /// assert_eq!(Format::from_content(b"#E#\ndog cat\n"), Some(Format::Hxg));
    /// assert_eq!(Format::from_content(b"parent,child\na,b\n"), Some(Format::Csv));
    /// assert_eq!(Format::from_content(b"animal\n  dog\n"), None);
    /// ```
    pub fn from_content(start: &[u8]) -> Option<Format> {
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let text = String::from_utf8_lossy(&start[..start.len().min(SNIFFED)]);
        if text.starts_with("  1 This software and database") {
            return Some(Format::WordNet);
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next()?;
        if first.starts_with('{') {
            return Some(Format::Json);
        }
        if matches!(first, "#E#" | "#X#" | "#H#") {
            return Some(Format::Hxg);
        }
        let arff = ["@relation", "@attribute"];
        let comment = |line: &&str| !line.starts_with('%');
        let telling = std::iter::once(first).chain(lines.clone()).find(comment);
        let telling = telling.unwrap_or_default().to_ascii_lowercase();
        if arff.iter().any(|mark| telling.starts_with(mark)) {
            return Some(Format::Arff);
        }
        // The other formats have comments that start with `#`.
        let telling = std::iter::once(first).chain(lines).find(|line| !line.starts_with('#'))?;
        let lower = telling.to_ascii_lowercase();
        if lower.starts_with("format-version:") || telling == "[Term]" {
            return Some(Format::Obo);
        }
        let turtle = ["@prefix ", "@base ", "prefix ", "base <", "<http"];
        if turtle.iter().any(|mark| lower.starts_with(mark)) {
            return Some(Format::Turtle);
        }
        let header = ["relation", "parent"];
        for (separator, format) in [('\t', Format::Tsv), (',', Format::Csv)] {
            let known = header.iter().any(|name| lower.starts_with(name));
            if known && telling.contains(separator) {
                return Some(format);
            }
        }
        let sections = ["[[hierarchy", "[[exclusion", "[[one_of", "[[labels", "[defaults"];
        let keys = ["semantics", "exclude", "labels", "hierarchy", "exclusion", "one_of"];
        let key = telling.split_once('=').map(|(key, _)| key.trim());
        let toml = sections.iter().any(|mark| telling.starts_with(mark))
            || key.is_some_and(|key| keys.contains(&key) || key.starts_with("defaults"));
        toml.then_some(Format::Toml)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("`{name}` is not a format; the formats are {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert!(format.can_read() || format.can_write());
        }
        assert!("yaml".parse::<Format>().unwrap_err().contains("toml, json"));
    }

    #[test]
    fn content_shows_the_format() {
        let cases: [(&str, Option<Format>); 12] = [
            ("\u{feff}\n { \"labels\": [] }", Some(Format::Json)),
            ("# a comment\nexclude = \"siblings\"\n", Some(Format::Toml)),
            ("[[hierarchy]]\nparent = 'a'\n", Some(Format::Toml)),
            ("relation\ta\tb\n", Some(Format::Tsv)),
            ("relation,a,b\n", Some(Format::Csv)),
            ("format-version: 1.2\n", Some(Format::Obo)),
            ("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n", Some(Format::Turtle)),
            ("\n#H#\nanimal: dog\n", Some(Format::Hxg)),
            ("  1 This software and database is", Some(Format::WordNet)),
            ("% x\n@RELATION x\n", Some(Format::Arff)),
            ("a = b\n", None),
            ("", None),
        ];
        for (text, format) in cases {
            assert_eq!(Format::from_content(text.as_bytes()), format, "{text}");
        }
    }
}
