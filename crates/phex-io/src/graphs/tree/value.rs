//! Values of JSON and YAML with the lines on which they start.
//!
//! Both are read into [`Value`], so that one reader of nested labels serves both. The number of
//! values and their depth are bounded. A string of JSON that has no escapes is a slice of the text,
//! whose address gives its line; any other value has the line of the string before it.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::Error;
use crate::files::text::{LineCounter, SourceText};

/// The most values of a file.
pub(in crate::graphs) const MAX_VALUES: usize = 20_000_000;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::graphs) enum Value<'a> {
    Null,
    /// A number or a boolean, as it is written.
    Plain(String),
    Text(Cow<'a, str>),
    List(Vec<Located<'a>>),
    Map(Vec<(Located<'a>, Located<'a>)>),
}

/// A value with its line.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::graphs) struct Located<'a> {
    pub(in crate::graphs) line: usize,
    pub(in crate::graphs) value: Value<'a>,
}

impl<'a> Located<'a> {
    /// The text of a string, a number or a boolean.
    pub(in crate::graphs) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Plain(text) => Some(text),
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(in crate::graphs) fn entries(&self) -> &[(Located<'a>, Located<'a>)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key of a map.
    pub(in crate::graphs) fn get(&self, key: &str) -> Option<&Located<'a>> {
        let found = self.entries().iter().find(|(name, _)| name.scalar() == Some(key));
        found.map(|(_, value)| value)
    }

    /// The items of a list.
    pub(in crate::graphs) fn items(&self) -> &[Located<'a>] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// What the value is, for messages.
    pub(in crate::graphs) fn what(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Plain(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Reads JSON. A value knows its lines if the text is a piece of the source.
pub(in crate::graphs) fn read_json<'a>(
    source: &SourceText<'a>,
    piece: &'a str,
) -> Result<Located<'a>, Error> {
    let start = source.text.as_ptr() as usize;
    let offset = (piece.as_ptr() as usize).saturating_sub(start);
    let seed = JsonSeed {
        start,
        lines: &RefCell::new(source.line_counter()),
        last: &Cell::new(source.line_counter().line(offset)),
        left: &Cell::new(MAX_VALUES),
    };
    let mut json = serde_json::Deserializer::from_str(piece);
    let value = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| {
        let line = source.line_counter().line(offset) + error.line().saturating_sub(1);
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        source.error(line, text.strip_suffix(&place).unwrap_or(&text))
    })
}

/// Deserialises a value and finds its line.
#[derive(Clone, Copy)]
struct JsonSeed<'s, 'a> {
    /// The address of the text.
    start: usize,
    lines: &'s RefCell<LineCounter<'a>>,
    /// The line of the last string.
    last: &'s Cell<usize>,
    /// How many more values there may be.
    left: &'s Cell<usize>,
}

impl<'a> DeserializeSeed<'a> for JsonSeed<'_, 'a> {
    type Value = Located<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Located<'a>, D::Error> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(D::Error::custom(format!("more than {MAX_VALUES} values")));
        };
        self.left.set(left);
        let line = self.last.get();
        let value = deserializer.deserialize_any(self)?;
        // A string has found its own line, and a map or list starts where the one before it ended.
        let line = if matches!(value, Value::Text(_)) { self.last.get() } else { line };
        Ok(Located { line, value })
    }
}

impl<'a> Visitor<'a> for JsonSeed<'_, 'a> {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value<'a>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'a>, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'a>, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'a>, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value<'a>, E> {
        Ok(Value::Plain(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'a>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Value<'a>, E> {
        let offset = (text.as_ptr() as usize).saturating_sub(self.start);
        self.last.set(self.lines.borrow_mut().line(offset));
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Value<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut entries: A) -> Result<Value<'a>, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(self)? {
            map.push((key, entries.next_value_seed(self)?));
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lines() {
        let text = "{\n\"a\": [1,\n \"b\\n\",\n\"c\"],\n \"d\": {\"e\":\nnull}}";
        let source = SourceText { name: "x", text };
        let value = read_json(&source, text).unwrap();
        let items = value.get("a").unwrap().items();
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [2, 2, 4]);
        assert_eq!(items[0].scalar(), Some("1"));
        assert_eq!(value.entries()[1].0.line, 5);
        assert_eq!(value.get("d").unwrap().get("e").unwrap().value, Value::Null);
        let error = read_json(&source, &text[..20]).unwrap_err();
        assert!(error.line().is_some(), "{error}");
    }
}
