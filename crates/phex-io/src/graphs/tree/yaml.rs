//! YAML as located values.
//!
//! An explicit stack turns the events of the parser into values, so that depth needs no recursion
//! and is bounded. Anchors and aliases are rejected, because a few of them can expand to more values
//! than fit into memory.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::value::{Located, MAX_VALUES, Value};
use crate::Error;
use crate::files::text::SourceText;

/// The most levels of lists and maps.
const MAX_DEPTH: usize = 1000;

/// A list or map that is not finished.
struct Open<'a> {
    line: usize,
    /// Whether it is a map, whose items are keys and values in turn.
    map: bool,
    items: Vec<Located<'a>>,
}

/// The one document of a file.
pub(super) fn read<'a>(source: &SourceText<'a>) -> Result<Located<'a>, Error> {
    let mut parser = Parser::new_from_str(source.text);
    let mut open: Vec<Open<'a>> = Vec::new();
    let mut document: Option<Located<'a>> = None;
    let (mut documents, mut values) = (0, 0);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            // The parser may notice a fault of the last line only behind it.
            let line = error.marker().line().min(source.text.lines().count()).max(1);
            source.error(line, error.info().to_owned())
        })?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(source.error(line, "this is a second document; a graph has one"));
                }
                continue;
            }
            Event::Alias(_) => {
                let message = "aliases such as `*name` are not read; write the labels out";
                return Err(source.error(line, message));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= MAX_DEPTH {
                    let message = format!("more than {MAX_DEPTH} levels of lists and maps");
                    return Err(source.error(line, message));
                }
                let map = matches!(event, Event::MappingStart(..));
                open.push(Open { line, map, items: Vec::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(closed) = open.pop() else { continue };
                closed.finish()
            }
            Event::Scalar(text, style, ..) => Located { line, value: scalar(text, style) },
            _ => continue,
        };
        values += 1;
        if values > MAX_VALUES {
            return Err(source.error(line, format!("more than {MAX_VALUES} values")));
        }
        match open.last_mut() {
            Some(open) => open.items.push(done),
            None => document = Some(done),
        }
    }
    document.ok_or_else(|| source.error(1, "the file is empty"))
}

impl<'a> Open<'a> {
    fn finish(self) -> Located<'a> {
        let Open { line, map, items } = self;
        if !map {
            return Located { line, value: Value::List(items) };
        }
        let mut entries = Vec::with_capacity(items.len() / 2);
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        Located { line, value: Value::Map(entries) }
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Value<'_> {
    let null = matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
    match style {
        ScalarStyle::Plain if null => Value::Null,
        _ => Value::Text(text),
    }
}
