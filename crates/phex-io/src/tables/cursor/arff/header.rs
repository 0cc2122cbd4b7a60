//! The header of an ARFF file: attributes and their types.

use std::collections::HashSet;

use super::hierarchy::Hierarchy;
use super::words::{ArffWords, quoted, unescape};
use crate::Error;
use crate::files::lines::LineReader;
use crate::files::text::{SourceText, shown};

/// The type of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttributeType {
    Numeric,
    /// One of these.
    Nominal(Vec<String>),
    /// Any text.
    Text,
    /// A date, kept as text.
    Date,
    /// Classes of a hierarchy.
    Hierarchical(Hierarchy),
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) kind: AttributeType,
    pub(crate) line: usize,
}

/// The attributes, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ArffHeader {
    pub(crate) attributes: Vec<Attribute>,
}

impl ArffHeader {
    /// Reads the header of a text and ignores what follows `@data`.
    pub(crate) fn parse(source: &SourceText<'_>) -> Result<ArffHeader, Error> {
        let mut header = ArffHeader::default();
        for (line, text) in source.lines() {
            if header.feed(line, text).map_err(|message| source.error(line, message))? {
                break;
            }
        }
        header.checked().map_err(|message| source.error(1, message))
    }

    /// Reads the header of a stream, up to and including the line `@data`.
    pub(crate) fn read(lines: &mut LineReader) -> Result<ArffHeader, Error> {
        let mut header = ArffHeader::default();
        loop {
            if !lines.next()? {
                return Err(lines.error("the file ends before `@data`"));
            }
            let (line, text) = (lines.line(), lines.text()?);
            if header.feed(line, text).map_err(|message| lines.error(message))? {
                return header.checked().map_err(|message| lines.error(message));
            }
        }
    }

    /// Adds a line and says whether the data comes next.
    fn feed(&mut self, line: usize, text: &str) -> Result<bool, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('%') {
            return Ok(false);
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match word.to_ascii_lowercase().as_str() {
            "@relation" => Ok(false),
            "@data" => Ok(true),
            "@attribute" => {
                let (name, kind) = attribute(rest.trim_start())?;
                self.attributes.push(Attribute { name, kind, line });
                Ok(false)
            }
            _ => Err(format!(
                "{} is not `@relation`, `@attribute` or `@data`; is this an ARFF file?",
                shown(word)
            )),
        }
    }

    /// Repeated names get a number: the position identifies an ARFF attribute, and there are files
    /// with repeated names.
    fn checked(mut self) -> Result<ArffHeader, String> {
        if self.attributes.is_empty() {
            return Err(String::from("the file has no `@attribute`; is this an ARFF file?"));
        }
        let mut known: HashSet<String> = HashSet::new();
        for attribute in &mut self.attributes {
            let numbers = (2u32..).map(|number| format!("{} ({number})", attribute.name));
            let mut names = std::iter::once(attribute.name.clone()).chain(numbers);
            if let Some(name) = names.find(|name| !known.contains(name)) {
                attribute.name = name;
            }
            known.insert(attribute.name.clone());
        }
        Ok(self)
    }

    /// The attributes whose values are classes of a hierarchy.
    pub(crate) fn hierarchies(&self) -> impl Iterator<Item = (&Attribute, &Hierarchy)> {
        self.attributes.iter().filter_map(|attribute| match &attribute.kind {
            AttributeType::Hierarchical(hierarchy) => Some((attribute, hierarchy)),
            _ => None,
        })
    }
}

/// The name and the type of an attribute.
fn attribute(text: &str) -> Result<(String, AttributeType), String> {
    let (name, rest) = match quoted(text)? {
        Some((name, rest)) => {
            let mut plain = String::new();
            unescape(name, &mut plain);
            (plain, rest)
        }
        None => {
            let end = text.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(text.len());
            (text[..end].to_owned(), &text[end..])
        }
    };
    if name.is_empty() {
        return Err(String::from("an attribute has a name and a type: `@attribute x numeric`"));
    }
    let rest = rest.trim();
    if let Some(values) = rest.strip_prefix('{') {
        let Some(values) = values.strip_suffix('}') else {
            return Err(format!("the values of `{name}` do not end with `}}`"));
        };
        return Ok((name, AttributeType::Nominal(nominal(values)?)));
    }
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let kind = match word.to_ascii_lowercase().as_str() {
        "numeric" | "real" | "integer" => AttributeType::Numeric,
        "string" => AttributeType::Text,
        "date" => AttributeType::Date,
        "hierarchical" => {
            let mut words = ArffWords::default();
            words.split(rest)?;
            AttributeType::Hierarchical(Hierarchy::new(&words.texts())?)
        }
        "" => return Err(format!("the attribute `{name}` has no type")),
        _ => {
            return Err(format!(
                "the attribute `{name}` is of type {}; the types are numeric, real, integer, \
                 string, date, hierarchical and values in braces",
                shown(word)
            ));
        }
    };
    Ok((name, kind))
}

fn nominal(text: &str) -> Result<Vec<String>, String> {
    let mut words = ArffWords::default();
    words.split(text)?;
    let values = words.texts();
    let mut seen = std::collections::HashSet::new();
    match values.iter().find(|value| !seen.insert(value.as_str())) {
        Some(twice) => Err(format!("the value {} is declared twice", shown(twice))),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ArffHeader, Error> {
        ArffHeader::parse(&SourceText { name: "x.arff", text })
    }

    #[test]
    fn types_and_quoted_names_are_read() {
        let text = "% c\n@RELATION 'a b'\n\n@Attribute 'a b' REAL\n@attribute x{'1, 2',b}\n\
                    @attribute s string\n@attribute d date 'yyyy'\n@data\n@nonsense";
        let header = parse(text).unwrap();
        let names: Vec<_> = header.attributes.iter().map(|a| (a.name.as_str(), a.line)).collect();
        assert_eq!(names, [("a b", 4), ("x", 5), ("s", 6), ("d", 7)]);
        assert_eq!(header.attributes[0].kind, AttributeType::Numeric);
        assert_eq!(
            header.attributes[1].kind,
            AttributeType::Nominal(vec!["1, 2".into(), "b".into()])
        );
        assert_eq!(header.attributes[2].kind, AttributeType::Text);
        assert_eq!(header.attributes[3].kind, AttributeType::Date);
    }

    #[test]
    fn repeated_names_are_numbered() {
        let text =
            "@attribute a numeric\n@attribute a numeric\n@attribute 'a (2)' numeric\n@data\n";
        let header = parse(text).unwrap();
        let names: Vec<&str> = header.attributes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "a (2)", "a (2) (2)"]);
    }

    #[test]
    fn mistakes_have_lines() {
        let cases = [
            ("@relation x\nfoo", "x.arff:2: `foo` is not"),
            ("@attribute x", "x.arff:1: the attribute `x` has no type"),
            ("@attribute", "has a name and a type"),
            ("@attribute x relational", "is of type `relational`"),
            ("@attribute x {a,b", "do not end with `}`"),
            ("@attribute x {a,a}", "`a` is declared twice"),
            ("@attribute 'x", "nothing closes it"),
            ("@data", "no `@attribute`"),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
