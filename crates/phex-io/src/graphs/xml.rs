//! The tags and texts of an XML file with their lines.
//!
//! Entities that a file declares are never expanded, because a few of them can expand to more text
//! than fits into memory, or refer to other files. A file that declares entities is rejected.

use quick_xml::Reader;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::Event;

use crate::Error;
use crate::files::text::{LineCounter, SourceText};

/// The most levels of elements.
const MAX_DEPTH: usize = 10_000;

/// An element that starts.
#[derive(Debug)]
pub(super) struct XmlTag {
    pub(super) line: usize,
    /// The name without its prefix.
    pub(super) name: String,
    attributes: Vec<(String, String)>,
}

impl XmlTag {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A piece of a file.
#[derive(Debug)]
pub(super) enum XmlToken {
    Start(XmlTag),
    /// The name of an element that ends, without its prefix. Empty elements end at once.
    End(String),
    Text(String),
}

/// Reads a file piece by piece.
pub(super) struct XmlReader<'a> {
    source: SourceText<'a>,
    reader: Reader<&'a [u8]>,
    lines: LineCounter<'a>,
    depth: usize,
    /// The end of an empty element that was just started.
    ended: Option<String>,
}

/// Refuses entities that the file declares.
pub(super) fn no_entities(source: &SourceText<'_>) -> Result<(), Error> {
    let Some(at) = source.text.find("<!ENTITY") else { return Ok(()) };
    let line = source.line_counter().line(at);
    let message = "the file declares entities of its own, which are never expanded; save it \
                   without them, or as Turtle";
    Err(source.error(line, message))
}

impl<'a> XmlReader<'a> {
    pub(super) fn new(source: &SourceText<'a>) -> Result<XmlReader<'a>, Error> {
        no_entities(source)?;
        let reader = Reader::from_str(source.text);
        let lines = source.line_counter();
        Ok(XmlReader { source: *source, reader, lines, depth: 0, ended: None })
    }

    /// The next piece; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<XmlToken>, Error> {
        if let Some(name) = self.ended.take() {
            return Ok(Some(XmlToken::End(name)));
        }
        loop {
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let line = self.lines.line(self.reader.error_position() as usize);
                    return Err(self.source.error(line, error.to_string()));
                }
            };
            let line = self.lines.line(self.reader.buffer_position() as usize);
            let fault = |error: &dyn std::fmt::Display| self.source.error(line, error.to_string());
            return Ok(Some(match event {
                Event::Eof if self.depth > 0 => {
                    return Err(self.source.error(line, "an element is never closed"));
                }
                Event::Eof => return Ok(None),
                Event::Start(ref tag) | Event::Empty(ref tag) => {
                    let name = local(tag.local_name().as_ref());
                    let mut attributes = Vec::new();
                    for attribute in tag.attributes() {
                        let attribute = attribute.map_err(|error| fault(&error))?;
                        let value = attribute.unescape_value().map_err(|error| fault(&error))?;
                        attributes.push((local(attribute.key.as_ref()), value.into_owned()));
                    }
                    if matches!(event, Event::Empty(_)) {
                        self.ended = Some(name.clone());
                    } else {
                        self.depth += 1;
                        if self.depth > MAX_DEPTH {
                            let message = format!("more than {MAX_DEPTH} levels of elements");
                            return Err(self.source.error(line, message));
                        }
                    }
                    XmlToken::Start(XmlTag { line, name, attributes })
                }
                Event::End(tag) => {
                    self.depth = self.depth.saturating_sub(1);
                    XmlToken::End(local(tag.local_name().as_ref()))
                }
                Event::Text(text) => {
                    let raw = String::from_utf8_lossy(&text).into_owned();
                    XmlToken::Text(unescape(&raw).map_err(|error| fault(&error))?.into_owned())
                }
                Event::CData(text) => XmlToken::Text(String::from_utf8_lossy(&text).into_owned()),
                _ => continue,
            }));
        }
    }
}

fn local(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Text as an attribute or an element holds it.
pub(super) fn escaped(text: &str) -> String {
    escape(text).replace('\n', "&#10;").replace('\r', "&#13;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_lines() {
        let text = "<?xml version=\"1.0\"?>\n<a>\n<b:c x=\"1 &amp; 2\"/>\nt&lt;</a>";
        let source = SourceText { name: "x", text };
        let mut xml = XmlReader::new(&source).unwrap();
        let mut found = Vec::new();
        while let Some(token) = xml.next().unwrap() {
            found.push(match token {
                XmlToken::Start(tag) => {
                    format!("{}:{}{:?}", tag.line, tag.name, tag.attribute("x"))
                }
                XmlToken::End(name) => format!("/{name}"),
                XmlToken::Text(text) => text.trim().to_owned(),
            });
        }
        found.retain(|token| !token.is_empty());
        assert_eq!(found, ["2:aNone", "3:cSome(\"1 & 2\")", "/c", "t<", "/a"]);
    }

    #[test]
    fn entities_are_refused() {
        let text = "<!DOCTYPE a [\n<!ENTITY x \"y\">]>\n<a>&x;</a>";
        let error = XmlReader::new(&SourceText { name: "x", text }).err().unwrap();
        assert_eq!(error.line(), Some(2));
        let source = SourceText { name: "x", text: "<a>&x;</a>" };
        let mut xml = XmlReader::new(&source).unwrap();
        xml.next().unwrap();
        assert!(xml.next().is_err());
    }
}
