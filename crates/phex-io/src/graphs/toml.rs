//! TOML, the main format.
//!
//! ```toml
//! single_label = true               # a taxonomy: each thing is exactly one kind
//! exclude = "siblings"              # or { rule = "siblings", strength = { u = 0.5 } }
//! labels = ["animal", "dog", { name = "cat", title = "domestic cat" }]
//!
//! [defaults]
//! strength = "hard"                 # or { q = 0.1 }, { u = 0.5 }, { w = 2 }
//!
//! [[hierarchy]]
//! parent = "animal"
//! children = ["dog", "cat"]
//! strength = { u = 0.5 }
//!
//! [[exclusion]]
//! labels = ["dog", "cat"]
//!
//! [[one_of]]
//! name = "species"
//! labels = ["dog", "cat"]           # or "leaves"
//! ```
//!
//! Without `labels`, the labels are those that the relations name.

use phex::graph::document::{ExclusionItem, HierarchyItem, LabelItem, OneOfItem};
use phex::graph::{Defaults, Semantics};
use serde::Deserialize;
use toml::Spanned;

use super::document_items::{ReadLabel, ReadOneOf, ReadRule};
use super::sink::GraphSink;
use crate::Error;
use crate::files::text::SourceText;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlDocument {
    semantics: Option<Semantics>,
    defaults: Option<Spanned<Defaults>>,
    single_label: Option<Spanned<bool>>,
    exclude: Option<Spanned<ReadRule>>,
    labels: Option<Vec<Spanned<ReadLabel>>>,
    #[serde(default)]
    hierarchy: Vec<Spanned<HierarchyItem>>,
    #[serde(default)]
    exclusion: Vec<Spanned<ExclusionItem>>,
    #[serde(default)]
    one_of: Vec<Spanned<ReadOneOf>>,
}

pub(super) fn read(source: &SourceText<'_>, sink: &mut GraphSink) -> Result<(), Error> {
    let mut lines = source.line_counter();
    let document: TomlDocument = toml::from_str(source.text).map_err(|error| {
        let line = error.span().map_or(1, |span| lines.line(span.start));
        source.error(line, error.message().trim())
    })?;
    if let Some(semantics) = document.semantics {
        sink.at(1)?.semantics(semantics);
    }
    if let Some(defaults) = document.defaults {
        sink.at(lines.line(defaults.span().start))?.defaults(defaults.into_inner());
    }
    if let Some(single_label) = document.single_label.filter(|value| *value.get_ref()) {
        sink.at(lines.line(single_label.span().start))?.single_label();
    }
    if let Some(rule) = document.exclude {
        let line = lines.line(rule.span().start);
        rule.into_inner().0.declare(sink.at(line)?);
    }
    if let Some(labels) = document.labels {
        for label in labels {
            let line = lines.line(label.span().start);
            match label.into_inner().0 {
                LabelItem::Name(name) => sink.label(line, &name, None)?,
                LabelItem::Titled { name, title } => sink.label(line, &name, Some(&title))?,
            }
        }
        sink.at(1)?.close_labels();
    }
    for item in document.hierarchy {
        let line = lines.line(item.span().start);
        item.into_inner().declare(sink.at(line)?);
    }
    for item in document.exclusion {
        let line = lines.line(item.span().start);
        item.into_inner().declare(sink.at(line)?);
    }
    for item in document.one_of {
        let line = lines.line(item.span().start);
        OneOfItem::from(item.into_inner()).declare(sink.at(line)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::GraphBuilder;

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.toml", Format::Toml, &ReadOptions::default())
    }

    #[test]
    fn every_declaration_knows_its_line() {
        let text = "exclude = \"siblings\"\nlabels = [\n  \"a\",\n  \"b\", # a comment\n  { name = \
                    \"c\", title = \"C\" },\n]\n\n[defaults]\nstrength = { u = 0.5 }\n\n[[hierarchy]]\n\
                    parent = \"a\"\nchildren = [\"b\"]\n\n[[exclusion]]\nlabels = [\"b\", \"c\"]\n\n\
                    [[one_of]]\nname = \"g\"\nlabels = [\"c\"]\n";
        let graph = read(text).unwrap().build().unwrap();
        let labels: Vec<_> = graph.labels().iter().map(|label| label.place.line).collect();
        assert_eq!(labels, [Some(3), Some(4), Some(5)]);
        assert_eq!(graph.rule().unwrap().place.line, Some(1));
        assert_eq!(graph.hierarchy()[0].place.to_string(), "g.toml:11");
        assert_eq!(graph.exclusions()[0].place.line, Some(15));
        assert_eq!(graph.one_of()[0].place.line, Some(18));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let cases = [
            ("labels = [\"a\"]\nlables = [\"a\"]\n", "g.toml:2: unknown field `lables`"),
            (
                "labels = [\n\"a\",\n{ name = \"b\", titel = \"B\" }]\n",
                "g.toml:3: unknown field `titel`",
            ),
            (
                "\n[[hierarchy]]\nparent = \"a\"\nchild = [\"b\"]\n",
                "g.toml:4: unknown field `child`",
            ),
            ("exclude = \"sibling\"\n", "g.toml:1: unknown variant `sibling`"),
            (
                "\n\n[[one_of]]\nname = \"x\"\nlabels = \"leafs\"\n",
                "g.toml:5: unknown variant `leafs`",
            ),
            (
                "[[exclusion]]\nlabels = [\"a\", \"b\"]\nstrength = { z = 1 }\n",
                "g.toml:3: a strength is",
            ),
            ("a = 1\nb = = 2\n", "g.toml:2: "),
        ];
        for (text, start) in cases {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }
}
