//! The triples of a file with their lines: Turtle, N-Triples and TriG, RDF/XML, JSON-LD.
//!
//! External documents are not loaded, and XML entities are not expanded. Named graphs are merged.
//! Relative IRIs are resolved against [`BASE`], unless the file has a base.

use std::cell::Cell;
use std::io::Read;

use oxjsonld::{JsonLdParseError, JsonLdParser};
use oxrdf::Triple;
use oxrdfxml::RdfXmlParser;
use oxttl::TriGParser;

use super::super::xml::no_entities;
use crate::files::text::SourceText;
use crate::{Error, Format};

/// What relative IRIs are resolved against; names of labels do not show it.
const BASE: &str = "file:///";
/// After this many bytes without a triple, the parser of Turtle gets more than one line at a time,
/// because it scans a long token again from its start with each piece.
const PATIENCE: usize = 64 * 1024;

/// Hands every triple and its line to a function.
pub(super) fn triples(
    source: &SourceText<'_>,
    format: Format,
    found: &mut dyn FnMut(usize, Triple),
) -> Result<(), Error> {
    match format {
        Format::RdfXml => rdf_xml(source, found),
        Format::JsonLd => json_ld(source, found),
        _ => trig(source, found),
    }
}

/// Feeds the parser line by line, so that each triple ends on the line fed last.
fn trig(source: &SourceText<'_>, found: &mut dyn FnMut(usize, Triple)) -> Result<(), Error> {
    let parser = TriGParser::new().with_base_iri(BASE);
    let mut parser = parser.map_err(|error| source.error(1, error.to_string()))?.low_level();
    let (mut line, mut waiting) = (0, 0);
    let mut rest = source.text.as_bytes();
    loop {
        let ended = rest.is_empty();
        if ended {
            parser.end();
        } else {
            let least = if waiting > PATIENCE { (waiting / 2).min(rest.len() - 1) } else { 0 };
            let end = rest[least..].iter().position(|&byte| byte == b'\n');
            let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| least + end + 1));
            parser.extend_from_slice(piece);
            line += if least == 0 { 1 } else { piece.split_inclusive(|&b| b == b'\n').count() };
            waiting += piece.len();
            rest = after;
        }
        while let Some(parsed) = parser.parse_next() {
            waiting = 0;
            let quad = parsed.map_err(|error| {
                let line = usize::try_from(error.location().start.line).unwrap_or(usize::MAX - 1);
                source.error(line + 1, error.message())
            })?;
            found(line, quad.into());
        }
        if ended {
            return Ok(());
        }
    }
}

fn rdf_xml(source: &SourceText<'_>, found: &mut dyn FnMut(usize, Triple)) -> Result<(), Error> {
    no_entities(source)?;
    let parser = RdfXmlParser::new().with_base_iri(BASE);
    let parser = parser.map_err(|error| source.error(1, error.to_string()))?;
    let mut lines = source.line_counter();
    let mut parser = parser.for_slice(source.text.as_bytes());
    while let Some(parsed) = parser.next() {
        let line = lines.line(usize::try_from(parser.buffer_position()).unwrap_or(usize::MAX));
        found(line, parsed.map_err(|error| source.error(line, error.to_string()))?);
    }
    Ok(())
}

/// Text that is handed out line by line and counts the lines.
struct Lines<'a, 'c> {
    rest: &'a [u8],
    line: &'c Cell<usize>,
}

impl Read for Lines<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = &self.rest[..self.rest.len().min(buffer.len())];
        let end = most.iter().position(|&byte| byte == b'\n').map_or(most.len(), |at| at + 1);
        buffer[..end].copy_from_slice(&most[..end]);
        self.rest = &self.rest[end..];
        // The line of what was handed out last, which is the parser's as long as it reads no more.
        if end > 0 && (buffer[end - 1] == b'\n' || self.rest.is_empty()) {
            self.line.set(self.line.get() + 1);
        }
        Ok(end)
    }
}

fn json_ld(source: &SourceText<'_>, found: &mut dyn FnMut(usize, Triple)) -> Result<(), Error> {
    let line = Cell::new(0);
    let parser = JsonLdParser::new().with_base_iri(BASE);
    let parser = parser.map_err(|error| source.error(1, error.to_string()))?;
    for parsed in parser.for_reader(Lines { rest: source.text.as_bytes(), line: &line }) {
        let quad = parsed.map_err(|error| {
            let place = match &error {
                JsonLdParseError::Syntax(error) => error.location(),
                JsonLdParseError::Io(_) => None,
            };
            let exact = place.and_then(|place| usize::try_from(place.start.line + 1).ok());
            let mut message = error.to_string();
            if message.contains("context") {
                message
                    .push_str("; contexts of other files are not loaded: write them into this one");
            }
            source.error(exact.unwrap_or(line.get().max(1)), message)
        })?;
        found(line.get().max(1), quad.into());
    }
    Ok(())
}
