//! The graph formats: their names and endings, and whether they can be read and written.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

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
    /// SKOS or OWL in RDF Turtle, N-Triples or TriG.
    Turtle,
    /// SKOS or OWL in RDF/XML.
    RdfXml,
    /// SKOS or OWL in JSON-LD.
    JsonLd,
    /// The noun file of WordNet 3.0 with a list of synsets.
    WordNet,
    /// Class × attribute matrices.
    Matrix,
    /// The hierarchical class attribute of an ARFF file.
    Arff,
    /// Tables with a row per label that names its parent.
    Parents,
    /// Tables with a column per level.
    Levels,
    /// Lines such as `animal > dog`.
    Paths,
    /// Nested labels in JSON.
    Tree,
    /// Nested labels in YAML.
    Yaml,
    /// The categories of COCO and iNaturalist.
    Categories,
    /// Node-link JSON of networkx.
    NodeLink,
    /// GraphML.
    GraphMl,
    /// The codes of ICD-10-CM, as a list or as XML.
    Icd10,
    /// Graphviz; it can only be written.
    Dot,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Format; 23] = [
        Format::Toml,
        Format::Json,
        Format::Csv,
        Format::Tsv,
        Format::Hxg,
        Format::Outline,
        Format::Obo,
        Format::Turtle,
        Format::RdfXml,
        Format::JsonLd,
        Format::WordNet,
        Format::Matrix,
        Format::Arff,
        Format::Parents,
        Format::Levels,
        Format::Paths,
        Format::Tree,
        Format::Yaml,
        Format::Categories,
        Format::NodeLink,
        Format::GraphMl,
        Format::Icd10,
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
            Format::RdfXml => "rdf-xml",
            Format::JsonLd => "json-ld",
            Format::WordNet => "wordnet",
            Format::Matrix => "matrix",
            Format::Arff => "arff",
            Format::Parents => "parents",
            Format::Levels => "levels",
            Format::Paths => "paths",
            Format::Tree => "tree",
            Format::Yaml => "yaml",
            Format::Categories => "categories",
            Format::NodeLink => "node-link",
            Format::GraphMl => "graphml",
            Format::Icd10 => "icd10",
            Format::Dot => "dot",
        }
    }

    /// Whether graphs can be read from it.
    pub fn can_read(self) -> bool {
        self != Format::Dot
    }

    /// Whether graphs can be written to it.
    pub fn can_write(self) -> bool {
        use Format::*;
        let only_read = matches!(
            self,
            Obo | Turtle | RdfXml | JsonLd | WordNet | Matrix | Arff | Yaml | Categories | Icd10
        );
        !only_read
    }

    /// Whether programs write it without line breaks.
    pub(crate) fn has_long_lines(self) -> bool {
        use Format::*;
        matches!(self, Json | Tree | Categories | NodeLink | GraphMl | Icd10 | RdfXml | JsonLd)
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
            // N-Triples are Turtle, and TriG has named graphs besides.
            "ttl" | "turtle" | "nt" | "trig" => Format::Turtle,
            "jsonld" => Format::JsonLd,
            "arff" => Format::Arff,
            "yaml" | "yml" => Format::Yaml,
            "graphml" => Format::GraphMl,
            "dot" | "gv" => Format::Dot,
            _ => return None,
        })
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
        assert!("yalm".parse::<Format>().unwrap_err().contains("toml, json"));
    }
}
