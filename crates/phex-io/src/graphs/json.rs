//! JSON, the same document as TOML. `schema/graph.schema.json` describes it.
//!
//! ```json
//! {
//!   "exclude": "siblings",
//!   "labels": ["animal", "dog", { "name": "cat", "title": "domestic cat" }],
//!   "hierarchy": [{ "parent": "animal", "children": ["dog", "cat"], "strength": { "u": 0.5 } }]
//! }
//! ```
//!
//! The file is read in two stages: first the items as raw text, whose position gives their line,
//! then each item.

use phex::graph::document::{Document, ExclusionItem, HierarchyItem, LabelItem, OneOfItem};
use phex::graph::{Defaults, RelationGraph, Semantics};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::document_items::{ReadLabel, ReadOneOf, ReadRule};
use super::sink::GraphSink;
use crate::files::text::{LineCounter, SourceText};
use crate::{Error, Format};

/// The document with its items as raw text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDocument<'a> {
    #[serde(borrow)]
    semantics: Option<&'a RawValue>,
    #[serde(borrow)]
    defaults: Option<&'a RawValue>,
    #[serde(borrow)]
    single_label: Option<&'a RawValue>,
    #[serde(borrow)]
    exclude: Option<&'a RawValue>,
    #[serde(borrow)]
    labels: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    hierarchy: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    exclusion: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    one_of: Vec<&'a RawValue>,
}

struct ItemReader<'a> {
    source: &'a SourceText<'a>,
    lines: LineCounter<'a>,
}

impl ItemReader<'_> {
    /// The line of an item, and the item.
    fn item<T: DeserializeOwned>(&mut self, raw: &RawValue) -> Result<(usize, T), Error> {
        // The raw text is a slice of the source: the difference of the addresses is its offset.
        let offset = raw.get().as_ptr() as usize - self.source.text.as_ptr() as usize;
        let line = self.lines.line(offset);
        match serde_json::from_str(raw.get()) {
            Ok(item) => Ok((line, item)),
            Err(error) => Err(syntax(self.source, line, &error)),
        }
    }
}

/// An error in a piece of text, given the line on which the piece starts.
fn syntax(source: &SourceText<'_>, start: usize, error: &serde_json::Error) -> Error {
    // Errors of values, unlike those of syntax, may have no position: their line is 0.
    let line = start + error.line().saturating_sub(1);
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    source.error(line, text.strip_suffix(&place).unwrap_or(&text))
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    let document: RawDocument<'_> =
        serde_json::from_str(source.text).map_err(|error| syntax(source, 1, &error))?;
    let mut items = ItemReader { source, lines: source.line_counter() };
    if let Some(raw) = document.semantics {
        let (line, semantics) = items.item::<Semantics>(raw)?;
        sink.at(line)?.semantics(semantics);
    }
    if let Some(raw) = document.defaults {
        let (line, defaults) = items.item::<Defaults>(raw)?;
        sink.at(line)?.defaults(defaults);
    }
    if let Some(raw) = document.single_label {
        let (line, single_label) = items.item::<bool>(raw)?;
        if single_label {
            sink.at(line)?.single_label();
        }
    }
    if let Some(raw) = document.exclude {
        let (line, rule) = items.item::<ReadRule>(raw)?;
        rule.0.declare(sink.at(line)?);
    }
    if let Some(labels) = document.labels {
        for raw in labels {
            let (line, label) = items.item::<ReadLabel>(raw)?;
            match label.0 {
                LabelItem::Name(name) => sink.label(line, &name, None)?,
                LabelItem::Titled { name, title } => sink.label(line, &name, Some(&title))?,
            }
        }
        sink.at(1)?.close_labels();
    }
    for raw in document.hierarchy {
        let (line, item) = items.item::<HierarchyItem>(raw)?;
        item.declare(sink.at(line)?);
    }
    for raw in document.exclusion {
        let (line, item) = items.item::<ExclusionItem>(raw)?;
        item.declare(sink.at(line)?);
    }
    for raw in document.one_of {
        let (line, item) = items.item::<ReadOneOf>(raw)?;
        OneOfItem::from(item).declare(sink.at(line)?);
    }
    Ok(())
}

pub(super) fn write(graph: &RelationGraph) -> Result<String, Error> {
    let encode = |error: serde_json::Error| Error::Encode {
        format: Format::Json,
        message: error.to_string(),
    };
    let mut text = serde_json::to_string_pretty(&Document::from(graph)).map_err(encode)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::GraphBuilder;

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.json", Format::Json, &ReadOptions::default())
    }

    #[test]
    fn every_declaration_knows_its_line() {
        let text = "{\n\"hierarchy\": [\n {\"parent\": \"a\", \"children\": [\"b\"]},\n {\"parent\": \
                    \"b\",\n  \"children\": [\"c\"]}],\n\"labels\": [\"a\",\n\"b\", \"c\"]\n}\n";
        let graph = read(text).unwrap().build().unwrap();
        let labels: Vec<_> = graph.labels().iter().map(|label| label.place.line).collect();
        assert_eq!(labels, [Some(6), Some(7), Some(7)]);
        let edges: Vec<_> = graph.hierarchy().iter().map(|edge| edge.place.line).collect();
        assert_eq!(edges, [Some(3), Some(4)]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let cases = [
            ("{\n\"lables\": []}", "g.json:2: unknown field `lables`"),
            (
                "{\"labels\": [\n\"a\",\n{\"name\": \"b\",\n\"titel\": \"B\"}]}",
                "g.json:4: unknown field `titel`",
            ),
            ("{\"hierarchy\": [\n{\"parent\": \"a\"}]}", "g.json:2: missing field `children`"),
            ("{\"exclude\":\n\"sibling\"}", "g.json:2: unknown variant `sibling`"),
            (
                "{\"one_of\": [\n{\"name\": \"x\", \"labels\": 3}]}",
                "g.json:2: invalid type: integer `3`",
            ),
            ("{\n\n\"labels\": [}", "g.json:3: "),
            ("[]", "g.json:1: "),
        ];
        for (text, start) in cases {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
            assert!(!error.contains(" column "), "{error}");
        }
    }
}
