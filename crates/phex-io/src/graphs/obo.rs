//! Open Biomedical Ontologies: the `[Term]` stanzas of OBO 1.2 and 1.4.
//!
//! ```text
//! [Term]
//! id: GO:0005634
//! name: nucleus
//! is_a: GO:0043229 ! intracellular organelle
//! disjoint_from: GO:0005737
//! ```
//!
//! The id is the label and the name its title. `is_a` is a hierarchy edge, and `disjoint_from` an
//! exclusion. Other relations (`relationship: part_of`) are skipped and counted. If relations are
//! requested by name, exactly these are hierarchy edges; without `is_a` among them, `is_a` is not
//! read. Terms with `is_obsolete: true`, other tags and other stanzas are skipped. Trailing modifiers
//! `{…}` and comments `! …` are dropped.

use std::collections::BTreeMap;

use super::sink::GraphSink;
use crate::Error;
use crate::files::text::{SourceText, shown};

/// The tags of a stanza, as far as it was read.
#[derive(Default)]
struct OboTerm {
    /// The line of its header.
    start: usize,
    id: Option<(usize, String)>,
    name: Option<String>,
    parents: Vec<(usize, String)>,
    disjoint: Vec<(usize, String)>,
    obsolete: bool,
}

pub(super) fn read(
    source: &SourceText<'_>,
    relations: Option<&[String]>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let wanted = |relation: &str| match relations {
        Some(relations) => relations.iter().any(|name| name == relation),
        None => relation == "is_a",
    };
    let mut skipped: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut term: Option<OboTerm> = None;
    for (line, text) in source.lines() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('!') {
            continue;
        }
        if text.starts_with('[') {
            finish(source, term.take(), sink)?;
            let header = text.split('!').next().unwrap_or_default().trim();
            if !header.ends_with(']') {
                let message = format!("{} is not a stanza header such as `[Term]`", shown(text));
                return Err(source.error(line, message));
            }
            term = (header == "[Term]").then(|| OboTerm { start: line, ..OboTerm::default() });
            continue;
        }
        let Some((tag, value)) = text.split_once(':') else {
            let message = format!("{} is not of the form `tag: value`", shown(text));
            return Err(source.error(line, message));
        };
        let Some(term) = &mut term else { continue };
        let value = || clean(value);
        let identifier = || {
            let id = value();
            if id.is_empty() {
                return Err(source.error(line, format!("`{tag}` has no id")));
            }
            Ok((line, id))
        };
        match tag.trim_end() {
            "id" if term.id.is_some() => {
                return Err(source.error(line, "the term has a second `id`"));
            }
            "id" => term.id = Some(identifier()?),
            "name" => term.name = Some(value()),
            "is_a" if wanted("is_a") => term.parents.push(identifier()?),
            "is_a" => skipped.entry(String::from("is_a")).or_insert((line, 0)).1 += 1,
            "relationship" => {
                let (line, value) = identifier()?;
                let (relation, other) = value.split_once(char::is_whitespace).ok_or_else(|| {
                    let message = format!("{} is not of the form `relation id`", shown(&value));
                    source.error(line, message)
                })?;
                if wanted(relation) {
                    term.parents.push((line, other.trim().to_owned()));
                } else if !term.obsolete {
                    skipped.entry(relation.to_owned()).or_insert((line, 0)).1 += 1;
                }
            }
            "disjoint_from" => term.disjoint.push(identifier()?),
            "is_obsolete" => term.obsolete = value() == "true",
            _ => {}
        }
    }
    finish(source, term, sink)?;
    for (relation, (line, count)) in skipped.into_iter().take(20) {
        let lines = if count == 1 { "line" } else { "lines" };
        let message = format!(
            "{count} {lines} with the relation {} skipped; request it by name to read it as hierarchy",
            shown(&relation)
        );
        sink.note(line, message)?;
    }
    Ok(())
}

fn finish(
    source: &SourceText<'_>,
    term: Option<OboTerm>,
    sink: &mut GraphSink,
) -> Result<(), Error> {
    let Some(term) = term else { return Ok(()) };
    let Some((line, id)) = term.id else {
        return Err(source.error(term.start, "the term has no `id`"));
    };
    if term.obsolete {
        return Ok(());
    }
    // A term may be split over several stanzas.
    let title = term.name.as_deref().filter(|name| !name.is_empty());
    sink.label_once(line, &id, title)?;
    for (line, parent) in &term.parents {
        sink.at(*line)?.hierarchy(parent, &id, None);
    }
    for (line, other) in &term.disjoint {
        sink.at(*line)?.exclusion(&id, other, None);
    }
    Ok(())
}

/// The value without escapes, trailing modifiers and comment.
fn clean(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.trim_start().chars();
    // The position of the last `{`, which may start a modifier.
    let mut brace = None;
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('W') => out.push(' '),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            '!' => break,
            '{' => {
                brace = Some(out.len());
                out.push('{');
            }
            char => out.push(char),
        }
    }
    if let Some(brace) = brace.filter(|_| out.trim_end().ends_with('}')) {
        out.truncate(brace);
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::clean;
    use crate::{Format, ReadOptions, parse_graph};
    use phex::graph::GraphBuilder;

    fn read(text: &str) -> Result<GraphBuilder, crate::Error> {
        parse_graph(text.as_bytes(), "g.obo", Format::Obo, &ReadOptions::default())
    }

    #[test]
    fn terms_become_labels() {
        let text = "format-version: 1.2\n\n[Term]\nid: GO:2\nname: nucleus\nis_a: GO:1 {source=\"x\"} ! \
                    organelle\ndisjoint_from: GO:3\n\n[Term]\nid: GO:1\nname: organelle\n\n[Typedef]\n\
                    id: part_of\nis_a: GO:9\n\n[Term]\nid: GO:4\nis_a: GO:1\nis_obsolete: true\n";
        let graph = read(text).unwrap().build().unwrap();
        let names: Vec<_> = graph.labels().iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["GO:2", "GO:1", "GO:3"]);
        assert_eq!(graph.labels()[1].title.as_deref(), Some("organelle"));
        assert_eq!(graph.hierarchy()[0].place.to_string(), "g.obo:6");
        assert_eq!(graph.exclusions()[0].place.line, Some(7));
    }

    #[test]
    fn mistakes_have_their_line() {
        assert_eq!(read("[Term]\nname: x\n\n[Term]\n").unwrap_err().line(), Some(1));
        assert_eq!(read("[Term]\nid: a\nid: b\n").unwrap_err().line(), Some(3));
        assert_eq!(read("[Term]\nid: a\nnonsense\n").unwrap_err().line(), Some(3));
        assert_eq!(read("[OboTerm\n").unwrap_err().line(), Some(1));
        assert_eq!(read("[Term]\nid: a\nis_a: ! gone\n").unwrap_err().line(), Some(3));
    }

    #[test]
    fn relations_that_were_asked_for() {
        let text = "[Term]\nid: a\n\n[Term]\nid: b\nis_a: a\nrelationship: part_of c ! x\n\n[Term]\nid: c\n";
        let builder = read(text).unwrap();
        let notes: Vec<_> = builder.notes().map(|(place, note)| (place.line, note)).collect();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].0, Some(7));
        assert!(notes[0].1.starts_with("1 line with the relation `part_of` skipped"));
        for (names, edges) in [(vec!["is_a", "part_of"], 2), (vec!["part_of"], 1)] {
            let relations = Some(names.into_iter().map(str::to_owned).collect());
            let options = ReadOptions { relations, ..ReadOptions::default() };
            let builder = parse_graph(text.as_bytes(), "g.obo", Format::Obo, &options).unwrap();
            assert_eq!(builder.build().unwrap().hierarchy().len(), edges);
        }
    }

    #[test]
    fn escapes_modifiers_and_comments() {
        assert_eq!(clean(" a b  ! c"), "a b");
        assert_eq!(clean(r" a\!b {x=1}"), "a!b");
        assert_eq!(clean(" {a} b"), "{a} b");
        assert_eq!(clean(r" a\{b\}"), "a{b}");
    }
}
