//! Recognises the format of a file by its name, then by its content.
//!
//! The ending of a name may stand for a family: `.json` for documents, nested labels, categories,
//! …, `.csv` for edge lists and tables, `.txt` and `.xml` for anything. Content decides within it.

use super::{icd, json_form, outline, paths, table};
use crate::Format;
use crate::files::input::SNIFFED;

impl Format {
    /// The format that the first bytes of a file imply, if any.
    ///
    /// Outlines have no distinguishing mark and are never recognised; a `.txt` file of no other
    /// format is read as an outline. JSON and tables are told apart further when they are read.
    ///
    /// ```
    /// use phex_io::Format;
    /// assert_eq!(Format::from_content(b"#E#\ndog cat\n"), Some(Format::Hxg));
    /// assert_eq!(Format::from_content(b"parent,child\na,b\n"), Some(Format::Csv));
    /// assert_eq!(Format::from_content(b"animal > dog\nanimal > cat\n"), Some(Format::Paths));
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
        if first.starts_with('{') || is_json_list(&text) {
            return Some(Format::Json);
        }
        if first.starts_with('<') && !first.starts_with("<http") {
            return xml(&text);
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
        if toml {
            return Some(Format::Toml);
        }
        if first == "---" {
            return Some(Format::Yaml);
        }
        lines_form(&text)
    }
}

/// Whether a text starts as a list of JSON does, and not as a section of TOML or OBO.
fn is_json_list(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix('[') else { return false };
    let rest = rest.trim_start();
    rest.starts_with(['{', '"']) || rest.starts_with("[\"")
}

/// The format of an XML file by its first element.
fn xml(text: &str) -> Option<Format> {
    let has = |mark: &str| text.contains(mark);
    if has("<graphml") {
        Some(Format::GraphMl)
    } else if has("<ICD10CM") {
        Some(Format::Icd10)
    } else if has("22-rdf-syntax-ns#") || has("<rdf:RDF") {
        Some(Format::RdfXml)
    } else {
        None
    }
}

/// The format of lines of text that have no mark: tables by their header, code lists and paths.
fn lines_form(text: &str) -> Option<Format> {
    if outline::is_listing(text) {
        return None;
    }
    if icd::is_list(text) {
        return Some(Format::Icd10);
    }
    table::has_header(text).or_else(|| paths::separator(text).map(|_| Format::Paths))
}

/// The format of a whole file, given the one that its name or the user says, if any.
pub(super) fn recognise(
    given: Option<Format>,
    source: &crate::files::text::SourceText<'_>,
) -> Option<Format> {
    let format = given.or_else(|| Format::from_content(source.text.as_bytes()))?;
    Some(match format {
        Format::Json => json_form::form(source.text),
        Format::Csv | Format::Tsv => table::form(source, format),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_shows_the_format() {
        let cases: [(&str, Option<Format>); 25] = [
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
            ("[{\"id\": 1}]", Some(Format::Json)),
            ("[Term]\nid: a\n", Some(Format::Obo)),
            ("<?xml version='1.0'?>\n<graphml>", Some(Format::GraphMl)),
            ("<ICD10CM.tabular>", Some(Format::Icd10)),
            ("<?xml version='1.0'?>\n<rdf:RDF>", Some(Format::RdfXml)),
            ("A000 Cholera\nA001 More\n", Some(Format::Icd10)),
            ("---\na: b\n", Some(Format::Yaml)),
            ("id;parent_id;name\n", Some(Format::Parents)),
            ("kingdom\tphylum\tclass\n", Some(Format::Levels)),
            ("# x\n1 - a\n2 - a > b\n", Some(Format::Paths)),
            ("a/b\na/c\n", Some(Format::Paths)),
            ("1 | [1-4] | a\n2 | [2-3] | b\n", None),
            ("cats/dogs\n", Some(Format::Paths)),
            ("", None),
        ];
        for (text, format) in cases {
            assert_eq!(Format::from_content(text.as_bytes()), format, "{text}");
        }
    }
}
